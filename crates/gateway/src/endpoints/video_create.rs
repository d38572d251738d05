//! `POST /v1/videos` and `POST /v1/video/generations`: one handler. JSON and multipart/form-data
//! say the same thing.

use super::reading::base;
use super::video_tasks::{json_bytes, own, unknown};
use super::{form, reading};
use crate::app::App;
use crate::call::task::{Made, TaskAsk, create_task};
use crate::call::{CallRequest, Priced};
use crate::quotes::Shop;
use crate::refusal::Refusal;
use crate::settings::webhook_address;
use crate::who::caller::Caller;
use crate::work::given;
use crate::work::video::show::ShownTask;
use crate::work::video::webhooks;
use crate::work::video::{StoredPlan, VideoAsk, VideoTask, file};
use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tollgate_media::video::{VideoRequest, Warning, Warnings};
use tollgate_store::{CallId, Idem};
use tollgate_wire::error::{Code, ErrorFormat};
use tollgate_wire::multipart::FormLimits;

pub const VIDEOS: &str = "/v1/videos";
pub const GENERATIONS: &str = "/v1/video/generations";
pub const REMIX: &str = "/v1/videos/{id}/remix";

/// A creation as far as its price depends on it.
pub fn priced(shop: &Shop<'_>, _: &[&str], body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    Ok(Box::new(VideoAsk::of(shop.serving, &VideoRequest::from_json(&body)?)))
}

pub fn remix_is_not_quoted(_: &Shop<'_>, _: &[&str], _: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    let text = "A remix costs what its source did: quote the request of that one.";
    Err(Refusal::about(Code::InvalidParameter, "endpoint", text))
}

pub async fn videos(State(app): State<Arc<App>>, request: Request) -> Response {
    create(&app, VIDEOS, request).await
}

pub async fn generations(State(app): State<Arc<App>>, request: Request) -> Response {
    create(&app, GENERATIONS, request).await
}

/// `POST /v1/videos/{id}/remix`: another video from a finished one and a new prompt, where the
/// provider has that.
pub async fn remix(State(app): State<Arc<App>>, Path(source): Path<String>, request: Request) -> Response {
    let id = app.new_call_id();
    match reading::guarded(handle_remix(&app, id, &source, request)).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, careful(refusal), &id.to_string()),
    }
}

/// A fault of our own may come after the creation.
fn careful(refusal: Refusal) -> Refusal {
    if refusal.code == Code::Internal { refusal.once() } else { refusal }
}

async fn handle_remix(app: &Arc<App>, id: CallId, source: &str, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let bytes = reading::json_body(app, &caller, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, &format!("{REMIX} {source}"), &bytes)?;
    let fields: serde_json::Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|_| Refusal::new(Code::InvalidJson, "The body is a JSON object."))?;
    let prompt = remix_prompt(&fields)?;
    let named = webhook_url(app, &fields)?;
    let task = own(app, &caller, source).await?;
    file::result(&task)?;
    let plan = StoredPlan::read(&task.plan).ok_or_else(|| unknown(source))?;
    let ask = VideoAsk::remix(&app.serving.load(), &task, &plan, &prompt, warn_unread(&fields))?;
    let webhook_url = named.or_else(|| webhooks::of_account(&app.video, &caller.account));
    let made = made(app, caller, CallRequest { id, endpoint: REMIX, work: ask, idem }, webhook_url).await?;
    Ok(reply(app, &base(app, &parts), &made))
}

/// The task that makes it.
async fn made(
    app: &App,
    caller: Arc<Caller>,
    ask: CallRequest<VideoAsk>,
    webhook_url: Option<String>,
) -> Result<Made, Refusal> {
    let CallRequest { id, endpoint, work, idem } = ask;
    let work = VideoTask { ask: work, desk: app.video.clone() };
    create_task(&app.till, caller, TaskAsk { ask: CallRequest { id, endpoint, work, idem }, webhook_url }).await
}

