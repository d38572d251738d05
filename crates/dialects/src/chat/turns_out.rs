//! Turns written as chat messages.

use crate::anthropic::input;
use crate::hub::{
    Ask, CallKind, Carry, Media, MediaSource, Part, Role, ToolCall, Turn, base64_standard, fitting_id, sent_name,
    tidy_data_url,
};
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
        Role::Developer if carry.target.current_chat => "developer",
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
    content(&parts, turn, &mut message, carry)?;
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

fn mark(object: &mut Object<'_>, cached: bool) {
    if cached {
        object.object("prompt_cache_breakpoint", |mark| mark.text("mode", "explicit"));
    }
}

fn write_part(part: &Part<'_>, turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    match part {
        Part::Text { text, cached, .. } => list.object(|one| {
            one.text("type", "text");
            one.text("text", text);
            mark(one, *cached);
        }),
        Part::Refusal { text, .. } => list.object(|one| {
            one.text("type", "refusal");
            one.text("refusal", text);
        }),
        Part::Image(media) => {
            let url = link(media, turn, "image")?;
            write_media("image_url", media, list, |inner| {
                inner.text("url", &url);
                inner.maybe("detail", media.detail.as_deref());
            });
        }
        Part::Video(media) => {
            let url = link(media, turn, "video")?;
            write_media("video_url", media, list, |inner| inner.text("url", &url));
        }
        Part::Audio(media) => {
            let MediaSource::Data { mime, base64 } = &media.place else {
                return Err(refused(turn, "Sound must be sent as data, not as a link."));
            };
            let format = match mime.as_ref() {
                "audio/mpeg" | "audio/mp3" => "mp3",
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                other => other.strip_prefix("audio/").unwrap_or(other),
            };
            write_media("input_audio", media, list, |inner| {
                inner.text("data", &base64_standard(Cow::Borrowed(base64)));
                inner.text("format", format);
            });
        }
        Part::File(media) => {
            if let MediaSource::Text(_) = media.place {
                carry.drop_file_name(media)?;
            }
            file(media, turn, list)?;
        }
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
fn write_media(kind: &str, media: &Media<'_>, list: &mut Array<'_>, write: impl FnOnce(&mut Object<'_>)) {
    list.object(|one| {
        one.text("type", kind);
        one.object(kind, write);
        mark(one, media.cached);
    });
}

fn refused(turn: &Turn<'_>, why: &str) -> Problem {
    Problem::unsupported(&turn.at, why)
}

/// A link to a picture or clip, or its data as one.
fn link(media: &Media<'_>, turn: &Turn<'_>, what: &str) -> Result<String, Problem> {
    match &media.place {
        MediaSource::Url(url) => Ok(url.to_string()),
        MediaSource::Data { mime, base64 } => Ok(tidy_data_url(mime, base64)),
        MediaSource::Id(_) | MediaSource::Text(_) => {
            Err(refused(turn, &format!("An {what} given by a file id is known to another provider only.")))
        }
    }
}

fn file(media: &Media<'_>, turn: &Turn<'_>, list: &mut Array<'_>) -> Result<(), Problem> {
    match &media.place {
        // A text file says the same as a text.
        MediaSource::Text(text) => list.object(|one| {
            one.text("type", "text");
            one.text("text", text);
            mark(one, media.cached);
        }),
        MediaSource::Data { mime, base64 } => write_media("file", media, list, |inner| {
            inner.text("filename", media.name.as_deref().unwrap_or("document.pdf"));
            inner.text("file_data", &tidy_data_url(mime, base64));
        }),
        MediaSource::Id(_) | MediaSource::Url(_) => {
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
    carry.drop_cache_mark(*cached)?;
    let mut text = String::new();
    for inner in parts {
        let piece = match inner {
            Part::Text { text, cached, .. } => {
                carry.drop_cache_mark(*cached)?;
                text.as_ref()
            }
            Part::File(file @ Media { place: MediaSource::Text(text), .. }) => {
                carry.drop_cache_mark(file.cached)?;
                carry.drop_file_name(file)?;
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
    let calls: Vec<&ToolCall<'_>> = turn.calls().collect();
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
                carry.drop_cache_mark(*cached)?;
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

fn write_call(call: &ToolCall<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    carry.drop_cache_mark(call.cached)?;
    // A function stands for a tool with free text where that is not known.
    let stands = call.kind == CallKind::Custom && !carry.target.takes_free_text();
    let (kind, key) = match call.kind {
        CallKind::Custom if !stands => ("custom", "input"),
        CallKind::Function | CallKind::Custom => ("function", "arguments"),
    };
    let name = sent_name(Dialect::Chat, call.namespace.as_deref(), &call.name);
    let id = fitting_id(Dialect::Chat, &call.id);
    let args = match &call.args {
        _ if stands => Cow::Owned(input(call)),
        args if call.kind == CallKind::Function && args.trim().is_empty() => Cow::Borrowed("{}"),
        args => Cow::Borrowed(args.as_ref()),
    };
    list.object(|one| {
        one.text("id", &id);
        one.text("type", kind);
        one.object(kind, |inner| {
            inner.text("name", &name);
            inner.text(key, &args);
        });
    });
    Ok(())
}
