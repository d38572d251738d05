//! Events of a stream that stays in its dialect: passed on as they are, in the framing their
//! clients want, with what is ours in them.

use super::ours::OwnMembers;
use crate::hub::Voice;
use crate::pattern::Patterns;
use std::ops::Range;
use tollgate_wire::Dialect;
use tollgate_wire::json::{self, Node};

#[derive(Debug)]
pub(super) struct Pass {
    dialect: Dialect,
    pub ours: OwnMembers,
    /// The next event, if it is like those before.
    pub patterns: Patterns,
    /// Number of the next event of a Responses stream.
    pub number: u64,
    /// Gemini: elements of one array instead of events.
    array: bool,
    pub begun: bool,
    /// The response as its client saw it begin, to end it where its provider does not.
    pub response: Option<String>,
}

impl Pass {
    pub fn new(dialect: Dialect, voice: &Voice, rename: bool) -> Self {
        let ours = OwnMembers::new(dialect, rename, voice);
        Pass {
            dialect,
            ours,
            patterns: Patterns::default(),
            number: 0,
            array: voice.array,
            begun: false,
            response: None,
        }
    }

    /// Writes an event with its data as it came but for what is ours.
    pub fn write(&mut self, data: &str, node: &Node<'_>, out: &mut Vec<u8>) {
        if matches!(self.dialect, Dialect::Anthropic | Dialect::Responses) {
            out.extend_from_slice(b"event: ");
            out.extend_from_slice(node.str_of("type").as_bytes());
            out.push(b'\n');
        }
        out.extend_from_slice(match (self.array, self.begun) {
            (false, _) => b"data: ",
            (true, false) => b"[",
            (true, true) => b",\n",
        });
        self.begun = true;
        let renumbered = if self.dialect == Dialect::Responses { self.numbered(data, node) } else { None };
        self.keep(node);
        let mut edits = self.ours.event_edits(data, node);
        if let Some((place, number)) = &renumbered {
            edits.push((place.clone(), number));
            edits.sort_by_key(|(place, _)| place.start);
        }
        let mut done = 0;
        for (place, new) in edits {
            json::write_raw(out, &data.as_bytes()[done..place.start]);
            out.extend_from_slice(new);
            done = place.end;
        }
        json::write_raw(out, &data.as_bytes()[done..]);
        if !self.array {
            out.extend_from_slice(b"\n\n");
        }
    }

    /// Two events of a stream at most hold the response before it is over.
    fn keep(&mut self, node: &Node<'_>) {
        let begins = matches!(node.str_of("type"), "response.created" | "response.queued" | "response.in_progress");
        if let Some(response) = node.get("response").filter(|_| begins && self.dialect == Dialect::Responses) {
            let edits = self.ours.edits(response.raw, response);
            self.response = String::from_utf8(json::splice(response.raw.as_bytes(), &edits)).ok();
        }
    }

    /// Numbers must rise: one that does not, or is missing, is put right. Gives where, and what
    /// stands there then.
    fn numbered(&mut self, data: &str, node: &Node<'_>) -> Option<(Range<usize>, Vec<u8>)> {
        let given = node.get("sequence_number");
        if let Some(number) = given.and_then(Node::number).filter(|number| *number >= self.number) {
            self.number = number.saturating_add(1);
            return None;
        }
        let number = self.number;
        self.number += 1;
        Some(match given {
            Some(given) => (given.place_in(data), number.to_string().into_bytes()),
            None => (1..1, format!("\"sequence_number\":{number},").into_bytes()),
        })
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
