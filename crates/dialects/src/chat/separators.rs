//! Line separators that are not ours: U+2028, U+2029 and U+0085 may stand raw in JSON, but some
//! clients split a stream's lines at them. In a stream they are written as escapes; they can only
//! stand inside a JSON text, so the meaning is the same.

use bytes::Bytes;

/// The same bytes when there is none, which is nearly always.
pub(crate) fn escaped(bytes: Bytes) -> Bytes {
    let mut from = 0;
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr2(0xE2, 0xC2, &bytes[at..]) {
        at += found;
        let (escape, len): (&[u8], usize) = match &bytes[at..] {
            [0xE2, 0x80, 0xA8, ..] => (b"\\u2028", 3),
            [0xE2, 0x80, 0xA9, ..] => (b"\\u2029", 3),
            [0xC2, 0x85, ..] => (b"\\u0085", 2),
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(escape);
        at += len;
        from = at;
    }
    if from == 0 {
        return bytes;
    }
    out.extend_from_slice(&bytes[from..]);
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_separators_are_touched() {
        let plain = Bytes::from("data: \"é â€ ü\" \u{2027}\u{202a}\u{84}\u{86}");
        let same = escaped(plain.clone());
        assert_eq!((same.as_ptr(), same.len()), (plain.as_ptr(), plain.len()), "not even copied");
        let split = escaped(Bytes::from("\u{2028}a\u{2029}\u{85}b\u{2028}"));
        assert_eq!(split, "\\u2028a\\u2029\\u0085b\\u2028");
    }
}
