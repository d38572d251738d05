//! The JSON Schema of the public record and of the list, as `GET /api/pricing/schema` answers it.
//! Closed lists come from where they are defined.

use serde_json::{Value, json};

use crate::{BillingUnit, CAPABILITIES, ENDPOINT_TYPES, Face, MODEL_TYPES, TASKS};

/// Draft 2020-12. `$defs` has the record, and what it is made of.
pub fn record_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The price list",
        "type": "object",
        "required": ["success", "pricing_version", "auto_groups", "group_ratio", "usable_group", "vendors",
                     "supported_endpoint", "data"],
        "properties": list_properties(),
        "$defs": {
            "record": record(),
            "specs": specs(),
            "faces": faces(),
            "tier": tier(),
            "announced": announced(true),
            "announced_of_model": announced(false),
            "prices": prices(),
            "vendor_list": vendor_list(),
            "book_faces": book_faces(),
            "route_health": route_health(),
        },
    })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn words(list: &[&str]) -> Value {
    json!({ "type": "array", "items": { "enum": list }, "uniqueItems": true })
}

fn texts() -> Value {
    json!({ "type": "array", "items": text() })
}

fn number() -> Value {
    json!({ "type": "number", "minimum": 0 })
}

fn whole() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn of(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn endpoint_types() -> Vec<&'static str> {
    ENDPOINT_TYPES.iter().map(|kind| kind.name).collect()
}

fn list_properties() -> Value {
    json!({
        "success": { "const": true },
        "pricing_version": { "type": "string", "pattern": "^[0-9a-f]{16}$" },
        "auto_groups": texts(),
        "groups": texts(),
        "paid_prices": { "type": "boolean" },
        "group_ratio": { "type": "object", "additionalProperties": number() },
        "usable_group": { "type": "object", "additionalProperties": text() },
        "has_more": { "type": "boolean" },
        "vendors": { "type": "array", "items": {
            "type": "object", "required": ["id", "name"], "additionalProperties": false,
            "properties": { "id": whole(), "name": text(), "description": text(), "icon": text() },
        } },
        "supported_endpoint": {
            "type": "object",
            "propertyNames": { "enum": endpoint_types() },
            "additionalProperties": {
                "type": "object", "required": ["path", "method"],
                "properties": { "path": { "type": "string", "pattern": "^/" }, "method": { "enum": ["GET", "POST"] } },
            },
        },
        "announced": { "type": "array", "items": of("announced") },
        "data": { "type": "array", "items": of("record") },
    })
}

fn record() -> Value {
    let units: Vec<&str> = BillingUnit::ALL.iter().map(|(name, _)| *name).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["model_name", "description", "specs", "login_required", "tags", "quota_type", "model_ratio",
                     "model_price", "enable_groups", "supported_endpoint_types", "billing_rate",
                     "billing_rate_source", "pricing_version", "billing_unit", "book_faces"],
        "properties": {
            "model_name": { "type": "string", "minLength": 1, "maxLength": 200 },
            "description": text(),
            "specs": { "type": "string", "contentMediaType": "application/json", "contentSchema": of("specs") },
            "login_required": { "enum": [0, 1] },
            "icon": text(),
            "tags": text(),
            "vendor_id": whole(),
            "quota_type": { "enum": [0, 1] },
            "model_ratio": number(),
            "model_price": number(),
            "completion_ratio": number(),
            "cache_ratio": number(),
            "create_cache_ratio": number(),
            "image_ratio": number(),
            "audio_ratio": number(),
            "audio_completion_ratio": number(),
            "owner_by": text(),
            "enable_groups": texts(),
            "supported_endpoint_types": words(&endpoint_types()),
            "capabilities": words(CAPABILITIES),
            "tasks": words(TASKS),
            "billing_rate": number(),
            "billing_rate_source": { "type": "string", "pattern": "^(default|group:.+)$" },
            "pricing_version": { "type": "string", "pattern": "^[0-9a-f]{16}$" },
            "billing_unit": { "enum": units },
            "default_voice": text(),
            "default_response_format": text(),
            "speech_input": text(),
            "accepted_upload_formats": texts(),
            "vendor_list": of("vendor_list"),
            "book_faces": of("book_faces"),
            "announced": { "type": "array", "minItems": 1, "items": of("announced_of_model") },
            "route_health": of("route_health"),
        },
    })
}

