//! Realtime sessions as work: a WebSocket on which a client and a model talk, and on which each
//! response is a call of its own.
//!
//! `session.rs` opens a session, `relay.rs` is its loop, and `passing.rs` passes on between its two
//! sides (`socket.rs`, with the frames of `incoming.rs` and `outgoing.rs`). Events pass unread but
//! for those that say what is to be done (`asked.rs`) and those that say what was done
//! (`heard.rs`); `talk.rs` is what is known of the session, and `turns.rs` says who begins a
//! response. Before a response may begin there is a hold for it (`holds.rs`); nothing here knows a
//! price.

mod asked;
mod buffers;
mod checks;
mod context;
mod dial;
mod ending;
mod frames;
mod heard;
mod holds;
mod incoming;
mod leaving;
mod listening;
mod needs;
mod outgoing;
mod pace;
mod passing;
mod places;
mod relay;
mod rooms;
mod session;
mod socket;
mod talk;
mod turns;

pub use checks::check_fixed;
pub use needs::NextResponse;
pub use places::{SessionPlace, SessionPlaces};
pub use session::{OpenSession, Opening, first_response};

use crate::call::Till;
use crate::door::bodies::Bodies;
use crate::settings::RealtimeSettings;
use std::sync::Arc;
use tollgate_store::ids;

/// What a model that is spoken with must offer.
pub const ENDPOINT_TYPE: &str = "realtime";
pub const ENDPOINT: &str = "/v1/realtime";

/// What all sessions share.
pub struct RealtimeDesk {
    pub till: Arc<Till>,
    pub settings: RealtimeSettings,
    /// Memory for the messages of all of them.
    pub bodies: Arc<Bodies>,
    pub ids: Arc<ids::Maker>,
    pub places: SessionPlaces,
}
