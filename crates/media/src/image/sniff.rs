//! What a picture is, by its first bytes. "Can be decoded" means here: the bytes that every reader
//! of the format needs first are there and make sense. No pixel is looked at.

/// The formats of pictures that providers make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureKind {
    Png,
    Jpeg,
    Webp,
    Gif,
    Avif,
    Heic,
    /// A drawing. Some make it; it is no source of an edit, and never stored under links of ours,
    /// because whoever opens it may run what is written in it.
    Svg,
}

impl PictureKind {
    /// All but drawings.
    pub const OF_PIXELS: [PictureKind; 6] = [
        PictureKind::Png,
        PictureKind::Jpeg,
        PictureKind::Webp,
        PictureKind::Gif,
        PictureKind::Avif,
        PictureKind::Heic,
    ];

    pub const fn mime(self) -> &'static str {
        match self {
            PictureKind::Png => "image/png",
            PictureKind::Jpeg => "image/jpeg",
            PictureKind::Webp => "image/webp",
            PictureKind::Gif => "image/gif",
            PictureKind::Avif => "image/avif",
            PictureKind::Heic => "image/heic",
            PictureKind::Svg => "image/svg+xml",
        }
    }

    /// The usual end of a file name.
    pub const fn extension(self) -> &'static str {
        match self {
            PictureKind::Png => "png",
            PictureKind::Jpeg => "jpg",
            PictureKind::Webp => "webp",
            PictureKind::Gif => "gif",
            PictureKind::Avif => "avif",
            PictureKind::Heic => "heic",
            PictureKind::Svg => "svg",
        }
    }
}

/// Bytes that are enough to tell.
pub(super) const ENOUGH: usize = 32;
/// The same where they begin as a text: words about it may stand before a drawing.
pub const ENOUGH_OF_TEXT: usize = 1_023;

/// The kind of what a maker has made, which may be a drawing.
pub fn made_kind(bytes: &[u8]) -> Option<PictureKind> {
    picture_kind(bytes).or_else(|| is_drawing(bytes).then_some(PictureKind::Svg))
}

/// Whether more than [`ENOUGH`] bytes may be needed to tell.
pub fn begins_as_text(bytes: &[u8]) -> bool {
    own_text(bytes).starts_with(b"<")
}

fn own_text(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start()
}

/// SVG, behind what XML lets stand before it.
fn is_drawing(bytes: &[u8]) -> bool {
    let mut text = own_text(bytes);
    loop {
        let end: &[u8] = match text {
            [b'<', b'?', ..] => b"?>",
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            _ if text.starts_with(b"<!DOCTYPE svg") => return true,
            _ => break,
        };
        let Some(at) = memchr::memmem::find(text, end) else { return false };
        text = text[at + end.len()..].trim_ascii_start();
    }
    let named = text.strip_prefix(b"<svg");
    named.and_then(<[u8]>::first).is_some_and(|next| next.is_ascii_whitespace() || matches!(next, b'>' | b':'))
}

/// The kind of the picture that begins with these bytes. Drawings are none of them.
pub fn picture_kind(bytes: &[u8]) -> Option<PictureKind> {
    let at = |from: usize, to: usize| bytes.get(from..to).unwrap_or_default();
    let number = |from: usize| at(from, from + 4).try_into().map(u32::from_be_bytes).unwrap_or(0);
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        let sized = at(12, 16) == b"IHDR" && number(16) > 0 && number(20) > 0;
        return sized.then_some(PictureKind::Png);
    }
    if bytes.starts_with(b"\xff\xd8\xff") {
        return (bytes.len() >= 4 && bytes[3] >= 0xc0).then_some(PictureKind::Jpeg);
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        let side = |from: usize| at(from, from + 2) != [0, 0] && bytes.len() >= from + 2;
        return (side(6) && side(8)).then_some(PictureKind::Gif);
    }
    match (at(0, 4), at(4, 8), at(8, 12)) {
        (b"RIFF", _, b"WEBP") => at(12, 15).eq(b"VP8").then_some(PictureKind::Webp),
        (_, b"ftyp", b"avif" | b"avis") => Some(PictureKind::Avif),
        (_, b"ftyp", b"heic" | b"heix" | b"mif1" | b"msf1") => Some(PictureKind::Heic),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_known_by_their_start() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01";
        for (bytes, kind) in [
            (&png[..], Some(PictureKind::Png)),
            (&png[..20], None),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\x01", None),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Some(PictureKind::Jpeg)),
            (b"\xff\xd8\xff", None),
            (b"GIF89a\x01\0\x01\0", Some(PictureKind::Gif)),
            (b"GIF89a\0\0\x01\0", None),
            (b"RIFF\x24\0\0\0WEBPVP8 ", Some(PictureKind::Webp)),
            (b"RIFF\x24\0\0\0WAVEfmt ", None),
            (b"\0\0\0\x1cftypavif\0\0\0\0", Some(PictureKind::Avif)),
            (b"<svg xmlns='http://www.w3.org/2000/svg'></svg>", None),
            (b"<html>", None),
            (b"", None),
        ] {
            assert_eq!(picture_kind(bytes), kind, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn drawings_are_known_as_what_a_maker_has_made() {
        for (text, is_one) in [
            ("<svg xmlns='http://www.w3.org/2000/svg'>", true),
            ("\u{feff}\n<svg:svg>", true),
            ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- by hand -->\n<svg viewBox='0 0 1 1'>", true),
            ("<?xml version=\"1.0\"?><!DOCTYPE svg PUBLIC", true),
            ("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>AccessDenied</Code></Error>", false),
            ("<?xml version=\"1.0\" <svg>", false),
            ("<html><svg>", false),
            ("<svgs>", false),
            ("<svg", false),
            ("a text with <svg>", false),
        ] {
            let kind = made_kind(text.as_bytes());
            assert_eq!(kind, is_one.then_some(PictureKind::Svg), "{text}");
            assert_eq!(
                begins_as_text(text.as_bytes()),
                text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
            );
        }
        assert_eq!(made_kind(b"GIF89a\x01\0\x01\0"), Some(PictureKind::Gif));
    }
}
