//! Answers read into the hub and written again in their own dialect: nothing is missing.
//!
//! In production an answer that stays in its dialect passes as bytes. Here it goes through the hub all the same: what the writer makes of
//! the hub's events, and what `Event::Rest` says the hub has no place for, must be the original. So each member of each golden
//! answer is either carried by the hub, or on the list from which a client of another dialect is told.
//!
//! `lay` puts the two together, `replies` and `events` do it for every golden original, `unknown` once more with a member
//! that nobody knows, put into every object in turn.

mod events;
mod golden;
mod lay;
mod replies;
mod unknown;
