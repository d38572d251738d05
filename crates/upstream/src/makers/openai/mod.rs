//! OpenAI, and the many who speak as it does.

mod chat;
mod sora;
mod speech;

pub(crate) use chat::OpenAiChat;
pub(crate) use sora::Sora;
pub(crate) use speech::OpenAiSpeech;
