//! The messages of a chat request as turns.

use super::ask_in::call_kind;
use super::details::bound;
use crate::hub::{
    CallKind, Fields, Media, MediaSource, Member, Part, Role, Seal, SealMaker, Thought, ToolCall, Turn, place_of_url,
};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

pub(super) fn read<'a>(messages: Option<&Node<'a>>) -> Result<Vec<Turn<'a>>, Problem> {
    let mut turns = Vec::new();
    // A legacy function result names its function, not its call.
    let mut last_call: Option<Cow<'a, str>> = None;
    for (at, message) in messages.map_or(&[][..], Node::items).iter().enumerate() {
        let place = format!("messages[{at}]");
        let mut fields = Fields::of(message);
        let word = fields.text("role").unwrap_or_default();
        let role = match word.as_ref() {
            "system" => Role::System,
            "developer" => Role::Developer,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            kind @ ("tool" | "function") => {
                let id = if kind == "tool" { fields.text("tool_call_id") } else { last_call.take() };
                let Some(id) = id else {
                    return Err(Problem::missing(&format!("{place}.tool_call_id")));
                };
                turns.push(Turn::new(Role::User, vec![result(fields, id)], place));
                continue;
            }
            other => {
                let text = format!("`{other}` is not a role.");
                return Err(Problem::new(tollgate_wire::error::Code::InvalidParameter, &format!("{place}.role"), text));
            }
        };
        let said = fields.content("content");
        let mut turn = Turn::new(role, Vec::new(), place);
        if role == Role::Assistant {
            assistant(&mut fields, said, at, &mut turn)?;
        } else {
            turn.parts = content(said);
        }
        if let Some(Part::Call(call)) = turn.parts.last() {
            last_call = Some(call.id.clone());
        }
        turn.name = fields.text("name");
        turn.phase = fields.text("phase");
        fields.rest_at("", &mut turn.rest);
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
    let mut fields = Fields::of(node);
    let kind = fields.text("type").unwrap_or_default();
    let read = match kind.as_ref() {
        "text" => fields.text("text").map(|text| Part::Text { text, cached: marked(node), rest: fields.rest() }),
        "refusal" => fields.text("refusal").map(|text| Part::Refusal { text, rest: fields.rest() }),
        "image_url" => seen(fields, "image_url", node, image).map(Part::Image),
        "video_url" => seen(fields, "video_url", node, image).map(Part::Video),
        "input_audio" => seen(fields, "input_audio", node, sound).map(Part::Audio),
        "file" => seen(fields, "file", node, file).map(Part::File),
        _ => None,
    };
    read.unwrap_or(Part::foreign(Dialect::Chat, kind, node.raw))
}

/// A picture, sound, clip or file, with what is left of its part and of the object in it.
fn seen<'n, 'a>(
    mut fields: Fields<'n, 'a>,
    key: &'static str,
    node: &Node<'a>,
    read: fn(&'n Node<'a>, &mut Fields<'n, 'a>) -> Option<Media<'a>>,
) -> Option<Media<'a>> {
    let inner = fields.take_if(key, |node| Some(node).filter(|node| node.is_map() || node.text().is_some()))?;
    let mut more = Fields::of(inner);
    let mut media = read(inner, &mut more)?;
    media.cached = marked(node);
    media.rest = fields.rest();
    more.rest_at(key, &mut media.rest);
    Some(media)
}

/// `{url, detail}` or the link itself.
fn image<'n, 'a>(node: &'n Node<'a>, fields: &mut Fields<'n, 'a>) -> Option<Media<'a>> {
    let url = node.text().cloned().or_else(|| fields.text("url"))?;
    Some(Media { detail: fields.text("detail"), ..Media::at(place_of_url(&url)) })
}

fn sound<'n, 'a>(node: &'n Node<'a>, fields: &mut Fields<'n, 'a>) -> Option<Media<'a>> {
    if !node.is_map() {
        return None;
    }
    let format = fields.filled("format");
    let mime = if format == "mp3" { "audio/mpeg".to_owned() } else { format!("audio/{format}") };
    let base64 = fields.filled("data");
    Some(Media::at(MediaSource::Data { mime: mime.into(), base64 }))
}

fn file<'n, 'a>(_: &'n Node<'a>, fields: &mut Fields<'n, 'a>) -> Option<Media<'a>> {
    let place = match fields.text("file_data") {
        Some(data) => match place_of_url(&data) {
            // Bare base64 is what some clients send; only documents are sent so.
            MediaSource::Url(base64) => MediaSource::Data { mime: "application/pdf".into(), base64 },
            place => place,
        },
        None => MediaSource::Id(fields.text("file_id")?),
    };
    Some(Media { name: fields.text("filename"), ..Media::at(place) })
}

