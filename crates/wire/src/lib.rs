//! What every format spoken here is made of: JSON, events, forms, the framing of HTTP/1.1, errors,
//! usage reports, the count of tokens.
//!
//! No input or output, no clock, no prices, no accounts: bytes in, bytes and facts out. Chat
//! formats are in `tollgate-dialects`, those of videos and social data in `tollgate-media`; both
//! are written with the pieces of this room.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod costs;
pub mod count;
mod cut;
mod dialect;
mod dropped;
pub mod error;
pub mod http1;
pub mod json;
pub mod multipart;
pub mod pluck;
mod problem;
mod provider_error;
mod quirks;
pub mod sse;
pub mod usage;

// The tests from outside, in the executable of the unit tests: every executable more is linked
// once more.
#[cfg(test)]
extern crate self as tollgate_wire;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;

pub use costs::{COST_MEMBERS, HiddenCosts};
pub use cut::{MESSAGE, NAME, cut};
pub use dialect::Dialect;
pub use dropped::Dropped;
pub use problem::Problem;
pub use provider_error::{StreamFault, UpstreamError};
pub use quirks::{ChatQuirks, SizeMembers};
