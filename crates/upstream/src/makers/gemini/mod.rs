//! Google's Gemini API: conversations in its own dialect, videos as long-running predictions,
//! embeddings.

mod chat;
mod embed;
mod veo;

pub(crate) use chat::GeminiChat;
pub(crate) use embed::GeminiEmbeddings;
pub(crate) use veo::Veo;
