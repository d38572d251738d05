//! OpenAI, and the many who speak as it does.

mod chat;
mod sora;

pub(crate) use chat::OpenAiChat;
pub(crate) use sora::Sora;
