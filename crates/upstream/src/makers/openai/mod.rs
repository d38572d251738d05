//! OpenAI, and the many who speak as it does.

mod chat;
mod embed;
mod sora;

pub(crate) use chat::OpenAiChat;
pub(crate) use embed::OpenAiEmbeddings;
pub(crate) use sora::Sora;
