//! Shapes and parameters that rows of several families share.

use serde_json::{Value, json};

/// A named shape of the description.
pub fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// One event of a stream; its data is JSON in the dialect of the path, or `[DONE]`.
pub fn event() -> Value {
    json!({ "type": "object", "required": ["data"], "properties": { "event": text(), "data": text() } })
}

/// An object whose members are another document's business.
pub fn anything() -> Value {
    json!({ "type": "object" })
}

pub fn text() -> Value {
    json!({ "type": "string" })
}

pub fn text_or_null() -> Value {
    json!({ "type": ["string", "null"] })
}

pub fn nano() -> Value {
    json!({ "type": "integer", "description": "nano-USD" })
}

/// All of a named shape.
pub fn list(of: &str) -> Value {
    json!({ "type": "object", "required": ["object", "data"], "properties": {
        "object": { "const": "list" }, "data": { "type": "array", "items": named(of) },
    } })
}

pub fn number(name: &str, least: u32, most: u32, default: u32) -> Value {
    json!({ "name": name, "in": "query", "schema": { "type": "integer", "minimum": least, "maximum": most, "default": default } })
}

/// A page of a list of objects that have ids.
pub fn item_page() -> Vec<Value> {
    vec![
        number("limit", 1, 100, 20),
        json!({ "name": "after", "in": "query", "description": "`last_id` of the page before", "schema": { "type": "string" } }),
        json!({ "name": "order", "in": "query", "schema": { "enum": ["asc", "desc"], "default": "desc" } }),
    ]
}

pub fn idempotency() -> Vec<Value> {
    vec![json!({
        "name": "Idempotency-Key", "in": "header", "description": "The same key and body within 24 hours is charged once",
        "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
    })]
}
