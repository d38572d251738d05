//! Responses that outlive their call: what a request names of them is put in its place before the
//! request is admitted, so that any provider can serve it, also one that keeps nothing; and a
//! finished answer is stored before its last event leaves, so that the client's next request finds
//! it on every replica.
//!
//! The whole conversation is sent each time: there is one way, whatever the provider can do.
//! Instructions, tools and parameters are never inherited. What is stored belongs to one account;
//! another's is as unknown as one that never was.

mod keep;
mod keeper;
mod past;
mod place;
mod room;

pub use keep::{ResponseKeeper, fits, made_id};
pub use keeper::{Keeper, StoreOutcome, keeping};
pub use past::{LastResponse, Past, find, said_in};
pub use place::ItemPlace;
pub use room::{has_room, may_store, no_room};

use std::time::Duration;

/// How long what is stored can be named after it was last used.
pub const LIFE: Duration = Duration::from_secs(30 * 86_400);
