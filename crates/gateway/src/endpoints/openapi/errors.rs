//! The shapes of errors, and which of them an endpoint refuses with.

use super::shapes::{named, text};
use crate::endpoints::row::Errors;
use serde_json::{Value, json};
use tollgate_wire::error::{Code, ErrorFormat};

/// What an error of an endpoint looks like.
pub fn shape(errors: Errors) -> Value {
    match errors {
        Errors::In(ErrorFormat::OpenAi) => named("Error"),
        Errors::In(ErrorFormat::Anthropic) => named("AnthropicError"),
        Errors::In(ErrorFormat::Gemini) => named("GeminiError"),
        Errors::AsAsked => json!({ "anyOf": [named("Error"), named("AnthropicError"), named("GeminiError")] }),
        Errors::LegacyVideo => named("LegacyVideoError"),
    }
}

/// An error in each dialect.
pub fn schemas() -> Value {
    let text = text();
    let words = |word: fn(&Code) -> &'static str| {
        let mut all: Vec<&str> = Code::ALL.iter().map(word).collect();
        all.sort_unstable();
        all.dedup();
        json!({ "enum": all })
    };
    json!({
        "Error": { "type": "object", "required": ["error"], "properties": { "error": {
            "type": "object", "required": ["message", "type", "param", "code"],
            "properties": {
                "message": text, "type": text, "param": { "type": ["string", "null"] }, "code": words(|code| code.code()),
                "reason": { "type": "string", "description": "Tells cases of one code apart" },
                "needed_nano_usd": { "type": "integer", "description": "On a 402: what must be set aside at least" },
                "available_nano_usd": { "type": "integer", "description": "On a 402 for want of balance: what the account has for such a call" },
                "upstream_code": { "type": "string", "description": "Creations of videos only: the provider's own code" },
            },
        } } },
        "AnthropicError": { "type": "object", "required": ["type", "error", "request_id"], "properties": {
            "type": { "const": "error" },
            "error": { "type": "object", "required": ["type", "message"], "properties": {
                "type": words(|code| code.anthropic_type()), "message": text,
            } },
            "request_id": { "type": ["string", "null"] },
        } },
        "GeminiError": { "type": "object", "required": ["error"], "properties": { "error": {
            "type": "object", "required": ["code", "message", "status"], "properties": {
                "code": { "type": "integer" }, "message": text, "status": words(|code| code.gemini_status()),
                "details": { "type": "array", "items": { "type": "object" } },
            },
        } } },
        "LegacyVideoError": { "type": "object", "required": ["code", "message", "data"], "properties": {
            "code": words(|code| code.code()), "message": text, "data": { "type": "null" },
        } },
    })
}
