//! DashScope: videos, speech, transcripts.

mod recognition;
mod speech;
mod video;

pub(crate) use recognition::DashScopeRecognition;
pub(crate) use speech::DashScopeSpeech;
pub(crate) use video::DashScope;
