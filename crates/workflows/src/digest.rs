//! What a record means, as a number: whatever a run depends on is in it, and nothing else. Words
//! for people (title, summary, where it is found) may change without a new verification.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// JSON in one form: members by name, no blanks.
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            for (at, name) in names.into_iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                let _ = write!(out, "{}:", Value::from(name.as_str()));
                write(&members[name], out);
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}

/// SHA-256 in hex.
pub(crate) fn sha256_hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The digest of a record, its package as it is written, and the operation that it binds, as our
/// API description has it.
pub fn semantic_digest(record: &Value, package: Option<&str>, operation: &Value) -> String {
    let meant = json!({
        "inputs": record["inputs"],
        "executor_query": record["executor_query"],
        "recovery_policy": record["recovery_policy"],
        "privacy_preflight": record["privacy_preflight"],
        "request_field_map": record["runtime_binding"]["request_field_map"],
        "endpoint": record["runtime_binding"]["endpoint"],
        "package": package,
        "operation": operation,
    });
    sha256_hex(&canonical_json(&meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_however_it_was_written() {
        let one: Value = serde_json::from_str(r#"{ "b" : [1, {"y": null, "x": "é\n"}], "a": {} }"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"a":{},"b":[1,{"x":"\u00e9\n","y":null}]}"#).unwrap();
        assert_eq!(canonical_json(&one), r#"{"a":{},"b":[1,{"x":"é\n","y":null}]}"#);
        assert_eq!(canonical_json(&one), canonical_json(&other));
        assert_eq!(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
