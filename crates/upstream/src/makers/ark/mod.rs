//! Ark (Volcengine and BytePlus): videos, pictures.

mod image;
mod video;

pub(crate) use image::Seedream;
pub(crate) use video::Ark;
