//! `POST /v1/chat/completions` and `POST /v1/messages`; and the way every endpoint of a conversation takes.

use super::reading;
use crate::app::App;
use crate::call::{self, Ask, Conversation};
use crate::refusal::Refusal;
use axum::extract::{Request, State};
use axum::response::Response;
use http::HeaderName;
use std::sync::Arc;
use tollgate_dialects::Request as Said;
use tollgate_store::CallId;
use tollgate_wire::Dialect;

const COMPLETIONS: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const OWN_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

pub async fn completions(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    answered(&app, Dialect::Chat, id, converse(&app, id, COMPLETIONS, Dialect::Chat, request)).await
}

pub async fn messages(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    answered(&app, Dialect::Anthropic, id, converse(&app, id, MESSAGES, Dialect::Anthropic, request)).await
}

/// A reply, or the refusal in the client's dialect.
pub fn answered(
    app: &App,
    dialect: Dialect,
    id: CallId,
    work: impl Future<Output = Result<Response, Refusal>>,
) -> impl Future<Output = Response> {
    let done = reading::guarded(work);
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
    let work = Conversation::new(Said::read(dialect, body, None)?, &parts.headers);
    call::run(app, caller, Ask { id, endpoint, work, idem }).await
}
