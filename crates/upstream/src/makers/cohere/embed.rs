//! Embeddings of Cohere's second API.

use crate::chat::{bearer, post};
use crate::embed::{EmbedAsk, EmbedSent, Embeddings, no_ids};
use crate::{Outgoing, Provider};
use bytes::Bytes;
use tollgate_media::embed::{EmbedCaller, EmbedInput, EmbedRequest, VectorShape};
use tollgate_wire::Problem;
use tollgate_wire::json::{Node, Object};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CohereEmbeddings;

/// Texts in one request.
const MOST_INPUTS: usize = 96;
/// It wants to know what a text is for; what nobody says is a text to be found.
const USUAL: &str = "search_document";
/// What is done with a text that is too long: unless a caller says so, it is refused and not cut.
const CUTS: [&str; 3] = ["NONE", "START", "END"];
/// Where Gemini says it, in either spelling, and in which words.
const TASK: [&str; 2] = ["taskType", "task_type"];
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
        let purpose = Purpose::of(&tree, &inputs);
        object.text("input_type", purpose.word);
        object.array("texts", |list| inputs.iter().for_each(|one| list.text(&one.text)));
        object.array("embedding_types", |list| list.text("float"));
        if let Some(dimensions) = ask.request.dimensions {
            object.number("output_dimension", dimensions);
        }
        let cut = tree.text_of("truncate").and_then(|wish| CUTS.into_iter().find(|cut| cut == wish));
        object.text("truncate", cut.unwrap_or(CUTS[0]));
        object.end();
        let said = |name: &str| purpose.field.contains(&name) || (name == "truncate" && cut.is_some());
        Ok(EmbedSent { body: Bytes::from(body), dropped: ask.request.unsaid(&tree, said) })
    }

    fn request(&self, provider: &Provider, _model: &str, call_id: &str, body: Bytes) -> Option<Outgoing> {
        let mut request = post(provider.base_url.join("/v2/embed").ok()?, body, call_id);
        bearer(&mut request, provider);
        Some(request)
    }
}

/// What the texts are for, and the fields of the caller's that say no more than this.
struct Purpose<'n> {
    word: &'n str,
    field: &'static [&'static str],
}

impl<'n> Purpose<'n> {
    /// In Cohere's own word, or in Gemini's of the first of them: it is one for all.
    fn of(tree: &'n Node<'_>, inputs: &[EmbedInput<'n, '_>]) -> Purpose<'n> {
        if let Some(own) = tree.text_of("input_type") {
            return Purpose { word: own, field: &["input_type"] };
        }
        let task = |one: &EmbedInput<'n, '_>| {
            let name = one.node.either(TASK[0], TASK[1])?.text()?;
            Some(TASKS.iter().find(|(known, _)| known == name)?.1)
        };
        let first = inputs.first().and_then(task);
        let all = first.is_some() && inputs.iter().all(|one| task(one) == first);
        Purpose { word: first.unwrap_or(USUAL), field: if all { &TASK } else { &[] } }
    }
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
            (r#"{"model":"m","input":["a"],"input_type":"search_query","truncate":"NONE"}"#, "search_query"),
        ] {
            assert_eq!(body(&EmbedRequest::openai(Bytes::from(text)).unwrap()), wanted(purpose));
        }
        let gemini = r#"{"content":{"parts":[{"text":"a"}]},"taskType":"CLUSTERING"}"#;
        assert_eq!(body(&EmbedRequest::gemini(Bytes::from(gemini), "m", false).unwrap()), wanted("clustering"));
    }

    #[test]
    fn what_it_has_no_word_for_is_named() {
        let dropped = |request: &EmbedRequest, range| {
            let ask = EmbedAsk { request, model: "up", range, floats_only: false };
            CohereEmbeddings.body(&ask).unwrap().dropped.to_string()
        };
        let own = r#"{"model":"m","input":"a","input_type":"clustering","truncate":"END","user":"u","task":"x"}"#;
        assert_eq!(dropped(&EmbedRequest::openai(Bytes::from(own)).unwrap(), 0..1), "user,task");
        let odd = r#"{"model":"m","input":"a","truncate":true}"#;
        assert_eq!(dropped(&EmbedRequest::openai(Bytes::from(odd)).unwrap(), 0..1), "truncate");
        let one = |task: &str| format!(r#"{{"content":{{"parts":[{{"text":"a"}}]}},"taskType":"{task}"}}"#);
        let batch = |tasks: [&str; 2]| {
            let body = format!(r#"{{"requests":[{},{}]}}"#, one(tasks[0]), one(tasks[1]));
            EmbedRequest::gemini(Bytes::from(body), "m", true).unwrap()
        };
        assert_eq!(dropped(&batch(["CLUSTERING", "CLUSTERING"]), 0..2), "");
        assert_eq!(dropped(&batch(["CLUSTERING", "CLASSIFICATION"]), 0..2), "taskType", "it is one for all");
        assert_eq!(dropped(&batch(["CLUSTERING", "CLASSIFICATION"]), 1..2), "");
        assert_eq!(dropped(&batch(["SEMANTIC_SIMILARITY", "CLUSTERING"]), 0..1), "taskType");
    }
}
