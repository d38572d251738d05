//! Shapes that the operator's families share.

use crate::endpoints::openapi::shapes::named;
use serde_json::{Value, json};

/// A record of the store with these fields among others.
pub fn record(description: &str, required: &[&str]) -> Value {
    json!({ "type": "object", "description": description, "required": required, "properties": {} })
}

/// A page of a named shape; `next` is what the next one begins at.
pub fn page(of: &str, next: &str, cursor: &Value) -> Value {
    json!({ "type": "object", "required": ["object", "data", "has_more", next], "properties": {
        "object": { "const": "list" }, "data": { "type": "array", "items": named(of) },
        "has_more": { "type": "boolean" }, next: cursor,
    } })
}
