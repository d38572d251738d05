//! The kinds of work that are sold, one home each. They implement the traits that `call` defines
//! and keep what only they need to know; `call` knows none of them.

pub mod conversation;
pub mod decisions;
pub mod embeddings;
pub mod given;
pub mod rerank;
pub mod social;
mod texts;
pub mod video;
