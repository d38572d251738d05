//! Base64 in both alphabets: Gemini's clients send the URL-safe one, OpenAI and Anthropic take only
//! the standard one.

use ::base64::Engine as _;
use ::base64::alphabet::STANDARD;
use ::base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::borrow::Cow;

/// Writes padding; reads what makers and their clients write: without it, and with any bits behind
/// the last byte.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The same data in the standard alphabet, padded; the same text when it already is.
pub(crate) fn standard(text: Cow<'_, str>) -> Cow<'_, str> {
    if !is_url_safe(&text) && text.len().is_multiple_of(4) {
        return text;
    }
    let mut out = in_standard_letters(&text);
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    Cow::Owned(out)
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Either alphabet, padded or not; `None` when it is neither.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    if is_url_safe(text) { ENGINE.decode(in_standard_letters(text)).ok() } else { ENGINE.decode(text).ok() }
}

fn is_url_safe(text: &str) -> bool {
    text.bytes().any(|b| b == b'-' || b == b'_')
}

fn in_standard_letters(text: &str) -> String {
    text.replace('-', "+").replace('_', "/")
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
        // As others write it: no padding, too much of it, both alphabets, bits behind the last
        // byte.
        for text in ["+/-_YQ", "+/-_YQ=", "+/-_YQ==", "-_-_YQ====", "+/+/YR=="] {
            assert_eq!(decode(text).as_deref(), Some(&[0xfb, 0xff, 0xbf, 0x61][..]), "{text}");
        }
        assert!(decode("YQ=a").is_none() && decode("YQ\n").is_none() && decode("").is_some_and(|all| all.is_empty()));
    }
}
