//! Turns written as messages of content blocks.

use crate::hub::{
    Ask, CallKind, Carry, FREE_TEXT, Media, MediaSource, Part, Role, SealMaker, ToolCall, Turn, base64_standard,
    fitting_id, quoted_text, sent_name, tidy_mime,
};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Node, Object};

/// At most four cache marks are allowed in a request.
#[derive(Default)]
pub(super) struct Marks(u32);

impl Marks {
    /// Writes a mark where one was.
    pub fn put(&mut self, one: &mut Object<'_>, cached: bool) {
        if cached && self.take() {
            one.object("cache_control", |mark| mark.text("type", "ephemeral"));
        }
    }

    /// There were more than that.
    pub fn overflow(&self) -> bool {
        self.0 > 4
    }

    fn take(&mut self) -> bool {
        self.0 += 1;
        self.0 <= 4
    }
}

/// Fits the turns to what Anthropic takes and gives the leading system texts.
pub(super) fn prepare<'a>(ask: &mut Ask<'a>, carry: &mut Carry<'_>) -> Result<Vec<Part<'a>>, Problem> {
    let turns = std::mem::take(&mut ask.turns);
    let leading = turns.iter().take_while(|turn| turn.role.is_system()).count();
    let mut system = Vec::new();
    let mut merged: Vec<Turn<'a>> = Vec::with_capacity(turns.len());
    let roles: Vec<Role> = turns.iter().map(|turn| turn.role).collect();
    for (at, mut turn) in turns.into_iter().enumerate() {
        if at < leading {
            for part in turn.parts {
                part.system_text(&turn.at)?;
                system.push(part);
            }
            continue;
        }
        if turn.role.is_system() {
            // A turn of its own where the model knows that; else a reminder, at its place: in front
            // it would change what it refers to.
            let after_user = roles[at - 1] == Role::User;
            let before_assistant = roles.get(at + 1).is_none_or(|role| *role == Role::Assistant);
            if carry.target.system_turns && after_user && before_assistant {
                turn.role = Role::System;
            } else {
                turn = reminder(turn);
            }
        }
        let given = turn.parts.len();
        let mut parts = Vec::with_capacity(given);
        for part in turn.parts {
            match part {
                Part::Thought { thought, .. } => match &thought.seal {
                    Some(seal) if seal.origin == SealMaker::Anthropic => parts.push(Part::thought(thought)),
                    _ => carry.drop("reasoning")?,
                },
                Part::Text { text, .. } if text.is_empty() => {}
                Part::Foreign { what, words: None, .. } if turn.role == Role::Assistant => carry.drop(&what)?,
                other => parts.push(other),
            }
        }
        if parts.is_empty() {
            if turn.role == Role::Assistant {
                // What stood in it was recorded; a turn without anything is one that nobody misses
                // but is reported.
                carry.drop_if(&turn.at, given == 0)?;
                continue;
            }
            return Err(Problem::new(tollgate_wire::error::Code::InvalidRequest, &turn.at, "The message is empty."));
        }
        turn.parts = parts;
        merged.push(turn);
    }
    ask.turns = merged;
    Ok(system)
}

