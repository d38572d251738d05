//! Input items read as turns: each item is a turn of its own, neighbours are joined where a dialect
//! wants that.

use crate::hub::{
    CallKind, Fields, Media, MediaSource, Member, Part, Role, Seal, SealMaker, Thought, ToolCall, Turn, others,
    place_of_url,
};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

pub(super) fn read<'a>(item: &Node<'a>, at: usize) -> Result<Turn<'a>, Problem> {
    let place = format!("input[{at}]");
    let fields = Fields::of(item);
    let word = item.text_of("type").cloned().unwrap_or_default();
    // The kind of a message may be left out; that of other items is in what they are.
    let part = match word.as_ref() {
        "message" => return message(fields, place),
        "" if item.get("role").is_some() => return message(fields, place),
        "" | "item_reference" => {
            let text = "A reference to an item must be resolved before the request is translated.";
            return Err(Problem::unsupported(&place, text));
        }
        "function_call" | "custom_tool_call" => Part::Call(call(fields, &word, &place)?),
        "function_call_output" | "custom_tool_call_output" => result(fields, &word, &place)?,
        "reasoning" => Part::Thought { thought: thought(item), rest: left_of_thought(item) },
        _ => Part::foreign(Dialect::Responses, word, item.raw),
    };
    let role = if matches!(part, Part::Result { .. }) { Role::User } else { Role::Assistant };
    Ok(Turn::new(role, vec![part], place))
}

fn id<'a>(fields: &mut Fields<'_, 'a>, place: &str) -> Result<Cow<'a, str>, Problem> {
    fields.text("call_id").ok_or_else(|| Problem::missing(&format!("{place}.call_id")))
}

fn call<'a>(mut fields: Fields<'_, 'a>, word: &str, place: &str) -> Result<ToolCall<'a>, Problem> {
    let custom = word == "custom_tool_call";
    fields.take("type");
    Ok(ToolCall {
        id: id(&mut fields, place)?,
        name: fields.filled("name"),
        namespace: fields.text("namespace"),
        kind: if custom { CallKind::Custom } else { CallKind::Function },
        args: fields.filled(if custom { "input" } else { "arguments" }),
        cached: false,
        rest: fields.rest(),
    })
}

fn result<'a>(mut fields: Fields<'_, 'a>, word: &str, place: &str) -> Result<Part<'a>, Problem> {
    fields.take("type");
    let id = id(&mut fields, place)?;
    let said = fields.content("output");
    Ok(Part::Result {
        id,
        name: None,
        parts: said.map(|node| content(node, false)).unwrap_or_default(),
        error: fields.see("status").and_then(Node::text).is_some_and(|status| status == "incomplete"),
        kind: if word == "custom_tool_call_output" { CallKind::Custom } else { CallKind::Function },
        cached: false,
        rest: fields.rest(),
    })
}

/// What nobody knows of a reasoning item and its parts.
fn left_of_thought<'a>(item: &Node<'a>) -> Vec<Member<'a>> {
    let mut rest = others(item, &["type", "id", "summary", "content", "encrypted_content", "status"]);
    for (place, key) in [("reasoning.summary", "summary"), ("reasoning.content", "content")] {
        for part in item.get(key).map_or(&[][..], Node::items) {
            rest.extend(others(part, &["type", "text"]).into_iter().map(|member| Member { place, ..member }));
        }
    }
    rest
}

/// A reasoning item: its summary, or the thought itself where that is shown.
pub(super) fn thought<'a>(item: &Node<'a>) -> Thought<'a> {
    let join = |name: &str| {
        let texts: Vec<&str> =
            item.get(name).map_or(&[][..], Node::items).iter().map(|part| part.str_of("text")).collect();
        texts.join("\n\n")
    };
    let raw = join("content");
    let summary = raw.is_empty();
    let text = if summary { join("summary") } else { raw };
    let bound = item.text_of("id").cloned().unwrap_or_default();
    let sealed = item.text_of("encrypted_content");
    let mut seal = sealed.and_then(|data| Seal::read_any(Dialect::Responses, data.clone(), bound));
    if let Some(text) = seal.as_mut().and_then(Seal::take_signed) {
        return Thought { text: Cow::Owned(text), summary: false, seal, redacted: false };
    }
    let redacted = text.is_empty() && seal.as_ref().is_some_and(|seal| seal.origin == SealMaker::Anthropic);
    Thought { summary: summary && !text.is_empty(), text: Cow::Owned(text), seal, redacted }
}

