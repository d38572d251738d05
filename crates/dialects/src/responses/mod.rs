//! OpenAI Responses: requests, replies and streamed events, into the hub and out of it.

pub(crate) mod answer_out;
pub(crate) mod ask_in;
pub(crate) mod ask_out;
mod blocks_out;
mod compact;
mod create_event;
pub(crate) mod events_in;
pub(crate) mod events_out;
mod history;
mod item;
mod items_in;
mod items_out;
mod known;
mod object;
mod span_out;
mod stored;
mod tools_in;
mod tools_out;

pub use compact::to_compact;
pub use create_event::from_create_event;
pub use history::{
    NamedItems, ResponseOutline, compacted, compaction, expanded, input_items, is_completed, item_id, list,
    output_text, shown, with_input, without_id, without_thought_id,
};
pub use stored::{before_the_end, mark_events_not_stored, mark_not_stored, without_storing};

/// What a text is called in the input, by whether the assistant said it.
fn text_kind(assistant: bool) -> &'static str {
    if assistant { "output_text" } else { "input_text" }
}
