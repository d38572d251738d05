//! Google's Gemini API: conversations in its own dialect, videos as long-running predictions.

mod chat;
mod veo;

pub(crate) use chat::GeminiChat;
pub(crate) use veo::Veo;
