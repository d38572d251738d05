//! DashScope: videos, pictures, speech, transcripts.

mod image;
mod recognition;
mod speech;
mod video;

pub(crate) use image::QwenImages;
pub(crate) use recognition::DashScopeRecognition;
pub(crate) use speech::DashScopeSpeech;
pub(crate) use video::DashScope;
