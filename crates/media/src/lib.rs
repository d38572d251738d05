//! The formats and rules of what is not a conversation: families of video models, social data,
//! speech, transcripts, the length of audio files.
//!
//! No input or output, no clock, no prices, no accounts. This room knows no chat dialect.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod audio;
pub mod social;
pub mod speech;
pub mod transcription;
pub mod video;
