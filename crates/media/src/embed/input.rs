//! The texts of a request one by one, for providers that speak another format or take fewer at a
//! time.

use super::gemini::parts;
use super::request::{EmbedCaller, EmbedRequest};
use std::borrow::Cow;
use std::ops::Range;
use tollgate_wire::json::{BrokenJson, Node};

/// One text of a request.
#[derive(Debug)]
pub struct EmbedInput<'n, 'a> {
    /// Empty where it is given by the numbers of its tokens.
    pub text: Cow<'n, str>,
    /// Gemini: the whole request for it. OpenAI: the text itself.
    pub node: &'n Node<'a>,
}

impl EmbedRequest {
    /// The body as a tree.
    pub fn tree(&self) -> Result<Node<'_>, BrokenJson> {
        Node::read(std::str::from_utf8(&self.body).unwrap_or_default())
    }

    /// The texts from this place to that, of the tree of this request.
    pub fn inputs<'n, 'a>(&self, tree: &'n Node<'a>, range: Range<usize>) -> Vec<EmbedInput<'n, 'a>> {
        let one = std::slice::from_ref(tree);
        let nodes = match (self.caller, tree.get("input"), tree.get("requests")) {
            (EmbedCaller::OpenAi { .. }, Some(input), _) if input.is_list() && !self.is_one_list(input) => {
                input.items()
            }
            (EmbedCaller::OpenAi { .. }, Some(input), _) => std::slice::from_ref(input),
            (EmbedCaller::Gemini { batch: true }, _, Some(requests)) => requests.items(),
            _ => one,
        };
        let text = |node: &'n Node<'a>| match self.caller {
            EmbedCaller::OpenAi { .. } => Cow::Borrowed(node.text().map_or("", |text| text.as_ref())),
            EmbedCaller::Gemini { .. } => {
                let content = node.get("content");
                let texts = content.map_or(&[][..], |content| parts(content)).iter().map(|part| part.str_of("text"));
                Cow::Owned(texts.collect())
            }
        };
        let fits = range.start.min(nodes.len())..range.end.min(nodes.len());
        nodes[fits].iter().map(|node| EmbedInput { text: text(node), node }).collect()
    }

    /// Our own count of each text, in order.
    pub fn counts(&self) -> Vec<u64> {
        let Ok(tree) = self.tree() else { return Vec::new() };
        let count = |input: EmbedInput<'_, '_>| match input.text.is_empty() {
            true => input.node.items().len() as u64,
            false => tollgate_wire::count::tokens(&input.text).max(1),
        };
        self.inputs(&tree, 0..usize::MAX).into_iter().map(count).collect()
    }

    /// The list is the tokens of one text.
    fn is_one_list(&self, input: &Node<'_>) -> bool {
        self.has_ids && input.items().first().is_some_and(|item| item.number().is_some())
    }
}
