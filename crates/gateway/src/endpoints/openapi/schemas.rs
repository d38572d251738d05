//! The named shapes of the description: what operations take and give.

use serde_json::{Value, json};
use tollgate_wire::error::Code;

/// Every shape by its name.
pub fn all() -> Value {
    let parts =
        [chat_schemas(), social_schemas(), money_schemas(), operator_schemas(), video_schemas(), error_schemas()];
    let named = parts.into_iter().filter_map(|part| if let Value::Object(named) = part { Some(named) } else { None });
    Value::Object(named.flatten().collect())
}

/// An error in each dialect.
fn error_schemas() -> Value {
    let text = json!({ "type": "string" });
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

/// What operators send and get.
fn operator_schemas() -> Value {
    json!({
        "SocialChangeRequest": { "type": "object", "required": ["cells", "reason"], "additionalProperties": false, "properties": {
            "cells": {
                "type": "array", "minItems": 1, "items": { "type": "string" },
                "description": "`douyin/search`, or a platform for all of its cells",
            },
            "reason": { "type": "string", "minLength": 1, "maxLength": 1000 },
        } },
        "List": { "type": "object", "required": ["object", "data"], "properties": {
            "object": { "const": "list" }, "data": { "type": "array", "items": { "type": "object" } },
        } },
    })
}

/// Videos: each family reads its own part of a request; a task is shown in one of two shapes.
fn video_schemas() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "VideoRequest": { "type": "object", "required": ["model"], "additionalProperties": true, "properties": {
            "model": { "type": "string", "minLength": 1 },
            "prompt": text,
            "seconds": { "type": ["integer", "string"] },
            "duration": { "type": ["integer", "string"] },
            "size": text,
            "input_reference": { "type": "string", "description": "A link; in a form also a file" },
            "image": text,
            "images": { "type": "array", "items": text },
            "video_url": text,
            "webhook_url": { "type": "string", "format": "uri" },
            "metadata": { "type": "object" },
        } },
        "RemixRequest": { "type": "object", "required": ["prompt"], "properties": { "prompt": { "type": "string", "minLength": 1 } } },
        "Video": { "type": "object", "required": ["id", "object", "model", "status", "progress", "created_at"], "properties": {
            "id": text, "task_id": { "type": "string", "description": "The same as `id`" }, "object": { "const": "video" },
            "model": text, "status": { "enum": ["queued", "in_progress", "completed", "failed"] },
            "progress": { "type": "integer", "minimum": 0, "maximum": 100 },
            "created_at": { "type": "integer" }, "completed_at": { "type": ["integer", "null"] },
            "expires_at": { "type": ["integer", "null"] }, "seconds": text, "size": text,
            "remixed_from_video_id": { "type": ["string", "null"] },
            "metadata": { "type": ["object", "null"], "properties": { "url": { "type": "string", "format": "uri" } } },
            "error": { "type": ["object", "null"], "properties": { "code": text, "message": text } },
            "warnings": { "type": "array", "items": { "type": "object", "required": ["field", "message"], "properties": {
                "field": text, "message": text,
            } } },
        } },
        "VideoList": { "type": "object", "required": ["object", "data", "has_more"], "properties": {
            "object": { "const": "list" }, "data": { "type": "array", "items": { "$ref": "#/components/schemas/Video" } },
            "has_more": { "type": "boolean" }, "first_id": { "type": ["string", "null"] }, "last_id": { "type": ["string", "null"] },
        } },
        "VideoDeleted": { "type": "object", "required": ["id", "object", "deleted"], "properties": {
            "id": text, "object": { "const": "video.deleted" }, "deleted": { "const": true },
        } },
        "LegacyVideo": { "type": "object", "required": ["code", "data"], "properties": {
            "code": { "const": "success" }, "message": text,
            "data": { "type": "object", "required": ["task_id", "status", "progress", "fail_reason"], "properties": {
                "task_id": text, "progress": text, "fail_reason": text, "result_url": text,
                "status": { "enum": ["NOT_START", "SUBMITTED", "QUEUED", "IN_PROGRESS", "SUCCESS", "FAILURE"] },
            } },
        } },
        "WebhookSecret": { "type": "object", "additionalProperties": true },
    })
}

