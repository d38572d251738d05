//! One reader for the answers of any dialect.

use crate::hub::Sink;
use crate::{anthropic, chat, gemini, responses};
use tollgate_wire::Dialect;
use tollgate_wire::json::Node;

#[derive(Debug)]
pub(super) enum DialectReader {
    Chat(chat::events_in::ChatReader),
    Anthropic(anthropic::events_in::AnthropicReader),
    Responses(responses::events_in::ResponsesReader),
    Gemini(gemini::events_in::GeminiReader),
}

impl DialectReader {
    /// A reader of `from`, for a client of `to`, of what answers this call.
    pub fn new(from: Dialect, to: Dialect, call: &str) -> Self {
        match from {
            Dialect::Chat => DialectReader::Chat(chat::events_in::ChatReader::new(call)),
            Dialect::Anthropic => DialectReader::Anthropic(anthropic::events_in::AnthropicReader::default()),
            Dialect::Responses => DialectReader::Responses(responses::events_in::ResponsesReader::default()),
            Dialect::Gemini => {
                let places = matches!(to, Dialect::Chat | Dialect::Responses);
                DialectReader::Gemini(gemini::events_in::GeminiReader::new(call, places))
            }
        }
    }

    /// Reads one streamed event.
    pub fn read(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        match self {
            DialectReader::Chat(reader) => reader.read(node, sink),
            DialectReader::Anthropic(reader) => reader.read(node, sink),
            DialectReader::Responses(reader) => reader.read(node, sink),
            DialectReader::Gemini(reader) => reader.read(node, sink),
        }
    }

    /// Reads a whole reply.
    pub fn whole(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        match self {
            DialectReader::Chat(reader) => reader.read(node, sink),
            DialectReader::Anthropic(reader) => reader.whole(node, sink),
            DialectReader::Responses(reader) => reader.whole(node, sink),
            DialectReader::Gemini(reader) => reader.read(node, sink),
        }
    }

    /// `[DONE]`, which only chat knows as an end. False when it ends an answer in which nothing was
    /// said.
    pub fn done(&mut self, sink: &mut Sink<'_>) -> bool {
        match self {
            DialectReader::Chat(reader) => reader.done(sink),
            _ => true,
        }
    }

    /// As many choices as were asked for have said why they stopped, and none of those that began
    /// is left in the middle.
    pub fn ended(&self, asked: u64) -> bool {
        let ended = match self {
            DialectReader::Chat(reader) => reader.ended(),
            DialectReader::Gemini(reader) => reader.ended(),
            DialectReader::Anthropic(_) | DialectReader::Responses(_) => asked,
        };
        self.finished() && ended >= asked
    }

    /// The model has said why it stopped.
    pub fn finished(&self) -> bool {
        match self {
            DialectReader::Chat(reader) => reader.finished(),
            DialectReader::Anthropic(reader) => reader.finished(),
            DialectReader::Responses(reader) => reader.finished(),
            DialectReader::Gemini(reader) => reader.finished(),
        }
    }
}
