//! What is ours in an answer that stays in its dialect: the public name of the model; and of a
//! response that the gateway keeps its id, whether it is stored and what it continues, of which its
//! provider knows nothing because it got the whole conversation and was asked to store none of it.
//! Everything else is passed on as it came.

use crate::hub::{CONVERSATION, Voice};
use tollgate_wire::Dialect;
use tollgate_wire::json::{self, Edit, Node};

const PREVIOUS: &str = "previous_response_id";

#[derive(Debug)]
pub(super) struct OwnMembers {
    dialect: Dialect,
    /// The public name as JSON.
    name: Option<Vec<u8>>,
    /// Members of a response object that we know better.
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    name: &'static str,
    /// As JSON.
    value: Vec<u8>,
    /// The same as a member with a comma after it, for an object that lacks it.
    member: Vec<u8>,
}

impl Known {
    fn new(name: &'static str, raw: &[u8]) -> Known {
        let member = [b"\"", name.as_bytes(), b"\":", raw, b","].concat();
        Known { name, value: raw.to_vec(), member }
    }
}

impl OwnMembers {
    pub fn new(dialect: Dialect, rename: bool, voice: &Voice) -> Self {
        let echo = &voice.echo;
        let mut known = Vec::new();
        if dialect == Dialect::Responses {
            let named = |name: &'static str| {
                let raw = echo.get(name).filter(|raw| *raw != "null")?;
                Some(Known::new(name, raw.as_bytes()))
            };
            known.extend([PREVIOUS, CONVERSATION].into_iter().filter_map(named));
            if echo.is_stored_here() {
                known.push(Known::new("id", &json::quoted(&voice.prefixed("resp_"))));
                known.push(Known::new("store", echo.get("store").unwrap_or("true").as_bytes()));
            }
        }
        OwnMembers { dialect, name: rename.then(|| json::quoted(&voice.model)), known }
    }

    /// The edits of a whole reply.
    pub fn edits<'e>(&'e self, text: &str, reply: &Node<'_>) -> Vec<Edit<'e>> {
        let mut edits = Vec::new();
        let model = match self.dialect {
            Dialect::Gemini => reply.either("modelVersion", "model_version"),
            _ => reply.get("model"),
        };
        if let (Some(model), Some(name)) = (model, &self.name) {
            edits.push((model.place_in(text), name.as_slice()));
        }
        for Known { name, value, member } in &self.known {
            match reply.members().iter().find(|(one, _)| one == name) {
                Some((_, node)) => edits.push((node.place_in(text), value.as_slice())),
                None if reply.members().is_empty() => {}
                None => {
                    let start = reply.place_in(text).start + 1;
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

    /// A reply that stands alone, with what is ours in it.
    pub fn written(&self, reply: &Node<'_>) -> Vec<u8> {
        json::splice(reply.raw.as_bytes(), &self.edits(reply.raw, reply))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Echo;

    fn ours(echo: Echo, text: &str) -> String {
        let voice = Voice { id: "call_7".into(), model: "public".into(), echo, ..Voice::default() };
        let ours = OwnMembers::new(Dialect::Responses, true, &voice);
        String::from_utf8(ours.written(&Node::read(text).unwrap())).unwrap()
    }

    #[test]
    fn the_name_and_what_is_continued() {
        let previous = || Echo::of(br#"{"previous_response_id":"resp_1"}"#);
        for (echo, came, goes) in [
            (
                previous(),
                r#"{"previous_response_id":null,"x":1.50,"model":"up"}"#,
                r#"{"previous_response_id":"resp_1","x":1.50,"model":"public"}"#,
            ),
            (previous(), r#"{ "model":"up"}"#, r#"{"previous_response_id":"resp_1", "model":"public"}"#),
            (previous(), "{}", "{}"),
            (Echo::of(br#"{"conversation":"c"}"#), r#"{"conversation":null}"#, r#"{"conversation":{"id":"c"}}"#),
            (Echo::of(br#"{"conversation":"c"}"#), r#"{"x":1}"#, r#"{"conversation":{"id":"c"},"x":1}"#),
        ] {
            assert_eq!(ours(echo, came), goes);
        }
    }

    #[test]
    fn a_stored_response_has_our_id_and_says_store_as_asked() {
        let came = r#"{"id":"resp_up","store":false,"model":"up"}"#;
        for (body, goes) in [
            (&b"{}"[..], r#"{"id":"resp_7","store":true,"model":"public"}"#),
            (br#"{"store":false}"#, r#"{"id":"resp_7","store":false,"model":"public"}"#),
        ] {
            assert_eq!(ours(Echo::of(body).stored_here(), came), goes);
        }
        assert_eq!(ours(Echo::default(), came), r#"{"id":"resp_up","store":false,"model":"public"}"#);
        assert_eq!(ours(Echo::default().stored_here(), r#"{"x":1}"#), r#"{"id":"resp_7","store":true,"x":1}"#);
    }
}
