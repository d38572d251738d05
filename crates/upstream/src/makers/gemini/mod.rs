//! Google's Gemini API: conversations in its own dialect, videos as long-running predictions,
//! pictures, speech, embeddings, sessions.

mod chat;
mod embed;
mod image;
mod realtime;
mod speech;
mod veo;

pub(crate) use chat::{GeminiChat, in_a_path};
pub(crate) use embed::GeminiEmbeddings;
pub(crate) use image::GeminiImages;
pub(crate) use realtime::GeminiLive;
pub(crate) use speech::GeminiSpeech;
pub(crate) use veo::Veo;
