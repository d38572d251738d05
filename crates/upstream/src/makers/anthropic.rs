//! Any provider that speaks Anthropic's messages.

use crate::chat::{judge, key_in, post};
use crate::{Chat, ChatAsk, Fault, Outgoing, Provider, WholeReply};
use http::{HeaderName, HeaderValue, Uri};
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;

/// Messages as Anthropic documents them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anthropic;

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// What our own requests are written for; a client of this dialect names its own.
const OURS: HeaderValue = HeaderValue::from_static("2023-06-01");

impl Chat for Anthropic {
    fn dialect(&self) -> Dialect {
        Dialect::Anthropic
    }

    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn is_steady(&self) -> bool {
        true
    }

    fn request(&self, provider: &Provider, uri: Uri, ask: ChatAsk<'_>) -> Outgoing {
        let mut request = post(uri, ask.body, ask.call_id);
        key_in(&mut request, "x-api-key", provider);
        let headers = request.headers_mut();
        for (name, value) in ask.passed {
            // A client may send a header in several lines.
            headers.append(name, value.clone());
        }
        headers.entry(VERSION).or_insert(OURS);
        request
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::with_details(judge::refused(reply), UpstreamError::read(&reply.body).as_ref())
    }

    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::with_details(judge::inside(error), Some(error))
    }
}
