//! Errors in each provider's shape, and how each provider is shown a key.

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use serde_json::{Value, json};

use super::Dialect;
use super::check::Checked;
use crate::fault;
use crate::record::Received;
use crate::refusal::Refusal;
use crate::scenario::{Choice, Scenario as S};
use crate::server::World;

const VERSIONS: [&str; 3] = ["2023-01-01", "2023-06-01", "2026-10-21"];

/// The HTTP error a scenario answers with, if that is what it does.
pub(super) fn of(dialect: Dialect, choice: &Choice) -> Option<Response<Bytes>> {
    let S::Error(status) = choice.scenario else {
        return fault::of(choice);
    };
    let mut refusal = fault::refusal(status, choice);
    if dialect == Dialect::Gemini && status == 529 {
        // Google knows no such status.
        refusal.status = 503;
    }
    let details = match (dialect, choice.text("code")) {
        (Dialect::Gemini, Some(reason)) => {
            let kind = "type.googleapis.com/google.rpc.ErrorInfo";
            vec![json!({"@type": kind, "reason": reason, "domain": "googleapis.com"})]
        }
        (Dialect::Gemini, None) if status == 429 => {
            let seconds = choice.number("retry_after").unwrap_or(7);
            vec![json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")})]
        }
        _ => Vec::new(),
    };
    let mut reply = reply(dialect, &refusal, &details);
    if matches!(status, 429 | 503) && dialect != Dialect::Gemini {
        reply.headers_mut().insert("retry-after", choice.number("retry_after").unwrap_or(7).into());
    }
    Some(reply)
}

pub(super) fn reply(dialect: Dialect, refusal: &Refusal, details: &[Value]) -> Response<Bytes> {
    fault::response(refusal.status, "application/json", body(dialect, refusal, details).to_string().into())
}

pub(super) fn body(dialect: Dialect, refusal: &Refusal, details: &[Value]) -> Value {
    let (status, message) = (refusal.status, &refusal.message);
    match dialect {
        Dialect::Responses => refusal.json(),
        Dialect::Anthropic => {
            let error = json!({"type": anthropic_type(status), "message": message});
            json!({"type": "error", "error": error, "request_id": "req_sim_0123456789"})
        }
        Dialect::Gemini => {
            json!({"error": {"code": status, "message": message, "status": google_status(status), "details": details}})
        }
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        408 | 504 => "timeout_error",
        503 | 529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        402 => "FAILED_PRECONDITION",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        408 | 504 => "DEADLINE_EXCEEDED",
        503 | 529 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

/// The key where the provider looks for it, and the version that Anthropic insists on.
pub(super) fn check_key(world: &World, dialect: Dialect, parts: &Parts, received: &Received) -> Checked {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = |key: &str| received.authorization_is(&format!("Bearer {key}"));
    let known = |key: &str| match dialect {
        Dialect::Responses => bearer(key),
        Dialect::Anthropic => header("x-api-key") == Some(key) || bearer(key),
        Dialect::Gemini => {
            let asked = received.query.split('&').find_map(|pair| pair.strip_prefix("key="));
            header("x-goog-api-key").or(asked) == Some(key)
        }
    };
    if !world.require_key.as_deref().is_none_or(known) {
        return Err(match dialect {
            Dialect::Responses => Refusal::new(401, "Incorrect API key provided."),
            Dialect::Anthropic => Refusal::new(401, "invalid x-api-key"),
            // Google says 400 to a key that it does not know.
            Dialect::Gemini => Refusal::new(400, "API key not valid. Please pass a valid API key."),
        });
    }
    match header("anthropic-version") {
        None if dialect == Dialect::Anthropic => Err(Refusal::new(400, "anthropic-version: header is required")),
        Some(version) if dialect == Dialect::Anthropic && !VERSIONS.contains(&version) => {
            Err(Refusal::new(400, &format!("anthropic-version: \"{version}\" is not a valid version")))
        }
        _ => Ok(()),
    }
}
