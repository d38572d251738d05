//! Embeddings of Cohere's second API.

use crate::chat::{bearer, post};
use crate::embed::{EmbedAsk, EmbedSent, Embeddings, no_ids};
use crate::{Outgoing, Provider};
use bytes::Bytes;
use tollgate_media::embed::{EmbedCaller, EmbedRequest, VectorShape};
use tollgate_wire::json::{Node, Object};
use tollgate_wire::{Dropped, Problem};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CohereEmbeddings;

/// Texts in one request.
const MOST_INPUTS: usize = 96;
/// It wants to know what a text is for; what nobody says is a text to be found.
const USUAL: &str = "search_document";
/// The same in Gemini's words.
const TASKS: [(&str, &str); 5] = [
    ("RETRIEVAL_QUERY", "search_query"),
    ("QUESTION_ANSWERING", "search_query"),
    ("RETRIEVAL_DOCUMENT", "search_document"),
    ("CLASSIFICATION", "classification"),
    ("CLUSTERING", "clustering"),
];

impl Embeddings for CohereEmbeddings {
    fn shape(&self) -> &'static VectorShape {
        &VectorShape::COHERE
    }

    fn most_inputs(&self) -> usize {
        MOST_INPUTS
    }

    fn speaks(&self, _: EmbedCaller) -> bool {
        false
    }

    fn takes(&self, request: &EmbedRequest) -> Result<(), Problem> {
        no_ids(request)
    }

    fn body(&self, ask: &EmbedAsk<'_>) -> Result<EmbedSent, Problem> {
        let tree = ask.request.tree()?;
        let inputs = ask.request.inputs(&tree, ask.range.clone());
        let mut body = Vec::new();
        let mut object = Object::begin(&mut body);
        object.text("model", ask.model);
        object.text("input_type", purpose(&tree, inputs.first().map(|one| one.node)));
        object.array("texts", |list| inputs.iter().for_each(|one| list.text(&one.text)));
        object.array("embedding_types", |list| list.text("float"));
        if let Some(dimensions) = ask.request.dimensions {
            object.number("output_dimension", dimensions);
        }
        // What is too long is refused, not cut in silence.
        object.text("truncate", "NONE");
        object.end();
        Ok(EmbedSent { body: Bytes::from(body), dropped: Dropped::default() })
    }

    fn request(&self, provider: &Provider, _model: &str, call_id: &str, body: Bytes) -> Option<Outgoing> {
        let mut request = post(provider.base_url.join("/v2/embed").ok()?, body, call_id);
        bearer(&mut request, provider);
        Some(request)
    }
}

/// What the texts are for: in Cohere's own word, or in Gemini's of the first of them.
fn purpose<'n>(tree: &'n Node<'_>, first: Option<&'n Node<'_>>) -> &'n str {
    let task = first.and_then(|node| node.either("taskType", "task_type")).and_then(Node::text);
    let known = task.and_then(|task| TASKS.iter().find(|(name, _)| name == task));
    let own = tree.text_of("input_type").map(|text| text.as_ref());
    own.or(known.map(|(_, word)| *word)).unwrap_or(USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_is_for_is_said() {
        let body = |request: &EmbedRequest| {
            let ask = EmbedAsk { request, model: "up", range: 0..1, floats_only: false };
            String::from_utf8(CohereEmbeddings.body(&ask).unwrap().body.to_vec()).unwrap()
        };
        let wanted = |purpose: &str| {
            format!(
                r#"{{"model":"up","input_type":"{purpose}","texts":["a"],"embedding_types":["float"],"truncate":"NONE"}}"#
            )
        };
        for (text, purpose) in [
            (r#"{"model":"m","input":"a"}"#, "search_document"),
            (r#"{"model":"m","input":["a"],"input_type":"search_query"}"#, "search_query"),
        ] {
            assert_eq!(body(&EmbedRequest::openai(Bytes::from(text)).unwrap()), wanted(purpose));
        }
        let gemini = r#"{"content":{"parts":[{"text":"a"}]},"taskType":"CLUSTERING"}"#;
        assert_eq!(body(&EmbedRequest::gemini(Bytes::from(gemini), "m", false).unwrap()), wanted("clustering"));
    }
}
