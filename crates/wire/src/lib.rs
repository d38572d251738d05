//! Every shape spoken by clients or upstreams, and the pure translations between them.
//!
//! No input or output, no clock, no prices, no accounts: bytes in, bytes and facts out.
//! Same-dialect bytes pass through untouched wherever that is possible, so most of this
//! room is about *finding* things in JSON and events, not about rebuilding them.

pub mod chat;
pub mod count;
pub mod error;
mod json;
pub mod multipart;
pub mod social;
pub mod sse;
pub mod usage;
pub mod video;
