//! Clouds that sell models of others: Azure OpenAI, Google's Vertex AI and Amazon Bedrock, each
//! below a path of its own (`/azure`, `/vertex`, `/bedrock`). Paths, keys and signatures are
//! checked here as strictly as the clouds do; what is said and how it goes wrong is that of the
//! dialects.

mod azure;
mod bedrock;
mod frames;
mod signature;
mod vertex;

pub use bedrock::{AWS_ACCESS, AWS_SECRET, BEDROCK_KEY};
pub(crate) use vertex::Tokens;
pub use vertex::{GOOGLE_PROJECT, google_account};

use bytes::Bytes;
use http::request::Parts;
use http::{Response, Uri};
use http_body_util::{Either, Full};
use serde_json::Value;

use crate::reply::Outgoing;
use crate::server::{Reset, World};
use crate::{dialect, fault, vectors};

/// The key of the resource at Azure.
pub const AZURE_KEY: &str = "sim-azure-key";
/// The path and query that came, for tests: what is recorded is where it leads inside.
const CAME: &str = "x-sim-came";

pub(crate) fn is_ours(path: &str) -> bool {
    ["/azure/", "/vertex/", "/bedrock/"].iter().any(|start| path.starts_with(start))
}

pub(crate) async fn answer(world: &World, reset: Reset, parts: &Parts, body: Bytes) -> Response<Outgoing> {
    let path = parts.uri.path();
    if let Some(path) = path.strip_prefix("/bedrock") {
        return bedrock::answer(world, reset, parts, path, body).await;
    }
    if path == vertex::TOKEN {
        return whole(vertex::token(world, &body));
    }
    let inside = match path.strip_prefix("/azure") {
        Some(path) => azure::inside(parts, path, body),
        None => vertex::inside(world, parts, path.trim_start_matches("/vertex"), body),
    };
    let (path, body) = match inside {
        Ok(inside) => inside,
        Err((status, error)) => return whole(fault::response(status, "application/json", error.to_string().into())),
    };
    let mut parts = parts.clone();
    if let Some(came) = parts.uri.path_and_query().and_then(|came| came.as_str().parse().ok()) {
        parts.headers.insert(CAME, came);
    }
    parts.uri = path.parse().unwrap_or_else(|_| Uri::from_static("/nowhere"));
    // The version stood in the body, where this cloud has it.
    parts.headers.insert("anthropic-version", http::HeaderValue::from_static("2023-06-01"));
    let place = parts.uri.path().to_string();
    if place == "/v1/chat/completions" {
        return crate::reply::chat(world, reset, &parts, body).await;
    }
    if vectors::is_ours(&place) {
        return vectors::answer(world, reset, &parts, body).await;
    }
    dialect::answer(world, reset, &parts, body).await
}

/// The path inside and the body, or status and error.
type Inside = Result<(String, Bytes), (u16, Value)>;

fn whole(response: Response<Bytes>) -> Response<Outgoing> {
    response.map(|body| Either::Left(Full::new(body)))
}

fn header<'p>(parts: &'p Parts, name: &str) -> Option<&'p str> {
    parts.headers.get(name).and_then(|value| value.to_str().ok())
}

/// A body with its model put in.
fn with_model(body: &[u8], model: &str) -> Option<Bytes> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    body.as_object_mut()?.insert("model".to_string(), model.into());
    Some(body.to_string().into())
}
