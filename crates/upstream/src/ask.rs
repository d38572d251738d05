//! A call for a conversation on its way to a provider: what every adaptor is given, and the headers they all send.

use crate::Provider;
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;

/// What is asked of a provider.
#[derive(Clone, Debug)]
pub struct ChatAsk<'a> {
    /// In the provider's dialect.
    pub body: Bytes,
    pub call_id: &'a str,
    /// The provider's name for the model; one dialect has it in the path.
    pub model: &'a str,
    pub stream: bool,
    /// Headers of a client that speaks the provider's dialect, for features that are asked for so.
    pub passed: &'a [(HeaderName, HeaderValue)],
}

const CALL_ID: HeaderName = HeaderName::from_static("x-client-request-id");
const AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

/// Names of no packing: `aws-chunked` is how a file was once sent to an object store, and some go on telling it.
const PLAIN: [&[u8]; 3] = [b"", b"identity", b"aws-chunked"];

/// Whether the body of a reply is packed in some way. We ask for none of that, so it cannot be read.
pub fn is_encoded(headers: &HeaderMap) -> bool {
    let plain = |value: &HeaderValue| PLAIN.iter().any(|name| value.as_bytes().eq_ignore_ascii_case(name));
    headers.get_all(CONTENT_ENCODING).iter().any(|value| !plain(value))
}

/// A request with everything but the key.
pub(crate) fn post(uri: Uri, body: Bytes, call_id: &str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    // Compressed replies would have to be unpacked before they can be metered.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if let Ok(value) = HeaderValue::try_from(call_id) {
        headers.insert(CALL_ID, value);
    }
    *request.headers_mut() = headers;
    request
}

/// The same with the key as a bearer.
pub(crate) fn post_with_bearer(provider: &Provider, ask: ChatAsk<'_>) -> Request<Full<Bytes>> {
    let mut request = post(provider.chat_uri(), ask.body, ask.call_id);
    if let Some(value) = provider.authorization() {
        request.headers_mut().insert(http::header::AUTHORIZATION, value);
    }
    request
}

/// The same with the bare key in a header of its own.
pub(crate) fn key_in(request: &mut Request<Full<Bytes>>, name: &'static str, provider: &Provider) {
    if let Some(value) = provider.secret().and_then(crate::Secret::bare) {
        request.headers_mut().insert(HeaderName::from_static(name), value);
    }
}
