//! The kinds of work that are sold, one home each. They implement the traits that `call` defines
//! and keep what only they need to know; `call` knows none of them.

mod audio;
pub mod conversation;
pub mod decisions;
pub mod embeddings;
pub mod files;
pub mod given;
pub mod image;
pub mod long_replies;
pub mod music;
mod priced_fields;
pub mod realtime;
pub mod rerank;
pub mod run_files;
pub mod social;
pub mod speech;
mod spooled_answer;
mod texts;
pub mod transcription;
pub mod video;
