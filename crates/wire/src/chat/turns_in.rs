//! The messages of a chat request as turns.

use super::ask_in::{call_kind, leftovers};
use crate::dialect::Dialect;
use crate::hub::{Call, CallKind, Media, Origin, Part, Place, Role, Seal, Thought, Turn, place_of_url};
use crate::json::Node;
use crate::problem::Problem;
use std::borrow::Cow;

pub(super) fn read<'a>(messages: Option<&Node<'a>>) -> Result<Vec<Turn<'a>>, Problem> {
    let mut turns = Vec::new();
    // A legacy function result names its function, not its call.
    let mut last_call: Option<Cow<'a, str>> = None;
    for (at, message) in messages.map_or(&[][..], Node::items).iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = match message.str_of("role") {
            "system" => Role::System,
            "developer" => Role::Developer,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            kind @ ("tool" | "function") => {
                let id = match kind {
                    "tool" => message.text_of("tool_call_id").cloned(),
                    _ => last_call.take(),
                };
                let Some(id) = id else {
                    return Err(Problem::missing(&format!("{place}.tool_call_id")));
                };
                turns.push(Turn::new(Role::User, vec![result(message, id)], place));
                continue;
            }
            other => {
                let text = format!("`{other}` is not a role.");
                return Err(Problem::new(crate::error::Code::InvalidParameter, &format!("{place}.role"), text));
            }
        };
        let parts = if role == Role::Assistant { assistant(message, at) } else { content(message.get("content")) };
        if let Some(Part::Call(call)) = parts.last() {
            last_call = Some(call.id.clone());
        }
        let mut turn = Turn::new(role, parts, place);
        turn.name = message.text_of("name").cloned();
        turn.phase = message.text_of("phase").cloned();
        turns.push(turn);
    }
    Ok(turns)
}

fn marked(node: &Node<'_>) -> bool {
    node.get("cache_control").is_some() || node.get("prompt_cache_breakpoint").is_some()
}

fn content<'a>(node: Option<&Node<'a>>) -> Vec<Part<'a>> {
    let Some(node) = node else { return Vec::new() };
    match node.text() {
        Some(text) if text.is_empty() => Vec::new(),
        Some(text) => vec![Part::text(text.clone())],
        None => node.items().iter().map(part).collect(),
    }
}

fn part<'a>(node: &Node<'a>) -> Part<'a> {
    let kind = node.text_of("type").cloned().unwrap_or_default();
    let read = match kind.as_ref() {
        "text" => node.text_of("text").map(|text| Part::Text {
            text: text.clone(),
            cached: marked(node),
            rest: leftovers(node, &["type", "text"]),
        }),
        "refusal" => node.text_of("refusal").map(|text| Part::Refusal(text.clone())),
        "image_url" => node.get("image_url").and_then(image).map(|media| Part::Image(seen(media, node))),
        "video_url" => node.get("video_url").and_then(image).map(|media| Part::Video(seen(media, node))),
        "input_audio" => node.get("input_audio").map(|audio| {
            let format = audio.str_of("format");
            let mime = if format == "mp3" { "audio/mpeg".to_owned() } else { format!("audio/{format}") };
            let base64 = audio.text_of("data").cloned().unwrap_or_default();
            Part::Audio(seen(Media::at(Place::Data { mime: mime.into(), base64 }), node))
        }),
        "file" => node.get("file").and_then(file).map(|media| Part::File(seen(media, node))),
        _ => None,
    };
    read.unwrap_or(Part::Foreign { origin: Dialect::Chat, what: kind, raw: node.raw, words: None })
}

fn seen<'a>(media: Media<'a>, node: &Node<'a>) -> Media<'a> {
    let rest = leftovers(node, &["type", "image_url", "video_url", "input_audio", "file"]);
    Media { cached: marked(node), rest, ..media }
}

/// `{url, detail}` or the link itself.
fn image<'a>(node: &Node<'a>) -> Option<Media<'a>> {
    let url = node.text().or_else(|| node.text_of("url"))?;
    Some(Media { detail: node.text_of("detail").cloned(), ..Media::at(place_of_url(url)) })
}

fn file<'a>(node: &Node<'a>) -> Option<Media<'a>> {
    let place = match (node.text_of("file_data"), node.text_of("file_id")) {
        (Some(data), _) => match place_of_url(data) {
            // Bare base64 is what some clients send; only documents are sent so.
            Place::Url(data) => Place::Data { mime: "application/pdf".into(), base64: data },
            place => place,
        },
        (None, Some(id)) => Place::Id(id.clone()),
        (None, None) => return None,
    };
    Some(Media { name: node.text_of("filename").cloned(), ..Media::at(place) })
}

