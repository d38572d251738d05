//! Embeddings of the Gemini API, always as a batch: one text is a batch of one.

use super::chat::in_a_path;
use crate::chat::{key_in, post};
use crate::embed::{EmbedAsk, EmbedSent, Embeddings, no_ids};
use crate::{Outgoing, Provider};
use bytes::Bytes;
use tollgate_media::embed::{EmbedCaller, EmbedRequest, VectorShape};
use tollgate_wire::Problem;
use tollgate_wire::json::Object;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeminiEmbeddings;

/// Texts in one batch.
const MOST_INPUTS: usize = 100;

impl Embeddings for GeminiEmbeddings {
    fn shape(&self) -> &'static VectorShape {
        &VectorShape::GEMINI
    }

    fn most_inputs(&self) -> usize {
        MOST_INPUTS
    }

    fn reports(&self) -> bool {
        false
    }

    fn speaks(&self, _: EmbedCaller) -> bool {
        // Its replies are written anew for everybody: one text is asked for as a batch of one.
        false
    }

    fn takes(&self, request: &EmbedRequest) -> Result<(), Problem> {
        no_ids(request)
    }

    fn body(&self, ask: &EmbedAsk<'_>) -> Result<EmbedSent, Problem> {
        let tree = ask.request.tree()?;
        let model = format!("models/{}", ask.model.trim_start_matches("models/"));
        let mut body = Vec::new();
        let mut object = Object::begin(&mut body);
        object.array("requests", |list| {
            for one in ask.request.inputs(&tree, ask.range.clone()) {
                list.object(|request| {
                    request.text("model", &model);
                    if let EmbedCaller::Gemini { .. } = ask.request.caller {
                        request.members_of(one.node, |name| name == "model");
                        return;
                    }
                    request.object("content", |content| {
                        content.array("parts", |parts| parts.object(|part| part.text("text", &one.text)));
                    });
                    if let Some(dimensions) = ask.request.dimensions {
                        request.number("outputDimensionality", dimensions);
                    }
                });
            }
        });
        object.end();
        // A request of its own format is sent as it is.
        let own = matches!(ask.request.caller, EmbedCaller::Gemini { .. });
        Ok(EmbedSent { body: Bytes::from(body), dropped: ask.request.unsaid(&tree, |_| own) })
    }

    fn request(&self, provider: &Provider, model: &str, call_id: &str, body: Bytes) -> Option<Outgoing> {
        let path = format!("/v1beta/models/{}:batchEmbedContents", in_a_path(model));
        let mut request = post(provider.base_url.join(&path).ok()?, body, call_id);
        key_in(&mut request, "x-goog-api-key", provider);
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_format_becomes_a_batch() {
        let body = |request: &EmbedRequest, range| {
            let ask = EmbedAsk { request, model: "up", range, floats_only: false };
            String::from_utf8(GeminiEmbeddings.body(&ask).unwrap().body.to_vec()).unwrap()
        };
        let openai = EmbedRequest::openai(Bytes::from(r#"{"model":"m","input":["a","b\n"],"dimensions":8}"#)).unwrap();
        assert_eq!(
            body(&openai, 1..2),
            r#"{"requests":[{"model":"models/up","content":{"parts":[{"text":"b\n"}]},"outputDimensionality":8}]}"#
        );
        let own = r#"{"model":"models/m","content":{"parts":[{"text":"a"}]},"taskType":"CLUSTERING"}"#;
        let gemini = EmbedRequest::gemini(Bytes::from(own), "m", false).unwrap();
        assert_eq!(body(&gemini, 0..1), format!(r#"{{"requests":[{}]}}"#, own.replace("models/m", "models/up")));
        let ids = EmbedRequest::openai(Bytes::from(r#"{"model":"m","input":[1,2]}"#)).unwrap();
        assert_eq!(GeminiEmbeddings.takes(&ids).unwrap_err().param.as_deref(), Some("input"));
    }
}
