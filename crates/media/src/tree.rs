//! Bodies that are held as trees of JSON. A tree takes many times the length of its text wherever
//! there are many small values, so what stands around the texts of a body has a bound of its own.

use serde_json::{Map, Value};
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// Bytes beside texts and blanks.
const MOST_AROUND: usize = 256 << 10;

/// The members of a body that is a JSON object of at most `most` bytes.
pub(crate) fn members(body: &[u8], most: usize) -> Result<Map<String, Value>, Problem> {
    if body.len() > most {
        let message = format!("The body is larger than {} KiB.", most >> 10);
        return Err(Problem { code: Code::BodyTooLarge, ..Problem::not_json(message) });
    }
    if body.len() > MOST_AROUND && around(body) > MOST_AROUND {
        return Err(Problem::not_json("The body has more than 256 KiB of JSON beside its texts."));
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Problem::not_json("The body is not a JSON object.")),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            Err(Problem::not_json(format!("The body is not valid JSON (line {line}, column {column}).")))
        }
    }
}

/// Bytes of a text that are neither blanks nor inside of strings.
fn around(body: &[u8]) -> usize {
    let (mut count, mut inside, mut escaped) = (0, false, false);
    for byte in body {
        match (inside, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => {
                inside = !inside;
                count += 1;
            }
            (true, _) => {}
            (false, byte) => count += usize::from(!byte.is_ascii_whitespace()),
        }
    }
    count
}

/// Bytes of all texts in a value.
pub(crate) fn texts(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(texts).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + texts(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_texts_is_counted() {
        for (text, bytes) in
            [(r#"{"a":1}"#, 6), (r#"{ "a" : "b\"c\\" }"#, 7), ("[0,0,0]", 7), (r#"["a","b"]"#, 7), ("", 0)]
        {
            assert_eq!(around(text.as_bytes()), bytes, "{text}");
        }
    }

    #[test]
    fn a_body_of_small_values_does_not_become_a_large_tree() {
        let long = |inside: &str| format!(r#"{{"model":"m","x":{inside}}}"#).into_bytes();
        let text = long(&format!("\"{}\"", "a".repeat(4 << 20)));
        assert!(members(&text, 32 << 20).is_ok(), "a long text is one value");
        let refused = members(&long(&format!("[{}0]", "0,".repeat(2 << 20))), 32 << 20).expect_err("many values");
        assert_eq!(refused.code, Code::InvalidJson);
        let refused = members(&long(&format!("[{}\"\"]", "\"\",".repeat(1 << 20))), 32 << 20).expect_err("many texts");
        assert_eq!(refused.code, Code::InvalidJson);
        assert_eq!(members(&text, 1 << 20).expect_err("too long").code, Code::BodyTooLarge);
        assert_eq!(members(b"[1]", 100).expect_err("a list").code, Code::InvalidJson);
    }
}
