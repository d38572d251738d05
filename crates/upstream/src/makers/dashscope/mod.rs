//! DashScope: videos, pictures, speech, transcripts, sessions.

mod image;
mod realtime;
mod recognition;
mod speech;
mod video;

pub(crate) use image::QwenImages;
pub(crate) use realtime::QwenRealtime;
pub(crate) use recognition::DashScopeRecognition;
pub(crate) use speech::DashScopeSpeech;
pub(crate) use video::DashScope;
