//! `POST /v1/systemone` and `POST /v1/decisions`: the same questions in the formats of two makers.
//! System One's SDK packs its bodies with zstd and sends pictures as parts of a form; both are
//! turned into the one JSON body that everything behind here knows.

use super::openapi::shapes::{idempotency, named, text};
use super::row::{Access, Family, Row};
use super::{chat, form, reading};
use crate::app::App;
use crate::call::{self, CallRequest};
use crate::refusal::Refusal;
use crate::work::decisions::{DecisionCall, ENDPOINT_TYPE};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, header};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_media::decide::{AssetPart, DecisionForm, DecisionRequest, MOST_QUESTIONS, with_assets};
use tollgate_store::CallId;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;
use tollgate_wire::multipart::FormLimits;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Where System One's SDK looks for it.
const OWN_REQUEST_ID: HeaderName = HeaderName::from_static("x-typesafe-request-id");
/// The part of a form that is the request itself.
const REQUEST: &str = "request";
/// Parts of a form.
const MOST_PARTS: usize = 64;

pub const FAMILY: Family = Family { tag: "decisions", rows, schemas };

fn rows() -> Vec<Row> {
    let post = |form: DecisionForm, summary, takes| {
        let handler =
            move |State(app): State<Arc<App>>, request: Request| async move { answered(&app, form, request).await };
        let row = Row::post(form.path(), Access::Paid, handler, summary).with(idempotency);
        row.takes(named(takes)).gives(named("Decisions")).names_itself()
    };
    vec![
        post(
            DecisionForm::SystemOne,
            "Answers with probabilities to questions, in System One's format",
            "SystemOneRequest",
        )
        .or_a_form()
        .quoted(|_, _, body| Ok(Box::new(DecisionCall(DecisionRequest::read(DecisionForm::SystemOne, body)?))))
        .serves(ENDPOINT_TYPE),
        post(DecisionForm::Decisions, "The same in OpenAI's format", "DecisionsRequest")
            .quoted(|_, _, body| Ok(Box::new(DecisionCall(DecisionRequest::read(DecisionForm::Decisions, body)?)))),
    ]
}

async fn answered(app: &Arc<App>, form: DecisionForm, request: Request) -> Response {
    let id = app.new_call_id();
    let mut reply = chat::answered(app, Dialect::Chat, id, handle(app, id, form, request)).await;
    if let (DecisionForm::SystemOne, Some(id)) = (form, reply.headers().get(REQUEST_ID).cloned()) {
        reply.headers_mut().insert(OWN_REQUEST_ID, id);
    }
    reply
}

async fn handle(app: &Arc<App>, id: CallId, form: DecisionForm, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = match form {
        DecisionForm::Decisions => reading::json_body(app, &caller, &parts, body).await?,
        DecisionForm::SystemOne => {
            let kind = content_type(&parts);
            let multipart = kind.to_ascii_lowercase().starts_with("multipart/form-data");
            if !multipart {
                reading::only_json(&parts)?;
            }
            let body = reading::unpacked_body(app, &caller, &parts, body).await?;
            if multipart { unfolded(kind, body)? } else { body }
        }
    };
    let endpoint = form.path();
    // Of a form, what is in it: the words between its parts are others with every try.
    let idem = reading::idempotency(&parts.headers, endpoint, &body)?;
    let work = DecisionCall(DecisionRequest::read(form, body)?);
    Ok(call::run(&app.till, caller, CallRequest { id, endpoint, work, idem }).await?.into_reply())
}

fn content_type(parts: &Parts) -> &str {
    parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// The request of a form, with the pictures of its other parts in it.
fn unfolded(content_type: &str, body: Bytes) -> Result<Bytes, Refusal> {
    let limits = FormLimits { parts: MOST_PARTS, ..FormLimits::default() };
    let parts = form::parts_of(content_type, limits, body)?;
    let mut request = None;
    let mut assets = Vec::new();
    for part in parts {
        match part.name == REQUEST && request.is_none() {
            true => request = Some(part.body),
            false => assets.push(AssetPart { name: part.name, bytes: part.body }),
        }
    }
    let missing = || Refusal::about(Code::MissingParameter, REQUEST, "The form has no part `request` with the JSON.");
    Ok(with_assets(&request.ok_or_else(missing)?, &assets)?)
}

fn schemas() -> Value {
    let model = json!({ "type": "string", "minLength": 1 });
    let asset = json!({ "type": "object", "properties": {
        "type": { "const": "image" }, "format": { "enum": ["png", "jpg", "jpeg"] }, "data_base64": text(), "part": text(),
    } });
    let system_one = json!({ "type": "object", "required": ["type"], "properties": {
        "type": { "enum": ["noul", "choice", "score", "box"] },
    } });
    let decision = json!({ "type": "object", "required": ["type", "instructions"], "properties": {
        "type": { "enum": ["predicate", "choice", "score"] }, "name": text(),
    } });
    json!({
        "SystemOneRequest": { "type": "object", "required": ["model", "state", "questions"], "additionalProperties": true, "properties": {
            "model": model, "state": { "type": ["string", "object", "array"] },
            "questions": { "type": "object", "minProperties": 1, "maxProperties": MOST_QUESTIONS, "additionalProperties": system_one },
            "assets": { "type": "object", "additionalProperties": asset },
        } },
        "DecisionsRequest": { "type": "object", "required": ["model", "input", "questions"], "additionalProperties": true, "properties": {
            "model": model, "input": { "type": ["string", "array"] },
            "questions": { "type": "array", "minItems": 1, "maxItems": MOST_QUESTIONS, "items": decision },
        } },
        "Decisions": { "type": "object", "required": ["model", "answers", "usage"], "properties": {
            "model": text(), "answers": { "type": ["object", "array"] }, "usage": { "type": "object" },
        } },
    })
}
