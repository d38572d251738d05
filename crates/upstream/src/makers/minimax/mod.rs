//! MiniMax: videos, speech.

mod speech;
mod video;

pub(crate) use speech::MiniMaxSpeech;
pub(crate) use video::MiniMax;
