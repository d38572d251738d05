//! OpenAI Responses: requests, replies and streamed events, into the hub and out of it.

pub(crate) mod answer_out;
pub(crate) mod ask_in;
pub(crate) mod ask_out;
mod blocks_out;
mod create_event;
pub(crate) mod events_in;
pub(crate) mod events_out;
mod history;
mod item;
mod items_in;
mod items_out;
mod known;
mod object;
mod press;
mod span_out;
mod stored;
mod tools_in;
mod tools_out;

pub use create_event::from_create_event;
pub use history::{
    Answer, Named, compacted, compaction, input_items, is_completed, item_id, list, output_text, shown, unnamed,
    unpressed, with_input, without_id,
};
pub use press::to_press;
pub use stored::{before_the_end, unkept, unkept_events, unstored};

/// What a text is called in the input, by whether the assistant said it.
fn text_kind(assistant: bool) -> &'static str {
    if assistant { "output_text" } else { "input_text" }
}
