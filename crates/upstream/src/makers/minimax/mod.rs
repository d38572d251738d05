//! MiniMax: videos, pictures, speech, music.

mod image;
mod music;
mod speech;
mod video;

pub(crate) use image::MiniMaxImages;
pub(crate) use music::MiniMaxMusic;
pub(crate) use speech::MiniMaxSpeech;
pub(crate) use video::MiniMax;
