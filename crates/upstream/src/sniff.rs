//! What a file is, by its first bytes. What its server calls it is not believed: a provider gets
//! what the data are, and what is neither picture nor document is not passed on at all.

/// The media type of a picture or document that providers take, if it is one.
pub(crate) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let at = |from: usize, to: usize| bytes.get(from..to).unwrap_or_default();
    let starts: [(&[u8], &'static str); 5] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-", "application/pdf"),
    ];
    if let Some((_, mime)) = starts.iter().find(|(start, _)| bytes.starts_with(start)) {
        return Some(mime);
    }
    match (at(0, 4), at(4, 8), at(8, 12)) {
        (b"RIFF", _, b"WEBP") => Some("image/webp"),
        (_, b"ftyp", b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx") => Some("image/heic"),
        (_, b"ftyp", b"mif1" | b"msf1") => Some("image/heif"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_start() {
        for (bytes, mime) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Some("image/jpeg")),
            (b"GIF89a\x01\0", Some("image/gif")),
            (b"GIF87a\x01\0", Some("image/gif")),
            (b"RIFF\x24\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x24\0\0\0WAVEfmt ", None),
            (b"\0\0\0\x18ftypheic\0\0\0\0", Some("image/heic")),
            (b"\0\0\0\x18ftypmif1\0\0\0\0", Some("image/heif")),
            (b"\0\0\0\x18ftypmp42\0\0\0\0", None),
            (b"%PDF-1.7\n", Some("application/pdf")),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
            (b"<!doctype html>", None),
            (b"\x89PNG", None),
            (b"", None),
        ] {
            assert_eq!(media_type(bytes), mime, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