/// A system text in the middle of a conversation, given to the model as one.
pub(crate) fn reminder(turn: Turn<'_>) -> Turn<'_> {
    let wrap = |part| match part {
        Part::Text { text, cached, rest } => {
            Part::Text { text: format!("<system-reminder>\n{text}\n</system-reminder>").into(), cached, rest }
        }
        other => other,
    };
    Turn { role: Role::User, parts: turn.parts.into_iter().map(wrap).collect(), ..turn }
}

pub(super) fn system(parts: &[Part<'_>], more: Option<&str>, body: &mut Object<'_>, marks: &mut Marks) {
    let texts: Vec<(&str, bool)> = parts
        .iter()
        .filter_map(|part| part.system_text("system").ok())
        .filter(|(text, _)| !text.is_empty())
        .chain(more.map(|text| (text, false)))
        .collect();
    match texts[..] {
        [] => {}
        [(text, false)] => body.text("system", text),
        _ => body.array("system", |list| {
            for (text, cached) in &texts {
                list.object(|block| {
                    block.text("type", "text");
                    block.text("text", text);
                    marks.put(block, *cached);
                });
            }
        }),
    }
}

pub(super) fn message(
    turn: &Turn<'_>,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
    marks: &mut Marks,
) -> Result<(), Problem> {
    let mut message = Object::begin(list.item());
    message.text("role", role(turn.role));
    match &turn.parts[..] {
        [Part::Text { text, cached: false, rest }] if carry.is_plain(rest) => message.text("content", text),
        parts => {
            let mut inner = Array::begin(message.key("content"));
            for part in parts {
                block(part, &turn.at, &mut inner, carry, marks)?;
            }
            inner.end();
        }
    }
    message.end();
    Ok(())
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Assistant => "assistant",
        Role::User => "user",
        Role::System | Role::Developer => "system",
    }
}

/// One block; `at` is where its turn stood.
fn block(
    part: &Part<'_>,
    at: &str,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
    marks: &mut Marks,
) -> Result<(), Problem> {
    match part {
        Part::Text { text, cached, .. } => list.object(|one| {
            one.text("type", "text");
            one.text("text", text);
            marks.put(one, *cached);
        }),
        // Anthropic has no part for a refusal; what was said is preserved.
        Part::Refusal { text, .. } => list.object(|one| {
            one.text("type", "text");
            one.text("text", text);
        }),
        Part::Image(media) => image(media, at, list, carry, marks)?,
        Part::File(media) => document(media, at, list, marks)?,
        Part::Audio(_) => return Err(Problem::unsupported(at, "The model's provider takes no sound.")),
        Part::Video(_) => return Err(Problem::unsupported(at, "The model's provider takes no video.")),
        Part::Call(call) => list.object(|one| {
            one.text("type", "tool_use");
            one.text("id", &fitting_id(Dialect::Anthropic, &call.id));
            one.text("name", &sent_name(Dialect::Anthropic, call.namespace.as_deref(), &call.name));
            one.raw("input", &input(call));
            marks.put(one, call.cached);
        }),
        Part::Result { .. } => result(part, at, list, carry, marks)?,
        Part::Thought { thought, .. } => list.object(|one| {
            let seal = thought.seal.as_ref().map(|seal| seal.written(Dialect::Anthropic));
            if thought.text.is_empty() && thought.redacted {
                one.text("type", "redacted_thinking");
                one.text("data", seal.as_deref().unwrap_or(""));
            } else {
                one.text("type", "thinking");
                one.text("thinking", &thought.text);
                one.text("signature", seal.as_deref().unwrap_or(""));
            }
        }),
        Part::Foreign { words: Some(words), .. } => list.object(|one| {
            one.text("type", "text");
            one.text("text", words);
        }),
        Part::Foreign { what, .. } => {
            return Err(Problem::unsupported(at, format!("`{what}` is known to another provider only.")));
        }
    }
    Ok(())
}

/// Arguments as an object: nothing is `{}`, free text is wrapped, and so is what is no JSON, so
/// that the call and its result stay a pair.
pub(crate) fn input(call: &ToolCall<'_>) -> String {
    if call.kind == CallKind::Custom {
        return format!("{{{}:{}}}", quoted_text(FREE_TEXT), quoted_text(&call.args));
    }
    let args = call.args.trim();
    match Node::read(args) {
        Ok(node) if node.is_map() => args.to_owned(),
        Ok(node) if node.is_null() => "{}".to_owned(),
        Ok(node) => format!("{{\"value\":{}}}", node.raw),
        Err(_) if args.is_empty() => "{}".to_owned(),
        Err(_) => format!("{{\"raw_arguments\":{}}}", quoted_text(args)),
    }
}

fn image(
    media: &Media<'_>,
    at: &str,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
    marks: &mut Marks,
) -> Result<(), Problem> {
    carry.drop_if("detail", media.detail.as_deref().is_some_and(|detail| detail != "auto"))?;
    match &media.place {
        MediaSource::Data { mime, .. }
            if !["image/jpeg", "image/png", "image/gif", "image/webp"].contains(&tidy_mime(mime)) =>
        {
            let text = format!("The model's provider takes no pictures of type `{mime}`.");
            return Err(Problem::unsupported(at, text));
        }
        MediaSource::Id(_) => {
            return Err(Problem::unsupported(at, "A picture given by a file id is known to another provider only."));
        }
        _ => {}
    }
    sourced("image", media, list, marks);
    Ok(())
}

fn document(media: &Media<'_>, at: &str, list: &mut Array<'_>, marks: &mut Marks) -> Result<(), Problem> {
    match &media.place {
        MediaSource::Data { mime, .. } if mime != "application/pdf" => {
            let text = format!("The model's provider takes no files of type `{mime}`.");
            return Err(Problem::unsupported(at, text));
        }
        MediaSource::Id(_) => {
            return Err(Problem::unsupported(at, "A file given by its id is known to another provider only."));
        }
        _ => {}
    }
    sourced("document", media, list, marks);
    Ok(())
}

/// A block with a source.
fn sourced(kind: &str, media: &Media<'_>, list: &mut Array<'_>, marks: &mut Marks) {
    list.object(|one| {
        one.text("type", kind);
        one.object("source", |inner| source(inner, &media.place));
        one.maybe("title", media.name.as_deref().filter(|_| kind == "document"));
        marks.put(one, media.cached);
    });
}

fn source(inner: &mut Object<'_>, place: &MediaSource<'_>) {
    match place {
        MediaSource::Data { mime, base64 } => {
            inner.text("type", "base64");
            inner.text("media_type", tidy_mime(mime));
            inner.text("data", &base64_standard(Cow::Borrowed(base64)));
        }
        MediaSource::Url(url) => {
            inner.text("type", "url");
            inner.text("url", url);
        }
        MediaSource::Id(id) => {
            inner.text("type", "file");
            inner.text("file_id", id);
        }
        MediaSource::Text(text) => {
            inner.text("type", "text");
            inner.text("media_type", "text/plain");
            inner.text("data", text);
        }
    }
}

fn result(
    part: &Part<'_>,
    at: &str,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
    marks: &mut Marks,
) -> Result<(), Problem> {
    let Part::Result { id, parts, error, cached, .. } = part else { return Ok(()) };
    let mut one = Object::begin(list.item());
    one.text("type", "tool_result");
    one.text("tool_use_id", &fitting_id(Dialect::Anthropic, id));
    tool_result(parts, at, &mut one, carry, marks)?;
    if *error {
        one.bool("is_error", true);
    }
    marks.put(&mut one, *cached);
    one.end();
    Ok(())
}

/// The result of a tool.
fn tool_result(
    parts: &[Part<'_>],
    at: &str,
    one: &mut Object<'_>,
    carry: &mut Carry<'_>,
    marks: &mut Marks,
) -> Result<(), Problem> {
    match parts {
        [] => {}
        [Part::Text { text, cached: false, rest }] if carry.is_plain(rest) => one.text("content", text),
        parts => {
            let mut inner = Array::begin(one.key("content"));
            for part in parts.iter().filter(|part| !matches!(part, Part::Text { text, .. } if text.is_empty())) {
                match part {
                    // A tool may return anything: what has no form here is passed as it was
                    // written.
                    Part::Foreign { words: None, raw, .. } => inner.object(|one| {
                        one.text("type", "text");
                        one.text("text", raw);
                    }),
                    part => block(part, at, &mut inner, carry, marks)?,
                }
            }
            inner.end();
        }
    }
    Ok(())
}
