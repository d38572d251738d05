//! Events of a stream that stays in its dialect: passed on as they are, in the framing their clients want, with the public
//! name of the model.

use crate::dialect::Dialect;
use crate::json::{self, Node};

#[derive(Debug)]
pub(super) struct Pass {
    dialect: Dialect,
    /// The public name as JSON.
    name: Option<Vec<u8>>,
    /// Number of the next event of a Responses stream.
    pub number: u64,
    /// Gemini: elements of one array instead of events.
    array: bool,
    pub begun: bool,
}

impl Pass {
    pub fn new(dialect: Dialect, rename_to: Option<&str>, array: bool) -> Self {
        Pass { dialect, name: rename_to.map(json::quoted), number: 0, array, begun: false }
    }

    /// Writes an event with its data as it came but for the model's name.
    pub fn write(&mut self, data: &str, node: &Node<'_>, out: &mut Vec<u8>) {
        if matches!(self.dialect, Dialect::Anthropic | Dialect::Responses) {
            out.extend_from_slice(b"event: ");
            out.extend_from_slice(node.str_of("type").as_bytes());
            out.push(b'\n');
        }
        if self.dialect == Dialect::Responses {
            let number = node.get("sequence_number").and_then(Node::number);
            self.number = number.map_or(self.number + 1, |number| number.saturating_add(1));
        }
        out.extend_from_slice(match (self.array, self.begun) {
            (false, _) => b"data: ",
            (true, false) => b"[",
            (true, true) => b",\n",
        });
        self.begun = true;
        let model = self.name.as_ref().and_then(|name| {
            let model = model(self.dialect, node)?;
            // `raw` is a piece of `data`.
            let at = model.raw.as_ptr() as usize - data.as_ptr() as usize;
            Some((at..at + model.raw.len(), name))
        });
        match model {
            Some((place, name)) => {
                json::write_raw(out, &data.as_bytes()[..place.start]);
                out.extend_from_slice(name);
                json::write_raw(out, &data.as_bytes()[place.end..]);
            }
            None => json::write_raw(out, data.as_bytes()),
        }
        if !self.array {
            out.extend_from_slice(b"\n\n");
        }
    }

    /// What a provider that left its end out owes the client, and the end of an array.
    pub fn end(&self, out: &mut Vec<u8>) {
        match self.dialect {
            Dialect::Anthropic => out.extend_from_slice(MESSAGE_STOP),
            Dialect::Gemini if self.array => out.extend_from_slice(if self.begun { b"]\n" } else { b"[]\n" }),
            _ => {}
        }
    }
}

const MESSAGE_STOP: &[u8] = b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// Where an event of this dialect names its model.
fn model<'n, 'a>(dialect: Dialect, node: &'n Node<'a>) -> Option<&'n Node<'a>> {
    match dialect {
        Dialect::Chat => node.get("model"),
        Dialect::Anthropic => node.get("message")?.get("model"),
        Dialect::Responses => node.get("response")?.get("model"),
        Dialect::Gemini => node.either("modelVersion", "model_version"),
    }
}
