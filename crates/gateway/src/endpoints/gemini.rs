//! Gemini's paths: `POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent`, `:countTokens`, and the same under
//! `/v1`, where newer SDKs look for them. The path says what is asked of which model; the body does not.

use super::{chat, count, reading};
use crate::app::App;
use crate::call::{self, Ask, Conversation};
use crate::refusal::Refusal;
use axum::extract::{Path as InPath, Request, State};
use axum::response::Response;
use http::request::Parts;
use std::sync::Arc;
use tollgate_dialects::{Path, Request as Said};
use tollgate_store::CallId;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

/// What can be asked of a model, by where and how.
const VERBS: [(&str, &str, &str); 3] = [
    ("generateContent", "/v1beta/models/{model}:generateContent", "/v1/models/{model}:generateContent"),
    (
        "streamGenerateContent",
        "/v1beta/models/{model}:streamGenerateContent",
        "/v1/models/{model}:streamGenerateContent",
    ),
    ("countTokens", "/v1beta/models/{model}:countTokens", "/v1/models/{model}:countTokens"),
];

pub async fn ask(State(app): State<Arc<App>>, InPath(path): InPath<String>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Gemini, id, handle(&app, id, &path, request)).await
}

async fn handle(app: &Arc<App>, id: CallId, path: &str, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let (model, endpoint, verb) = asked(path, &parts)?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let stream = verb == "streamGenerateContent";
    let path = Path { model, stream };
    if verb == "countTokens" {
        return count::counted(app, &caller, Said::read_prompt(Dialect::Gemini, body, Some(path))?);
    }
    // The model stands in the path only, so the path is part of what is repeated.
    let idem = reading::idempotency(&parts.headers, parts.uri.path(), &body)?;
    let mut work = Conversation::new(Said::read(Dialect::Gemini, body, Some(path))?, &parts.headers);
    work.array = stream && !wants_events(&parts);
    call::run(app, caller, Ask { id, endpoint, work, idem }).await
}

/// The model, the endpoint and the verb of a path such as `gemini-x:generateContent`.
fn asked<'p>(path: &'p str, parts: &Parts) -> Result<(&'p str, &'static str, &'static str), Refusal> {
    let unknown = || Refusal::new(Code::NotFound, "There is no such path.");
    let (model, verb) = path.rsplit_once(':').ok_or_else(unknown)?;
    let (verb, beta, plain) = VERBS.into_iter().find(|(name, ..)| *name == verb).ok_or_else(unknown)?;
    let endpoint = if parts.uri.path().starts_with("/v1beta/") { beta } else { plain };
    Ok((model, endpoint, verb))
}

/// `?alt=sse`; else the chunks are the elements of one array.
fn wants_events(parts: &Parts) -> bool {
    parts.uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "alt=sse"))
}
