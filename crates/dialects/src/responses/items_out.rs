//! Turns written as input items.

use crate::hub::{CallKind, Carry, Media, Origin, Part, Place, Role, Shape, Turn, fitting_id, sent_name};
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

pub(super) fn write(turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    if carry.home {
        return own(turn, list, carry);
    }
    let mut said: Vec<&Part<'_>> = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Call(_) | Part::Result { .. } | Part::Thought { .. } => {
                message(turn, &mut said, list, carry)?;
                item(part, turn, list, carry)?;
            }
            Part::Foreign { what, words: None, .. } if turn.role == Role::Assistant => carry.drop(what)?,
            other => said.push(other),
        }
    }
    message(turn, &mut said, list, carry)
}

/// An item as it was: one turn is one item here.
fn own(turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    match &turn.parts[..] {
        [part @ (Part::Call(_) | Part::Result { .. })] => return item(part, turn, list, carry),
        [Part::Thought { own, .. }] => {
            own.iter().for_each(|raw| list.raw(raw));
            return Ok(());
        }
        // A part of a message has the message's shape around it.
        [Part::Foreign { raw, .. }] if turn.shape.is_none() => {
            list.raw(raw);
            return Ok(());
        }
        _ => {}
    }
    let mut one = Object::begin(list.item());
    one.maybe("type", turn.typed.then_some("message"));
    one.text("role", role(turn.role));
    one.maybe("phase", turn.phase.as_deref());
    own_content("content", &turn.parts, turn.shape, turn, &mut one, carry)?;
    carry.own(&mut one, "", &turn.rest);
    one.end();
    Ok(())
}

