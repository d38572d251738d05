//! Replies that clients keep and ask about again: with a tag, and 304 for whoever has it already.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};

/// JSON under a tag.
pub fn tagged_json(parts: &Parts, body: Bytes, etag: Option<HeaderValue>, cache: &'static str) -> Response {
    let known = parts.headers.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')).map(str::trim);
    let has = etag.as_ref().is_some_and(|etag| known.any(|tag| tag == "*" || tag.trim_start_matches("W/") == *etag));
    let mut reply = if has {
        let mut reply = Response::new(Body::empty());
        *reply.status_mut() = StatusCode::NOT_MODIFIED;
        reply
    } else {
        let mut reply = Response::new(Body::from(body));
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        reply
    };
    if let Some(etag) = etag {
        reply.headers_mut().insert(header::ETAG, etag);
    }
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    reply
}
