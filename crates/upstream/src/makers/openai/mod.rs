//! OpenAI, and the many who speak as it does.

mod chat;
mod sora;
mod transcription;

pub(crate) use chat::OpenAiChat;
pub(crate) use sora::Sora;
pub(crate) use transcription::OpenAiTranscriber;
