//! Any provider that speaks OpenAI's Responses.

use crate::ask::post_with_bearer;
use crate::{Adaptor, ChatAsk, Fault, Provider, judge};
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::Full;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;

/// Responses as OpenAI documents them. What a conversation refers to is kept by the gateway, so each request is whole.
#[derive(Clone, Copy, Debug)]
pub struct OpenAiResponses;

impl Adaptor for OpenAiResponses {
    fn kind(&self) -> &'static str {
        "openai-responses"
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::Responses)
    }

    fn chat_path(&self) -> &'static str {
        "/responses"
    }

    fn chat(&self, provider: &Provider, ask: ChatAsk<'_>) -> Request<Full<Bytes>> {
        post_with_bearer(provider, ask)
    }

    fn fault(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Fault {
        judge::refused(status, headers, body)
    }

    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::inside(error)
    }
}
