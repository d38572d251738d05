//! How many tokens a prompt has: `POST /v1/messages/count_tokens` and Gemini's `:countTokens`. Free
//! of charge, from our own count, which leans high: it is the number that a call is held for, not
//! the one that a provider will report.

use super::{chat, reading};
use crate::app::App;
use crate::call;
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::conversation::Conversation;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use std::sync::Arc;
use tollgate_dialects::CheckedRequest;
use tollgate_wire::Dialect;

pub async fn of_messages(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Anthropic, id, || handle(&app, request)).await
}

async fn handle(app: &Arc<App>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    counted(app, &caller, CheckedRequest::read_prompt(Dialect::Anthropic, body, None)?)
}

/// The count of a prompt for a model that this caller could ask.
pub fn counted(app: &App, caller: &Caller, asked: CheckedRequest) -> Result<Response, Refusal> {
    let (dialect, tokens) = (asked.dialect, asked.prompt_tokens);
    let serving = app.serving.load();
    call::find(&serving, caller, &Conversation::new(asked, &HeaderMap::new()))?;
    let mut reply = Response::new(Body::from(dialect.token_count(tokens)));
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(reply)
}
