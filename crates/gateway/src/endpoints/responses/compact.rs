//! `POST /v1/responses/compact`: a conversation pressed into one item, by asking its model for a summary. An ordinary paid call;
//! the item can be sent to any model afterwards, because what it stands for is put in its place.

use super::{Which, respond};
use crate::app::App;
use crate::endpoints::{chat, reading};
use crate::kept;
use crate::refusal::Refusal;
use axum::extract::{Request, State};
use axum::response::Response;
use http::header;
use http_body_util::BodyExt as _;
use std::sync::Arc;
use tollgate_store::CallId;
use tollgate_wire::error::Code;
use tollgate_wire::responses::{self, with_input};
use tollgate_wire::{Dialect, Request as Said};

const WISH: &str = r#"{"type":"message","role":"user","content":"Write a summary of this conversation so far, for yourself to continue from: every fact, decision, name, number and open task in it, and nothing else. Answer with the summary alone."}"#;

const ENDPOINT: &str = "/v1/responses/compact";

pub async fn compact(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Responses, id, handle(&app, id, request)).await
}

async fn handle(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, ENDPOINT, &body)?;
    let asked = Said::read_prompt(Dialect::Responses, body, None)?;
    if asked.stream {
        return Err(Refusal::about(Code::UnsupportedValue, "stream", "A compaction is not streamed."));
    }
    let mut past = kept::find(app, caller.account.id, asked, None, true).await?;
    let said = past.before.iter().chain(&past.own).cloned().map(responses::unpressed);
    let all: Vec<String> = said.chain([WISH.to_owned()]).collect();
    past.asked = Said::read(Dialect::Responses, with_input(past.asked.body(), &all)?, None)?;
    let reply = respond(app, caller, past, None, &parts.headers, Which { id, endpoint: ENDPOINT, idem }).await?;
    pressed(id, reply).await
}

/// The answer with the summary in one item. A repeated Idempotency-Key comes here with the first answer, and gets what that
/// one got: names and time are those of the call in its head.
async fn pressed(id: CallId, reply: Response) -> Result<Response, Refusal> {
    let (mut head, body) = reply.into_parts();
    let broken = || Refusal::new(Code::Internal, "The summary could not be read.");
    let answer = body.collect().await.map_err(|_| broken())?.to_bytes();
    let summary = responses::output_text(&answer);
    if summary.trim().is_empty() {
        return Err(Refusal::new(Code::UpstreamInvalidReply, "The model gave no summary."));
    }
    let first = head.headers.get("x-request-id").and_then(|first| first.to_str().ok()?.parse().ok()).unwrap_or(id);
    let own = first.to_string();
    let own = own.rsplit_once('_').map_or(own.as_str(), |(_, own)| own);
    let item = responses::compaction(&format!("cmp_{own}"), &summary);
    let created = u64::try_from(first.made_at() / 1_000).unwrap_or(0);
    let whole = responses::compacted(&format!("resp_{own}"), created, &[item], &answer);
    head.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(head, whole.into()))
}
