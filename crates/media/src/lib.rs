//! The formats and rules of what is not a conversation: families of video models, pictures, social
//! data, speech, the length of audio files.
//!
//! No input or output, no clock, no prices, no accounts. This room knows no chat dialect.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod audio;
pub mod image;
pub mod social;
pub mod speech;
pub mod video;
