//! Google's Gemini API: conversations in its own dialect, videos as long-running predictions,
//! pictures, speech, embeddings.

mod chat;
mod embed;
mod image;
mod speech;
mod veo;

pub(crate) use chat::GeminiChat;
pub(crate) use embed::GeminiEmbeddings;
pub(crate) use image::GeminiImages;
pub(crate) use speech::GeminiSpeech;
pub(crate) use veo::Veo;
