//! `POST /v1/embeddings`, and what Gemini's paths `:embedContent` and `:batchEmbedContents` come to
//! (their rows are in `gemini.rs`).

use super::openapi::shapes::{idempotency, named, text};
use super::row::{Access, Family, Row};
use super::{chat, reading};
use crate::app::App;
use crate::call::{self, CallRequest, Priced};
use crate::refusal::Refusal;
use crate::work::embeddings::{ENDPOINT_TYPE, Embedding, EmbeddingCall};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_media::embed::{EmbedRequest, MOST_INPUTS};
use tollgate_store::CallId;
use tollgate_wire::Dialect;

const ENDPOINT: &str = "/v1/embeddings";

pub const FAMILY: Family = Family { tag: "embeddings", rows, schemas };

fn rows() -> Vec<Row> {
    vec![
        Row::post(ENDPOINT, Access::Paid, create, "Vectors for texts, in OpenAI's format")
            .with(idempotency)
            .takes(named("EmbeddingsRequest"))
            .gives(named("EmbeddingList"))
            .quoted(|_, _, body| Ok(Box::new(Embedding(EmbedRequest::openai(body)?))))
            .serves(ENDPOINT_TYPE)
            .names_itself(),
    ]
}

async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Chat, id, || handle(&app, id, request)).await
}

async fn handle(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, ENDPOINT, &body)?;
    let asked = Embedding(EmbedRequest::openai(body)?);
    let work = EmbeddingCall { asked, spool: app.spool.clone(), replies: app.images.replies.clone() };
    Ok(call::run(&app.till, caller, CallRequest { id, endpoint: ENDPOINT, work, idem }).await?.into_reply())
}

/// A request on one of Gemini's paths, which names the model.
pub(super) fn of_gemini(model: &str, body: Bytes, batch: bool) -> Result<Embedding, Refusal> {
    Ok(Embedding(EmbedRequest::gemini(body, model, batch)?))
}

/// The same as far as its price depends on it.
pub(super) fn priced_for_gemini(parts: &[&str], body: Bytes, batch: bool) -> Result<Box<dyn Priced>, Refusal> {
    Ok(Box::new(of_gemini(parts.first().copied().unwrap_or_default(), body, batch)?))
}

fn schemas() -> Value {
    let texts = json!({ "type": "array", "minItems": 1, "maxItems": MOST_INPUTS, "items": { "type": "string", "minLength": 1 } });
    let ids = json!({ "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 } });
    let lists = json!({ "type": "array", "minItems": 1, "maxItems": MOST_INPUTS, "items": ids });
    let numbers = json!({ "type": "array", "items": { "type": "number" } });
    let values = json!({ "type": "object", "required": ["values"], "properties": { "values": numbers } });
    let vector = json!({ "anyOf": [numbers, text()] });
    json!({
        "EmbeddingsRequest": { "type": "object", "required": ["model", "input"], "additionalProperties": true, "properties": {
            "model": { "type": "string", "minLength": 1 },
            "input": { "anyOf": [{ "type": "string", "minLength": 1 }, texts, ids, lists] },
            "dimensions": { "type": ["integer", "null"], "minimum": 1, "maximum": 65536 },
            "encoding_format": { "enum": ["float", "base64", null], "description": "base64: 32-bit numbers, the little end first" },
        } },
        "EmbeddingList": { "type": "object", "required": ["object", "data", "model", "usage"], "properties": {
            "object": { "const": "list" }, "model": text(),
            "data": { "type": "array", "items": { "type": "object", "required": ["object", "index", "embedding"], "properties": {
                "object": { "const": "embedding" }, "index": { "type": "integer" }, "embedding": vector,
            } } },
            "usage": { "type": "object", "required": ["prompt_tokens", "total_tokens"], "properties": {
                "prompt_tokens": { "type": "integer" }, "total_tokens": { "type": "integer" },
            } },
        } },
        "GeminiEmbedding": { "type": "object", "required": ["embedding"], "properties": { "embedding": values } },
        "GeminiEmbeddings": { "type": "object", "required": ["embeddings"], "properties": {
            "embeddings": { "type": "array", "items": values },
        } },
        "GeminiEmbedRequest": { "type": "object", "required": ["content"], "additionalProperties": true, "properties": {
            "content": { "type": "object" }, "outputDimensionality": { "type": ["integer", "null"], "minimum": 1 },
        } },
        "GeminiBatchEmbedRequest": { "type": "object", "required": ["requests"], "additionalProperties": true, "properties": {
            "requests": { "type": "array", "minItems": 1, "maxItems": MOST_INPUTS, "items": named("GeminiEmbedRequest") },
        } },
    })
}
