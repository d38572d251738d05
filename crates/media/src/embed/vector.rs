//! One vector in its two forms, a list of numbers and packed numbers in base64, and where replies
//! of each maker have theirs.

use crate::trail::PathStep::{self, Each, Name};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::io::Write as _;
use tollgate_wire::json::{BrokenJson, Node, write_raw};

/// The reply has not the vectors that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotVectors;

impl From<BrokenJson> for NotVectors {
    fn from(_: BrokenJson) -> NotVectors {
        NotVectors
    }
}

/// Where a reply has its vectors, and its report of tokens.
#[derive(Debug)]
pub struct VectorShape {
    pub(super) vector: &'static [PathStep],
    /// Where each says which text it is of; else they are in order.
    pub(super) index: &'static [PathStep],
    /// An object.
    pub(super) report: &'static [PathStep],
    /// The number of tokens in it: the first of these names that is there.
    pub(super) tokens: &'static [&'static [&'static str]],
}

impl VectorShape {
    pub const OPENAI: VectorShape = VectorShape {
        vector: &[Name("data"), Each, Name("embedding")],
        index: &[Name("data"), Each, Name("index")],
        report: &[Name("usage")],
        tokens: &[&["prompt_tokens"], &["input_tokens"], &["total_tokens"]],
    };
    pub const GEMINI: VectorShape = VectorShape {
        vector: &[Name("embeddings"), Each, Name("values")],
        index: &[],
        report: &[Name("usageMetadata")],
        tokens: &[&["promptTokenCount"], &["totalTokenCount"]],
    };
    /// Of one text: each vector has a report of its own.
    pub const VERTEX: VectorShape = VectorShape {
        vector: &[Name("predictions"), Each, Name("embeddings"), Name("values")],
        index: &[],
        report: &[Name("predictions"), Each, Name("embeddings"), Name("statistics")],
        tokens: &[&["token_count"]],
    };
    pub const COHERE: VectorShape = VectorShape {
        vector: &[Name("embeddings"), Name("float"), Each],
        index: &[],
        report: &[Name("meta")],
        tokens: &[&["billed_units", "input_tokens"]],
    };

    /// The tokens that a report tells; what is no whole number, or absurdly large, is no report.
    pub(super) fn tokens_in(&self, report: &str) -> Option<u64> {
        let root = Node::read(report).ok()?;
        let found = self.tokens.iter().find_map(|path| path.iter().try_fold(&root, |node, name| node.get(name)));
        found?.number().filter(|number| (1..=tollgate_wire::usage::MOST).contains(number))
    }
}

/// Writes a vector as the client wants it. `raw` is the provider's, in either form.
pub(super) fn write_vector(out: &mut Vec<u8>, raw: &[u8], base64: bool) -> Result<(), NotVectors> {
    match (raw.first(), base64) {
        (Some(b'['), false) if !is_empty(raw) => write_raw(out, raw),
        (Some(b'"'), true) if raw.len() > 2 => out.extend_from_slice(raw),
        (Some(b'['), true) => {
            let packed = packed(raw)?;
            out.push(b'"');
            let from = out.len();
            let length = base64::encoded_len(packed.len(), true).ok_or(NotVectors)?;
            out.resize(from + length, 0);
            BASE64_STANDARD.encode_slice(&packed, &mut out[from..]).map_err(|_| NotVectors)?;
            out.push(b'"');
        }
        (Some(b'"'), false) => {
            let packed = BASE64_STANDARD.decode(&raw[1..raw.len() - 1]).map_err(|_| NotVectors)?;
            let (numbers, rest) = packed.as_chunks::<4>();
            if numbers.is_empty() || !rest.is_empty() {
                return Err(NotVectors);
            }
            for (at, number) in numbers.iter().enumerate() {
                let number = f32::from_le_bytes(*number);
                if !number.is_finite() {
                    return Err(NotVectors);
                }
                out.push(if at == 0 { b'[' } else { b',' });
                // Writing to a vector cannot fail.
                let _ = write!(out, "{number}");
            }
            out.push(b']');
        }
        _ => return Err(NotVectors),
    }
    Ok(())
}

/// Whether a list has nothing in it.
pub(super) fn is_empty(list: &[u8]) -> bool {
    list[1..].trim_ascii_start().first() == Some(&b']')
}

/// The numbers of a list as 32-bit floats, little end first.
fn packed(list: &[u8]) -> Result<Vec<u8>, NotVectors> {
    let text = std::str::from_utf8(list).map_err(|_| NotVectors)?;
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).ok_or(NotVectors)?;
    let mut out = Vec::with_capacity(inside.len() / 2);
    for number in inside.split(',') {
        let number: f32 = number.trim_ascii().parse().map_err(|_| NotVectors)?;
        if !number.is_finite() {
            return Err(NotVectors);
        }
        out.extend_from_slice(&number.to_le_bytes());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(raw: &str, base64: bool) -> Result<String, NotVectors> {
        let mut out = Vec::new();
        write_vector(&mut out, raw.as_bytes(), base64)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_vector_is_as_it_came_where_its_form_is_right() {
        assert_eq!(written("[0.10, -2e-3]", false).unwrap(), "[0.10, -2e-3]");
        assert_eq!(written("\"AACAPw==\"", true).unwrap(), "\"AACAPw==\"");
        assert_eq!(written("[1]", true).unwrap(), "\"AACAPw==\"");
        assert_eq!(written("\"AACAPw==\"", false).unwrap(), "[1]");
        for (raw, base64) in [
            ("[]", false),
            ("[ ]", true),
            ("\"\"", false),
            ("\"\"", true),
            ("\"!!\"", false),
            ("[\"a\"]", true),
            ("7", true),
            ("[1e99]", true),
            ("\"AACA\"", false),
        ] {
            assert_eq!(written(raw, base64), Err(NotVectors), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back_is_the_same(numbers in prop::collection::vec(-1e6f32..1e6, 1..40)) {
            let list = format!("[{}]", numbers.iter().map(f32::to_string).collect::<Vec<_>>().join(","));
            let packed = written(&list, true).unwrap();
            prop_assert_eq!(written(&packed, false).unwrap(), list);
        }
    }
}
