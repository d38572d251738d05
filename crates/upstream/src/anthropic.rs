//! Any provider that speaks Anthropic's messages.

use crate::ask::{key_in, post};
use crate::{Adaptor, ChatAsk, Fault, Provider, judge};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::Full;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;

/// Messages as Anthropic documents them.
#[derive(Clone, Copy, Debug)]
pub struct Anthropic;

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// What our own requests are written for; a client of this dialect names its own.
const OURS: HeaderValue = HeaderValue::from_static("2023-06-01");

impl Adaptor for Anthropic {
    fn kind(&self) -> &'static str {
        "anthropic"
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::Anthropic)
    }

    fn chat_path(&self) -> &'static str {
        "/v1/messages"
    }

    fn chat(&self, provider: &Provider, ask: ChatAsk<'_>) -> Request<Full<Bytes>> {
        let mut request = post(provider.chat_uri(), ask.body, ask.call_id);
        key_in(&mut request, "x-api-key", provider);
        let headers = request.headers_mut();
        for (name, value) in ask.passed {
            // A client may send a header in several lines.
            headers.append(name, value.clone());
        }
        headers.entry(VERSION).or_insert(OURS);
        request
    }

    fn fault(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Fault {
        judge::with_details(judge::refused(status, headers, body), UpstreamError::read(body).as_ref())
    }

    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::with_details(judge::inside(error), Some(error))
    }
}
