//! DashScope: videos, speech, pictures.

mod image;
mod speech;
mod video;

pub(crate) use image::QwenImages;
pub(crate) use speech::DashScopeSpeech;
pub(crate) use video::DashScope;
