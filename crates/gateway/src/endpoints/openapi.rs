//! `GET /openapi.json`: the description of this API.

use super::table::{Access, PATHS};
use crate::app::App;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tollgate_catalog::social::{Cell, Param, Social};
use tollgate_wire::error::Code;

/// Written from the table of paths and the table of errors, so that it cannot forget one.
pub async fn page(State(app): State<Arc<App>>) -> Response {
    super::reading::json(&document(&app.serving.load().catalog.social))
}

pub fn document(cells: &Social) -> Value {
    let mut paths = Map::new();
    for (method, path, access) in PATHS {
        let operation = operation(method, path, *access);
        let entry = paths.entry((*path).to_owned()).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(method.to_ascii_lowercase(), operation);
        }
    }
    for cell in cells.cells() {
        paths.insert(cell.path(), json!({ "get": social_operation(cell) }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer" },
                "admin_key": { "type": "http", "scheme": "bearer", "description": "made with `tollgate admin-key create`" },
            },
            "schemas": all_schemas(),
        },
    })
}

fn operation(method: &str, path: &str, access: Access) -> Value {
    let mut operation = json!({
        "operationId": format!("{}_{}", method.to_ascii_lowercase(), path.trim_matches('/').replace(['/', '{', '}', '.'], "_")),
        "summary": summary(path),
        "parameters": parameters(path),
        "responses": replies(path, access),
    });
    if let Some(object) = operation.as_object_mut() {
        if matches!(access, Access::Key | Access::Paid) {
            object.insert("security".to_owned(), json!([{ "key": [] }]));
        }
        if access == Access::Admin {
            object.insert("security".to_owned(), json!([{ "admin_key": [] }]));
        }
        if method == "POST" && !path.ends_with("/cancel") {
            // A quote takes the body of whichever call it is for.
            let schema = match path {
                "/v1/quote" | "/mcp" => json!({ "type": "object" }),
                "/v1/messages" | "/v1/messages/count_tokens" => schema_named("MessagesRequest"),
                "/v1/responses" | "/v1/responses/compact" | "/v1/responses/input_tokens" => {
                    schema_named("ResponsesRequest")
                }
                path if path.starts_with("/v1/conversations") => conversation_request(),
                path if path.contains("{model}:") => schema_named("GeminiRequest"),
                "/v1/videos" | "/v1/video/generations" => schema_named("VideoRequest"),
                "/v1/videos/{id}/remix" => json!({
                    "type": "object", "required": ["prompt"], "properties": { "prompt": { "type": "string", "minLength": 1 } },
                }),
                _ if access == Access::Admin => schema_named("SocialChangeRequest"),
                _ => schema_named("ChatRequest"),
            };
            let mut content = json!({ "application/json": { "schema": schema } });
            if path.starts_with("/v1/video") {
                content["multipart/form-data"] = content["application/json"].clone();
            }
            object.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
        }
    }
    operation
}

fn conversation_request() -> Value {
    json!({ "type": "object", "properties": {
        "items": { "type": ["array", "null"], "maxItems": 20, "items": { "type": "object" } },
        "metadata": { "type": ["object", "null"], "maxProperties": 16, "additionalProperties": { "type": "string" } },
    } })
}

fn schema_named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A cell as a path of its own, so that clients made from this description know its parameters.
fn social_operation(cell: &Cell) -> Value {
    let parameter = |param: &Param| {
        let mut schema = param.schema();
        if let Some(object) = schema.as_object_mut() {
            object.remove("description");
        }
        json!({
            "name": param.name, "in": "query", "required": param.required && param.default.is_none(),
            "description": param.description(), "schema": schema,
        })
    };
    json!({
        "operationId": cell.model.name.replace('-', "_"),
        "summary": cell.summary(),
        "tags": ["social", cell.platform],
        "parameters": cell.params.iter().map(parameter).collect::<Vec<_>>(),
        "x-require-one-of": cell.groups(),
        "responses": replies("/v1/social/{platform}/{capability}", Access::Paid),
        "security": [{ "key": [] }],
    })
}