fn message<'a>(mut fields: Fields<'_, 'a>, place: String) -> Result<Turn<'a>, Problem> {
    let word = fields.text("role").unwrap_or_default();
    let role = match word.as_ref() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        "developer" => Role::Developer,
        other => {
            let text = format!("`{other}` is not a role.");
            return Err(Problem::new(tollgate_wire::error::Code::InvalidParameter, &format!("{place}.role"), text));
        }
    };
    let said = fields.content("content");
    let parts = said.map(|node| content(node, role == Role::Assistant)).unwrap_or_default();
    let phase = fields.text("phase");
    fields.word("type", "message");
    Ok(Turn { phase, rest: fields.rest(), ..Turn::new(role, parts, place) })
}

/// A text or a list of content parts.
fn content<'a>(node: &Node<'a>, assistant: bool) -> Vec<Part<'a>> {
    match node.text() {
        Some(text) if text.is_empty() => Vec::new(),
        Some(text) => vec![Part::text(text.clone())],
        None => node.items().iter().map(|node| part(node, assistant)).collect(),
    }
}

fn part<'a>(node: &Node<'a>, assistant: bool) -> Part<'a> {
    let mut fields = Fields::of(node);
    let word = node.text_of("type").cloned().unwrap_or_default();
    let cached = fields.see("prompt_cache_breakpoint").is_some();
    let read = match word.as_ref() {
        "input_text" | "output_text" | "text" | "summary_text" => fields.text("text").map(|text| {
            // An unusual word for it stays with the part.
            fields.word("type", super::text_kind(assistant));
            Part::Text { text, cached, rest: fields.rest() }
        }),
        "refusal" => fields.text("refusal").map(|text| {
            fields.take("type");
            Part::Refusal { text, rest: fields.rest() }
        }),
        "input_image" => match fields.text("image_url") {
            Some(url) => Some(place_of_url(&url)),
            None => fields.text("file_id").map(MediaSource::Id),
        }
        .map(|place| {
            let detail = fields.text("detail");
            Part::Image(Media { detail, ..media(fields, place, cached) })
        }),
        "input_file" => file(&mut fields).map(|place| {
            let name = fields.text("filename");
            Part::File(Media { name, ..media(fields, place, cached) })
        }),
        "input_audio" => fields.map("input_audio").map(|audio| {
            let mut inner = Fields::of(audio);
            let format = inner.filled("format");
            let mime = if format == "mp3" { "audio/mpeg".to_owned() } else { format!("audio/{format}") };
            let place = MediaSource::Data { mime: mime.into(), base64: inner.filled("data") };
            let mut media = media(fields, place, cached);
            inner.rest_at("input_audio", &mut media.rest);
            Part::Audio(media)
        }),
        "input_video" => fields.text("video_url").map(|url| Part::Video(media(fields, place_of_url(&url), cached))),
        _ => None,
    };
    read.unwrap_or(Part::foreign(Dialect::Responses, word, node.raw))
}

fn media<'a>(mut fields: Fields<'_, 'a>, place: MediaSource<'a>, cached: bool) -> Media<'a> {
    fields.take("type");
    Media { cached, rest: fields.rest(), ..Media::at(place) }
}

/// Where a file is. Only documents are sent as data without a type.
fn file<'a>(fields: &mut Fields<'_, 'a>) -> Option<MediaSource<'a>> {
    if let Some(data) = fields.text("file_data") {
        return Some(match place_of_url(&data) {
            MediaSource::Url(base64) => MediaSource::Data { mime: "application/pdf".into(), base64 },
            place => place,
        });
    }
    if let Some(url) = fields.text("file_url") {
        return Some(MediaSource::Url(url));
    }
    fields.text("file_id").map(MediaSource::Id)
}

#[cfg(test)]
mod tests {
    use super::super::item;
    use super::*;

    /// Vercel's `ai` sends a reasoning item back without the text that it was not shown in a
    /// summary.
    #[test]
    fn a_signature_brings_its_text_along() {
        for (text, redacted) in [("Hm. \u{2028}\"so\"", false), ("", false), ("", true)] {
            let seal = Some(Seal::new(SealMaker::Anthropic, "c2ln", ""));
            let thought = Thought { text: text.into(), summary: false, seal, redacted };
            let written = item::reasoning("rs_1", &thought);
            let mut stripped: serde_json::Value = serde_json::from_str(&written).expect("JSON");
            if let Some(map) = stripped.as_object_mut() {
                map.remove("content");
            }
            for sent in [written, stripped.to_string()] {
                let node = Node::read(&sent).expect("JSON");
                assert_eq!(super::thought(&node), thought, "{sent}");
            }
        }
    }
}
