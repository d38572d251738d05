//! Azure OpenAI: the current paths below `/openai/v1`, and the older ones with a deployment and a
//! version.

use super::{AZURE_KEY, Inside, header, with_model};
use bytes::Bytes;
use http::request::Parts;
use serde_json::json;

pub(super) fn inside(parts: &Parts, path: &str, body: Bytes) -> Inside {
    let token = header(parts, "authorization").and_then(|value| value.strip_prefix("Bearer "));
    let known = match (header(parts, "api-key"), token) {
        (Some(key), None) => key == AZURE_KEY,
        // A token of Entra.
        (None, Some(token)) => token.starts_with("eyJ"),
        _ => false,
    };
    if !known {
        let message = "Access denied due to invalid subscription key or wrong API endpoint.";
        return Err((401, json!({"error": {"code": "401", "message": message}})));
    }
    let missing = || (404, json!({"error": {"code": "404", "message": "Resource not found"}}));
    if let Some(rest) = path.strip_prefix("/openai/v1/") {
        return Ok((format!("/v1/{rest}"), body));
    }
    let rest = path.strip_prefix("/openai/deployments/").ok_or_else(missing)?;
    let (deployment, rest) = rest.split_once('/').ok_or_else(missing)?;
    let version = parts.uri.query().and_then(|query| query.strip_prefix("api-version=")).ok_or_else(missing)?;
    if version.len() < 10 || !version.starts_with("20") {
        return Err(missing());
    }
    let body = with_model(&body, deployment).ok_or_else(missing)?;
    Ok((format!("/v1/{rest}"), body))
}
