//! What every endpoint does first: find the caller, read the body within its limits, turn a refusal into a reply.

use crate::app::App;
use crate::caller::{self, Caller};
use crate::refusal::Refusal;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tollgate_store::Idem;
use tollgate_wire::error::{Code, Dialect};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Finds the caller of a request that has no body worth reading.
pub async fn caller(app: &App, parts: &Parts) -> Result<Arc<Caller>, Refusal> {
    caller::authenticate(app, parts).await
}

/// The same where a key may be left out. One that does not work is told: what everybody sees would be taken for its own.
pub async fn caller_if_any(app: &App, parts: &Parts) -> Result<Option<Arc<Caller>>, Refusal> {
    let presented = [header::AUTHORIZATION.as_str(), "x-api-key", "x-goog-api-key"];
    if presented.iter().any(|name| parts.headers.contains_key(*name)) {
        return caller(app, parts).await.map(Some);
    }
    Ok(None)
}

/// Reads a JSON body within the limits of size and time.
pub async fn json_body(app: &App, parts: &Parts, body: Body) -> Result<Bytes, Refusal> {
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = kind.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::about(
            Code::UnsupportedMediaType,
            "Content-Type",
            "The body must be JSON with `Content-Type: application/json`.",
        ));
    }
    form_body(app, parts, body).await
}

/// Reads a body of any kind within the limits of size and time.
pub async fn form_body(app: &App, parts: &Parts, body: Body) -> Result<Bytes, Refusal> {
    let limits = &app.settings.limits;
    if parts.headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity") {
        return Err(Refusal::about(
            Code::UnsupportedMediaType,
            "Content-Encoding",
            "A compressed body is not accepted; send it as it is.",
        ));
    }
    let declared =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limits.body_bytes) {
        return Err(too_large(limits.body_bytes));
    }
    let whole = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_time, whole).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limits.body_bytes)),
        Ok(Err(_)) => Err(Refusal::new(Code::InvalidRequest, "The body could not be read to its end.")),
        Err(_) => Err(Refusal::new(Code::RequestTimeout, "The body took too long to arrive.")),
    }
}

fn too_large(limit: usize) -> Refusal {
    Refusal::new(Code::BodyTooLarge, format!("The body is larger than {limit} bytes."))
}

/// The caller's Idempotency-Key and a fingerprint of the body it came with.
pub fn idempotency(headers: &HeaderMap, endpoint: &str, body: &[u8]) -> Result<Option<Idem>, Refusal> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    if key.is_empty() || key.len() > 255 {
        return Err(Refusal::about(
            Code::InvalidParameter,
            "Idempotency-Key",
            "An Idempotency-Key has 1 to 255 characters.",
        ));
    }
    let fingerprint = Sha256::new().chain_update(endpoint).chain_update(body).finalize().into();
    Ok(Some(Idem { key_hash: Sha256::digest(key.as_bytes()).into(), fingerprint }))
}

/// A panic of ours ends this request with 500 and nothing else: the connection and everybody's streams go on. A call that
/// was open reports to the settler as it unwinds.
///
/// Not an `async fn`: that would hold the work twice, and every call would move it.
pub fn guarded<T>(work: impl Future<Output = Result<T, Refusal>>) -> impl Future<Output = Result<T, Refusal>> {
    AssertUnwindSafe(work).catch_unwind().map(|outcome| {
        outcome.unwrap_or_else(|_| {
            tracing::error!("a handler panicked");
            Err(Refusal::new(
                Code::Internal,
                "Something went wrong in the gateway; nothing is charged for this request.",
            ))
        })
    })
}

/// A refusal as a reply, counted.
pub fn refused(app: &App, dialect: Dialect, refusal: Refusal, request_id: &str) -> Response {
    app.metrics.refused(refusal.code.code());
    refusal.into_reply(dialect, request_id)
}

/// A reply with a JSON body.
pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => {
            let mut reply = Response::new(Body::from(text));
            reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            reply
        }
        Err(error) => {
            tracing::error!(%error, "a reply could not be written");
            Refusal::new(Code::Internal, "The reply could not be written.").into_reply(Dialect::OpenAi, "")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_500_for_that_request_only() {
        let outcome: Result<(), Refusal> = guarded(async { panic!("on purpose") }).await;
        assert_eq!(outcome.err().map(|refusal| refusal.code), Some(Code::Internal));
        assert!(guarded(async { Ok(()) }).await.is_ok());
    }
}