/// What is asked in a conversation.
fn chat_schemas() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "ChatRequest": { "type": "object", "required": ["model", "messages"], "additionalProperties": true, "properties": {
            "model": { "type": "string", "minLength": 1 },
            "messages": { "type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["role"], "properties": { "role": text },
            } },
            "stream": { "type": ["boolean", "null"] },
            "max_tokens": { "type": ["integer", "null"], "minimum": 1 },
            "max_completion_tokens": { "type": ["integer", "null"], "minimum": 1 },
            "n": { "type": ["integer", "null"], "minimum": 1, "maximum": 128 },
            "stream_options": { "type": ["object", "null"], "properties": { "include_usage": { "type": ["boolean", "null"] } } },
        } },
        "MessagesRequest": { "type": "object", "required": ["model", "messages", "max_tokens"], "additionalProperties": true, "properties": {
            "model": { "type": "string", "minLength": 1 }, "messages": { "type": "array", "minItems": 1, "items": { "type": "object" } },
            "max_tokens": { "type": "integer", "minimum": 0 }, "stream": { "type": ["boolean", "null"] },
        } },
        "MessagesCountRequest": { "type": "object", "required": ["model", "messages"], "additionalProperties": true, "properties": {
            "model": { "type": "string", "minLength": 1 }, "messages": { "type": "array", "minItems": 1, "items": { "type": "object" } },
        } },
        "ResponsesCountRequest": { "type": "object", "required": ["model"], "additionalProperties": true, "properties": {
            "model": { "type": "string", "minLength": 1 }, "input": { "type": ["string", "array"] },
        } },
        "ResponsesRequest": { "type": "object", "required": ["model", "input"], "additionalProperties": true, "properties": {
            "model": { "type": "string", "minLength": 1 }, "input": { "type": ["string", "array"] },
            "max_output_tokens": { "type": ["integer", "null"], "minimum": 1 }, "stream": { "type": ["boolean", "null"] },
        } },
        "GeminiRequest": { "type": "object", "required": ["contents"], "additionalProperties": true, "properties": {
            "contents": { "type": ["array", "object"] }, "generationConfig": { "type": ["object", "null"] },
        } },
    })
}

/// Social data.
fn social_schemas() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "SocialResult": { "type": "object", "required": ["object", "platform", "capability", "data"], "properties": {
            "object": { "const": "social.result" }, "platform": text, "capability": text,
            "data": { "type": "object", "description": "The platform's own fields", "additionalProperties": true },
            "next": { "type": "object", "description": "Parameters of the next page, ready to be sent", "additionalProperties": text },
        } },
        "SocialCatalog": { "type": "object", "required": ["cells"], "properties": { "cells": { "type": "array", "items": {
            "type": "object", "required": ["platform", "capability", "model", "method", "path", "params", "price_usd", "unit", "status"],
            "properties": {
                "platform": text, "capability": text, "model": text, "method": { "const": "GET" }, "path": text,
                "params": { "type": "array", "items": { "type": "object", "required": ["name", "type", "required", "description"] } },
                "require_one_of": { "type": "array", "items": { "type": "array", "items": text } },
                "price_usd": { "type": "number" }, "unit": { "const": "call" }, "status": { "enum": ["available", "paused"] },
                "health": { "type": ["object", "null"] },
            },
        } } } },
    })
}

