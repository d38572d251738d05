//! A tiny video that players accept: one H.264 picture of 16 by 16 pixels, shown for the wanted
//! time. The picture is stored raw (I_PCM), so no encoder is needed.

/// The longest file, in kilobytes on top.
const LONGEST: u32 = 65_536;

/// The whole file, made longer by so many kilobytes that players skip. No two of them are alike, so
/// that a piece in the wrong place shows.
pub(super) fn longer(seconds: u32, kilobytes: u32) -> Vec<u8> {
    let mut file = video(seconds);
    if kilobytes > 0 {
        let filler: Vec<u8> = (0..kilobytes.min(LONGEST) * 256).flat_map(u32::to_be_bytes).collect();
        file.extend(atom(b"free", &[&filler]));
    }
    file
}

/// The whole file.
fn video(seconds: u32) -> Vec<u8> {
    let sample = sample();
    let head = atom(b"ftyp", &[b"isom\0\0\x02\0", b"isomiso2avc1mp41"]);
    let data = atom(b"mdat", &[&sample]);
    // The table of places comes before the data, so its length is found with a first try.
    let length = moov(seconds, sample.len(), 0).len();
    let place = head.len() + length + 8;
    [head, moov(seconds, sample.len(), place), data].concat()
}

fn atom(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&number(body.len() + 8)[..], kind, &body].concat()
}

fn number(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes()
}

const MATRIX: [u8; 36] = {
    let mut matrix = [0; 36];
    matrix[1] = 1;
    matrix[17] = 1;
    matrix[32] = 0x40;
    matrix
};

fn moov(seconds: u32, size: usize, place: usize) -> Vec<u8> {
    let time = (seconds * 1000).to_be_bytes();
    let scale = 1000u32.to_be_bytes();
    let mvhd = atom(b"mvhd", &[&[0; 12], &scale, &time, &[0, 1, 0, 0, 1, 0], &[0; 10], &MATRIX, &[0; 24], &number(2)]);
    let side = [0, 16, 0, 0];
    let tkhd = atom(b"tkhd", &[&[0, 0, 0, 3], &[0; 8], &number(1), &[0; 4], &time, &[0; 16], &MATRIX, &side, &side]);
    let mdhd = atom(b"mdhd", &[&[0; 12], &scale, &time, &[0x55, 0xc4, 0, 0]]);
    let hdlr = atom(b"hdlr", &[&[0; 8], b"vide", &[0; 12], b"sim\0"]);
    let dref = atom(b"dref", &[&[0; 4], &number(1), &atom(b"url ", &[&[0, 0, 0, 1]])]);
    let stbl = atom(
        b"stbl",
        &[
            &atom(b"stsd", &[&[0; 4], &number(1), &avc1()]),
            &atom(b"stts", &[&[0; 4], &number(1), &number(1), &time]),
            &atom(b"stsc", &[&[0; 4], &number(1), &number(1), &number(1), &number(1)]),
            &atom(b"stsz", &[&[0; 8], &number(1), &number(size)]),
            &atom(b"stco", &[&[0; 4], &number(1), &number(place)]),
        ],
    );
    let vmhd = atom(b"vmhd", &[&[0, 0, 0, 1], &[0; 8]]);
    let minf = atom(b"minf", &[&vmhd, &atom(b"dinf", &[&dref]), &stbl]);
    atom(b"moov", &[&mvhd, &atom(b"trak", &[&tkhd, &atom(b"mdia", &[&mdhd, &hdlr, &minf])])])
}

fn avc1() -> Vec<u8> {
    let (set, pictures) = (sequence(), pictures());
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes();
    let config =
        atom(b"avcC", &[&[1, 66, 0xc0, 10, 0xff, 0xe1], &length(&set), &set, &[1], &length(&pictures), &pictures]);
    let inch = [0, 72, 0, 0];
    let fixed: [&[u8]; 9] = [&[0; 6], &[0, 1], &[0; 16], &[0, 16, 0, 16], &inch, &inch, &[0; 4], &[0, 1], &[0; 32]];
    atom(b"avc1", &[&fixed.concat(), &[0, 24, 0xff, 0xff], &config])
}

/// Writes bits, most significant first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    free: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for at in (0..count).rev() {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            self.free -= 1;
            let bit = u8::from(value >> at & 1 == 1);
            if let Some(last) = self.bytes.last_mut() {
                *last |= bit << self.free;
            }
        }
    }

    /// An exponential Golomb code.
    fn golomb(&mut self, value: u32) {
        let length = 32 - (value + 1).leading_zeros();
        self.put(0, length - 1);
        self.put(value + 1, length);
    }

    /// The stop bit and the bits that fill the byte.
    fn end(mut self) -> Vec<u8> {
        self.put(1, 1);
        self.bytes
    }
}

/// The sequence parameter set: baseline, level 1, one macroblock.
fn sequence() -> Vec<u8> {
    let mut bits = Bits { bytes: vec![0x67, 66, 0xc0, 10], free: 0 };
    for value in [0, 0, 2, 0] {
        bits.golomb(value);
    }
    bits.put(0, 1);
    bits.golomb(0);
    bits.golomb(0);
    bits.put(0b1100, 4);
    bits.end()
}

/// The picture parameter set.
fn pictures() -> Vec<u8> {
    let mut bits = Bits { bytes: vec![0x68], free: 0 };
    bits.golomb(0);
    bits.golomb(0);
    bits.put(0, 2);
    for _ in 0..3 {
        bits.golomb(0);
    }
    bits.put(0, 3);
    for _ in 0..3 {
        bits.golomb(0);
    }
    bits.put(0, 3);
    bits.end()
}

/// One picture with its length before it, all grey.
fn sample() -> Vec<u8> {
    let mut bits = Bits { bytes: vec![0x65], free: 0 };
    bits.golomb(0);
    bits.golomb(7);
    bits.golomb(0);
    bits.put(0, 4);
    bits.golomb(0);
    bits.put(0, 2);
    bits.golomb(0);
    bits.golomb(25);
    bits.free = 0;
    bits.bytes.extend([128; 384]);
    let picture = bits.end();
    [&number(picture.len())[..], &picture].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every box ends where its parent says, and the table points at the data.
    #[test]
    fn boxes_fit_into_each_other() {
        assert_eq!(longer(5, 2).len(), video(5).len() + 8 + 2 * 1024);
        let file = video(5);
        let mut names = Vec::new();
        walk(&file, &mut names);
        let text = names.join(" ");
        assert_eq!(text, "ftyp moov mvhd trak tkhd mdia mdhd hdlr minf vmhd dinf stbl stsd stts stsc stsz stco mdat");
        let place = file.windows(4).position(|window| window == b"stco").expect("stco") + 12;
        let place = u32::from_be_bytes(file[place..place + 4].try_into().expect("four bytes")) as usize;
        assert_eq!(&file[place - 4..place], b"mdat");
        assert_eq!(file[place + 4], 0x65, "an IDR picture");
    }

    fn walk(bytes: &[u8], names: &mut Vec<String>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = u32::from_be_bytes(rest[..4].try_into().expect("a length")) as usize;
            let name = String::from_utf8(rest[4..8].to_vec()).expect("a name");
            let inner = ["moov", "trak", "mdia", "minf", "stbl"].contains(&name.as_str());
            names.push(name);
            if inner {
                walk(&rest[8..length], names);
            }
            rest = &rest[length..];
        }
    }
}
