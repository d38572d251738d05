//! OpenAI, and the many who speak as it does.

mod chat;
mod embed;
mod image;
mod realtime;
mod sora;
mod speech;
mod transcription;

pub(crate) use chat::OpenAiChat;
pub(crate) use embed::OpenAiEmbeddings;
pub(crate) use image::{LAYOUT, OpenAiImages};
pub(crate) use realtime::OpenAiRealtime;
pub(crate) use sora::Sora;
pub(crate) use speech::OpenAiSpeech;
pub(crate) use transcription::OpenAiTranscriber;
