//! Letters of base64 as JSON writes them. Some providers escape a slash (`\/`) or a plus
//! (`\u002b`), and some put line ends between the letters: what is meant is read, and blanks are
//! left out, as readers of base64 do.

use memchr::memchr2;
use std::borrow::Cow;

/// Stands for whatever is no letter and may not stand in a text of JSON as it is.
const FOREIGN: u8 = b'*';

/// Letters on their way out of JSON. An escape may lie across the end of a piece.
#[derive(Debug, Default)]
pub(super) struct PlainLetters {
    /// An escape that has begun.
    open: Vec<u8>,
}

impl PlainLetters {
    /// What the next piece of a text means. A piece without escapes and blanks is what it means.
    pub fn read<'t>(&mut self, text: &'t [u8]) -> Cow<'t, [u8]> {
        if self.open.is_empty() && memchr2(b'\\', b' ', text).is_none() {
            return Cow::Borrowed(text);
        }
        let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text);
        while let Some(first) = rest.first() {
            if self.open.is_empty() && !matches!(first, b'\\' | b' ') {
                let run = memchr2(b'\\', b' ', rest).unwrap_or(rest.len());
                plain.extend_from_slice(&rest[..run]);
                rest = &rest[run..];
                continue;
            }
            if !self.open.is_empty() || *first == b'\\' {
                self.open.push(*first);
            }
            if let Some(byte) = meant(&self.open) {
                self.open.clear();
                plain.extend(byte);
            }
            rest = &rest[1..];
        }
        Cow::Owned(plain)
    }
}

/// What an escape means, once it is whole; a blank means nothing.
fn meant(escape: &[u8]) -> Option<Option<u8>> {
    let byte = match escape {
        [b'\\', b'u', digits @ ..] if digits.len() == 4 => {
            let code = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FOREIGN)
        }
        [b'\\', b'n'] => b'\n',
        [b'\\', b'r'] => b'\r',
        [b'\\', b't'] => b'\t',
        [b'\\', b'/'] => b'/',
        [] | [b'\\'] | [b'\\', b'u', ..] => return None,
        _ => FOREIGN,
    };
    let is_plain = byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    Some(match byte {
        b' ' | b'\n' | b'\r' | b'\t' => None,
        _ if is_plain => Some(byte),
        _ => Some(FOREIGN),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text in pieces of every length.
    fn read(text: &str) -> String {
        let in_pieces = |size: usize| {
            let mut letters = PlainLetters::default();
            let plain: Vec<u8> =
                text.as_bytes().chunks(size).flat_map(|piece| letters.read(piece).into_owned()).collect();
            String::from_utf8(plain).expect("text")
        };
        let whole = in_pieces(text.len());
        (1..text.len()).for_each(|size| assert_eq!(in_pieces(size), whole, "{text} in pieces of {size}"));
        whole
    }

    #[test]
    fn escaped_letters_are_read_in_any_pieces() {
        for (text, plain) in [
            ("QUJD+/9=", "QUJD+/9="),
            (r"\/A\/\/B", "/A//B"),
            (r"A\u002bB\u002FC\u003d\u003D", "A+B/C=="),
            (r"\u0041\u0062", "Ab"),
            (r"QU\nJD\r\n Q\tQ\u000a", "QUJDQQ"),
            // Nothing of these may end the text that it is written into.
            (r#"A\"B\\C\bD\u0022E\u005cF\u00e9G\ud83dH\u0000"#, "A*B*C*D*E*F*G*H*"),
        ] {
            assert_eq!(read(text), plain);
        }
    }

    #[test]
    fn what_has_no_escapes_is_not_copied() {
        let mut letters = PlainLetters::default();
        assert!(matches!(letters.read(b"QUJD+/9="), Cow::Borrowed(b"QUJD+/9=")));
        assert_eq!(letters.read(b"A\\u00"), &b"A"[..]);
        assert_eq!(letters.read(b"2bQ"), &b"+Q"[..]);
        assert!(matches!(letters.read(b"Q"), Cow::Borrowed(_)));
    }
}
