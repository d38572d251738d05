//! What of a message and of its streamed events is read into the hub. All else is reported to a
//! client of another dialect.

use crate::hub::Known::{self, All, Apart, Dotted, Each, In, Is, Usage, Whole};
use crate::hub::RestMembers;
use tollgate_wire::json::Node;
use tollgate_wire::usage::UsageShape;

/// A whole message; in a stream, the one that begins it.
pub(super) const MESSAGE: RestMembers = &[
    Apart(&["id", "type", "role", "model"]),
    USAGE,
    Is(&["stop_reason", "stop_sequence"]),
    STOP_DETAILS,
    Each("content", block),
];

const USAGE: Known = Usage("usage", UsageShape::Anthropic);
const STOP_DETAILS: Known = Dotted("stop_details", &[Apart(&["type"]), Is(&["category", "explanation"])]);

/// Blocks. Those of tools that ran at the provider are reported as a whole by their type.
fn block(block: &Node<'_>) -> Option<RestMembers> {
    Some(match block.str_of("type") {
        "text" => &[Is(&["type", "text"]), Each("citations", citation)],
        "thinking" => &[Is(&["type", "thinking", "signature"])],
        "redacted_thinking" => &[Is(&["type", "data"])],
        "tool_use" => &[Is(&["type", "id", "name", "input"])],
        // What was searched for is an event of its own; the block is half of a pair.
        "server_tool_use" if block.str_of("name") == "web_search" => {
            &[Whole, Is(&["type", "name"]), Apart(&["id"]), In("input", &[Is(&["query"])])]
        }
        _ => return None,
    })
}

/// A page; a place in a document is carried as it is.
fn citation(citation: &Node<'_>) -> Option<RestMembers> {
    Some(match citation.text_of("url") {
        Some(_) => &[Is(&["type", "url", "title", "cited_text", "encrypted_index"])],
        None => &[All],
    })
}

/// The members of a streamed event. `aside`: it is about a block that is reported as a whole.
/// `None`: an event that nobody knows.
pub(super) fn event(event: &Node<'_>, aside: bool) -> Option<RestMembers> {
    Some(match event.str_of("type") {
        "message_start" => &[Is(&["type"]), In("message", MESSAGE)],
        "content_block_start" => &[Is(&["type"]), Apart(&["index"]), Each("content_block", block)],
        "content_block_delta" | "content_block_stop" if aside => {
            &[Whole, Is(&["type"]), Apart(&["index"]), Each("delta", delta)]
        }
        "content_block_delta" => &[Is(&["type"]), Apart(&["index"]), Each("delta", delta)],
        "content_block_stop" => &[Is(&["type"]), Apart(&["index"])],
        "message_delta" => &[Is(&["type"]), USAGE, In("delta", &[Is(&["stop_reason", "stop_sequence"]), STOP_DETAILS])],
        "message_stop" | "ping" => &[Is(&["type"])],
        _ => return None,
    })
}

fn delta(delta: &Node<'_>) -> Option<RestMembers> {
    Some(match delta.str_of("type") {
        "text_delta" => &[Is(&["type", "text"])],
        "thinking_delta" => &[Is(&["type", "thinking"])],
        "signature_delta" => &[Is(&["type", "signature"])],
        "input_json_delta" => &[Is(&["type", "partial_json"])],
        "citations_delta" => &[Is(&["type"]), Each("citation", citation)],
        _ => return None,
    })
}
