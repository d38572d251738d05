//! One writer of streams for clients of any dialect.

use crate::hub::{Event, Names, Voice};
use crate::{anthropic, chat, gemini, responses};
use tollgate_wire::Dialect;
use tollgate_wire::error::{self, Code};
use tollgate_wire::usage::Usage;

#[derive(Debug)]
pub(super) enum Writer {
    Chat(chat::events_out::Writer),
    Anthropic(anthropic::events_out::Writer),
    Responses(Box<responses::events_out::Writer>),
    Gemini(gemini::events_out::Writer),
}

impl Writer {
    pub fn new(from: Dialect, to: Dialect, voice: &Voice, names: &Names) -> Self {
        match to {
            Dialect::Chat => Writer::Chat(chat::events_out::Writer::new(voice, names.is_old())),
            Dialect::Anthropic => Writer::Anthropic(anthropic::events_out::Writer::new(voice)),
            Dialect::Responses => Writer::Responses(Box::new(responses::events_out::Writer::new(voice))),
            Dialect::Gemini => Writer::Gemini(gemini::events_out::Writer::new(voice, from != Dialect::Gemini)),
        }
    }

    pub fn write(&mut self, event: &Event<'_>, usage: Option<&Usage>, out: &mut Vec<u8>) {
        match self {
            Writer::Chat(writer) => match event {
                Event::Ping => out.extend_from_slice(Dialect::Chat.heartbeat()),
                _ => writer.write(event, out),
            },
            Writer::Anthropic(writer) => writer.write(event, usage, out),
            Writer::Responses(writer) => writer.write(event, out),
            Writer::Gemini(writer) => match event {
                Event::Ping => out.extend_from_slice(Dialect::Gemini.heartbeat()),
                _ => writer.write(event, out),
            },
        }
    }

    /// More had to be kept than is allowed: the stream cannot go on.
    pub fn is_full(&self) -> bool {
        match self {
            Writer::Chat(_) => false,
            Writer::Anthropic(writer) => writer.is_full(),
            Writer::Responses(writer) => writer.is_full(),
            Writer::Gemini(writer) => writer.is_full(),
        }
    }

    /// The terminal events.
    pub fn end(&mut self, usage: Option<&Usage>, out: &mut Vec<u8>) {
        match self {
            Writer::Chat(writer) => writer.end(usage, out),
            Writer::Anthropic(writer) => writer.end(usage, out),
            Writer::Responses(writer) => writer.end(usage, out),
            Writer::Gemini(writer) => writer.end(usage, out),
        }
    }

    /// The terminal event of a stream that failed.
    pub fn fail(&mut self, code: Code, message: &str, call_id: &str, usage: Option<&Usage>, out: &mut Vec<u8>) {
        match self {
            Writer::Chat(_) => out.extend_from_slice(&chat::error_event(code, message)),
            Writer::Anthropic(_) => {
                out.extend_from_slice(b"event: error\ndata: ");
                error::write_body(out, error::Dialect::Anthropic, code, message, None, call_id);
                out.extend_from_slice(b"\n\n");
            }
            Writer::Responses(writer) => writer.fail(code.code(), message, usage, out),
            Writer::Gemini(writer) => {
                let body = error::body(error::Dialect::Gemini, code, message, None, call_id);
                writer.fail(&body, out);
            }
        }
    }
}
