//! `POST /v1/systemone` and `POST /v1/decisions`: the same questions in the formats of two makers.
//! System One's SDK packs its bodies with zstd and sends pictures as parts of a form. Those are
//! spooled, and become data in a JSON body while that is sent.

use super::form::{self, FirstBytes, FormField, FormFile, FormRest, FormRules, TakeFile};
use super::openapi::shapes::{idempotency, named, text, text_or_null};
use super::row::{Access, Family, Row};
use super::{chat, reading};
use crate::app::App;
use crate::call::{self, CallRequest};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::decisions::{DecisionCall, ENDPOINT_TYPE};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::HeaderName;
use http::request::Parts;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::sync::Arc;
use tollgate_media::decide::{AssetPart, DecisionForm, DecisionRequest, MOST_QUESTIONS, with_assets};
use tollgate_store::{CallId, Idem};
use tollgate_upstream::SpooledFile;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;
use tollgate_wire::multipart::PartHead;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Where System One's SDK looks for it.
const OWN_REQUEST_ID: HeaderName = HeaderName::from_static("x-typesafe-request-id");
/// The part of a form that is the request itself.
const REQUEST: &str = "request";
/// A request of at most 1 MiB, which is read as a whole, and pictures, which are spooled.
const RULES: FormRules = FormRules { parts: 64, field_bytes: 1 << 20, files: 64, file_bytes: 20 << 20, packed: true };

pub const FAMILY: Family = Family { tag: "decisions", rows, schemas };

fn rows() -> Vec<Row> {
    let post = |form: DecisionForm, summary, takes, gives| {
        let handler =
            move |State(app): State<Arc<App>>, request: Request| async move { answered(&app, form, request).await };
        let row = Row::post(form.path(), Access::Paid, handler, summary).with(idempotency);
        row.takes(named(takes)).gives(named(gives)).names_itself()
    };
    vec![
        post(
            DecisionForm::SystemOne,
            "Answers with probabilities to questions, in System One's format",
            "SystemOneRequest",
            "SystemOneResult",
        )
        .or_a_form()
        .quoted(|_, _, body| Ok(Box::new(DecisionCall::new(DecisionRequest::read(DecisionForm::SystemOne, body)?))))
        .serves(ENDPOINT_TYPE),
        post(DecisionForm::Decisions, "The same in OpenAI's format", "DecisionsRequest", "Decisions").quoted(
            |_, _, body| Ok(Box::new(DecisionCall::new(DecisionRequest::read(DecisionForm::Decisions, body)?))),
        ),
    ]
}

async fn answered(app: &Arc<App>, form: DecisionForm, request: Request) -> Response {
    let id = app.new_call_id();
    let mut reply = chat::answered(app, Dialect::Chat, id, || handle(app, id, form, request)).await;
    if let (DecisionForm::SystemOne, Some(id)) = (form, reply.headers().get(REQUEST_ID).cloned()) {
        reply.headers_mut().insert(OWN_REQUEST_ID, id);
    }
    reply
}

async fn handle(app: &Arc<App>, id: CallId, form: DecisionForm, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let (work, idem) = match form == DecisionForm::SystemOne && form::is_form(&parts) {
        true => of_form(app, &caller, &parts, body).await?,
        false => of_json(app, &caller, &parts, body, form).await?,
    };
    Ok(call::run(&app.till, caller, CallRequest { id, endpoint: form.path(), work, idem }).await?.into_reply())
}

async fn of_json(
    app: &App,
    caller: &Caller,
    parts: &Parts,
    body: Body,
    form: DecisionForm,
) -> Result<(DecisionCall, Option<Idem>), Refusal> {
    reading::only_json(parts)?;
    let body = match form {
        DecisionForm::Decisions => reading::json_body(app, caller, parts, body).await?,
        DecisionForm::SystemOne => reading::unpacked_body(app, caller, parts, body).await?,
    };
    let idem = reading::idempotency(&parts.headers, form.path(), &body)?;
    Ok((DecisionCall::new(DecisionRequest::read(form, body)?), idem))
}

/// The request of a form, with the pictures of its other parts, which are spooled.
async fn of_form(
    app: &App,
    caller: &Caller,
    parts: &Parts,
    body: Body,
) -> Result<(DecisionCall, Option<Idem>), Refusal> {
    let take = |head: &PartHead, _: &[FormField], _: Option<FormRest>| {
        let most = (head.name == REQUEST).then_some(RULES.field_bytes);
        Ok(TakeFile::spooled(FirstBytes::default(), most))
    };
    let form = form::read(app, caller, parts, body, RULES, take).await?;
    let idem = reading::idempotency(&parts.headers, DecisionForm::SystemOne.path(), &form.print)?;
    let mut request = None;
    for field in form.fields {
        if field.name != REQUEST || request.is_some() {
            return Err(no_file(&field.name));
        }
        request = Some(Bytes::from(field.text));
    }
    let (mut pictures, mut files, mut room) = (Vec::new(), Vec::new(), form.room);
    for FormFile { name, file, watch } in form.files {
        let file = file.into_spooled()?;
        if name == REQUEST && request.is_none() {
            room.grow(room.bytes() + usize::try_from(file.length()).unwrap_or(usize::MAX)).await?;
            request = Some(read_whole(&file).await?);
            continue;
        }
        pictures.push(AssetPart { name, start: Bytes::from(watch.0) });
        files.push(file);
    }
    let missing = || Refusal::about(Code::MissingParameter, REQUEST, "The form has no part `request` with the JSON.");
    let unfolded = with_assets(&request.ok_or_else(missing)?, &pictures)?;
    Ok((DecisionCall::with_files(DecisionRequest::of_form(unfolded)?, files, room), idem))
}

