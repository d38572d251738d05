//! The formats and rules of what is not a conversation: families of video models, social data, the
//! length of audio files, embeddings, rerank, decisions.
//!
//! No input or output, no clock, no prices, no accounts. This room knows no chat dialect.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod audio;
mod body;
pub mod decide;
pub mod embed;
pub mod rerank;
pub mod social;
mod tally;
pub mod video;

pub use tally::TextTally;
