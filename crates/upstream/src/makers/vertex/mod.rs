//! Google's Vertex AI: the formats of Gemini, Claude and chat completions below a project in a
//! region. The base address ends in `/locations/REGION`; the key is a token of a service account.

mod embed;

pub(crate) use embed::VertexEmbeddings;

use crate::chat::{judge, post};
use crate::makers::gemini::in_a_path;
use crate::{Chat, ChatAsk, Fault, Outgoing, Provider, WholeReply};
use bytes::Bytes;
use http::Uri;
use tollgate_wire::json::{Node, Object};
use tollgate_wire::{Dialect, Dropped, Problem, UpstreamError};

/// Below which Google's own models are.
pub(crate) const MODELS: &str = "/publishers/google/models";

/// Gemini's models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexGemini;

impl Chat for VertexGemini {
    fn dialect(&self) -> Dialect {
        Dialect::Gemini
    }

    fn path(&self) -> &'static str {
        MODELS
    }

    fn request(&self, provider: &Provider, uri: Uri, ask: ChatAsk<'_>) -> Outgoing {
        let verb = if ask.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        below(provider, uri, self.path(), verb, ask)
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::with_details(judge::refused(reply), UpstreamError::read(&reply.body).as_ref())
    }

    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::with_details(judge::inside(error), Some(error))
    }
}

/// Claude: messages without a model, and with a version in the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexAnthropic;

const VERSION: &str = "vertex-2023-10-16";

impl Chat for VertexAnthropic {
    fn dialect(&self) -> Dialect {
        Dialect::Anthropic
    }

    fn path(&self) -> &'static str {
        "/publishers/anthropic/models"
    }

    fn request(&self, provider: &Provider, uri: Uri, ask: ChatAsk<'_>) -> Outgoing {
        let verb = if ask.stream { "streamRawPredict" } else { "rawPredict" };
        let passed = ask.passed;
        let mut request = below(provider, uri, self.path(), verb, ask);
        for (name, value) in passed.iter().filter(|(name, _)| name == "anthropic-beta") {
            request.headers_mut().append(name, value.clone());
        }
        request
    }

    fn fits_bodies(&self) -> bool {
        true
    }

    fn fit(&self, body: Bytes) -> Result<(Bytes, Dropped), Problem> {
        let text = std::str::from_utf8(&body).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let node = Node::read(text)?;
        let mut out = Vec::with_capacity(body.len() + VERSION.len() + 24);
        let mut object = Object::begin(&mut out);
        object.text("anthropic_version", VERSION);
        object.members_of(&node, |name| matches!(name, "model" | "anthropic_version"));
        object.end();
        Ok((Bytes::from(out), Dropped::default()))
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::with_details(judge::refused(reply), UpstreamError::read(&reply.body).as_ref())
    }

    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::with_details(judge::inside(error), Some(error))
    }
}

/// Open models, as chat completions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexOpenAi;

impl Chat for VertexOpenAi {
    fn dialect(&self) -> Dialect {
        Dialect::Chat
    }

    fn path(&self) -> &'static str {
        "/endpoints/openapi/chat/completions"
    }

    fn request(&self, _: &Provider, uri: Uri, ask: ChatAsk<'_>) -> Outgoing {
        post(uri, ask.body, ask.call_id)
    }
}

/// The path names the model and what is done with it. The key comes last, when it is sent.
fn below(provider: &Provider, uri: Uri, path: &str, verb: &str, ask: ChatAsk<'_>) -> Outgoing {
    let model = in_a_path(ask.model);
    let uri = provider.base_url.join(&format!("{path}/{model}:{verb}")).unwrap_or(uri);
    post(uri, ask.body, ask.call_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseUrl, ProviderSettings, kind};

    #[test]
    fn three_formats_below_one_project() {
        let base = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4";
        let uri = |kind_name: &str, model: &str, stream| {
            let base = BaseUrl::parse(base).unwrap();
            let provider =
                Provider::new("v", kind(kind_name).unwrap(), base, None, ProviderSettings::default()).unwrap();
            let ask = ChatAsk { body: Bytes::new(), call_id: "c", model, stream, passed: &[] };
            provider.chat(ask).unwrap().uri().to_string().replace(base_text(), "")
        };
        fn base_text() -> &'static str {
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4"
        }
        let rows = [
            (
                "vertex-gemini",
                "gemini-3-pro",
                true,
                "/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse",
            ),
            ("vertex-gemini", "gemini-3-pro", false, "/publishers/google/models/gemini-3-pro:generateContent"),
            ("vertex-anthropic", "claude-x@2025", true, "/publishers/anthropic/models/claude-x@2025:streamRawPredict"),
            ("vertex-anthropic", "claude-x@2025", false, "/publishers/anthropic/models/claude-x@2025:rawPredict"),
            ("vertex-openai", "meta/llama", true, "/endpoints/openapi/chat/completions"),
        ];
        for (kind, model, stream, path) in rows {
            assert_eq!(uri(kind, model, stream), path);
        }
    }

    #[test]
    fn claude_is_asked_without_a_model() {
        let body = Bytes::from_static(br#"{"model":"m","max_tokens":5,"messages":[ ],"stream":true}"#);
        let (body, dropped) = VertexAnthropic.fit(body).unwrap();
        let expected = r#"{"anthropic_version":"vertex-2023-10-16","max_tokens":5,"messages":[ ],"stream":true}"#;
        assert_eq!(body, expected);
        assert!(dropped.is_empty());
    }
}