fn no_file(name: &str) -> Refusal {
    let name = tollgate_wire::cut(name, tollgate_wire::NAME);
    let text = match name.as_ref() {
        REQUEST => "`request` is given twice.".to_owned(),
        _ => format!("`{name}` is no file: beside `request`, a form has pictures with a file name each."),
    };
    Refusal::about(Code::InvalidParameter, &name, text)
}

/// The request, where a client sends it as a file. It is short.
async fn read_whole(file: &SpooledFile) -> Result<Bytes, Refusal> {
    let (mut pieces, mut all) = (file.pieces(), BytesMut::new());
    while let Some(piece) = poll_fn(|cx| pieces.poll_piece(cx)).await {
        let lost = |_| Refusal::new(Code::Internal, "The form could not be read; nothing is charged for this request.");
        all.extend_from_slice(&piece.map_err(lost)?);
    }
    Ok(all.freeze())
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
        "SystemOneResult": system_one_result(),
        "Decisions": decisions_result(),
    })
}

/// Answers by the names of their questions. A question that was not answered has no member.
fn system_one_result() -> Value {
    let number = json!({ "type": "number" });
    let chances = json!({ "type": "object", "additionalProperties": number });
    let edges = json!({ "type": "object", "required": ["top", "bottom", "left", "right"], "properties": {
        "top": number, "bottom": number, "left": number, "right": number,
    } });
    let answer = json!({ "oneOf": [
        { "type": "object", "required": ["type", "noul"], "properties": { "type": { "const": "noul" }, "noul": number } },
        { "type": "object", "required": ["type", "choice", "confidence", "probabilities"], "properties": {
            "type": { "const": "choice" }, "choice": text(), "confidence": number, "probabilities": chances,
        } },
        { "type": "object", "required": ["type", "score", "confidence", "legend", "probabilities"], "properties": {
            "type": { "const": "score" }, "score": number, "confidence": number, "probabilities": chances,
            "legend": { "type": "object", "additionalProperties": true },
        } },
        { "type": "object", "required": ["type", "box"], "properties": {
            "type": { "const": "box" }, "box": edges, "confidence": { "type": ["number", "null"] },
        } },
    ] });
    json!({ "type": "object", "required": ["model", "answers", "usage"], "properties": {
        "model": text(), "answers": { "type": "object", "additionalProperties": answer },
        "usage": { "type": "object", "required": ["input_tokens", "output_tokens"], "properties": {
            "input_tokens": whole(), "output_tokens": whole(),
        } },
    } })
}

/// Answers in the order of their questions. One that was not given says so.
fn decisions_result() -> Value {
    let (number, name) = (json!({ "type": "number" }), text_or_null());
    let chosen = json!({ "type": ["string", "boolean"] });
    let chances = |members: Value| {
        let required: Vec<&String> = members.as_object().into_iter().flat_map(|members| members.keys()).collect();
        json!({ "type": "array", "items": { "type": "object", "required": required, "properties": members } })
    };
    let of_choice = chances(json!({ "value": chosen, "probability": number }));
    let of_score = chances(json!({ "label": text(), "value": whole(), "probability": number }));
    let answer = |kind: &str, more: Value| {
        let mut members = json!({ "type": { "const": kind }, "name": name });
        let mut required = vec!["type", "name"];
        for (name, schema) in more.as_object().into_iter().flatten() {
            members[name] = schema.clone();
            required.push(name);
        }
        json!({ "type": "object", "required": required, "properties": members })
    };
    let answers = json!({ "oneOf": [
        answer("predicate", json!({ "probability": number })),
        answer("choice", json!({ "choice": chosen, "confidence": number, "probabilities": of_choice })),
        answer("score", json!({ "score": number, "confidence": number, "probabilities": of_score })),
        answer("refusal", json!({})),
    ] });
    let details = |names: &[&str]| {
        let members: Value = names.iter().map(|name| ((*name).to_owned(), whole())).collect();
        json!({ "type": "object", "required": names, "properties": members })
    };
    json!({ "type": "object", "required": ["model", "answers", "usage"], "properties": {
        "model": text(), "answers": { "type": "array", "items": answers },
        "usage": { "type": "object", "required": ["input_tokens", "output_tokens", "total_tokens"], "properties": {
            "input_tokens": whole(), "output_tokens": whole(), "total_tokens": whole(),
            "input_tokens_details": details(&["cached_tokens", "cache_write_tokens"]),
            "output_tokens_details": details(&["reasoning_tokens"]),
        } },
    } })
}

fn whole() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}
