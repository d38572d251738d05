//! What is ours in an answer that stays in its dialect: the public name of the model, and the response a Responses client continues, of
//! which its provider knows nothing because it got the whole conversation. Everything else is passed on as it came.

use crate::dialect::Dialect;
use crate::hub::Echo;
use crate::json::{self, Edit, Node};
use std::ops::Range;

const PREVIOUS: &str = "previous_response_id";

#[derive(Debug)]
pub(super) struct Ours {
    dialect: Dialect,
    /// The public name as JSON.
    name: Option<Vec<u8>>,
    /// What the client named, as JSON, and the same as a member with a comma after it.
    previous: Option<(Vec<u8>, Vec<u8>)>,
}

impl Ours {
    pub fn new(dialect: Dialect, model: Option<&str>, echo: &Echo) -> Self {
        let given = echo.get(PREVIOUS).filter(|raw| dialect == Dialect::Responses && *raw != "null");
        let previous = given.map(|raw| (raw.as_bytes().to_vec(), format!("\"{PREVIOUS}\":{raw},").into_bytes()));
        Ours { dialect, name: model.map(json::quoted), previous }
    }

    /// The edits of a whole reply.
    pub fn edits<'e>(&'e self, text: &str, reply: &Node<'_>) -> Vec<Edit<'e>> {
        let mut edits = Vec::new();
        let model = match self.dialect {
            Dialect::Gemini => reply.either("modelVersion", "model_version"),
            _ => reply.get("model"),
        };
        if let (Some(model), Some(name)) = (model, &self.name) {
            edits.push((place(text, model), name.as_slice()));
        }
        if let Some((value, member)) = &self.previous {
            let known = reply.members().iter().find(|(name, _)| name == PREVIOUS);
            match known {
                Some((_, node)) => edits.push((place(text, node), value.as_slice())),
                None if reply.members().is_empty() => {}
                None => {
                    let start = place(text, reply).start + 1;
                    edits.push((start..start, member.as_slice()));
                }
            }
        }
        edits.sort_by_key(|(place, _)| place.start);
        edits
    }

    /// The edits of one streamed event: few carry anything of ours.
    pub fn event_edits<'e>(&'e self, text: &str, event: &Node<'_>) -> Vec<Edit<'e>> {
        let reply = match self.dialect {
            Dialect::Chat | Dialect::Gemini => Some(event),
            Dialect::Anthropic => event.get("message"),
            Dialect::Responses => event.get("response"),
        };
        reply.map_or_else(Vec::new, |reply| self.edits(text, reply))
    }
}

/// Where a value stands in the text it was read from.
pub(super) fn place(text: &str, node: &Node<'_>) -> Range<usize> {
    let at = node.raw.as_ptr() as usize - text.as_ptr() as usize;
    at..at + node.raw.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(text: &str) -> String {
        let ours = Ours::new(Dialect::Responses, Some("public"), &Echo::of(br#"{"previous_response_id":"resp_1"}"#));
        let node = Node::read(text).unwrap();
        String::from_utf8(json::splice(text.as_bytes(), &ours.edits(text, &node))).unwrap()
    }

    #[test]
    fn the_name_and_what_is_continued() {
        assert_eq!(
            ours(r#"{"previous_response_id":null,"x":1.50,"model":"up"}"#),
            r#"{"previous_response_id":"resp_1","x":1.50,"model":"public"}"#
        );
        assert_eq!(ours(r#"{ "model":"up"}"#), r#"{"previous_response_id":"resp_1", "model":"public"}"#);
        assert_eq!(ours("{}"), "{}");
    }
}
