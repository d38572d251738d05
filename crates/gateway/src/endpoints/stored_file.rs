//! Files that we keep, as replies: whole or in ranges, and such that nothing in them runs in our
//! origin.

use crate::work::shelf::Shelved;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

/// A file from the shelf. What it is called is our own word.
pub fn from_shelf(file: Shelved, content_type: &'static str) -> Response {
    let mut reply = Response::new(Body::from_stream(file.pieces));
    let mut length = file.length;
    if let Some((first, last)) = file.range {
        *reply.status_mut() = StatusCode::PARTIAL_CONTENT;
        length = last + 1 - first;
        if let Ok(value) = HeaderValue::try_from(format!("bytes {first}-{last}/{}", file.length)) {
            reply.headers_mut().insert(header::CONTENT_RANGE, value);
        }
    }
    reply.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if let Some(etag) = file.etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
        reply.headers_mut().insert(header::ETAG, etag);
    }
    dressed(reply, content_type)
}

/// Another part was asked for than there is.
pub fn outside(length: Option<u64>) -> Response {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    let length = length.and_then(|length| HeaderValue::try_from(format!("bytes */{length}")).ok());
    if let Some(value) = length {
        reply.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    dressed(reply, "application/octet-stream")
}

/// With the headers that all files have. `content_type` is said where nobody else did.
pub fn dressed(mut reply: Response, content_type: &'static str) -> Response {
    let headers = reply.headers_mut();
    headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
    headers.entry(header::ACCEPT_RANGES).or_insert(HeaderValue::from_static("bytes"));
    // What a stranger's server calls its content must not run in our origin.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"));
    reply
}
