//! Turns written as chat messages.

use super::own_out::{own_assistant, own_message, own_result};
use crate::anthropic::input;
use crate::hub::{Ask, Call, CallKind, Carry, Media, Part, Place, Role, Turn, fitting_id, sent_name};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

/// What stands in a tool message for a picture that follows it.
const SEE_BELOW: &str = "(see the next message)";

pub(super) fn write(ask: &Ask<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    for turn in &ask.turns {
        match turn.role {
            Role::Assistant => assistant(turn, list, carry)?,
            _ => others(turn, list, carry)?,
        }
    }
    Ok(())
}

fn role(turn: &Turn<'_>, carry: &Carry<'_>) -> &'static str {
    match turn.role {
        Role::System => "system",
        Role::Developer if carry.home || carry.target.current_chat => "developer",
        Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// Results become tool messages, in front; the rest is one message.
fn others(turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let mut pictures: Vec<&Part<'_>> = Vec::new();
    for part in &turn.parts {
        if let Part::Result { .. } = part {
            result(part, list, carry, &mut pictures)?;
        }
    }
    let own = turn.parts.iter().filter(|part| !matches!(part, Part::Result { .. }));
    let parts: Vec<&Part<'_>> = pictures.into_iter().chain(own).collect();
    if parts.is_empty() && turn.parts.iter().any(|part| matches!(part, Part::Result { .. })) {
        return Ok(());
    }
    let mut message = Object::begin(list.item());
    message.text("role", role(turn, carry));
    message.maybe("name", turn.name.as_deref());
    if carry.home {
        own_message(turn, &mut message, carry)?;
    } else {
        content(&parts, turn, &mut message, carry)?;
    }
    message.end();
    Ok(())
}

/// `content`: plain text when that says everything, else parts.
fn content(
    parts: &[&Part<'_>],
    turn: &Turn<'_>,
    message: &mut Object<'_>,
    carry: &mut Carry<'_>,
) -> Result<(), Problem> {
    match parts {
        [] => message.text("content", ""),
        [Part::Text { text, cached: false, rest }] if carry.is_plain(rest) => message.text("content", text),
        _ => {
            let mut inner = Array::begin(message.key("content"));
            for part in parts {
                write_part(part, turn, &mut inner, carry)?;
            }
            inner.end();
        }
    }
    Ok(())
}

fn mark(object: &mut Object<'_>, cached: bool, carry: &Carry<'_>) {
    if cached && !carry.home {
        object.object("prompt_cache_breakpoint", |mark| mark.text("mode", "explicit"));
    }
}

pub(super) fn write_part(
    part: &Part<'_>,
    turn: &Turn<'_>,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
) -> Result<(), Problem> {
    match part {
        Part::Text { text, cached, rest } => list.object(|one| {
            one.text("type", "text");
            one.text("text", text);
            mark(one, *cached, carry);
            carry.own(one, "", rest);
        }),
        Part::Refusal { text, rest, .. } => list.object(|one| {
            one.text("type", "refusal");
            one.text("refusal", text);
            carry.own(one, "", rest);
        }),
        Part::Image(media) | Part::Video(media) if carry.home && media.bare => {
            let kind = if matches!(part, Part::Image(_)) { "image_url" } else { "video_url" };
            let url = link(media, turn, kind, carry)?;
            list.object(|one| {
                one.text("type", kind);
                one.text(kind, &url);
                carry.own(one, "", &media.rest);
            });
        }
        Part::Image(media) => {
            let url = link(media, turn, "image", carry)?;
            write_media("image_url", media, list, carry, |inner| {
                inner.text("url", &url);
                inner.maybe("detail", media.detail.as_deref());
            });
        }
        Part::Video(media) => {
            let url = link(media, turn, "video", carry)?;
            write_media("video_url", media, list, carry, |inner| {
                inner.text("url", &url);
                inner.maybe("detail", media.detail.as_deref().filter(|_| carry.home));
            });
        }
        Part::Audio(media) => {
            let Place::Data { mime, base64 } = &media.place else {
                return Err(refused(turn, "Sound must be sent as data, not as a link."));
            };
            let format = match mime.as_ref() {
                "audio/mpeg" | "audio/mp3" => "mp3",
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                other => other.strip_prefix("audio/").unwrap_or(other),
            };
            write_media("input_audio", media, list, carry, |inner| {
                carry.text(inner, "data", &carry.data(base64));
                carry.text(inner, "format", format);
            });
        }
        Part::File(media) => {
            if let Place::Text(_) = media.place {
                carry.unnamed(media)?;
            }
            file(media, turn, list, carry)?;
        }
        Part::Foreign { raw, .. } if carry.home => list.raw(raw),
        Part::Foreign { words: Some(words), .. } => list.object(|one| {
            one.text("type", "text");
            one.text("text", words);
        }),
        Part::Foreign { what, .. } => {
            return Err(refused(turn, &format!("`{what}` is known to another provider only.")));
        }
        Part::Thought { .. } | Part::Call(_) | Part::Result { .. } => {}
    }
    Ok(())
}

/// A part of this type, with an object of the same name in it.
fn write_media(
    kind: &str,
    media: &Media<'_>,
    list: &mut Array<'_>,
    carry: &Carry<'_>,
    write: impl FnOnce(&mut Object<'_>),
) {
    list.object(|one| {
        one.text("type", kind);
        one.object(kind, |inner| {
            write(inner);
            carry.own(inner, kind, &media.rest);
        });
        mark(one, media.cached, carry);
        carry.own(one, "", &media.rest);
    });
}

fn refused(turn: &Turn<'_>, why: &str) -> Problem {
    Problem::unsupported(&turn.at, why)
}

/// A link to a picture or clip, or its data as one.
fn link(media: &Media<'_>, turn: &Turn<'_>, what: &str, carry: &Carry<'_>) -> Result<String, Problem> {
    match &media.place {
        Place::Url(url) => Ok(url.to_string()),
        Place::Data { mime, base64 } => Ok(carry.data_url(mime, base64)),
        Place::Id(_) | Place::Text(_) => {
            Err(refused(turn, &format!("An {what} given by a file id is known to another provider only.")))
        }
    }
}

fn file(media: &Media<'_>, turn: &Turn<'_>, list: &mut Array<'_>, carry: &Carry<'_>) -> Result<(), Problem> {
    match &media.place {
        // A text file says the same as a text.
        Place::Text(text) => list.object(|one| {
            one.text("type", "text");
            one.text("text", text);
            mark(one, media.cached, carry);
        }),
        Place::Data { mime, base64 } => write_media("file", media, list, carry, |inner| {
            inner.maybe("filename", media.name.as_deref().or((!carry.home).then_some("document.pdf")));
            match carry.home && media.bare {
                true => inner.text("file_data", base64),
                false => inner.text("file_data", &carry.data_url(mime, base64)),
            }
        }),
        Place::Id(id) if carry.home => write_media("file", media, list, carry, |inner| {
            inner.maybe("filename", media.name.as_deref());
            inner.text("file_id", id);
        }),
        Place::Id(_) | Place::Url(_) => {
            return Err(refused(
                turn,
                "A file must be sent as data: the model's provider takes no links and no other provider's ids.",
            ));
        }
    }
    Ok(())
}

fn result<'p, 'a>(
    part: &'p Part<'a>,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
    pictures: &mut Vec<&'p Part<'a>>,
) -> Result<(), Problem> {
    let Part::Result { id, parts, error, cached, .. } = part else { return Ok(()) };
    if carry.home {
        return own_result(part, list, carry);
    }
    carry.unmarked(*cached)?;
    let mut text = String::new();
    for inner in parts {
        let piece = match inner {
            Part::Text { text, cached, .. } => {
                carry.unmarked(*cached)?;
                text.as_ref()
            }
            Part::File(file @ Media { place: Place::Text(text), .. }) => {
                carry.unmarked(file.cached)?;
                carry.unnamed(file)?;
                text.as_ref()
            }
            Part::Foreign { words, raw, .. } => words.as_deref().unwrap_or(raw),
            _ => {
                pictures.push(inner);
                SEE_BELOW
            }
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(piece);
    }
    if *error && !text.to_ascii_lowercase().starts_with("error") {
        text.insert_str(0, "Error: ");
    }
    let mut message = Object::begin(list.item());
    message.text("role", "tool");
    message.text("tool_call_id", &fitting_id(Dialect::Chat, id));
    message.text("content", &text);
    message.end();
    Ok(())
}

fn assistant(turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    if carry.home {
        return own_assistant(turn, list, carry);
    }
    let calls: Vec<&Call<'_>> = turn.calls().collect();
    let mut thoughts = String::new();
    let mut said: Vec<&Part<'_>> = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Call(_) => {}
            Part::Thought { thought, .. } => thoughts.push_str(&thought.text),
            Part::Foreign { what, words: None, .. } => carry.drop(what)?,
            other => said.push(other),
        }
    }
    let mut message = Object::begin(list.item());
    message.text("role", "assistant");
    message.maybe("name", turn.name.as_deref());
    if carry.target.wants_reasoning_back && !calls.is_empty() && !thoughts.is_empty() {
        message.text("reasoning_content", &thoughts);
    } else if turn.parts.iter().any(|part| matches!(part, Part::Thought { .. })) {
        carry.drop("reasoning")?;
    }
    if said.iter().all(|part| matches!(part, Part::Text { .. })) {
        let mut whole = String::new();
        for part in said {
            if let Part::Text { text, cached, .. } = part {
                carry.unmarked(*cached)?;
                whole.push_str(text);
            }
        }
        if whole.is_empty() && !calls.is_empty() { message.null("content") } else { message.text("content", &whole) }
    } else {
        content(&said, turn, &mut message, carry)?;
    }
    if !calls.is_empty() {
        let mut inner = Array::begin(message.key("tool_calls"));
        for call in calls {
            write_call(call, &mut inner, carry)?;
        }
        inner.end();
    }
    message.end();
    Ok(())
}

pub(super) fn write_call(call: &Call<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    carry.unmarked(call.cached)?;
    // A function stands for a tool with free text where that is not known.
    let stands = call.kind == CallKind::Custom && !carry.home && !carry.target.takes_free_text();
    let (kind, key) = match call.kind {
        CallKind::Custom if !stands => ("custom", "input"),
        CallKind::Function | CallKind::Custom => ("function", "arguments"),
    };
    let name = sent_name(Dialect::Chat, call.namespace.as_deref(), &call.name);
    let id = fitting_id(Dialect::Chat, &call.id);
    let args = match &call.args {
        _ if stands => Cow::Owned(input(call)),
        args if call.kind == CallKind::Function && args.trim().is_empty() && !carry.home => Cow::Borrowed("{}"),
        args => Cow::Borrowed(args.as_ref()),
    };
    list.object(|one| {
        carry.text(one, "id", if carry.home { &call.id } else { &id });
        if !carry.is_own("type", "", &call.rest) {
            one.text("type", kind);
        }
        one.object(kind, |inner| {
            carry.text(inner, "name", if carry.home { &call.name } else { &name });
            if !carry.is_own(key, "function", &call.rest) {
                carry.text(inner, key, &args);
            }
            carry.own(inner, "function", &call.rest);
        });
        carry.own(one, "", &call.rest);
    });
    Ok(())
}
