//! A reply that was read to its end, or as far as it matters.

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

/// A whole reply.
#[derive(Clone, Debug)]
pub struct WholeReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl WholeReply {
    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A document of a reply of status 200 that says it is none.
    pub(crate) fn inside(document: &Value) -> WholeReply {
        WholeReply { status: 200, headers: HeaderMap::new(), body: document.to_string().into() }
    }

    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Names of no packing: `aws-chunked` is how a file was once sent to an object store, and some go
/// on telling it.
const PLAIN: [&[u8]; 3] = [b"", b"identity", b"aws-chunked"];

/// Whether the body of a reply is packed in some way. We ask for none of that, so it cannot be
/// read.
pub fn is_encoded(headers: &HeaderMap) -> bool {
    let plain = |value: &HeaderValue| PLAIN.iter().any(|name| value.as_bytes().eq_ignore_ascii_case(name));
    headers.get_all(CONTENT_ENCODING).iter().any(|value| !plain(value))
}
