//! Google's own API: conversations, videos, speech.

mod chat;
mod image;
mod speech;
mod veo;

pub(crate) use chat::GeminiChat;
pub(crate) use image::GeminiImages;
pub(crate) use speech::GeminiSpeech;
pub(crate) use veo::Veo;
