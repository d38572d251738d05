//! Any provider that speaks OpenAI's dialect.

use crate::{Adaptor, Blame, Fault, Provider};
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use tollgate_wire::chat::UpstreamError;
use tollgate_wire::error::Code;

/// Chat completions as OpenAI documents them.
#[derive(Clone, Copy, Debug)]
pub struct OpenAi;

const CALL_ID: HeaderName = HeaderName::from_static("x-client-request-id");
const AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

impl Adaptor for OpenAi {
    fn kind(&self) -> &'static str {
        "openai"
    }

    fn chat_path(&self) -> &'static str {
        "/chat/completions"
    }

    fn chat(&self, provider: &Provider, body: Bytes, call_id: &str) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = provider.chat_uri();
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        // Compressed replies would have to be unpacked before they can be metered.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if let Some(value) = provider.authorization() {
            headers.insert(AUTHORIZATION, value);
        }
        if let Ok(value) = HeaderValue::try_from(call_id) {
            headers.insert(CALL_ID, value);
        }
        *request.headers_mut() = headers;
        request
    }

    fn fault(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Fault {
        let _ = (headers, body);
        Fault {
            blame: Blame::Provider,
            code: Code::UpstreamError,
            message: "The provider failed.".to_owned(),
            try_other: true,
            sent: true,
            maybe_charged: false,
            upstream_status: Some(status),
            retry_after: None,
        }
    }

    fn error_inside(&self, error: &UpstreamError) -> Fault {
        self.fault(error.status.unwrap_or(500), &HeaderMap::new(), b"")
    }
}
