//! Query strings: pairs in their order, decoded once and strictly. What is not UTF-8 is refused,
//! never replaced.

use std::borrow::Cow;

/// The query string cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadQuery {
    /// A percent sign without two hexadecimal digits, or bytes that are not UTF-8.
    Encoding,
    TooMany,
}

/// More pairs than any endpoint has parameters; guards the work done for a query of 64 KiB.
const MOST: usize = 256;

/// Name and value, decoded.
pub type Pair<'q> = (Cow<'q, str>, Cow<'q, str>);

/// The pairs of `a=1&b=2`. Empty pieces are skipped; a piece without `=` has an empty value.
pub fn pairs(query: &str) -> Result<Vec<Pair<'_>>, BadQuery> {
    let mut list = Vec::new();
    for piece in query.split('&').filter(|piece| !piece.is_empty()) {
        if list.len() == MOST {
            return Err(BadQuery::TooMany);
        }
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        list.push((decode(name)?, decode(value)?));
    }
    Ok(list)
}

fn decode(text: &str) -> Result<Cow<'_, str>, BadQuery> {
    if !text.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit().ok_or(BadQuery::Encoding)?, digit().ok_or(BadQuery::Encoding)?);
                u8::try_from(high * 16 + low).map_err(|_| BadQuery::Encoding)?
            }
            other => other,
        });
    }
    String::from_utf8(out).map(Cow::Owned).map_err(|_| BadQuery::Encoding)
}

/// Writes a name or value so that it means itself in a query.
pub fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_keep_their_order_and_meaning() {
        let list = pairs("keyword=%E5%92%96+%E5%95%A1&&a=b=c&flag&x=%2B").expect("a query");
        let plain: Vec<(&str, &str)> = list.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(plain, [("keyword", "咖 啡"), ("a", "b=c"), ("flag", ""), ("x", "+")]);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff", "%C3=1", "a=%+1"] {
            assert_eq!(pairs(bad), Err(BadQuery::Encoding), "{bad}");
        }
        assert_eq!(pairs(&"a=1&".repeat(257)), Err(BadQuery::TooMany));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(name in any::<String>(), value in any::<String>()) {
            let mut text = String::from("x");
            encode(&mut text, &name);
            text.push('=');
            encode(&mut text, &value);
            let list = pairs(&text).expect("a query");
            prop_assert_eq!(&*list[0].0, format!("x{name}"));
            prop_assert_eq!(&*list[0].1, value);
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = pairs(&text);
        }
    }
}
