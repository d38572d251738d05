//! Google's own API: conversations, videos, speech.

mod chat;
mod speech;
mod veo;

pub(crate) use chat::GeminiChat;
pub(crate) use speech::GeminiSpeech;
pub(crate) use veo::Veo;