fn summary(path: &str) -> &'static str {
    match path {
        "/v1/chat/completions" => "A chat reply, streamed or whole, in OpenAI's format",
        "/v1/messages" => "A reply, streamed or whole, in Anthropic's format",
        "/v1/messages/count_tokens" => "The tokens of a prompt in Anthropic's format, by the gateway's own count",
        "/v1/responses" => "A response, streamed or whole, in OpenAI's Responses format",
        "/v1/responses/compact" => "A conversation pressed into one item by its model; a paid call",
        "/v1/responses/input_tokens" => "The tokens of a prompt in the Responses format, by the gateway's own count",
        "/v1/responses/{id}" => "A stored response; DELETE erases it",
        "/v1/responses/{id}/cancel" => "Ends a response that runs in the background; none does",
        "/v1/responses/{id}/input_items" => "What a stored response was given",
        "/v1/conversations" => "A new conversation, with up to 20 items",
        "/v1/conversations/{id}" => "A conversation; POST changes its metadata, DELETE erases it",
        "/v1/conversations/{id}/items" => "The items of a conversation; POST adds up to 20",
        "/v1/conversations/{id}/items/{item}" => "One item; DELETE erases it",
        "/v1beta/models" => "The models this key can use on Gemini's paths",
        "/v1beta/models/{id}" => "One of them",
        path if path.ends_with(":generateContent") => "A whole reply in Gemini's format, for models named gemini-…",
        path if path.ends_with(":streamGenerateContent") => {
            "A streamed reply in Gemini's format: events with `alt=sse`, else one JSON array"
        }
        path if path.ends_with(":countTokens") => {
            "The tokens of a prompt in Gemini's format, by the gateway's own count"
        }
        "/v1/quote" => "The price of a call before it is made; nothing is sent, held or charged",
        "/api/pricing" => "The price list; with a key, the account's own prices",
        "/v1/models" => "The models this key can use",
        "/v1/models/{id}" => "One model",
        "/v1/balance" => "What the account has and what is held for running calls",
        "/v1/usage" => "The usage log, newest first",
        "/v1/usage/{call_id}" => "One call with its price and charge",
        "/v1/usage/{call_id}/receipt" => "The signed receipt of a call that has ended",
        "/.well-known/tollgate-receipts" => "The public keys that verify receipts",
        "/v1/social/{platform}/{capability}" => "Public data of a social platform",
        "/v1/videos" => "POST begins a video task; GET lists those of the account, newest first",
        "/v1/video/generations" => "The same as POST /v1/videos",
        "/v1/videos/{id}" => "A video task in OpenAI's shape; DELETE removes one that has ended",
        "/v1/videos/{id}/remix" => "Another video from a finished one and a new prompt, where the provider has that",
        "/v1/videos/{id}/content" => "The finished file, whole or in ranges; a signed link opens it without a key",
        "/v1/video/generations/{id}" => "A video task in the legacy shape",
        "/v1/webhooks/secret" => "What the account verifies webhooks with",
        "/mcp" => "The social data as tools of the Model Context Protocol (streamable HTTP)",
        "/api/social/catalog" => "The social data on sale: parameters, prices, status, health",
        "/api/admin/social/cells" => "The cells of social data with cost, status, who paused them and health",
        "/api/admin/social/pause" => "Pause cells, with a reason",
        "/api/admin/social/resume" => "Sell paused cells again, with a reason",
        "/api/admin/social/changes" => "Who paused and resumed what, when and why, newest first",
        "/api/admin/social/days" => "What was used of a day's capacity for social data",
        "/healthz" => "The process runs",
        "/readyz" => "Paid calls can be taken",
        "/metrics" => "Prometheus text, for the operator",
        _ => "This description",
    }
}

