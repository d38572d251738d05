//! Anthropic messages: requests, replies and streamed events, into the hub and out of it.

pub(crate) mod answer_out;
pub(crate) mod ask_in;
pub(crate) mod ask_out;
mod blocks_in;
mod blocks_out;
pub(crate) mod events_in;
pub(crate) mod events_out;
mod known;
mod own_out;
mod thinking;
mod tools_out;

pub(crate) use blocks_out::{input, reminder};
