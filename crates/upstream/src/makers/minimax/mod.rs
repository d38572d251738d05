//! MiniMax: videos, speech, pictures.

mod image;
mod speech;
mod video;

pub(crate) use image::MiniMaxImages;
pub(crate) use speech::MiniMaxSpeech;
pub(crate) use video::MiniMax;
