//! The formats and rules of what is not a conversation: families of video models, pictures, social
//! data, speech, transcripts, music, the length of audio files, embeddings, rerank, decisions,
//! realtime sessions.
//!
//! No input or output, no clock, no prices, no accounts. This room knows no chat dialect.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod audio;
mod body;
pub mod decide;
pub mod embed;
pub mod image;
pub mod music;
pub mod realtime;
pub mod rerank;
pub mod social;
pub mod speech;
mod tally;
mod trail;
pub mod transcription;
mod tree;
pub mod video;

// The tests from outside, in the executable of the unit tests: every executable more is linked
// once more.
#[cfg(test)]
extern crate self as tollgate_media;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;

pub use tally::TextTally;