/// What the text in `specs` is.
fn specs() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["type"],
        "properties": {
            "type": { "enum": MODEL_TYPES },
            "context_window": whole(), "max_input_tokens": whole(), "max_output_tokens": whole(),
            "input_modalities": texts(), "output_modalities": texts(), "reasoning_efforts": texts(),
            "resolutions": texts(), "max_duration_seconds": whole(), "pricing_notes": text(),
            "voices": texts(), "response_formats": texts(), "max_characters": whole(),
        },
    })
}

/// Whole micro-USD, by the name of the face.
fn faces() -> Value {
    let names: Vec<&str> = Face::ALL.iter().map(|face| face.name()).collect();
    json!({ "type": "object", "propertyNames": { "enum": names }, "additionalProperties": whole() })
}

fn tier() -> Value {
    json!({
        "type": "object",
        "required": ["tier", "standard", "paid", "when"],
        "properties": {
            "tier": text(), "standard": of("faces"), "paid": { "anyOf": [of("faces"), { "type": "null" }] },
            "multiplier": text(),
            "when": { "type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["dim"],
                "properties": { "dim": { "enum": ["context_len", "request_attr", "wall_clock"] } },
            } },
        },
    })
}

/// Prices that will change; in the list with the name of their model.
fn announced(named: bool) -> Value {
    let mut record = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["from", "old", "new"],
        "properties": { "from": { "type": "string", "format": "date-time" }, "old": of("prices"), "new": of("prices") },
    });
    if named {
        record["required"] = json!(["model_name", "from", "old", "new"]);
        record["properties"]["model_name"] = text();
    }
    record
}

/// `book_faces` without its routes.
fn prices() -> Value {
    let mut record = book_faces();
    record["required"] = json!(["standard", "paid"]);
    if let Some(properties) = record["properties"].as_object_mut() {
        properties.remove("route_count");
    }
    record
}

fn vendor_list() -> Value {
    let verdict = json!({ "enum": ["below_list", "at_list", "above_list"] });
    let percent = json!({ "type": ["number", "null"] });
    json!({
        "type": "object",
        "required": ["verdict", "discount_pct", "list_currency", "list_input", "list_input_usd", "selling_usd",
                     "unit", "list_source", "verified_at", "faces", "unverified_faces"],
        "properties": {
            "verdict": verdict, "discount_pct": percent,
            "list_currency": { "type": "string", "pattern": "^[A-Z]{3}$" },
            "list_input": number(), "list_input_usd": number(), "selling_usd": number(),
            "unit": text(), "list_source": text(), "verified_at": { "type": ["string", "null"] },
            "faces": { "type": "array", "items": {
                "type": "object", "required": ["face", "list_usd", "selling_usd", "discount_pct", "verdict"],
                "properties": { "face": text(), "list_usd": number(), "selling_usd": number(),
                                "discount_pct": percent, "verdict": verdict },
            } },
            "unverified_faces": texts(),
        },
    })
}

fn book_faces() -> Value {
    json!({
        "type": "object",
        "required": ["standard", "paid", "route_count"],
        "properties": {
            "standard": of("faces"), "paid": { "anyOf": [of("faces"), { "type": "null" }] },
            "route_count": whole(), "tier_count": whole(),
            "has_request_condition": { "type": "boolean" }, "has_time_condition": { "type": "boolean" },
            "tiers": { "type": "array", "items": of("tier") },
        },
    })
}

fn route_health() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["window_hours", "sample_size", "success_ratio", "last_checked_at"],
        "properties": {
            "window_hours": { "type": "integer", "minimum": 1 },
            "sample_size": { "type": "integer", "minimum": 1 },
            "success_ratio": { "type": "number", "minimum": 0, "maximum": 1 },
            "last_checked_at": { "type": "string", "format": "date-time" },
        },
    })
}