fn assistant<'a>(
    fields: &mut Fields<'_, 'a>,
    said: Option<&Node<'a>>,
    at: usize,
    turn: &mut Turn<'a>,
) -> Result<(), Problem> {
    thoughts(fields, turn);
    turn.parts.extend(content(said));
    let refusal = fields.take_if("refusal", |node| node.text().filter(|text| !text.is_empty()).cloned());
    turn.parts.extend(refusal.map(|text| Part::Refusal { text, rest: Vec::new() }));
    for (number, node) in fields.list("tool_calls").unwrap_or_default().iter().enumerate() {
        let mut outer = Fields::of(node);
        let kind = call_kind(node);
        let word = if kind == CallKind::Custom { "custom" } else { "function" };
        let Some(inner) = outer.take_if(word, |node| Some(node).filter(|node| node.is_map())) else {
            return Err(Problem::wrong(&format!("{}.tool_calls[{number}].{word}", turn.at), "an object"));
        };
        outer.word("type", word);
        let id = outer.filled("id");
        turn.parts.push(Part::Call(read_call(Fields::of(inner), id, kind, outer.rest())));
    }
    if let Some(node) = fields.map("function_call") {
        let id = format!("function_call_{at}").into();
        turn.parts.push(Part::Call(read_call(Fields::of(node), id, CallKind::Function, Vec::new())));
    }
    Ok(())
}

fn read_call<'a>(
    mut inner: Fields<'_, 'a>,
    id: Cow<'a, str>,
    kind: CallKind,
    mut rest: Vec<Member<'a>>,
) -> ToolCall<'a> {
    let key = if kind == CallKind::Custom { "input" } else { "arguments" };
    let args = inner.see(key).map_or(Cow::Borrowed(""), arguments);
    inner.filled(key);
    let name = inner.filled("name");
    inner.rest_at("function", &mut rest);
    ToolCall { id, name, namespace: None, kind, args, cached: false, rest }
}

/// Arguments are text; some clients and servers send the object itself.
pub(super) fn arguments<'a>(node: &Node<'a>) -> Cow<'a, str> {
    match node.text() {
        Some(text) => text.clone(),
        None if node.is_null() => Cow::Borrowed(""),
        None => Cow::Borrowed(node.raw),
    }
}

fn result<'a>(mut fields: Fields<'_, 'a>, id: Cow<'a, str>) -> Part<'a> {
    let said = fields.content("content");
    Part::Result {
        id,
        name: fields.text("name"),
        parts: content(said),
        error: fields.on("is_error"),
        kind: CallKind::Function,
        cached: fields.see("cache_control").is_some(),
        rest: fields.rest(),
    }
}

/// What nobody knows of a piece of reasoning: members, or the kind of it.
fn left_of_detail<'a>(detail: &Node<'a>, rest: &mut Vec<Member<'a>>) {
    let place = "reasoning_details";
    let mut fields = Fields::of(detail);
    let kind = fields.text("type").unwrap_or_default();
    if !["reasoning.text", "reasoning.summary", "reasoning.encrypted"].contains(&kind.as_ref()) {
        rest.push(Member { place, name: kind, raw: detail.raw });
        return;
    }
    for name in ["text", "summary", "data", "signature", "format", "id"] {
        fields.text(name);
    }
    fields.number("index");
    fields.rest_at(place, rest);
}

/// `reasoning_details` where they are; else the plain text. The members stay with the message as
/// they were written.
fn thoughts<'a>(fields: &Fields<'_, 'a>, turn: &mut Turn<'a>) {
    let mut thoughts: Vec<Thought<'a>> = Vec::new();
    let mut index = None;
    for detail in fields.see("reasoning_details").map_or(&[][..], Node::items) {
        read_detail(detail, &mut thoughts, &mut index);
        left_of_detail(detail, &mut turn.rest);
    }
    let text = |name: &str| fields.see(name).and_then(Node::text).filter(|text| !text.is_empty());
    if thoughts.is_empty()
        && let Some(text) = text("reasoning_content").or_else(|| text("reasoning"))
    {
        thoughts.push(Thought { text: text.clone(), ..Thought::default() });
    }
    turn.parts.extend(thoughts.into_iter().map(Part::thought));
}

/// One entry; a seal of OpenAI's belongs to the summary before it.
pub(super) fn read_detail<'a>(detail: &Node<'a>, thoughts: &mut Vec<Thought<'a>>, last_index: &mut Option<u64>) {
    let index = detail.get("index").and_then(Node::number);
    let same_thought = &(index.is_some() && index == *last_index);
    *last_index = index;
    let origin = SealMaker::of_format(detail.str_of("format"));
    let bound = || bound(detail);
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
                Some(last) if origin == SealMaker::OpenAi && last.summary && last.seal.is_none() => last.seal = seal,
                _ => thoughts.push(Thought { seal, redacted: origin == SealMaker::Anthropic, ..Thought::default() }),
            }
        }
        _ => {}
    }
}
