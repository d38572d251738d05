//! Vectors of Google's models on Vertex AI: predictions, one text a request. Newer models take no
//! more, and only so is the report of a reply that of its text.

use super::MODELS;
use crate::chat::post;
use crate::embed::{EmbedAsk, EmbedSent, Embeddings, no_ids};
use crate::makers::gemini::in_a_path;
use crate::{Outgoing, Provider};
use bytes::Bytes;
use tollgate_media::embed::{EmbedCaller, EmbedRequest, VectorShape};
use tollgate_wire::Problem;
use tollgate_wire::json::Object;

#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexEmbeddings;

/// What of a request in Gemini's format is said here too: the purpose in either spelling, a title.
const SAID: [&str; 3] = ["taskType", "task_type", "title"];

impl Embeddings for VertexEmbeddings {
    fn shape(&self) -> &'static VectorShape {
        &VectorShape::VERTEX
    }

    fn most_inputs(&self) -> usize {
        1
    }

    fn speaks(&self, _: EmbedCaller) -> bool {
        false
    }

    fn takes(&self, request: &EmbedRequest) -> Result<(), Problem> {
        no_ids(request)
    }

    fn body(&self, ask: &EmbedAsk<'_>) -> Result<EmbedSent, Problem> {
        let tree = ask.request.tree()?;
        let mut body = Vec::new();
        let mut object = Object::begin(&mut body);
        object.array("instances", |list| {
            for one in ask.request.inputs(&tree, ask.range.clone()) {
                list.object(|instance| {
                    instance.text("content", &one.text);
                    if let EmbedCaller::Gemini { .. } = ask.request.caller {
                        instance.maybe_raw("task_type", one.node.either(SAID[0], SAID[1]).map(|task| task.raw));
                        instance.maybe_raw("title", one.node.get(SAID[2]).map(|title| title.raw));
                    }
                });
            }
        });
        if let Some(dimensions) = ask.request.dimensions {
            object.object("parameters", |parameters| parameters.number("outputDimensionality", dimensions));
        }
        object.end();
        let gemini = matches!(ask.request.caller, EmbedCaller::Gemini { .. });
        let dropped = ask.request.unsaid(&tree, |name| gemini && SAID.contains(&name));
        Ok(EmbedSent { body: Bytes::from(body), dropped })
    }

    /// The key comes last, when it is sent.
    fn request(&self, provider: &Provider, model: &str, call_id: &str, body: Bytes) -> Option<Outgoing> {
        let path = format!("{MODELS}/{}:predict", in_a_path(model));
        Some(post(provider.base_url.join(&path).ok()?, body, call_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_format_becomes_a_prediction() {
        let body = |request: &EmbedRequest, range| {
            let ask = EmbedAsk { request, model: "up", range, floats_only: false };
            String::from_utf8(VertexEmbeddings.body(&ask).unwrap().body.to_vec()).unwrap()
        };
        let openai = EmbedRequest::openai(Bytes::from(r#"{"model":"m","input":["a","b\n"],"dimensions":8}"#)).unwrap();
        let sent = r#"{"instances":[{"content":"b\n"}],"parameters":{"outputDimensionality":8}}"#;
        assert_eq!(body(&openai, 1..2), sent);
        let own = r#"{"model":"models/m","content":{"parts":[{"text":"a"}]},"taskType":"CLUSTERING"}"#;
        let gemini = EmbedRequest::gemini(Bytes::from(own), "m", false).unwrap();
        assert_eq!(body(&gemini, 0..1), r#"{"instances":[{"content":"a","task_type":"CLUSTERING"}]}"#);
        let snake = EmbedRequest::gemini(Bytes::from(own.replace("taskType", "task_type")), "m", false).unwrap();
        assert_eq!(body(&snake, 0..1), body(&gemini, 0..1), "either spelling");
        let more = own.replace("\"taskType\"", "\"autoTruncate\":true,\"taskType\"");
        let gemini = EmbedRequest::gemini(Bytes::from(more), "m", false).unwrap();
        let ask = EmbedAsk { request: &gemini, model: "up", range: 0..1, floats_only: false };
        assert_eq!(VertexEmbeddings.body(&ask).unwrap().dropped.to_string(), "autoTruncate");
    }
}
