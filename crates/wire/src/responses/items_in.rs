//! Input items read as turns: each item is a turn of its own, neighbours are joined where a dialect wants that.

use super::item::SIGNED;
use crate::dialect::Dialect;
use crate::hub::{Call, CallKind, Media, Origin, Part, Place, Role, Seal, Thought, Turn, others, place_of_url};
use crate::json::Node;
use crate::problem::Problem;
use std::borrow::Cow;

pub(super) fn read<'a>(item: &Node<'a>, at: usize) -> Result<Option<Turn<'a>>, Problem> {
    let place = format!("input[{at}]");
    let word = item.text_of("type").cloned().unwrap_or_default();
    let id = || item.text_of("call_id").cloned().ok_or_else(|| Problem::missing(&format!("{place}.call_id")));
    let assistant = |part| Turn::new(Role::Assistant, vec![part], place.clone());
    Ok(Some(match word.as_ref() {
        "message" => return message(item, place).map(Some),
        "" if item.get("role").is_some() => return message(item, place).map(Some),
        "" | "item_reference" => {
            let text = "A reference to an item must be resolved before the request is translated.";
            return Err(Problem::unsupported(&place, text));
        }
        "function_call" | "custom_tool_call" => {
            let custom = word == "custom_tool_call";
            let args = item.text_of(if custom { "input" } else { "arguments" }).cloned();
            assistant(Part::Call(Call {
                id: id()?,
                name: item.text_of("name").cloned().unwrap_or_default(),
                namespace: item.text_of("namespace").cloned(),
                kind: if custom { CallKind::Custom } else { CallKind::Function },
                args: args.unwrap_or_default(),
                cached: false,
                // The id and state of an item mean nothing to another provider.
                rest: others(item, &["type", "call_id", "name", "namespace", "arguments", "input", "id", "status"]),
            }))
        }
        "function_call_output" | "custom_tool_call_output" => {
            let result = Part::Result {
                id: id()?,
                name: None,
                parts: item.get("output").map(content).unwrap_or_default(),
                error: item.str_of("status") == "incomplete",
                kind: if word == "custom_tool_call_output" { CallKind::Custom } else { CallKind::Function },
                cached: false,
                rest: others(item, &["type", "call_id", "output", "id", "status"]),
            };
            Turn::new(Role::User, vec![result], place)
        }
        "reasoning" => assistant(Part::Thought(thought(item))),
        _ => assistant(Part::Foreign { origin: Dialect::Responses, what: word, raw: item.raw, words: None }),
    }))
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
    let seal = item.text_of("encrypted_content").map(|data| Seal::read(Dialect::Responses, data.clone(), bound));
    if let Some(seal) = seal.as_ref().filter(|seal| seal.origin == Origin::Anthropic)
        && let Some(signed) = seal.bound.strip_prefix(SIGNED)
    {
        let text = Cow::Owned(signed.to_owned());
        let seal = Some(Seal::new(seal.origin, seal.data.clone(), ""));
        return Thought { text, summary: false, seal, redacted: false };
    }
    let redacted = text.is_empty() && seal.as_ref().is_some_and(|seal| seal.origin == Origin::Anthropic);
    Thought { summary: summary && !text.is_empty(), text: Cow::Owned(text), seal, redacted }
}

fn message<'a>(item: &Node<'a>, place: String) -> Result<Turn<'a>, Problem> {
    let role = match item.str_of("role") {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        "developer" => Role::Developer,
        other => {
            let text = format!("`{other}` is not a role.");
            return Err(Problem::new(crate::error::Code::InvalidParameter, &format!("{place}.role"), text));
        }
    };
    let parts = item.get("content").map(content).unwrap_or_default();
    let mut turn = Turn::new(role, parts, place);
    turn.phase = item.text_of("phase").cloned();
    Ok(turn)
}

/// A text or a list of content parts.
pub(super) fn content<'a>(node: &Node<'a>) -> Vec<Part<'a>> {
    match node.text() {
        Some(text) if text.is_empty() => Vec::new(),
        Some(text) => vec![Part::text(text.clone())],
        None => node.items().iter().map(part).collect(),
    }
}

fn part<'a>(node: &Node<'a>) -> Part<'a> {
    let word = node.text_of("type").cloned().unwrap_or_default();
    let cached = node.get("prompt_cache_breakpoint").is_some();
    let read = match word.as_ref() {
        "input_text" | "output_text" | "text" | "summary_text" => node.text_of("text").map(|text| Part::Text {
            text: text.clone(),
            cached,
            rest: others(node, &["type", "text"])
                .into_iter()
                .filter(|member| !(["annotations", "logprobs"].contains(&member.name.as_ref()) && member.raw == "[]"))
                .collect(),
        }),
        "refusal" => node.text_of("refusal").map(|text| Part::Refusal(text.clone())),
        "input_image" => {
            let place = match (node.text_of("image_url"), node.text_of("file_id")) {
                (Some(url), _) => Some(place_of_url(url)),
                (None, Some(id)) => Some(Place::Id(id.clone())),
                (None, None) => None,
            };
            place.map(|place| {
                Part::Image(Media {
                    detail: node.text_of("detail").cloned(),
                    cached,
                    rest: others(node, &["type", "image_url", "file_id", "detail"]),
                    ..Media::at(place)
                })
            })
        }
        "input_file" => file(node).map(|place| {
            Part::File(Media {
                name: node.text_of("filename").cloned(),
                cached,
                rest: others(node, &["type", "file_data", "file_id", "file_url", "filename"]),
                ..Media::at(place)
            })
        }),
        "input_audio" => node.get("input_audio").map(|audio| {
            let format = audio.str_of("format");
            let mime = if format == "mp3" { "audio/mpeg".to_owned() } else { format!("audio/{format}") };
            let base64 = audio.text_of("data").cloned().unwrap_or_default();
            Part::Audio(Media::at(Place::Data { mime: mime.into(), base64 }))
        }),
        "input_video" => node.text_of("video_url").map(|url| Part::Video(Media::at(place_of_url(url)))),
        _ => None,
    };
    read.unwrap_or(Part::Foreign { origin: Dialect::Responses, what: word, raw: node.raw, words: None })
}

fn file<'a>(node: &Node<'a>) -> Option<Place<'a>> {
    if let Some(data) = node.text_of("file_data") {
        return Some(match place_of_url(data) {
            Place::Url(data) => Place::Data { mime: "application/pdf".into(), base64: data },
            place => place,
        });
    }
    if let Some(url) = node.text_of("file_url") {
        return Some(Place::Url(url.clone()));
    }
    node.text_of("file_id").map(|id| Place::Id(id.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::item;
    use super::*;

    /// Vercel's `ai` sends a reasoning item back without the text that it was not shown in a summary.
    #[test]
    fn a_signature_brings_its_text_along() {
        for (text, redacted) in [("Hm. \u{2028}\"so\"", false), ("", false), ("", true)] {
            let seal = Some(Seal::new(Origin::Anthropic, "c2ln", ""));
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
