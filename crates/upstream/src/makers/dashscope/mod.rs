//! DashScope: videos, speech.

mod speech;
mod video;

pub(crate) use speech::DashScopeSpeech;
pub(crate) use video::DashScope;
