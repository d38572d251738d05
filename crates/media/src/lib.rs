//! The formats and rules of what is not a conversation: families of video models, and social data.
//!
//! No input or output, no clock, no prices, no accounts. This room knows no chat dialect.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod social;
pub mod video;
