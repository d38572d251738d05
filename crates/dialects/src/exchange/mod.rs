//! A call in any pair of dialects: the request, the whole reply, the stream.
//!
//! Within one dialect bytes pass through and are only looked at; between two they go by way of the
//! hub.

#[cfg(test)]
mod again;
mod any;
mod called;
mod facts;
mod follow;
mod given;
mod limit;
mod links;
mod meter;
#[cfg(test)]
mod nothing_lost;
mod ours;
mod pass;
mod reader;
mod reply;
mod request;
mod rules;
mod stream;
mod unsealed;
mod usage_wish;
mod writer;

pub use given::{Given, scheme};
pub use links::{LinkContent, LinkKind, MediaLink};
pub use reply::{Converted, convert};
pub use request::{CheckedRequest, Path, Sent};
pub use rules::ModelRules;
pub use stream::{ReplyStream, Setup};
pub use unsealed::{SealNeeds, own_seals, without_reasoning};
