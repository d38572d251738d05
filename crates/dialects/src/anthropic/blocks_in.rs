//! Content blocks read as parts.

use crate::hub::{CallKind, Fields, Media, MediaSource, Part, Seal, SealMaker, Thought, ToolCall};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::json::Node;

/// A string or a list of blocks.
pub(super) fn content<'a>(node: &Node<'a>) -> Vec<Part<'a>> {
    match node.text() {
        Some(text) if text.is_empty() => Vec::new(),
        Some(text) => vec![Part::text(text.clone())],
        None => node.items().iter().map(block).collect(),
    }
}

fn block<'a>(node: &Node<'a>) -> Part<'a> {
    let mut fields = Fields::of(node);
    let kind = fields.text("type").unwrap_or_default();
    let cached = fields.see("cache_control").is_some();
    let read = match kind.as_ref() {
        "text" => fields.text("text").map(|text| Part::Text { text, cached, rest: fields.rest() }),
        "image" => media(fields, cached).map(Part::Image),
        "document" => {
            let name = fields.text("title");
            media(fields, cached).map(|media| Part::File(Media { name, ..media }))
        }
        "tool_use" => Some(Part::Call(ToolCall {
            id: fields.filled("id"),
            name: fields.filled("name"),
            namespace: None,
            kind: CallKind::Function,
            args: fields.raw("input").map_or(Cow::Borrowed(""), Cow::Borrowed),
            cached,
            rest: fields.rest(),
        })),
        "tool_result" => {
            let said = fields.content("content");
            Some(Part::Result {
                id: fields.filled("tool_use_id"),
                name: None,
                parts: said.map(content).unwrap_or_default(),
                error: fields.on("is_error"),
                kind: CallKind::Function,
                cached,
                rest: fields.rest(),
            })
        }
        "thinking" => {
            let thought = thinking(fields.text("thinking").unwrap_or_default(), fields.text("signature"));
            Some(Part::Thought { thought, rest: fields.rest() })
        }
        "redacted_thinking" => fields.text("data").map(|data| {
            let thought = thinking("".into(), Some(data));
            Part::Thought { thought, rest: fields.rest() }
        }),
        _ => None,
    };
    read.unwrap_or_else(|| match kind.as_ref() {
        "search_result" => search_result(kind, node),
        "tool_reference" => tool_reference(kind, node),
        _ => Part::foreign(Dialect::Anthropic, kind, node.raw),
    })
}

/// A thought and whoever sealed it.
pub(super) fn thinking<'a>(text: Cow<'a, str>, signature: Option<Cow<'a, str>>) -> Thought<'a> {
    let seal = signature.and_then(|signature| Seal::read_any(Dialect::Anthropic, signature, Cow::Borrowed("")));
    let origin = seal.as_ref().map(|seal| seal.origin);
    Thought {
        summary: origin == Some(SealMaker::OpenAi) && !text.is_empty(),
        redacted: origin == Some(SealMaker::Anthropic) && text.is_empty(),
        text,
        seal,
    }
}

/// A picture or document, with what is left of its block and of its source.
fn media<'a>(mut fields: Fields<'_, 'a>, cached: bool) -> Option<Media<'a>> {
    let mut inner = Fields::of(fields.take("source")?);
    let place = source(&mut inner)?;
    let mut media = Media { cached, rest: fields.rest(), ..Media::at(place) };
    inner.rest_at("source", &mut media.rest);
    Some(media)
}

fn source<'a>(fields: &mut Fields<'_, 'a>) -> Option<MediaSource<'a>> {
    match fields.text("type")?.as_ref() {
        "base64" => {
            let mime = fields.filled("media_type");
            Some(MediaSource::Data { mime, base64: fields.text("data")? })
        }
        "url" => Some(MediaSource::Url(fields.text("url")?)),
        "file" => Some(MediaSource::Id(fields.text("file_id")?)),
        "text" => Some(MediaSource::Text(fields.text("data")?)),
        _ => None,
    }
}

/// A tool that a search for tools has found. It is among the tools of the request, and others have
/// all of those at hand.
fn tool_reference<'a>(what: Cow<'a, str>, node: &Node<'a>) -> Part<'a> {
    let mut fields = Fields::of(node);
    fields.take("type");
    let words = fields.text("tool_name").map(|name| format!("The tool `{name}` is available."));
    Part::Foreign { origin: Dialect::Anthropic, what, raw: node.raw, words, rest: fields.rest() }
}

/// A search result, in words: title, source, text.
fn search_result<'a>(what: Cow<'a, str>, node: &Node<'a>) -> Part<'a> {
    let mut fields = Fields::of(node);
    fields.take("type");
    let mut words = vec![fields.text("title").unwrap_or_default(), fields.text("source").unwrap_or_default()];
    let mut rest = Vec::new();
    for node in fields.list("content").unwrap_or_default() {
        let mut block = Fields::of(node);
        words.extend(block.text("text"));
        block.word("type", "text");
        block.rest_at("search_result.content", &mut rest);
    }
    fields.rest_at("search_result", &mut rest);
    words.retain(|text| !text.is_empty());
    Part::Foreign { origin: Dialect::Anthropic, what, raw: node.raw, words: Some(words.join("\n")), rest }
}
