//! Turns written as contents of parts.

use super::NO_SIGNATURE;
use crate::anthropic::input;
use crate::hub::{
    Carry, Media, MediaSource, NEXT_TEXT, Part, Role, Seal, SealMaker, Thought, ToolCall, Turn, base64_standard,
    tidy_mime,
};
use std::borrow::Cow;
use std::collections::HashMap;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Node, NodeKind, Object};

/// Seals that wait for the part they are bound to.
const MOST_SEALS: usize = 64;

/// Thoughts that Gemini made, or that are hers to show.
pub(super) fn is_hers(thought: &Thought<'_>) -> bool {
    thought.seal.as_ref().is_some_and(|seal| seal.origin == SealMaker::Gemini)
}

/// `calls` are the ids and names of all calls: a result must name its function.
pub(super) fn write(
    turn: &Turn<'_>,
    calls: &HashMap<String, String>,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
) -> Result<(), Problem> {
    let mut later: Vec<&Media<'_>> = Vec::new();
    let mut content = Object::begin(list.item());
    content.text("role", if turn.role == Role::Assistant { "model" } else { "user" });
    let mut parts = Array::begin(content.key("parts"));
    let mut seals: Vec<&Seal<'_>> = Vec::new();
    let mut signed = false;
    for part in &turn.parts {
        if seals.len() > MOST_SEALS {
            seals.remove(0);
        }
        match part {
            Part::Thought { thought, .. } if thought.text.is_empty() => seals.extend(&thought.seal),
            // The seal belongs to what follows the thought.
            Part::Thought { thought, .. } if thought.seal.as_ref().is_some_and(|seal| !seal.bound.is_empty()) => {
                seals.extend(&thought.seal);
                parts.object(|one| {
                    one.text("text", &thought.text);
                    one.bool("thought", true);
                });
            }
            Part::Call(call) => {
                let at = seals.iter().position(|seal| seal.bound == call.id || seal.bound.is_empty());
                let seal = at.map(|at| seals.remove(at));
                write_call(call, seal, carry.target.gemini3 && !signed, calls, &mut parts);
                signed = true;
            }
            Part::Text { text, .. } => {
                let at = seals.iter().position(|seal| seal.bound == NEXT_TEXT);
                let seal = at.map(|at| seals.remove(at));
                parts.object(|one| {
                    one.text("text", text);
                    signature(one, seal);
                });
            }
            Part::Result { .. } => result(part, calls, &mut parts, carry, &mut later)?,
            other => write_part(other, turn, &mut parts, carry)?,
        }
    }
    for seal in seals.into_iter().filter(|seal| seal.bound == NEXT_TEXT) {
        parts.object(|one| {
            one.text("text", "");
            signature(one, Some(seal));
        });
    }
    parts.end();
    content.end();
    if !later.is_empty() {
        let mut content = Object::begin(list.item());
        content.text("role", "user");
        let mut parts = Array::begin(content.key("parts"));
        for media in later {
            inline(media, turn, &mut parts, carry)?;
        }
        parts.end();
        content.end();
    }
    Ok(())
}

fn signature(one: &mut Object<'_>, seal: Option<&Seal<'_>>) {
    if let Some(seal) = seal {
        one.text("thoughtSignature", &seal.written(Dialect::Gemini));
    }
}

fn write_call(
    call: &ToolCall<'_>,
    seal: Option<&Seal<'_>>,
    wanted: bool,
    calls: &HashMap<String, String>,
    parts: &mut Array<'_>,
) {
    let name = calls.get(call.id.as_ref()).map_or(call.name.as_ref(), |name| name);
    parts.object(|one| {
        one.object("functionCall", |inner| {
            inner.text("id", &call.id);
            inner.text("name", name);
            inner.raw("args", &input(call));
        });
        match seal {
            Some(_) => signature(one, seal),
            None if wanted => one.text("thoughtSignature", NO_SIGNATURE),
            None => {}
        }
    });
}

fn write_part(part: &Part<'_>, turn: &Turn<'_>, parts: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    match part {
        Part::Thought { thought, .. } => parts.object(|one| {
            one.text("text", &thought.text);
            one.bool("thought", true);
            signature(one, thought.seal.as_ref());
        }),
        Part::Refusal { text, .. } => parts.object(|one| one.text("text", text)),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            inline(media, turn, parts, carry)?;
        }
        Part::Foreign { words: Some(words), .. } => parts.object(|one| one.text("text", words)),
        Part::Foreign { what, .. } => {
            return Err(Problem::unsupported(&turn.at, format!("`{what}` is known to another provider only.")));
        }
        _ => {}
    }
    Ok(())
}

fn inline(media: &Media<'_>, turn: &Turn<'_>, parts: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    carry.drop_if("detail", media.detail.as_deref().is_some_and(|detail| detail != "auto"))?;
    carry.drop_file_name(media)?;
    match &media.place {
        MediaSource::Data { mime, base64 } => parts.object(|one| {
            one.object("inlineData", |inner| {
                inner.text("mimeType", tidy_mime(mime));
                inner.text("data", &base64_standard(Cow::Borrowed(base64)));
            });
        }),
        MediaSource::Text(text) => parts.object(|one| one.text("text", text)),
        MediaSource::Url(_) => {
            let text = "The model's provider takes no links: send the data itself.";
            return Err(Problem::unsupported(&turn.at, text));
        }
        MediaSource::Id(_) => {
            return Err(Problem::unsupported(&turn.at, "A file given by its id is known to another provider only."));
        }
    }
    Ok(())
}

fn result<'p, 'a>(
    part: &'p Part<'a>,
    calls: &HashMap<String, String>,
    parts: &mut Array<'_>,
    carry: &mut Carry<'_>,
    later: &mut Vec<&'p Media<'a>>,
) -> Result<(), Problem> {
    let Part::Result { id, name, parts: inner, error, .. } = part else { return Ok(()) };
    let mut text = String::new();
    let mut media = Vec::new();
    for one in inner {
        let piece = match one {
            Part::Text { text, .. } => text.as_ref(),
            Part::File(file @ Media { place: MediaSource::Text(text), .. }) => {
                carry.drop_file_name(file)?;
                text.as_ref()
            }
            Part::Image(one) | Part::File(one) | Part::Audio(one) | Part::Video(one) => {
                media.push(one);
                continue;
            }
            Part::Foreign { words, raw, .. } => words.as_deref().unwrap_or(raw),
            _ => continue,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(piece);
    }
    let named = calls.get(id.as_ref()).map(String::as_str);
    let mut one = Object::begin(parts.item());
    let mut response = Object::begin(one.key("functionResponse"));
    response.text("id", id);
    response.text("name", named.or(name.as_deref()).unwrap_or("tool"));
    let object = Node::read(&text).ok().filter(|node| matches!(node.kind, NodeKind::Map(_)) && !*error);
    match object {
        Some(node) if !node.raw.contains("\"$ref\"") => response.raw("response", node.raw),
        _ => response.object("response", |inner| inner.text(if *error { "error" } else { "output" }, &text)),
    }
    if carry.target.gemini3 {
        if !media.is_empty() {
            let mut list = Array::begin(response.key("parts"));
            let turn = Turn::new(Role::User, Vec::new(), format!("tool result {id}"));
            for one in media {
                inline(one, &turn, &mut list, carry)?;
            }
            list.end();
        }
    } else {
        later.extend(media);
    }
    response.end();
    one.end();
    Ok(())
}
