//! `POST /v1/rerank` and `POST /v2/rerank`: the same, where clients of Jina and of Cohere look for
//! it.

use super::openapi::shapes::{idempotency, named, text};
use super::row::{Access, Family, Row};
use super::{chat, reading};
use crate::app::App;
use crate::call::{self, CallRequest};
use crate::refusal::Refusal;
use crate::work::rerank::{ENDPOINT_TYPE, RerankCall};
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_media::rerank::{MOST_DOCUMENTS, RerankRequest};
use tollgate_store::CallId;
use tollgate_wire::Dialect;

const ENDPOINT: &str = "/v1/rerank";
const SECOND: &str = "/v2/rerank";

pub const FAMILY: Family = Family { tag: "rerank", rows, schemas };

fn rows() -> Vec<Row> {
    let post = |path: &'static str, summary| {
        let handler = move |State(app): State<Arc<App>>, request: Request| async move {
            let id = app.new_call_id();
            chat::answered(&app, Dialect::Chat, id, || handle(&app, id, path, request)).await
        };
        let row = Row::post(path, Access::Paid, handler, summary).with(idempotency);
        let row = row.takes(named("RerankRequest")).gives(named("RerankResult")).names_itself();
        row.quoted(|_, _, body| Ok(Box::new(RerankCall(RerankRequest::read(body)?))))
    };
    vec![
        post(ENDPOINT, "Documents in the order in which they answer a question, in the form of Jina and Cohere")
            .serves(ENDPOINT_TYPE),
        post(SECOND, "The same, where Cohere's SDK asks"),
    ]
}

async fn handle(app: &Arc<App>, id: CallId, endpoint: &'static str, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, endpoint, &body)?;
    let work = RerankCall(RerankRequest::read(body)?);
    Ok(call::run(&app.till, caller, CallRequest { id, endpoint, work, idem }).await?.into_reply())
}

fn schemas() -> Value {
    let filled = json!({ "type": "string", "minLength": 1 });
    let document = json!({ "anyOf": [filled, {
        "type": "object", "required": ["text"], "properties": { "text": filled }, "additionalProperties": false,
    }] });
    let count = json!({ "type": ["integer", "null"], "minimum": 1, "maximum": 1_000_000 });
    let result = json!({ "type": "object", "required": ["index", "relevance_score"], "properties": {
        "index": { "type": "integer" }, "relevance_score": { "type": "number" },
        "document": { "type": "object", "required": ["text"], "properties": { "text": text() } },
    } });
    let whole = json!({ "type": "integer", "minimum": 0 });
    let usage = json!({ "type": "object", "required": ["prompt_tokens", "total_tokens"], "properties": {
        "prompt_tokens": whole, "total_tokens": whole,
    } });
    let meta = json!({ "type": "object", "required": ["api_version", "billed_units"], "properties": {
        "api_version": { "type": "object", "required": ["version"], "properties": { "version": text() } },
        "billed_units": { "type": "object", "required": ["search_units"], "properties": { "search_units": whole } },
    } });
    json!({
        "RerankRequest": { "type": "object", "required": ["model", "query", "documents"], "additionalProperties": true, "properties": {
            "model": filled, "query": filled,
            "documents": { "type": "array", "minItems": 1, "maxItems": MOST_DOCUMENTS, "items": document },
            "top_n": count, "max_tokens_per_doc": count, "return_documents": { "type": ["boolean", "null"] },
        } },
        "RerankResult": { "type": "object", "required": ["id", "model", "results", "usage", "meta"], "properties": {
            "id": text(), "model": text(), "results": { "type": "array", "items": result }, "usage": usage, "meta": meta,
        } },
    })
}
