//! `POST /v1/audio/speech`: a text in, the audio itself out, as it comes.

use super::openapi::shapes::{event, idempotency, named, text};
use super::reading;
use super::row::{Access, Family, Row};
use crate::app::App;
use crate::call::{self, CallRequest, Priced};
use crate::quotes::Shop;
use crate::refusal::Refusal;
use crate::sale::speech::ENDPOINT_TYPE;
use crate::work::speech::{AskedSpeech, SpeechCall};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_media::speech::{SpeechFormat, SpeechRequest};
use tollgate_store::CallId;
use tollgate_wire::error::ErrorFormat;

const SPEECH: &str = "/v1/audio/speech";

pub const FAMILY: Family = Family { tag: "speech", rows, schemas };

fn rows() -> Vec<Row> {
    let mut row = Row::post(SPEECH, Access::Paid, speak, "Speech from a text, streamed as it is made")
        .with(idempotency)
        .takes(named("SpeechRequest"))
        .quoted(priced)
        .serves(ENDPOINT_TYPE)
        .names_itself();
    row.replies.push((200, Some(answers())));
    vec![row]
}

/// Every content type that an answer can have.
fn answers() -> Value {
    let file = json!({ "schema": { "type": "string", "format": "binary" } });
    let formats = SpeechFormat::ALL.map(|one| (one.content_type(24_000), file.clone()));
    let events = ("text/event-stream".to_owned(), json!({ "schema": event() }));
    Value::Object(formats.into_iter().chain([events]).collect())
}

pub async fn speak(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    match reading::guarded(handle(&app, id, request)).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, &id.to_string()),
    }
}

async fn handle(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let bytes = reading::json_body(app, &caller, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, SPEECH, &bytes)?;
    let asked = AskedSpeech::of(&app.serving.load(), SpeechRequest::from_json(&bytes)?);
    let ask = CallRequest { id, endpoint: SPEECH, work: SpeechCall(asked), idem };
    Ok(call::run(&app.till, caller, ask).await?.into_reply())
}

/// A call as far as its price depends on it.
fn priced(shop: &Shop<'_>, _: &[&str], body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    Ok(Box::new(AskedSpeech::of(shop.serving, SpeechRequest::from_json(&body)?)))
}

fn schemas() -> Value {
    let voice = json!({ "oneOf": [text(), { "type": "object", "required": ["id"], "properties": { "id": text() } }] });
    let formats = SpeechFormat::ALL.map(SpeechFormat::name);
    json!({
        "SpeechRequest": { "type": "object", "required": ["model", "input"], "properties": {
            "model": text(),
            "input": { "type": "string", "minLength": 1, "description": "Each character is one billed token" },
            "voice": voice,
            "response_format": { "enum": formats },
            "speed": { "type": "number" },
            "instructions": text(),
            "stream_format": { "enum": ["audio", "sse"], "default": "audio" },
        } },
    })
}
