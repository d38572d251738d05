//! Tiny pictures that every reader opens, whose pixels tell which picture it is.

/// A PNG of one pixel in a colour of its own, so many kilobytes longer.
pub(super) fn png(seed: u64, kilobytes: usize) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut out, b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
    if kilobytes > 0 {
        let mut text = b"Comment\0".to_vec();
        // Among its letters are those that some escape.
        text.extend([[0xfb; 32], [b'x'; 32]].concat().repeat(kilobytes * 16));
        chunk(&mut out, b"tEXt", &text);
    }
    let pixel = seed.to_be_bytes();
    let row = [0, pixel[5], pixel[6], pixel[7]];
    // One stored block: its length, the complement, the bytes.
    let mut data = vec![0x78, 0x01, 0x01, 4, 0, 0xfb, 0xff];
    data.extend_from_slice(&row);
    data.extend_from_slice(&adler(&row).to_be_bytes());
    chunk(&mut out, b"IDAT", &data);
    chunk(&mut out, b"IEND", &[]);
    out
}

/// The beginning and end of a JPEG; no reader opens it, but all know what it is.
pub(super) fn jpeg(seed: u64) -> Vec<u8> {
    let mut out = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xfe\0\x0a".to_vec();
    out.extend_from_slice(&seed.to_be_bytes());
    out.extend_from_slice(b"\xff\xd9");
    out
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    out.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    let from = out.len();
    out.extend_from_slice(kind);
    out.extend_from_slice(data);
    let sum = crc(&out[from..]);
    out.extend_from_slice(&sum.to_be_bytes());
}

const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let (mut value, mut bit) = (at as u32, 0);
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
};

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, byte| CRC[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8))
}

fn adler(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    (b << 16) | a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_the_known_ones() {
        assert_eq!((crc(b"IEND"), adler(b"Wikipedia")), (0xae42_6082, 0x11e6_0398));
        let picture = png(7, 2);
        assert!(picture.ends_with(b"IEND\xaeB`\x82") && picture.len() > 2_048);
        assert_ne!(png(1, 0), png(2, 0));
    }
}
