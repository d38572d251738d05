//! One reader for the answers of any dialect.

use crate::hub::Sink;
use crate::{anthropic, chat, gemini, responses};
use tollgate_wire::Dialect;
use tollgate_wire::json::Node;

#[derive(Debug)]
pub(super) enum Reader {
    Chat(chat::events_in::Reader),
    Anthropic(anthropic::events_in::Reader),
    Responses(responses::events_in::Reader),
    Gemini(gemini::events_in::Reader),
}

impl Reader {
    /// A reader of `from`, for a client of `to`, of what answers this call.
    pub fn new(from: Dialect, to: Dialect, call: &str) -> Self {
        match from {
            Dialect::Chat => Reader::Chat(chat::events_in::Reader::new(call)),
            Dialect::Anthropic => Reader::Anthropic(anthropic::events_in::Reader::default()),
            Dialect::Responses => Reader::Responses(responses::events_in::Reader::default()),
            Dialect::Gemini => {
                let places = matches!(to, Dialect::Chat | Dialect::Responses);
                Reader::Gemini(gemini::events_in::Reader::new(call, places))
            }
        }
    }

    /// Reads one streamed event.
    pub fn read(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        match self {
            Reader::Chat(reader) => reader.read(node, sink),
            Reader::Anthropic(reader) => reader.read(node, sink),
            Reader::Responses(reader) => reader.read(node, sink),
            Reader::Gemini(reader) => reader.read(node, sink),
        }
    }

    /// Reads a whole reply.
    pub fn whole(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        match self {
            Reader::Chat(reader) => reader.read(node, sink),
            Reader::Anthropic(reader) => reader.whole(node, sink),
            Reader::Responses(reader) => reader.whole(node, sink),
            Reader::Gemini(reader) => reader.read(node, sink),
        }
    }

    /// `[DONE]`, which only chat knows as an end. False when it ends an answer in which nothing was
    /// said.
    pub fn done(&mut self, sink: &mut Sink<'_>) -> bool {
        match self {
            Reader::Chat(reader) => reader.done(sink),
            _ => true,
        }
    }

    /// As many choices as were asked for have said why they stopped, and none of those that began
    /// is left in the middle.
    pub fn ended(&self, asked: u64) -> bool {
        let ended = match self {
            Reader::Chat(reader) => reader.ended(),
            Reader::Gemini(reader) => reader.ended(),
            Reader::Anthropic(_) | Reader::Responses(_) => asked,
        };
        self.finished() && ended >= asked
    }

    /// The model has said why it stopped.
    pub fn finished(&self) -> bool {
        match self {
            Reader::Chat(reader) => reader.finished(),
            Reader::Anthropic(reader) => reader.finished(),
            Reader::Responses(reader) => reader.finished(),
            Reader::Gemini(reader) => reader.finished(),
        }
    }
}
