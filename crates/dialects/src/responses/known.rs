//! What of a response and of its streamed events is read into the hub. All else is reported to a
//! client of another dialect.

use crate::hub::Known::{Apart, Counts, Dotted, Each, In, Is, Recast, Usage, Whole};
use crate::hub::RestMembers;
use tollgate_wire::json::Node;
use tollgate_wire::usage::UsageShape;

/// A response. Most of its members repeat the request.
pub(super) const RESPONSE: RestMembers = &[
    Each("output", item),
    Is(&["status", "service_tier"]),
    Dotted("incomplete_details", &[Is(&["reason"])]),
    Usage("usage", UsageShape::Responses),
    Counts("tool_usage", &[In("web_search", &[Is(&["num_requests"])])]),
    Apart(&["id", "object", "model", "created_at", "completed_at", "error", "output_text"]),
    Apart(&["background", "conversation", "instructions", "max_output_tokens", "max_tool_calls", "metadata"]),
    Apart(&["parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_retention"]),
    Apart(&["reasoning", "safety_identifier", "store", "temperature", "text", "tool_choice", "tools", "top_logprobs"]),
    Apart(&["top_p", "truncation", "user", "frequency_penalty", "presence_penalty"]),
];

/// Items; those of tools that ran at the provider are reported as a whole by their type.
fn item(item: &Node<'_>) -> Option<RestMembers> {
    Some(match item.str_of("type") {
        "message" => &[Is(&["type", "role"]), Apart(&["id", "status"]), Each("content", part)],
        "function_call" => &[Is(&["type", "call_id", "name", "namespace", "arguments"]), Apart(&["id", "status"])],
        "custom_tool_call" => &[Is(&["type", "call_id", "name", "namespace", "input"]), Apart(&["id", "status"])],
        "reasoning" => &[
            Is(&["type", "encrypted_content"]),
            Apart(&["id", "status"]),
            // The parts of a thought are one text.
            Recast(&Each("summary", |_| Some(THOUGHT))),
            Recast(&Each("content", |_| Some(THOUGHT))),
        ],
        "web_search_call" if item.get("action").is_some_and(|action| action.text_of("query").is_some()) => {
            &[Is(&["type"]), Apart(&["id", "status"]), Dotted("action", &[Is(&["type", "query"])])]
        }
        _ => return None,
    })
}

const THOUGHT: RestMembers = &[Is(&["type", "text"])];

/// Parts of a message; others are reported by their type.
fn part(part: &Node<'_>) -> Option<RestMembers> {
    Some(match part.str_of("type") {
        "output_text" => &[Is(&["type", "text", "logprobs"]), Each("annotations", annotation)],
        "refusal" => &[Is(&["type", "refusal"])],
        "reasoning_text" | "summary_text" => THOUGHT,
        _ => return None,
    })
}

/// A page; what else is cited is reported as citations.
fn annotation(note: &Node<'_>) -> Option<RestMembers> {
    let known: RestMembers = &[Is(&["type", "url", "title", "start_index", "end_index"])];
    (note.str_of("type") == "url_citation" && note.text_of("url").is_some()).then_some(known)
}

/// Where an event belongs: numbers and ids that are counted anew.
const PLACE: &[&str] =
    &["sequence_number", "item_id", "output_index", "content_index", "summary_index", "annotation_index"];

/// The members of a streamed event. What ends a part or an item says again what its pieces said;
/// where there were none, the reader takes it from there. `None`: an event that nobody knows.
pub(super) fn event(event: &Node<'_>) -> Option<RestMembers> {
    let word = event.str_of("type");
    Some(match word {
        "response.created" | "response.in_progress" | "response.queued" => {
            &[Is(&["type"]), Apart(PLACE), In("response", RESPONSE)]
        }
        "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
            &[Is(&["type"]), Apart(PLACE), In("response", RESPONSE)]
        }
        "response.output_item.added" | "response.output_item.done" => {
            &[Is(&["type"]), Apart(PLACE), Each("item", item)]
        }
        "response.content_part.added" | "response.content_part.done" => {
            &[Is(&["type"]), Apart(PLACE), Each("part", part)]
        }
        "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done" => {
            &[Is(&["type"]), Apart(PLACE), Recast(&Each("part", |_| Some(THOUGHT)))]
        }
        "response.output_text.delta" => &[Is(&["type", "delta", "logprobs"]), Apart(PLACE), Apart(&["obfuscation"])],
        "response.refusal.delta"
        | "response.reasoning_text.delta"
        | "response.reasoning_summary_text.delta"
        | "response.function_call_arguments.delta"
        | "response.custom_tool_call_input.delta" => &[Is(&["type", "delta"]), Apart(PLACE), Apart(&["obfuscation"])],
        "response.reasoning.delta" => &[Whole, Is(&["type", "delta"]), Apart(PLACE), Apart(&["obfuscation"])],
        "response.output_text.annotation.added" => &[Is(&["type"]), Apart(PLACE), Each("annotation", annotation)],
        "response.output_text.done" => &[Is(&["type", "text"]), Apart(PLACE), Apart(&["logprobs"])],
        "response.refusal.done" => &[Is(&["type", "refusal"]), Apart(PLACE)],
        "response.reasoning_text.done" | "response.reasoning_summary_text.done" => {
            &[Is(&["type"]), Apart(PLACE), Apart(&["text"])]
        }
        "response.function_call_arguments.done" => &[Is(&["type", "arguments", "name"]), Apart(PLACE)],
        "response.custom_tool_call_input.done" => &[Is(&["type", "input"]), Apart(PLACE)],
        // Steps of a tool that runs at the provider, whose item comes whole when it is done.
        _ if word.starts_with("response.") => &[Whole, Is(&["type"]), Apart(PLACE), Apart(STEP)],
        _ => return None,
    })
}

/// What the steps of tools tell on the way, in pieces of what their items hold at the end.
const STEP: &[&str] = &["delta", "code", "arguments", "partial_image_b64", "partial_image_index", "obfuscation"];
