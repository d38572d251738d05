//! `POST /v1/chat/completions`.

use super::reading;
use crate::app::App;
use crate::call::{self, Ask};
use crate::refusal::Refusal;
use axum::extract::{Request, State};
use axum::response::Response;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tollgate_store::{CallId, Idem};
use tollgate_wire::chat;
use tollgate_wire::error::{Code, Dialect};

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
    let idem = idempotency(&parts.headers, &body)?;
    let request = chat::read_request(body)?;
    call::run(app, caller, Ask { id, endpoint: ENDPOINT, request, idem }).await
}

/// The caller's Idempotency-Key and a fingerprint of the body it came with.
fn idempotency(headers: &HeaderMap, body: &[u8]) -> Result<Option<Idem>, Refusal> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    if key.is_empty() || key.len() > 255 {
        return Err(Refusal::about(
            Code::InvalidParameter,
            "Idempotency-Key",
            "An Idempotency-Key has 1 to 255 characters.",
        ));
    }
    let fingerprint = Sha256::new().chain_update(ENDPOINT).chain_update(body).finalize().into();
    Ok(Some(Idem { key_hash: Sha256::digest(key.as_bytes()).into(), fingerprint }))
}
