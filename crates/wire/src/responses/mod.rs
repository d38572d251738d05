//! OpenAI Responses: requests, replies and streamed events, into the hub and out of it.

pub(crate) mod answer_out;
pub(crate) mod ask_in;
pub(crate) mod ask_out;
mod blocks_out;
pub(crate) mod events_in;
pub(crate) mod events_out;
mod history;
mod item;
mod items_in;
mod items_out;
mod object;

pub use history::{input_items, output_items, with_history};
