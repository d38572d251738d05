//! Content blocks read as parts.

use crate::dialect::Dialect;
use crate::hub::{Call, CallKind, Media, Origin, Part, Place, Seal, Thought, others, others_in};
use crate::json::Node;
use std::borrow::Cow;

/// A string or a list of blocks.
pub(super) fn content<'a>(node: &Node<'a>) -> Vec<Part<'a>> {
    match node.text() {
        Some(text) if text.is_empty() => Vec::new(),
        Some(text) => vec![Part::text(text.clone())],
        None => node.items().iter().map(block).collect(),
    }
}

fn block<'a>(node: &Node<'a>) -> Part<'a> {
    let kind = node.text_of("type").cloned().unwrap_or_default();
    let cached = node.get("cache_control").is_some();
    let read = match kind.as_ref() {
        "text" => node.text_of("text").map(|text| Part::Text {
            text: text.clone(),
            cached,
            rest: others(node, &["type", "text"]),
        }),
        "image" => media(node, &["type", "source"]).map(Part::Image),
        "document" => media(node, &["type", "source", "title"])
            .map(|media| Part::File(Media { name: node.text_of("title").cloned(), ..media })),
        "tool_use" => Some(Part::Call(Call {
            id: node.text_of("id").cloned().unwrap_or_default(),
            name: node.text_of("name").cloned().unwrap_or_default(),
            namespace: None,
            kind: CallKind::Function,
            args: node.get("input").map_or(Cow::Borrowed("{}"), |input| Cow::Borrowed(input.raw)),
            cached,
            rest: others(node, &["type", "id", "name", "input"]),
        })),
        "tool_result" => Some(Part::Result {
            id: node.text_of("tool_use_id").cloned().unwrap_or_default(),
            name: None,
            parts: node.get("content").map(content).unwrap_or_default(),
            error: node.get("is_error").and_then(Node::bool).unwrap_or(false),
            kind: CallKind::Function,
            cached,
            rest: others(node, &["type", "tool_use_id", "content", "is_error"]),
        }),
        "thinking" => Some(Part::Thought(thinking(
            node.text_of("thinking").cloned().unwrap_or_default(),
            node.text_of("signature").cloned(),
        ))),
        "redacted_thinking" => node.text_of("data").map(|data| Part::Thought(thinking("".into(), Some(data.clone())))),
        _ => None,
    };
    read.unwrap_or_else(|| {
        let words = (kind == "search_result").then(|| search_result(node));
        Part::Foreign { origin: Dialect::Anthropic, what: kind, raw: node.raw, words }
    })
}

/// A thought and whoever sealed it.
pub(super) fn thinking<'a>(text: Cow<'a, str>, signature: Option<Cow<'a, str>>) -> Thought<'a> {
    let seal = signature
        .filter(|signature| !signature.is_empty())
        .map(|signature| Seal::read(Dialect::Anthropic, signature, Cow::Borrowed("")));
    let origin = seal.as_ref().map(|seal| seal.origin);
    Thought {
        summary: origin == Some(Origin::OpenAi) && !text.is_empty(),
        redacted: origin == Some(Origin::Anthropic) && text.is_empty(),
        text,
        seal,
    }
}

/// `known` are the members of the block that are read.
fn media<'a>(node: &Node<'a>, known: &[&str]) -> Option<Media<'a>> {
    let inner = node.get("source")?;
    let mut rest = others(node, known);
    rest.extend(others_in("source", inner, &["type", "media_type", "data", "url", "file_id"]));
    Some(Media { cached: node.get("cache_control").is_some(), rest, ..Media::at(source(inner)?) })
}

fn source<'a>(node: &Node<'a>) -> Option<Place<'a>> {
    let mime = || node.text_of("media_type").cloned().unwrap_or_default();
    match node.str_of("type") {
        "base64" => Some(Place::Data { mime: mime(), base64: node.text_of("data")?.clone() }),
        "url" => Some(Place::Url(node.text_of("url")?.clone())),
        "file" => Some(Place::Id(node.text_of("file_id")?.clone())),
        "text" => Some(Place::Text(node.text_of("data")?.clone())),
        _ => None,
    }
}

/// A search result in words: title, source, text.
fn search_result(node: &Node<'_>) -> String {
    let texts = node.get("content").map_or(&[][..], Node::items).iter().map(|block| block.str_of("text"));
    let head = [node.str_of("title"), node.str_of("source")];
    head.into_iter().chain(texts).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
