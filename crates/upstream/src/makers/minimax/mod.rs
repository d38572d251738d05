//! MiniMax: videos, speech, music.

mod music;
mod speech;
mod video;

pub(crate) use music::MiniMaxMusic;
pub(crate) use speech::MiniMaxSpeech;
pub(crate) use video::MiniMax;
