//! `POST /v1/chat/completions`.

use super::reading;
use crate::app::App;
use crate::call::{self, Ask};
use crate::refusal::Refusal;
use axum::extract::{Request, State};
use axum::response::Response;
use std::sync::Arc;
use tollgate_store::CallId;
use tollgate_wire::chat;
use tollgate_wire::error::Dialect;

const ENDPOINT: &str = "/v1/chat/completions";

pub async fn completions(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    match reading::guarded(handle(&app, id, request)).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, Dialect::OpenAi, refusal, &id.to_string()),
    }
}

async fn handle(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, ENDPOINT, &body)?;
    let work = chat::read_request(body)?;
    call::run(app, caller, Ask { id, endpoint: ENDPOINT, work, idem }).await
}
