//! How large a picture is, as far as a fake provider can know: read off the header of a PNG or JPEG
//! inside a data link or bare base64, or off the name of a link such as
//! `https://media.example/64x64.png`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Width and height, if they can be read.
pub(super) fn size(source: &str) -> Option<(u32, u32)> {
    if source.starts_with("http") {
        return named(source);
    }
    let data = source.split_once(";base64,").map_or(source, |(_, data)| data);
    let bytes = BASE64_STANDARD.decode(data).ok()?;
    // A dot is what the simulator itself draws for a picture of any size.
    png(&bytes).or_else(|| jpeg(&bytes)).filter(|size| *size != (1, 1))
}

/// The shorter side is below this many pixels.
pub(super) fn smaller(source: &str, least: u32) -> bool {
    size(source).is_some_and(|(width, height)| width.min(height) < least)
}

fn named(link: &str) -> Option<(u32, u32)> {
    let name = link.rsplit('/').next()?.split(['.', '?']).next()?;
    let (width, height) = name.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let side = |from: usize| Some(u32::from_be_bytes(bytes.get(from..from + 4)?.try_into().ok()?));
    if bytes.starts_with(b"\x89PNG") && bytes.get(12..16)? == b"IHDR" { Some((side(16)?, side(20)?)) } else { None }
}

/// Walks the segments to the first start-of-frame.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let two = |from: usize| Some(u32::from(u16::from_be_bytes(bytes.get(from..from + 2)?.try_into().ok()?)));
    let mut at = if bytes.starts_with(b"\xff\xd8") { 2 } else { return None };
    loop {
        let kind = *bytes.get(at + 1).filter(|_| bytes.get(at) == Some(&0xff))?;
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            return Some((two(at + 7)?, two(at + 5)?));
        }
        at += 2 + usize::try_from(two(at + 2)?).ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 1, 0, 0, 0, 0, 200]);
        let png = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png));
        assert_eq!(size(&png), Some((256, 200)));
        let mut dot = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        dot.extend([0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(size(&BASE64_STANDARD.encode(dot)), None);
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x11\x08\0\x40\0\x80";
        assert_eq!(size(&BASE64_STANDARD.encode(jpeg)), Some((128, 64)));
        assert_eq!(size("https://media.example/64x48.png?x=1"), Some((64, 48)));
        assert_eq!((size("https://media.example/a.png"), size("zzz"), size("")), (None, None, None));
        assert!(smaller("https://media.example/640x299.png", 300) && !smaller("https://media.example/a.png", 300));
    }
}
