//! What of a request only some makers have a place for. A maker that has none says so by name.

use super::gemini::DIMENSIONS;
use super::request::{EmbedCaller, EmbedRequest};
use tollgate_wire::Dropped;
use tollgate_wire::json::Node;

/// What every maker is asked, or the gateway does itself.
const OPENAI: &[&str] = &["model", "input", "dimensions", "encoding_format"];
const GEMINI: &[&str] = &["model", "content", DIMENSIONS.0, DIMENSIONS.1];
const BATCH: &[&str] = &["model", "requests"];

impl EmbedRequest {
    /// Fields of this request, as its caller wrote them, that are neither common to all makers nor
    /// among those that a maker has `said` in its own words. `tree` is that of this request.
    pub fn unsaid(&self, tree: &Node<'_>, said: impl Fn(&str) -> bool) -> Dropped {
        let mut dropped = Dropped::default();
        let mut add = |node: &Node<'_>, common: &[&str], said: &dyn Fn(&str) -> bool| {
            let given = node.members().iter().filter(|(_, value)| !value.is_null());
            let names = given.map(|(name, _)| name.as_ref()).filter(|name| !common.contains(name) && !said(name));
            names.for_each(|name| dropped.add(name));
        };
        match self.caller {
            EmbedCaller::OpenAi { .. } => add(tree, OPENAI, &said),
            EmbedCaller::Gemini { batch: false } => add(tree, GEMINI, &said),
            EmbedCaller::Gemini { batch: true } => {
                // Nobody is sent what stands around the list.
                add(tree, BATCH, &|_| false);
                tree.get("requests").into_iter().flat_map(Node::items).for_each(|one| add(one, GEMINI, &said));
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn what_is_beside_the_common_fields_is_named_once() {
        let content = r#""content":{"parts":[{"text":"a"}]},"model":"models/m""#;
        let one = format!(r#"{{{content},"task_type":"X","title":null,"outputDimensionality":4}}"#);
        let batch =
            format!(r#"{{"requests":[{one},{{{content},"task_type":"Y","outputDimensionality":4}}],"labels":1}}"#);
        let openai = r#"{"model":"m","input":"a","dimensions":2,"encoding_format":"float","user":"u","input_type":"q","seed":null}"#;
        let body = |text: &str| Bytes::from(text.to_owned());
        for (request, said, unsaid) in [
            (EmbedRequest::openai(body(openai)), "", "user,input_type"),
            (EmbedRequest::openai(body(openai)), "input_type", "user"),
            (EmbedRequest::gemini(body(&one), "m", false), "", "task_type"),
            (EmbedRequest::gemini(body(&batch), "m", true), "", "labels,task_type"),
            (EmbedRequest::gemini(body(&batch), "m", true), "task_type", "labels"),
        ] {
            let request = request.expect("a request");
            let tree = request.tree().expect("a tree");
            assert_eq!(request.unsaid(&tree, |name| name == said).to_string(), unsaid, "{said:?}");
        }
    }
}