/// Content in the shape it had.
fn own_content(
    name: &str,
    parts: &[Part<'_>],
    shape: Option<Shape>,
    turn: &Turn<'_>,
    one: &mut Object<'_>,
    carry: &mut Carry<'_>,
) -> Result<(), Problem> {
    match (shape, parts) {
        (None, _) => {}
        (Some(Shape::Text), [Part::Text { text, .. }]) => one.text(name, text),
        (Some(Shape::Text), _) => one.text(name, ""),
        (Some(Shape::List), parts) => {
            let mut inner = Array::begin(one.key(name));
            for part in parts {
                content(part, turn, turn.role == Role::Assistant, &mut inner, carry)?;
            }
            inner.end();
        }
    }
    Ok(())
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

fn message(
    turn: &Turn<'_>,
    said: &mut Vec<&Part<'_>>,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
) -> Result<(), Problem> {
    if said.is_empty() {
        return Ok(());
    }
    let mut one = Object::begin(list.item());
    one.text("type", "message");
    one.text("role", role(turn.role));
    one.maybe("phase", turn.phase.as_deref());
    let assistant = turn.role == Role::Assistant;
    match said[..] {
        [Part::Text { text, cached: false, rest }] if carry.is_plain(rest) => one.text("content", text),
        // Parts of an earlier answer would need the id of an item that the provider does not have.
        _ if assistant && said.iter().all(|part| matches!(part, Part::Text { .. })) => {
            let mut whole = String::new();
            for part in said.iter() {
                if let Part::Text { text, cached, .. } = part {
                    carry.unmarked(*cached)?;
                    whole.push_str(text);
                }
            }
            one.text("content", &whole);
        }
        _ => {
            let mut inner = Array::begin(one.key("content"));
            for part in said.iter() {
                content(part, turn, assistant, &mut inner, carry)?;
            }
            inner.end();
        }
    }
    one.end();
    said.clear();
    Ok(())
}

fn mark(one: &mut Object<'_>, cached: bool, carry: &Carry<'_>) {
    if cached && !carry.home {
        one.object("prompt_cache_breakpoint", |mark| mark.text("mode", "explicit"));
    }
}

/// One content part; what an assistant said is `output_text`.
fn content(
    part: &Part<'_>,
    turn: &Turn<'_>,
    assistant: bool,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
) -> Result<(), Problem> {
    let refused = |text: String| Err(Problem::unsupported(&turn.at, text));
    match part {
        Part::Text { text, rest, .. } if carry.home => list.object(|one| {
            // An unusual word for it is among the members that are left.
            if !carry.is_own("type", "", rest) {
                one.text("type", super::text_kind(assistant));
            }
            one.text("text", text);
            carry.own(one, "", rest);
        }),
        Part::Text { text, cached, .. } => {
            carry.unmarked(*cached && assistant)?;
            list.object(|one| {
                one.text("type", super::text_kind(assistant));
                one.text("text", text);
                if assistant {
                    one.raw("annotations", "[]");
                }
                mark(one, *cached && !assistant, carry);
            });
        }
        Part::Refusal { text, rest, .. } => list.object(|one| {
            one.text("type", "refusal");
            one.text("refusal", text);
            carry.own(one, "", rest);
        }),
        Part::Image(media) => {
            if matches!(&media.place, Place::Id(_)) && !carry.home {
                return refused("A picture given by a file id is known to another provider only.".to_owned());
            }
            list.object(|one| {
                one.text("type", "input_image");
                match &media.place {
                    Place::Url(url) => one.text("image_url", url),
                    Place::Data { mime, base64 } => one.text("image_url", &carry.data_url(mime, base64)),
                    Place::Id(id) | Place::Text(id) => one.text("file_id", id),
                }
                one.maybe("detail", media.detail.as_deref().or((!carry.home).then_some("auto")));
                mark(one, media.cached, carry);
                carry.own(one, "", &media.rest);
            });
        }
        Part::File(media) => {
            if !matches!(media.place, Place::Data { .. }) {
                carry.unnamed(media)?;
            }
            file(media, turn, list, carry)?;
        }
        Part::Audio(media) | Part::Video(media) if carry.home => list.object(|one| own_media(media, one, carry)),
        Part::Audio(_) | Part::Video(_) => {
            return refused("The model's provider takes neither sound nor video.".to_owned());
        }
        Part::Foreign { raw, .. } if carry.home => list.raw(raw),
        Part::Foreign { words: Some(words), .. } => list.object(|one| {
            one.text("type", "input_text");
            one.text("text", words);
        }),
        Part::Foreign { what, .. } => return refused(format!("`{what}` is known to another provider only.")),
        _ => {}
    }
    Ok(())
}

/// Sound or a clip, which only some servers of this dialect take.
fn own_media(media: &Media<'_>, one: &mut Object<'_>, carry: &Carry<'_>) {
    match &media.place {
        Place::Data { mime, base64 } if mime.starts_with("audio/") => {
            one.text("type", "input_audio");
            one.object("input_audio", |inner| {
                let format = mime.strip_prefix("audio/").unwrap_or_default();
                inner.filled("data", base64);
                inner.filled("format", if format == "mpeg" { "mp3" } else { format });
                carry.own(inner, "input_audio", &media.rest);
            });
        }
        Place::Data { mime, base64 } => {
            one.text("type", "input_video");
            one.text("video_url", &carry.data_url(mime, base64));
        }
        Place::Url(url) | Place::Id(url) | Place::Text(url) => {
            one.text("type", "input_video");
            one.text("video_url", url);
        }
    }
    carry.own(one, "", &media.rest);
}

fn file(media: &Media<'_>, turn: &Turn<'_>, list: &mut Array<'_>, carry: &Carry<'_>) -> Result<(), Problem> {
    if matches!(&media.place, Place::Id(_)) && !carry.home {
        return Err(Problem::unsupported(&turn.at, "A file given by its id is known to another provider only."));
    }
    list.object(|one| {
        match &media.place {
            Place::Text(text) => {
                one.text("type", "input_text");
                one.text("text", text);
            }
            place => {
                one.text("type", "input_file");
                let data = matches!(place, Place::Data { .. });
                let named = if carry.home { None } else { data.then_some("document.pdf") };
                one.maybe("filename", media.name.as_deref().filter(|_| data || carry.home).or(named));
                match place {
                    Place::Data { base64, .. } if carry.home && media.bare => one.text("file_data", base64),
                    Place::Data { mime, base64 } => one.text("file_data", &carry.data_url(mime, base64)),
                    Place::Url(url) => one.text("file_url", url),
                    Place::Id(id) | Place::Text(id) => one.text("file_id", id),
                }
            }
        }
        mark(one, media.cached, carry);
        carry.own(one, "", &media.rest);
    });
    Ok(())
}

fn item(part: &Part<'_>, turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    match part {
        Part::Call(call) => {
            carry.unmarked(call.cached)?;
            let custom = call.kind == CallKind::Custom;
            let nothing = !custom && call.args.trim().is_empty() && !carry.home;
            let (id, name) =
                (fitting_id(Dialect::Responses, &call.id), sent_name(Dialect::Responses, None, &call.name));
            list.object(|one| {
                one.text("type", if custom { "custom_tool_call" } else { "function_call" });
                one.text("call_id", if carry.home { &call.id } else { &id });
                one.maybe("namespace", call.namespace.as_deref());
                carry.text(one, "name", if carry.home { &call.name } else { &name });
                let args = if nothing { "{}" } else { &call.args };
                carry.text(one, if custom { "input" } else { "arguments" }, args);
                carry.own(one, "", &call.rest);
            });
        }
        Part::Result { id, parts, shape, kind, error, cached, rest, .. } => {
            carry.unmarked(*cached)?;
            let mut one = Object::begin(list.item());
            let custom = *kind == CallKind::Custom;
            one.text("type", if custom { "custom_tool_call_output" } else { "function_call_output" });
            if carry.home {
                one.text("call_id", id);
                own_content("output", parts, *shape, turn, &mut one, carry)?;
                carry.own(&mut one, "", rest);
            } else {
                one.text("call_id", &fitting_id(Dialect::Responses, id));
                told(parts, turn, &mut one, carry)?;
                one.maybe("status", error.then_some("incomplete"));
            }
            one.end();
        }
        Part::Thought { thought, .. } => match &thought.seal {
            Some(seal) if seal.origin == Origin::OpenAi => list.object(|one| {
                one.text("type", "reasoning");
                // No id: it is bound to an item that the provider did not store and would not find.
                one.array("summary", |list| {
                    if thought.summary {
                        list.object(|part| {
                            part.text("type", "summary_text");
                            part.text("text", &thought.text);
                        });
                    }
                });
                if !thought.summary && !thought.text.is_empty() {
                    one.array("content", |list| {
                        list.object(|part| {
                            part.text("type", "reasoning_text");
                            part.text("text", &thought.text);
                        });
                    });
                }
                one.text("encrypted_content", &seal.written(Dialect::Responses));
            }),
            _ => carry.drop("reasoning")?,
        },
        _ => {}
    }
    Ok(())
}

/// What a tool told.
fn told(parts: &[Part<'_>], turn: &Turn<'_>, one: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    match parts {
        [] => one.text("output", ""),
        [Part::Text { text, cached: false, rest }] if carry.is_plain(rest) => one.text("output", text),
        parts => {
            let mut inner = Array::begin(one.key("output"));
            for part in parts {
                match part {
                    // A tool may tell anything: what has no form here is told as it was written.
                    Part::Foreign { words: None, raw, .. } => inner.object(|one| {
                        one.text("type", "input_text");
                        one.text("text", raw);
                    }),
                    part => content(part, turn, false, &mut inner, carry)?,
                }
            }
            inner.end();
        }
    }
    Ok(())
}