/// What a remix takes from its source, or nobody knows.
fn warn_unread(fields: &serde_json::Map<String, Value>) -> Vec<Warning> {
    let others = fields.keys().filter(|field| !["prompt", "webhook_url"].contains(&field.as_str()));
    let dropped = "A remix is in all else as its source; this field was dropped.";
    others.map(|field| Warning::new(field, dropped)).collect::<Warnings>().list()
}

fn remix_prompt(fields: &serde_json::Map<String, Value>) -> Result<String, Refusal> {
    let prompt = fields.get("prompt").and_then(Value::as_str).filter(|prompt| !prompt.trim().is_empty());
    let missing = || Refusal::about(Code::MissingParameter, "prompt", "`prompt` is required.");
    prompt.map(str::to_owned).ok_or_else(missing)
}

async fn create(app: &Arc<App>, endpoint: &'static str, request: Request) -> Response {
    let id = app.new_call_id();
    match reading::guarded(handle(app, id, endpoint, request)).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(app, ErrorFormat::OpenAi, careful(refusal), &id.to_string()),
    }
}

async fn handle(app: &Arc<App>, id: CallId, endpoint: &'static str, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let form = kind.trim_start().to_ascii_lowercase().starts_with("multipart/form-data");
    // It lives to the end: what is made of it takes the room that it has.
    let bytes = match form {
        true => reading::form_body(app, &caller, &parts, body).await?,
        false => reading::json_body(app, &caller, &parts, body).await?,
    };
    // Both endpoints are one: the same key and body find the same task on either.
    let (asked, idem) = match form {
        true => read_form(&parts.headers, kind, &bytes)?,
        false => (VideoRequest::from_json(&bytes)?, reading::idempotency(&parts.headers, VIDEOS, &bytes)?),
    };
    given::of_video(&app.conversations.fetcher.client, &asked)?;
    let webhook_url = webhook_url(app, &asked.others)?.or_else(|| webhooks::of_account(&app.video, &caller.account));
    let ask = VideoAsk::of(&app.serving.load(), &asked);
    let made = made(app, caller, CallRequest { id, endpoint, work: ask, idem }, webhook_url).await?;
    Ok(reply(app, &base(app, &parts), &made))
}

/// The request in a form, and what of it an Idempotency-Key stands for: the fields without the
/// boundary, which is drawn anew each time.
fn read_form(headers: &HeaderMap, kind: &str, bytes: &Bytes) -> Result<(VideoRequest, Option<Idem>), Refusal> {
    let parts = form::parts_of(kind, FormLimits::default(), bytes.clone())?;
    let mut idem = None;
    if reading::repeats(headers) {
        let mut hash = Sha256::new().chain_update(VIDEOS);
        for part in &parts {
            for text in [part.name.as_bytes(), part.file_name.as_deref().unwrap_or_default().as_bytes(), &part.body] {
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text);
            }
        }
        idem = reading::repeated(headers, hash)?;
    }
    Ok((VideoRequest::from_form(parts)?, idem))
}

fn webhook_url(app: &App, fields: &serde_json::Map<String, Value>) -> Result<Option<String>, Refusal> {
    match fields.get("webhook_url") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(url)) => webhook_address(url, &app.settings.video.webhooks).map(Some),
        Some(_) => Err(Refusal::about(Code::InvalidParameter, "webhook_url", "`webhook_url` must be a text.")),
    }
}

fn reply(app: &App, base: &str, made: &Made) -> Response {
    let shown = ShownTask::of(&app.video, Some(base), &made.task);
    let shown = if made.replayed { shown } else { shown.begun() };
    let mut reply = json_bytes(shown.openai());
    let headers = reply.headers_mut();
    if let Ok(id) = HeaderValue::try_from(made.task.id.call().to_string()) {
        headers.insert("x-request-id", id);
    }
    if made.replayed {
        headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    reply
}
