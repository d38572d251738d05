//! `POST /v1/music/generations`: a song from a prompt, lyrics or both.

use super::openapi::shapes::{idempotency, named, text};
use super::reading;
use super::row::{Access, Family, Row};
use crate::app::App;
use crate::call::{self, CallRequest, Priced};
use crate::quotes::Shop;
use crate::refusal::Refusal;
use crate::sale::music::ENDPOINT_TYPE;
use crate::work::music::{AskedMusic, MusicCall};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::MUSIC_FORMATS;
use tollgate_media::music::MusicRequest;
use tollgate_store::CallId;
use tollgate_wire::error::ErrorFormat;

const MUSIC: &str = "/v1/music/generations";

pub const FAMILY: Family = Family { tag: "music", rows, schemas };

fn rows() -> Vec<Row> {
    vec![
        Row::post(MUSIC, Access::Paid, compose, "A song from a prompt, lyrics or both")
            .with(idempotency)
            .takes(named("MusicRequest"))
            .gives(named("MusicResult"))
            .quoted(priced)
            .serves(ENDPOINT_TYPE)
            .begun_once()
            .names_itself(),
    ]
}

pub async fn compose(State(app): State<Arc<App>>, request: Request) -> Response {
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
    let idem = reading::idempotency(&parts.headers, MUSIC, &bytes)?;
    let asked = AskedMusic::of(&app.serving.load(), MusicRequest::from_json(&bytes)?);
    let ask = CallRequest { id, endpoint: MUSIC, work: MusicCall { asked, replies: app.images.replies.clone() }, idem };
    Ok(call::run(&app.till, caller, ask).await?.into_reply())
}

/// A call as far as its price depends on it.
fn priced(shop: &Shop<'_>, _: &[&str], body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    Ok(Box::new(AskedMusic::of(shop.serving, MusicRequest::from_json(&body)?)))
}

fn schemas() -> Value {
    json!({
        "MusicRequest": { "type": "object", "required": ["model"], "properties": {
            "model": text(),
            "prompt": { "type": "string", "description": "What it is to sound like" },
            "lyrics": { "type": "string", "description": "What is sung; may have tags such as [Verse]" },
            "instrumental": { "type": "boolean", "default": false },
            "lyrics_optimizer": { "type": "boolean", "default": false, "description": "Lyrics are written from the prompt" },
            "duration": { "type": "integer", "minimum": 1, "description": "Seconds" },
            "response_format": { "enum": MUSIC_FORMATS },
            "output": { "enum": ["b64_json", "url"], "default": "b64_json" },
        } },
        "MusicResult": { "type": "object", "required": ["created", "data", "metadata"], "properties": {
            "created": { "type": "integer" },
            "data": { "type": "array", "items": { "type": "object", "required": ["url", "b64_json", "duration", "format"], "properties": {
                "url": text(), "b64_json": text(), "duration": { "type": "number" }, "format": { "enum": MUSIC_FORMATS },
            } } },
            "metadata": { "type": "object", "required": ["success_count", "failed_count"], "properties": {
                "success_count": text(), "failed_count": text(),
            } },
        } },
    })
}
