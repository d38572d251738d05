//! Base64 in both alphabets: Gemini's clients send the URL-safe one, OpenAI and Anthropic take only the standard one.

use std::borrow::Cow;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The same data in the standard alphabet, padded; the same text when it already is.
pub(crate) fn standard(text: Cow<'_, str>) -> Cow<'_, str> {
    let odd = text.bytes().any(|b| b == b'-' || b == b'_') || !text.len().is_multiple_of(4);
    if !odd {
        return text;
    }
    let mut out = text.replace('-', "+").replace('_', "/");
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    Cow::Owned(out)
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// Either alphabet, padded or not; `None` when it is neither.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for chunk in text.as_bytes().chunks(4) {
        if chunk.len() == 1 {
            return None;
        }
        let mut word = 0u32;
        for &letter in chunk {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            };
            word = word << 6 | u32::from(value);
        }
        word <<= 6 * (4 - chunk.len());
        out.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn comes_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let text = encode(&bytes);
            prop_assert_eq!(text.len() % 4, 0);
            prop_assert_eq!(decode(&text).unwrap(), bytes.clone());
            let safe = text.replace('+', "-").replace('/', "_").replace('=', "");
            prop_assert_eq!(decode(&safe).unwrap(), bytes);
            prop_assert_eq!(standard(Cow::Owned(safe)), text);
        }

        #[test]
        fn never_panics(text in "\\PC{0,20}") {
            let _ = decode(&text);
            let _ = standard(text.into());
        }
    }

    #[test]
    fn known() {
        assert_eq!((encode(b"a"), encode(b"ab"), encode(b"abc")), ("YQ==".into(), "YWI=".into(), "YWJj".into()));
        assert!(decode("a").is_none() && decode("a b=").is_none());
    }
}
