//! Amazon Bedrock: Converse and ConverseStream. Its requests are written from Anthropic's messages,
//! which they resemble most, and its answers are read back into them: one form, whichever model is
//! behind it.

mod ask;
mod events;
mod frames;
mod reply;

use crate::chat::{ReplyShape, bearer, judge, post};
use crate::{Chat, ChatAsk, Fault, Outgoing, Provider, WholeReply};
use bytes::Bytes;
use http::Uri;
use tollgate_wire::{Dialect, Dropped, Problem};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Converse;

impl Chat for Converse {
    fn dialect(&self) -> Dialect {
        Dialect::Anthropic
    }

    fn path(&self) -> &'static str {
        "/model"
    }

    /// The path names the model, with a region before it where the operator's has one
    /// (`eu.anthropic.…`), and says whether the answer is streamed.
    fn request(&self, provider: &Provider, uri: Uri, ask: ChatAsk<'_>) -> Outgoing {
        let verb = if ask.stream { "converse-stream" } else { "converse" };
        let uri = provider.base_url.join(&format!("/model/{}/{verb}", segment(ask.model))).unwrap_or(uri);
        let mut request = post(uri, ask.body, ask.call_id);
        bearer(&mut request, provider);
        request
    }

    fn fits_bodies(&self) -> bool {
        true
    }

    fn takes_headers(&self) -> bool {
        false
    }

    fn fit(&self, body: Bytes) -> Result<(Bytes, Dropped), Problem> {
        ask::converse(&body)
    }

    fn reshape(&self, stream: bool, call_id: &str) -> Option<Box<dyn ReplyShape>> {
        let id = format!("msg_{}", call_id.trim_start_matches("call_"));
        Some(if stream { Box::new(events::ConverseEvents::new(id)) } else { Box::new(reply::WholeConverse::new(id)) })
    }

    /// The kind of an error is in a header, its text in the body.
    fn fault(&self, reply: &WholeReply) -> Fault {
        let kind = reply.headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok()).unwrap_or_default();
        match kind.split(':').next().unwrap_or_default() {
            // Quotas of the operator's account, not of the moment.
            "ServiceQuotaExceededException" | "AccessDeniedException" => {
                judge::refused(&WholeReply { status: 403, ..reply.clone() })
            }
            // The model itself failed, or was not ready.
            "ModelErrorException" | "ModelNotReadyException" => {
                judge::refused(&WholeReply { status: 503, ..reply.clone() })
            }
            _ => judge::refused(reply),
        }
    }
}

/// A model's name or ARN as one part of a path: colons and slashes are encoded.
fn segment(model: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    model.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseUrl, ProviderSettings, Secret, kind};

    #[test]
    fn the_path_says_what_is_asked() {
        let base = BaseUrl::parse("https://bedrock-runtime.eu-west-1.amazonaws.com").unwrap();
        let key = Some(Secret::new("bedrock-key"));
        let provider = Provider::new("b", kind("bedrock").unwrap(), base, key, ProviderSettings::default()).unwrap();
        let ask = |stream| {
            let model = "eu.anthropic.claude-x-v1:0";
            provider.chat(ChatAsk { body: Bytes::new(), call_id: "c", model, stream, passed: &[] }).unwrap()
        };
        let host = "https://bedrock-runtime.eu-west-1.amazonaws.com";
        assert_eq!(ask(false).uri().to_string(), format!("{host}/model/eu.anthropic.claude-x-v1%3A0/converse"));
        assert_eq!(ask(true).uri().to_string(), format!("{host}/model/eu.anthropic.claude-x-v1%3A0/converse-stream"));
        assert_eq!(ask(true).headers()["authorization"], "Bearer bedrock-key");
    }

    #[test]
    fn errors_by_their_names() {
        let fault = |kind: &'static str, status| {
            let headers = http::HeaderMap::from_iter([(
                http::HeaderName::from_static("x-amzn-errortype"),
                http::HeaderValue::from_static(kind),
            )]);
            Converse.fault(&WholeReply { status, headers, body: Bytes::from_static(br#"{"message":"no"}"#) })
        };
        use crate::Blame;
        for (kind, status, blame, other) in [
            ("ValidationException:http://internal.amazon.com/", 400, Blame::Caller, false),
            ("ThrottlingException", 429, Blame::Provider, true),
            ("AccessDeniedException", 403, Blame::Operator, true),
            ("ServiceQuotaExceededException", 400, Blame::Operator, true),
            ("ModelErrorException", 424, Blame::Provider, true),
            ("InternalServerException", 500, Blame::Provider, true),
        ] {
            let fault = fault(kind, status);
            assert_eq!((fault.blame, fault.try_other), (blame, other), "{kind}");
        }
    }
}
