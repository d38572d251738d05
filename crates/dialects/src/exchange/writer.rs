//! One writer of streams for clients of any dialect.

use crate::hub::{Event, ToolNames, Voice};
use crate::{anthropic, chat, gemini, responses};
use tollgate_wire::Dialect;
use tollgate_wire::error::{self, Code};
use tollgate_wire::usage::Usage;

#[derive(Debug)]
pub(super) enum DialectWriter {
    Chat(chat::events_out::ChatWriter),
    Anthropic(anthropic::events_out::AnthropicWriter),
    Responses(Box<responses::events_out::ResponsesWriter>),
    Gemini(gemini::events_out::GeminiWriter),
}

impl DialectWriter {
    pub fn new(from: Dialect, to: Dialect, voice: &Voice, names: &ToolNames) -> Self {
        match to {
            Dialect::Chat => DialectWriter::Chat(chat::events_out::ChatWriter::new(voice, names.is_old())),
            Dialect::Anthropic => DialectWriter::Anthropic(anthropic::events_out::AnthropicWriter::new(voice)),
            Dialect::Responses => {
                DialectWriter::Responses(Box::new(responses::events_out::ResponsesWriter::new(voice)))
            }
            Dialect::Gemini => {
                DialectWriter::Gemini(gemini::events_out::GeminiWriter::new(voice, from != Dialect::Gemini))
            }
        }
    }

    pub fn write(&mut self, event: &Event<'_>, usage: Option<&Usage>, out: &mut Vec<u8>) {
        match self {
            DialectWriter::Chat(writer) => match event {
                Event::Ping => out.extend_from_slice(Dialect::Chat.heartbeat()),
                _ => writer.write(event, out),
            },
            DialectWriter::Anthropic(writer) => writer.write(event, usage, out),
            DialectWriter::Responses(writer) => writer.write(event, out),
            DialectWriter::Gemini(writer) => match event {
                Event::Ping => out.extend_from_slice(Dialect::Gemini.heartbeat()),
                _ => writer.write(event, out),
            },
        }
    }

    /// More had to be buffered than is allowed: the stream cannot go on.
    pub fn is_full(&self) -> bool {
        match self {
            DialectWriter::Chat(_) => false,
            DialectWriter::Anthropic(writer) => writer.is_full(),
            DialectWriter::Responses(writer) => writer.is_full(),
            DialectWriter::Gemini(writer) => writer.is_full(),
        }
    }

    /// The terminal events.
    pub fn end(&mut self, usage: Option<&Usage>, out: &mut Vec<u8>) {
        match self {
            DialectWriter::Chat(writer) => writer.end(usage, out),
            DialectWriter::Anthropic(writer) => writer.end(usage, out),
            DialectWriter::Responses(writer) => writer.end(usage, out),
            DialectWriter::Gemini(writer) => writer.end(usage, out),
        }
    }

    /// The terminal event of a stream that failed.
    pub fn fail(&mut self, code: Code, message: &str, call_id: &str, usage: Option<&Usage>, out: &mut Vec<u8>) {
        match self {
            DialectWriter::Chat(_) => out.extend_from_slice(&chat::error_event(code, message)),
            DialectWriter::Anthropic(_) => {
                out.extend_from_slice(b"event: error\ndata: ");
                error::write_body(out, error::ErrorFormat::Anthropic, code, message, None, call_id);
                out.extend_from_slice(b"\n\n");
            }
            DialectWriter::Responses(writer) => writer.fail(code.code(), message, usage, out),
            DialectWriter::Gemini(writer) => {
                let body = error::body(error::ErrorFormat::Gemini, code, message, None, call_id);
                writer.fail(&body, out);
            }
        }
    }
}
