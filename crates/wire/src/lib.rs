//! What every format spoken here is made of: JSON, events, forms, errors, usage reports, the count
//! of tokens.
//!
//! No input or output, no clock, no prices, no accounts: bytes in, bytes and facts out. Chat
//! formats are in `tollgate-dialects`, those of videos and social data in `tollgate-media`; both
//! are written with the pieces of this room.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod count;
mod cut;
mod dialect;
mod dropped;
pub mod error;
pub mod json;
pub mod multipart;
pub mod pluck;
mod problem;
mod provider_error;
pub mod sse;
pub mod usage;

pub use cut::{MESSAGE, NAME, cut};
pub use dialect::Dialect;
pub use dropped::Dropped;
pub use problem::Problem;
pub use provider_error::{StreamFault, UpstreamError};