fn assistant<'a>(message: &Node<'a>, at: usize) -> Vec<Part<'a>> {
    let mut parts = thoughts(message);
    parts.extend(content(message.get("content")));
    if let Some(text) = message.text_of("refusal").filter(|text| !text.is_empty()) {
        parts.push(Part::Refusal(text.clone()));
    }
    if let Some(audio) = message.get("audio") {
        parts.push(Part::Foreign { origin: Dialect::Chat, what: "audio".into(), raw: audio.raw, words: None });
    }
    for call in message.get("tool_calls").map_or(&[][..], Node::items) {
        let kind = call_kind(call);
        let inner = call.get(if kind == CallKind::Custom { "custom" } else { "function" });
        let id = call.text_of("id").cloned().unwrap_or_default();
        let rest = leftovers(call, &["id", "type", "function", "custom", "index"]);
        parts.push(Part::Call(read_call(inner, id, kind, rest)));
    }
    if let Some(call) = message.get("function_call") {
        parts.push(Part::Call(read_call(
            Some(call),
            format!("function_call_{at}").into(),
            CallKind::Function,
            Vec::new(),
        )));
    }
    parts
}

fn read_call<'a>(
    inner: Option<&Node<'a>>,
    id: Cow<'a, str>,
    kind: CallKind,
    rest: Vec<crate::hub::Member<'a>>,
) -> Call<'a> {
    let args = inner.and_then(|inner| inner.get(if kind == CallKind::Custom { "input" } else { "arguments" }));
    Call {
        id,
        name: inner.and_then(|inner| inner.text_of("name")).cloned().unwrap_or_default(),
        namespace: None,
        kind,
        args: args.map_or(Cow::Borrowed(""), arguments),
        cached: false,
        rest,
    }
}

/// Arguments are text; some clients and servers send the object itself.
pub(super) fn arguments<'a>(node: &Node<'a>) -> Cow<'a, str> {
    match node.text() {
        Some(text) => text.clone(),
        None if node.is_null() => Cow::Borrowed(""),
        None => Cow::Borrowed(node.raw),
    }
}

fn result<'a>(message: &Node<'a>, id: Cow<'a, str>) -> Part<'a> {
    Part::Result {
        id,
        name: message.text_of("name").cloned(),
        parts: content(message.get("content")),
        error: message.get("is_error").and_then(Node::bool).unwrap_or(false),
        kind: CallKind::Function,
        cached: message.get("cache_control").is_some(),
        rest: leftovers(message, &["role", "tool_call_id", "name", "content", "is_error", "cache_control"]),
    }
}

/// `reasoning_details` where they are; else the plain text.
fn thoughts<'a>(message: &Node<'a>) -> Vec<Part<'a>> {
    let mut thoughts: Vec<Thought<'a>> = Vec::new();
    let mut index = None;
    for detail in message.get("reasoning_details").map_or(&[][..], Node::items) {
        read_detail(detail, &mut thoughts, &mut index);
    }
    if thoughts.is_empty()
        && let Some(text) = message.text_of("reasoning_content").or_else(|| message.text_of("reasoning"))
        && !text.is_empty()
    {
        thoughts.push(Thought { text: text.clone(), ..Thought::default() });
    }
    thoughts.into_iter().map(Part::Thought).collect()
}

/// One entry; a seal of OpenAI's belongs to the summary before it.
pub(super) fn read_detail<'a>(detail: &Node<'a>, thoughts: &mut Vec<Thought<'a>>, last_index: &mut Option<u64>) {
    let index = detail.get("index").and_then(Node::number);
    let same_thought = &(index.is_some() && index == *last_index);
    *last_index = index;
    let origin = Origin::of_format(detail.str_of("format"));
    let bound = || detail.text_of("id").cloned().unwrap_or_default();
    match detail.str_of("type") {
        kind @ ("reasoning.text" | "reasoning.summary") => {
            let summary = kind == "reasoning.summary";
            let text = detail.text_of(if summary { "summary" } else { "text" }).cloned().unwrap_or_default();
            let seal = detail.text_of("signature").map(|data| Seal::new(origin, data.clone(), bound()));
            match thoughts.last_mut() {
                // Pieces of a stream, put together by a client that only collects them.
                Some(last) if last.seal.is_none() && last.summary == summary && !last.redacted && *same_thought => {
                    last.text.to_mut().push_str(&text);
                    last.seal = seal;
                }
                _ => thoughts.push(Thought { text, summary, seal, redacted: false }),
            }
        }
        "reasoning.encrypted" => {
            let Some(data) = detail.text_of("data") else { return };
            let seal = Some(Seal::new(origin, data.clone(), bound()));
            match thoughts.last_mut() {
                Some(last) if origin == Origin::OpenAi && last.summary && last.seal.is_none() => last.seal = seal,
                _ => thoughts.push(Thought { seal, redacted: origin == Origin::Anthropic, ..Thought::default() }),
            }
        }
        _ => {}
    }
}
