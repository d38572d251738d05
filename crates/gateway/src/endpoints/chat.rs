//! `POST /v1/chat/completions` and `POST /v1/messages`; and the way every endpoint of a
//! conversation takes.

use super::openapi::shapes::{anything, idempotency, named, text};
use super::row::{Access, Errors, Family, Row};
use super::{count, reading};
use crate::app::App;
use crate::call::{self, CallRequest, Priced};
use crate::refusal::Refusal;
use crate::work::conversation::Conversation;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_dialects::{CheckedRequest, Path};
use tollgate_store::CallId;
use tollgate_wire::Dialect;

const COMPLETIONS: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const OWN_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

pub const FAMILY: Family = Family { tag: "chat", rows, schemas };

fn rows() -> Vec<Row> {
    let anthropic = Errors::In(Dialect::Anthropic.errors());
    vec![
        Row::post(COMPLETIONS, Access::Paid, completions, "A chat reply, streamed or whole, in OpenAI's format")
            .with(conversation_headers)
            .takes(named("ChatRequest"))
            .answers()
            .quoted(|_, _, body| priced(Dialect::Chat, body, None))
            .serves(Dialect::Chat.word())
            .names_itself(),
        Row::post(MESSAGES, Access::Paid, messages, "A reply, streamed or whole, in Anthropic's format")
            .with(conversation_headers)
            .takes(named("MessagesRequest"))
            .answers()
            .errors(anthropic)
            .quoted(|_, _, body| priced(Dialect::Anthropic, body, None))
            .serves(Dialect::Anthropic.word())
            .names_itself(),
        Row::post(
            "/v1/messages/count_tokens",
            Access::Key,
            count::of_messages,
            "The tokens of a prompt in Anthropic's format, by the gateway's own count",
        )
        .takes(named("MessagesCountRequest"))
        .gives(anything())
        .errors(anthropic),
    ]
}

pub async fn completions(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    answered(&app, Dialect::Chat, id, || converse(&app, id, COMPLETIONS, Dialect::Chat, request)).await
}

pub async fn messages(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    answered(&app, Dialect::Anthropic, id, || converse(&app, id, MESSAGES, Dialect::Anthropic, request)).await
}

/// A reply, or the refusal in the client's dialect.
pub fn answered<W: Future<Output = Result<Response, Refusal>>>(
    app: &App,
    dialect: Dialect,
    id: CallId,
    work: impl FnOnce() -> W,
) -> impl Future<Output = Response> {
    // Apart: what is moved into a future takes its room there twice, and is moved with it. There is
    // a place for it before there is a future, so that it is made where it stays.
    let place = Box::new_uninit();
    let done = Box::into_pin(Box::write(place, reading::guarded(work())));
    async move {
        let mut reply = match done.await {
            Ok(reply) => reply,
            Err(refusal) => reading::refused(app, dialect.errors(), refusal, &id.to_string()),
        };
        // Anthropic's SDKs look for it under their own name.
        if dialect == Dialect::Anthropic
            && let Some(id) = reply.headers().get(REQUEST_ID).cloned()
        {
            reply.headers_mut().insert(OWN_REQUEST_ID, id);
        }
        reply
    }
}

/// A call whose body says everything.
async fn converse(
    app: &Arc<App>,
    id: CallId,
    endpoint: &'static str,
    dialect: Dialect,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, endpoint, &body)?;
    let work = app.conversations.call(Conversation::new(CheckedRequest::read(dialect, body, None)?, &parts.headers));
    Ok(call::run(&app.till, caller, CallRequest { id, endpoint, work, idem }).await?.into_reply())
}

/// A call as far as its price depends on it.
pub fn priced(dialect: Dialect, body: Bytes, path: Option<Path<'_>>) -> Result<Box<dyn Priced>, Refusal> {
    Ok(Box::new(Conversation::new(CheckedRequest::read(dialect, body, path)?, &HeaderMap::new())))
}

/// The headers of a conversation.
pub fn conversation_headers() -> Vec<Value> {
    let strict = json!({
        "name": "x-tollgate-strict", "in": "header",
        "description": "`true`: refuse what the model's provider has nothing like, instead of leaving it out and naming it in `x-tollgate-dropped`",
        "schema": { "type": "string" },
    });
    [idempotency(), vec![strict]].concat()
}

fn schemas() -> Value {
    let model = json!({ "type": "string", "minLength": 1 });
    let messages = json!({ "type": "array", "minItems": 1, "items": { "type": "object" } });
    json!({
        "ChatRequest": { "type": "object", "required": ["model", "messages"], "additionalProperties": true, "properties": {
            "model": model,
            "messages": { "type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["role"], "properties": { "role": text() },
            } },
            "stream": { "type": ["boolean", "null"] },
            "max_tokens": { "type": ["integer", "null"], "minimum": 1 },
            "max_completion_tokens": { "type": ["integer", "null"], "minimum": 1 },
            "n": { "type": ["integer", "null"], "minimum": 1, "maximum": 128 },
            "stream_options": { "type": ["object", "null"], "properties": { "include_usage": { "type": ["boolean", "null"] } } },
        } },
        "MessagesRequest": { "type": "object", "required": ["model", "messages", "max_tokens"], "additionalProperties": true, "properties": {
            "model": model, "messages": messages,
            "max_tokens": { "type": "integer", "minimum": 0 }, "stream": { "type": ["boolean", "null"] },
        } },
        "MessagesCountRequest": { "type": "object", "required": ["model", "messages"], "additionalProperties": true, "properties": {
            "model": model, "messages": messages,
        } },
    })
}