fn parameters(path: &str) -> Value {
    let in_path =
        |name: &str| json!([{ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }]);
    match path {
        "/v1/social/{platform}/{capability}" => json!([in_path("platform")[0], in_path("capability")[0]]),
        "/api/admin/social/cells" => json!([
            { "name": "platform", "in": "query", "schema": { "type": "string" } },
            { "name": "paused", "in": "query", "schema": { "type": "boolean" } },
        ]),
        "/api/admin/social/changes" => json!([
            { "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 50 } },
        ]),
        "/api/admin/social/days" => json!([
            { "name": "back", "in": "query", "description": "so many days ago", "schema": { "type": "integer", "minimum": 0, "maximum": 3650, "default": 0 } },
        ]),
        "/v1/models/{id}"
        | "/v1beta/models/{id}"
        | "/v1/videos/{id}"
        | "/v1/video/generations/{id}"
        | "/v1/videos/{id}/remix" => in_path("id"),
        "/v1/videos/{id}/content" => json!([
            in_path("id")[0],
            { "name": "variant", "in": "query", "schema": { "enum": ["video", "thumbnail", "spritesheet"], "default": "video" } },
            { "name": "Range", "in": "header", "schema": { "type": "string" } },
        ]),
        "/v1/responses/{id}" | "/v1/responses/{id}/cancel" | "/v1/conversations/{id}" => in_path("id"),
        "/v1/conversations/{id}/items/{item}" => json!([in_path("id")[0], in_path("item")[0]]),
        "/v1/responses/{id}/input_items" | "/v1/conversations/{id}/items" => json!([
            in_path("id")[0],
            { "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20 } },
            { "name": "after", "in": "query", "description": "`last_id` of the page before", "schema": { "type": "string" } },
            { "name": "order", "in": "query", "schema": { "enum": ["asc", "desc"], "default": "desc" } },
        ]),
        "/v1/videos" => json!([
            { "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20 } },
            { "name": "after", "in": "query", "description": "`last_id` of the page before", "schema": { "type": "string" } },
            { "name": "order", "in": "query", "schema": { "enum": ["asc", "desc"], "default": "desc" } },
        ]),
        path if path.contains("{model}:") => in_path("model"),
        "/v1/usage/{call_id}" | "/v1/usage/{call_id}/receipt" => in_path("call_id"),
        "/v1/usage" => json!([
            { "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 500, "default": 50 } },
            { "name": "before", "in": "query", "description": "`next_before` of the page before", "schema": { "type": "string" } },
        ]),
        "/v1/quote" => quote_parameters(),
        "/v1/chat/completions" | "/v1/messages" | "/v1/responses" => json!([
            {
                "name": "Idempotency-Key", "in": "header",
                "description": "The same key and body within 24 hours is charged once",
                "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
            },
            {
                "name": "x-tollgate-strict", "in": "header",
                "description": "`true`: refuse what the model's provider has nothing like, instead of leaving it out and naming it in `x-tollgate-dropped`",
                "schema": { "type": "string" },
            },
        ]),
        _ => json!([]),
    }
}

fn replies(path: &str, access: Access) -> Value {
    let schema =
        |name: &str| json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } });
    let text = json!({ "text/plain": { "schema": { "type": "string" } } });
    let content = match path {
        "/v1/chat/completions" | "/v1/messages" | "/v1/responses" => said(),
        path if path.starts_with("/v1/responses/") || path.starts_with("/v1/conversations") => {
            json!({ "application/json": { "schema": { "type": "object" } } })
        }
        path if path.contains("enerateContent") => said(),
        path if path.contains("ount") && path.contains("okens") => {
            json!({ "application/json": { "schema": { "type": "object" } } })
        }
        "/v1beta/models" | "/v1beta/models/{id}" => json!({ "application/json": { "schema": { "type": "object" } } }),
        "/v1/social/{platform}/{capability}" => schema("SocialResult"),
        "/api/social/catalog" => schema("SocialCatalog"),
        "/mcp" => json!({ "application/json": { "schema": { "type": "object" } } }),
        "/v1/quote" => schema("Quote"),
        "/api/pricing" => schema("PriceList"),
        "/v1/models" => schema("ModelList"),
        "/v1/models/{id}" => schema("Model"),
        "/v1/balance" => schema("Balance"),
        "/v1/usage" => schema("UsageList"),
        "/v1/usage/{call_id}" => schema("Usage"),
        "/v1/usage/{call_id}/receipt" => schema("Receipt"),
        "/.well-known/tollgate-receipts" => schema("ReceiptKeys"),
        "/openapi.json" => json!({ "application/json": { "schema": { "type": "object" } } }),
        _ if access == Access::Admin => schema("List"),
        _ => text,
    };
    let mut all = Map::new();
    all.insert("200".to_owned(), json!({ "description": "done", "content": content }));
    let expected: Vec<u16> = match access {
        Access::Public if path == "/api/pricing" => vec![401, 403, 500, 503],
        Access::Public => vec![503],
        Access::Operator => vec![404],
        Access::Admin => vec![400, 401, 404, 408, 413, 415, 500, 503],
        Access::Key if path.ends_with("/receipt") => vec![401, 403, 404, 409, 500, 503],
        Access::Key if path == "/v1/quote" => vec![400, 401, 403, 404, 408, 413, 415, 500, 503],
        Access::Key => vec![400, 401, 403, 404, 503],
        Access::Paid => Code::ALL.iter().map(|code| code.status()).filter(|status| *status != 499).collect(),
    };
    for status in expected {
        all.insert(status.to_string(), json!({ "description": "refused", "content": schema("Error") }));
    }
    Value::Object(all)
}

/// An answer in a conversation, whole or streamed.
fn said() -> Value {
    json!({
        "application/json": { "schema": { "type": "object" } },
        "text/event-stream": { "schema": { "type": "string" } },
    })
}

/// The endpoint, and every counter of the usage log for an exact quote.
fn quote_parameters() -> Value {
    let endpoints: Vec<&str> = crate::quotes::READERS.iter().map(|(path, _)| *path).collect();
    let mut all = vec![json!({
        "name": "endpoint", "in": "query", "required": true, "schema": { "type": "string" },
        "description": format!("the path of the call, one of {}", endpoints.join(", ")),
    })];
    if let Ok(Value::Object(counters)) = serde_json::to_value(tollgate_store::Counters::default()) {
        all.extend(counters.keys().map(|name| {
            json!({
                "name": name, "in": "query", "description": "states what is used, for an exact quote",
                "schema": { "type": "integer", "minimum": 0 },
            })
        }));
    }
    Value::Array(all)
}

fn all_schemas() -> Value {
    let mut all = schemas();
    all["VideoRequest"] = video_request();
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), operator_schemas()) {
        all.extend(more);
    }
    all
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

