//! The four chat dialects.

use crate::error;
use crate::usage::UsageShape;
use bytes::Bytes;

/// A format of conversations, spoken by clients on one side and by providers on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI chat completions.
    Chat,
    /// Anthropic messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// Gemini generateContent.
    Gemini,
}

impl Dialect {
    pub const ALL: [Dialect; 4] = [Dialect::Chat, Dialect::Anthropic, Dialect::Responses, Dialect::Gemini];

    /// The word a catalog uses for it (`supported_endpoint_types`).
    pub const fn word(self) -> &'static str {
        match self {
            Dialect::Chat => "openai",
            Dialect::Anthropic => "anthropic",
            Dialect::Responses => "openai-response",
            Dialect::Gemini => "gemini",
        }
    }

    /// The dialect of a catalog's word.
    pub fn of_word(word: &str) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| dialect.word() == word)
    }

    /// The shape of its error bodies.
    pub const fn errors(self) -> error::ErrorFormat {
        match self {
            Dialect::Chat | Dialect::Responses => error::ErrorFormat::OpenAi,
            Dialect::Anthropic => error::ErrorFormat::Anthropic,
            Dialect::Gemini => error::ErrorFormat::Gemini,
        }
    }

    /// The shape of its usage reports.
    pub const fn usage(self) -> UsageShape {
        match self {
            Dialect::Chat => UsageShape::Chat,
            Dialect::Anthropic => UsageShape::Anthropic,
            Dialect::Responses => UsageShape::Responses,
            Dialect::Gemini => UsageShape::Gemini,
        }
    }

    /// The reply of an endpoint that counts the tokens of a prompt.
    pub fn token_count(self, tokens: u64) -> Bytes {
        Bytes::from(match self {
            Dialect::Anthropic => format!(r#"{{"input_tokens":{tokens}}}"#),
            Dialect::Chat | Dialect::Responses => {
                format!(r#"{{"object":"response.input_tokens","input_tokens":{tokens}}}"#)
            }
            Dialect::Gemini => format!(r#"{{"totalTokens":{tokens}}}"#),
        })
    }

    /// A keep-alive that every client of this dialect tolerates, sent between events.
    pub const fn heartbeat(self) -> &'static [u8] {
        match self {
            // One comment line; a blank line after it would end an event for some clients.
            Dialect::Chat | Dialect::Responses => b": hb\n",
            Dialect::Anthropic => b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
            // Gemini's clients choke on comments.
            Dialect::Gemini => b"\n",
        }
    }
}
