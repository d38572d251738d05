//! What both sides of HTTP/1.1 read alike: where a body ends, and into which memory it is read.
//! What two readers could read in two ways is refused.

mod chunks;
mod space;

pub use chunks::{BadChunk, Chunks};
pub use space::BodySpace;

/// A `Content-Length` that is no number, or several that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLength;

/// What all `Content-Length` headers of a message say together.
pub fn content_length<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<u64>, BadLength> {
    let mut length = None;
    for value in values {
        for text in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let one = number(text).ok_or(BadLength)?;
            if length.replace(one).is_some_and(|other| other != one) {
                return Err(BadLength);
            }
        }
    }
    Ok(length)
}

/// Digits and nothing else.
fn number(text: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let value = text.iter().try_fold(0_u64, |sum, byte| sum.checked_mul(10)?.checked_add(digit(byte)?));
    value.filter(|_| !text.is_empty())
}

/// Whether one of these lists of words has this word, in any case of letters.
pub fn lists_word<'a>(values: impl IntoIterator<Item = &'a [u8]>, word: &str) -> bool {
    let mut words = values.into_iter().flat_map(|list| list.split(|byte| *byte == b','));
    words.any(|one| one.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_said_in_one_way() {
        for (values, said) in [
            (&[][..], Ok(None)),
            (&["0"], Ok(Some(0))),
            (&["5", "5"], Ok(Some(5))),
            (&["5, 5"], Ok(Some(5))),
            (&["18446744073709551615"], Ok(Some(u64::MAX))),
            (&["18446744073709551616"], Err(BadLength)),
            (&["5", "6"], Err(BadLength)),
            (&["5, 6"], Err(BadLength)),
            (&["+5"], Err(BadLength)),
            (&["0x5"], Err(BadLength)),
            (&["5 5"], Err(BadLength)),
            (&[""], Err(BadLength)),
            (&["5,"], Err(BadLength)),
        ] {
            assert_eq!(content_length(values.iter().map(|value| value.as_bytes())), said, "{values:?}");
        }
    }

    #[test]
    fn words_of_lists() {
        for (values, has) in [
            (&["close"][..], true),
            (&["keep-alive, Close"], true),
            (&["keep-alive", " CLOSE "], true),
            (&["closed"], false),
            (&["not close"], false),
            (&[], false),
        ] {
            assert_eq!(lists_word(values.iter().map(|value| value.as_bytes()), "close"), has, "{values:?}");
        }
    }
}