/// A request for a video; each family reads its own part of it.
fn video_request() -> Value {
    json!({ "type": "object", "required": ["model"], "additionalProperties": true, "properties": {
            "model": { "type": "string" },
            "prompt": { "type": "string" },
            "seconds": { "type": ["integer", "string"] },
            "duration": { "type": ["integer", "string"] },
            "size": { "type": "string" },
            "input_reference": { "type": "string", "description": "A link; in a form also a file" },
            "image": { "type": "string" },
            "images": { "type": "array", "items": { "type": "string" } },
            "video_url": { "type": "string" },
            "webhook_url": { "type": "string", "format": "uri" },
            "metadata": { "type": "object" },
        } })
}

fn schemas() -> Value {
    let text = json!({ "type": "string" });
    let int = json!({ "type": "integer" });
    let nano = json!({ "type": "integer", "description": "nano-USD" });
    let list = |of: &str| {
        json!({ "type": "object", "required": ["object", "data"], "properties": {
            "object": { "const": "list" },
            "data": { "type": "array", "items": { "$ref": format!("#/components/schemas/{of}") } },
        } })
    };
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.code()).collect();
    let needed = json!({ "type": "integer", "description": "On a 402: what must be set aside at least" });
    let available = json!({ "type": "integer", "description": "On a 402 for want of balance: what the account has for such a call" });
    let quote = quote_form(&nano, &text);
    json!({
        "Error": { "type": "object", "required": ["error"], "properties": { "error": {
            "type": "object", "required": ["message", "type", "param", "code"],
            "properties": {
                "message": text, "type": text, "param": { "type": ["string", "null"] }, "code": { "enum": codes },
                "reason": { "type": "string", "description": "Social data only: tells cases of one code apart" },
                "needed_nano_usd": needed, "available_nano_usd": available,
                "upstream_code": { "type": "string", "description": "Creations of videos only: the provider's own code" },
            },
        } } },
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
        "ResponsesRequest": { "type": "object", "required": ["model", "input"], "additionalProperties": true, "properties": {
            "model": { "type": "string", "minLength": 1 }, "input": { "type": ["string", "array"] },
            "max_output_tokens": { "type": ["integer", "null"], "minimum": 1 }, "stream": { "type": ["boolean", "null"] },
        } },
        "GeminiRequest": { "type": "object", "required": ["contents"], "additionalProperties": true, "properties": {
            "contents": { "type": ["array", "object"] }, "generationConfig": { "type": ["object", "null"] },
        } },
        "Model": { "type": "object", "required": ["id", "object", "created", "owned_by"], "properties": {
            "id": text, "object": { "const": "model" }, "created": int, "owned_by": text,
            "supported_endpoint_types": { "type": "array", "items": text },
        } },
        "ModelList": list("Model"),
        "Balance": { "type": "object", "required": ["object", "available_nano_usd", "held_nano_usd"], "properties": {
            "object": { "const": "balance" }, "account": text, "currency": { "const": "USD" },
            "available_nano_usd": nano, "held_nano_usd": nano, "available_usd": text, "held_usd": text,
            "trial_available_nano_usd": nano, "paid_available_nano_usd": nano, "topped_up": { "type": "boolean" },
            "expiring": { "type": "array", "items": { "type": "object", "properties": {
                "credit": text, "expires_at_ms": int, "available_nano_usd": nano, "available_usd": text, "held_nano_usd": nano,
            } } },
            "limits": { "type": "object", "properties": { "key": { "type": "object" }, "account": { "type": "object" } } },
        } },
        "Usage": { "type": "object", "required": ["object", "call_id", "ending", "charge_nano_usd"], "properties": {
            "object": { "const": "usage" }, "call_id": text, "model": text,
            "ending": { "enum": tollgate_store::Ending::ALL.map(tollgate_store::Ending::name) },
            "status": int, "usage": { "type": "object" }, "estimated": { "type": "boolean" },
            "dropped": { "type": "array", "items": text, "description": "Fields of the request that the provider has nothing like, and (as `answer.…`) parts of the answer that the client's dialect has no form for" },
            "hold_nano_usd": nano, "charge_nano_usd": nano, "charge_usd": text, "write_off_nano_usd": nano,
            "refunded_nano_usd": nano, "calculation": { "type": ["object", "null"] }, "entries": { "type": "array" },
        } },
        "UsageList": list("Usage"),
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
        "Quote": quote,
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
