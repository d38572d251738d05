//! Signatures and encrypted thoughts. A provider can tell its own seal from any other and what it
//! belongs to; so can these: the seal is a hash of what it was made for.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde_json::Value;

/// The seal of `kind` (whose, and for what) over a text.
pub(super) fn of(kind: &str, text: &str) -> String {
    let hash = digest(&SHA256, format!("sim {kind}\n{text}").as_bytes());
    STANDARD.encode([kind.as_bytes(), b":", hash.as_ref()].concat())
}

/// Objects with their keys in order, so that a seal does not depend on how JSON was written.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value))).collect();
            pairs.sort();
            format!("{{{}}}", pairs.join(","))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// Base64 in the alphabet that Anthropic and OpenAI take.
pub(super) fn is_base64(text: &str) -> bool {
    STANDARD.decode(text).is_ok()
}

/// Base64 as Google reads bytes: either alphabet, padded or not.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    let ways = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    ways.iter().find_map(|way| way.decode(text).ok())
}
