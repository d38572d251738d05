//! A request to a provider, and the headers that all of them carry.

use crate::Payload;
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};

/// A request ready to be sent.
pub type Outgoing = Request<Payload>;

/// Some providers refuse the usual names of libraries.
pub(crate) const AGENT: HeaderValue = HeaderValue::from_static(concat!("tollgate/", env!("CARGO_PKG_VERSION")));

/// A request without a key.
pub(crate) fn outgoing(method: Method, uri: Uri, accept: &'static str, body: Bytes) -> Outgoing {
    let mut request = Request::new(Payload::Whole(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    // Compressed replies would have to be unpacked before they can be metered.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(USER_AGENT, AGENT);
    *request.headers_mut() = headers;
    request
}
