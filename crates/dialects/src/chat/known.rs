//! What of a chat completion and of its chunks is read into the hub. All else is reported to a
//! client of another dialect.

use super::events_in::MOST_CHOICES;
use crate::hub::Known::{Apart, Dotted, Each, In, Is, Recast, Usage};
use crate::hub::{MediaSource, RestMembers, place_of_url};
use tollgate_wire::json::Node;
use tollgate_wire::usage::UsageShape;

/// A completion or a chunk. Usage comes as counters, padding only fills the line.
pub(super) const REPLY: RestMembers = &[
    Each("choices", choice),
    Apart(&["id", "object", "created", "model", "obfuscation", "type", "error"]),
    Is(&["service_tier"]),
    Usage("usage", UsageShape::Chat),
];

fn choice(choice: &Node<'_>) -> Option<RestMembers> {
    let near = choice.get("index").and_then(Node::number).unwrap_or(0) < MOST_CHOICES;
    near.then_some(CHOICE)
}

const CHOICE: RestMembers = &[
    Apart(&["index", "native_finish_reason"]),
    Usage("usage", UsageShape::Chat),
    In("delta", MESSAGE),
    In("message", MESSAGE),
    Is(&["finish_reason"]),
    Dotted("logprobs", &[Is(&["content"])]),
    Dotted("stop_details", &[Apart(&["type"]), Is(&["category", "explanation"])]),
];

const MESSAGE: RestMembers = &[
    Apart(&["role", "reasoning"]),
    Is(&["refusal", "audio", "reasoning_content"]),
    // A list of parts is heard as the text and the thoughts in it.
    Recast(&Each("content", part)),
    Each("tool_calls", |_| Some(CALL)),
    Each("annotations", annotation),
    Each("images", image),
    Recast(&In("function_call", &[Is(&["name", "arguments"])])),
    Recast(&Each("reasoning_details", detail)),
];

const CALL: RestMembers = &[
    Is(&["id", "type"]),
    Apart(&["index"]),
    In("function", &[Is(&["name", "arguments"])]),
    In("custom", &[Is(&["name", "input"])]),
];

/// Parts of a content that is a list; others are reported by their type.
fn part(part: &Node<'_>) -> Option<RestMembers> {
    match part.str_of("type") {
        "thinking" => Some(&[Is(&["type"]), Each("thinking", |_| Some(&[Is(&["type", "text"])])), Apart(&["closed"])]),
        _ if part.text_of("text").is_some() || part.text_of("refusal").is_some() => {
            Some(&[Is(&["type", "text", "refusal"])])
        }
        _ => None,
    }
}

/// A page; what else is cited is reported as citations.
fn annotation(note: &Node<'_>) -> Option<RestMembers> {
    let link = note.get("url_citation").unwrap_or(note).text_of("url").is_some();
    let known: RestMembers = &[Is(&["type"]), Apart(&["index"]), In("url_citation", LINK), Is(LINKED)];
    (link && note.str_of("type") == "url_citation").then_some(known)
}

const LINKED: &[&str] = &["url", "title", "start_index", "end_index"];
const LINK: RestMembers = &[Is(LINKED)];

/// A picture that came along; one given by its address is reported.
fn image(image: &Node<'_>) -> Option<RestMembers> {
    let url = image.get("image_url").and_then(|inner| inner.text().or_else(|| inner.text_of("url")))?;
    let known: RestMembers = &[Is(&["type"]), Apart(&["index"]), In("image_url", &[Is(&["url"])])];
    matches!(place_of_url(url), MediaSource::Data { .. }).then_some(known)
}

/// Thoughts with their seals.
fn detail(detail: &Node<'_>) -> Option<RestMembers> {
    let known: RestMembers = &[Is(&["type", "text", "summary", "data", "signature", "format", "id", "index"])];
    detail.str_of("type").starts_with("reasoning.").then_some(known)
}