/// Models, prices, balances, usage and receipts.
fn money_schemas() -> Value {
    let text = json!({ "type": "string" });
    let int = json!({ "type": "integer" });
    let nano = json!({ "type": "integer", "description": "nano-USD" });
    let list = |of: &str| {
        json!({ "type": "object", "required": ["object", "data"], "properties": {
            "object": { "const": "list" },
            "data": { "type": "array", "items": { "$ref": format!("#/components/schemas/{of}") } },
        } })
    };
    json!({
        "Model": { "type": "object", "required": ["id", "object", "created", "owned_by"], "properties": {
            "id": text, "object": { "const": "model" }, "created": int, "owned_by": text,
            "supported_endpoint_types": { "type": "array", "items": text },
        } },
        "ModelList": list("Model"),
        "Balance": { "type": "object", "required": ["object", "available_nano_usd", "held_nano_usd"], "properties": {
            "object": { "const": "balance" }, "account_id": text, "currency": { "const": "USD" },
            "available_nano_usd": nano, "held_nano_usd": nano, "available_usd": text, "held_usd": text,
            "trial_available_nano_usd": nano, "paid_available_nano_usd": nano, "topped_up": { "type": "boolean" },
            "expiring": { "type": "array", "items": { "type": "object", "properties": {
                "credit": text, "expires_at_ms": int, "available_nano_usd": nano, "available_usd": text, "held_nano_usd": nano,
            } } },
            "limits": { "type": "object", "properties": { "key": { "type": "object" }, "account": { "type": "object" } } },
        } },
        "Usage": { "type": "object", "required": ["object", "call_id", "ending", "charge_nano_usd"], "properties": {
            "object": { "const": "usage" }, "call_id": text, "account_id": text, "key_id": text,
            "started_at_ms": int, "ended_at_ms": int, "endpoint": text, "model": text, "reason": text,
            "tier": { "type": ["string", "null"] }, "first_byte_ms": { "type": ["integer", "null"] },
            "ending": { "enum": tollgate_store::Ending::ALL.map(tollgate_store::Ending::name) },
            "status": int, "usage": { "type": "object" }, "estimated": { "type": "boolean" },
            "dropped": { "type": "array", "items": text, "description": "Fields of the request that the provider has nothing like, and (as `answer.…`) parts of the answer that the client's dialect has no form for" },
            "hold_nano_usd": nano, "charge_nano_usd": nano, "charge_usd": text, "write_off_nano_usd": nano,
            "refunded_nano_usd": nano, "calculation": { "type": ["object", "null"] }, "entries": { "type": "array" },
        } },
        "UsageList": list("Usage"),
        "PriceVersion": { "type": "object", "required": ["model", "version", "tier", "group", "paid", "faces", "multiplier"], "properties": {
            "model": text, "version": { "type": "string", "description": "`pricing_version` of the price list it was taken from" },
            "tier": { "type": ["string", "null"] }, "when": { "type": "array" }, "group": text, "paid": { "type": "boolean" },
            "unit": text, "faces": { "type": "object", "description": "Micro-USD per million tokens, per call or per second" },
            "multiplier": text,
        } },
        "Receipt": { "type": "object", "required": ["receipt", "signature"], "properties": {
            "receipt": { "type": "object", "description": "docs/receipts.md says what it contains" },
            "signature": { "type": "string", "description": "Ed25519 over the canonical bytes of `receipt`, base64url" },
        } },
        "ReceiptKeys": { "type": "object", "required": ["keys"], "properties": { "keys": { "type": "array", "items": {
            "type": "object", "required": ["kid", "kty", "crv", "x", "from_ms", "until_ms"], "properties": {
                "kid": text, "kty": { "const": "OKP" }, "crv": { "const": "Ed25519" }, "x": text,
                "from_ms": int, "until_ms": { "type": ["integer", "null"] },
            },
        } } } },
        "PriceList": { "type": "object", "required": ["pricing_version", "auto_groups", "data"], "properties": {
            "pricing_version": text, "auto_groups": { "type": "array", "items": text },
            "groups": { "type": "array", "items": text }, "paid_prices": { "type": "boolean" },
            "data": { "type": "array", "items": { "type": "object", "required": ["model_name", "billing_unit", "book_faces"] } },
        } },
        "Quote": quote_form(&nano, &text),
    })
}

/// The answer of `POST /v1/quote`.
fn quote_form(nano: &Value, text: &Value) -> Value {
    let most = json!({ "type": ["integer", "null"], "description": "No call with this body costs more; null: neither the request nor the catalog limits the answer" });
    let most_usd = json!({ "type": ["string", "null"] });
    let output_limit = json!({ "type": ["integer", "null"], "description": "The account has less than the hold: the limit of tokens that the call would be made with" });
    json!({ "type": "object", "required": [
        "object", "endpoint", "model", "kind", "pricing_version", "group", "tier", "multiplier", "lines", "total_nano_usd",
        "hold_nano_usd", "depends_on", "would_be_refused",
    ], "properties": {
        "object": { "const": "quote" }, "endpoint": text, "model": text, "kind": { "enum": ["upper_bound", "exact", "open"] },
        "pricing_version": text, "group": text, "paid_prices": { "type": "boolean" }, "billing_unit": text,
        "tier": { "type": ["object", "null"] }, "tier_is_settled": { "type": "boolean" }, "multiplier": text,
        "lines": { "type": "array", "items": { "type": "object" } },
        "total_nano_usd": nano, "total_usd": text, "hold_nano_usd": nano, "hold_usd": text,
        "most_nano_usd": most, "most_usd": most_usd, "output_limit": output_limit,
        "depends_on": { "type": "array", "items": text }, "available_nano_usd": nano,
        "would_be_refused": { "type": ["object", "null"] },
    } })
}
