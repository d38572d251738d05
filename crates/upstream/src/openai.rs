//! Any provider that speaks OpenAI's dialect.

use crate::ask::post_with_bearer;
use crate::video::{Sora, Video};
use crate::{Adaptor, ChatAsk, Fault, Provider, judge};
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::Full;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;

/// Chat completions as OpenAI documents them.
#[derive(Clone, Copy, Debug)]
pub struct OpenAi;

impl Adaptor for OpenAi {
    fn kind(&self) -> &'static str {
        "openai"
    }

    fn video(&self) -> Option<&'static dyn Video> {
        Some(&Sora)
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::Chat)
    }

    fn chat_path(&self) -> &'static str {
        "/chat/completions"
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
