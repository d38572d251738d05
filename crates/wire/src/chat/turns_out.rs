//! Turns written as chat messages.

use crate::dialect::Dialect;
use crate::hub::{
    Ask, Call, CallKind, Carry, Media, Part, Place, Role, Turn, base64_standard, data_url, fitting_id, sent_name,
    tidy_mime,
};
use crate::json::{Array, Object};
use crate::problem::Problem;

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
        [Part::Text { text, cached: false, rest }] if rest.is_empty() => message.text("content", text),
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
        Part::Text { text, cached, rest } => {
            carry.part_rest(rest)?;
            let mut one = Object::begin(list.item());
            one.text("type", "text");
            one.text("text", text);
            mark(&mut one, *cached);
            one.end();
        }
        Part::Refusal(text) => list.object(|one| {
            one.text("type", "refusal");
            one.text("refusal", text);
        }),
        Part::Image(media) => {
            let url = link(media, turn, "image", carry)?;
            list.object(|one| {
                one.text("type", "image_url");
                one.object("image_url", |inner| {
                    inner.text("url", &url);
                    inner.maybe("detail", media.detail.as_deref());
                });
                mark(one, media.cached);
            });
        }
        Part::Video(media) => {
            let url = link(media, turn, "video", carry)?;
            list.object(|one| {
                one.text("type", "video_url");
                one.object("video_url", |inner| inner.text("url", &url));
                mark(one, media.cached);
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
            list.object(|one| {
                one.text("type", "input_audio");
                one.object("input_audio", |inner| {
                    inner.text("data", &base64_standard(base64.clone()));
                    inner.text("format", format);
                });
                mark(one, media.cached);
            });
        }
        Part::File(media) => file(media, turn, list, carry)?,
        Part::Foreign { words: Some(words), .. } => list.object(|one| {
            one.text("type", "text");
            one.text("text", words);
        }),
        Part::Foreign { what, .. } => {
            return Err(refused(turn, &format!("`{what}` is known to another provider only.")));
        }
        Part::Thought(_) | Part::Call(_) | Part::Result { .. } => {}
    }
    Ok(())
}

fn refused(turn: &Turn<'_>, why: &str) -> Problem {
    Problem::unsupported(&turn.at, why)
}

/// A link to a picture or clip, or its data as one.
fn link(media: &Media<'_>, turn: &Turn<'_>, what: &str, carry: &mut Carry<'_>) -> Result<String, Problem> {
    carry.part_rest(&media.rest)?;
    match &media.place {
        Place::Url(url) => Ok(url.to_string()),
        Place::Data { mime, base64 } => Ok(data_url(&tidy_mime(mime.clone()), &base64_standard(base64.clone()))),
        Place::Id(_) | Place::Text(_) => {
            Err(refused(turn, &format!("An {what} given by a file id is known to another provider only.")))
        }
    }
}

fn file(media: &Media<'_>, turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    carry.part_rest(&media.rest)?;
    match &media.place {
        // A text file says the same as a text.
        Place::Text(text) => list.object(|one| {
            one.text("type", "text");
            one.text("text", text);
            mark(one, media.cached);
        }),
        Place::Data { mime, base64 } => list.object(|one| {
            one.text("type", "file");
            one.object("file", |inner| {
                inner.text("filename", media.name.as_deref().unwrap_or("document.pdf"));
                inner.text("file_data", &data_url(&tidy_mime(mime.clone()), &base64_standard(base64.clone())));
            });
            mark(one, media.cached);
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
    let Part::Result { id, parts, error, rest, cached, .. } = part else { return Ok(()) };
    carry.part_rest(rest)?;
    carry.unmarked(*cached)?;
    let mut text = String::new();
    for inner in parts {
        let piece = match inner {
            Part::Text { text, .. } => text.as_ref(),
            Part::File(Media { place: Place::Text(text), .. }) => text.as_ref(),
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
    let calls: Vec<&Call<'_>> = turn.calls().collect();
    let mut thoughts = String::new();
    let mut said: Vec<&Part<'_>> = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Call(_) => {}
            Part::Thought(thought) => thoughts.push_str(&thought.text),
            Part::Foreign { what, words: None, .. } => carry.drop(what)?,
            other => said.push(other),
        }
    }
    let mut message = Object::begin(list.item());
    message.text("role", "assistant");
    message.maybe("name", turn.name.as_deref());
    if carry.target.wants_reasoning_back && !calls.is_empty() && !thoughts.is_empty() {
        message.text("reasoning_content", &thoughts);
    } else if turn.parts.iter().any(|part| matches!(part, Part::Thought(_))) {
        carry.drop("reasoning")?;
    }
    if said.iter().all(|part| matches!(part, Part::Text { .. })) {
        let mut whole = String::new();
        for part in said {
            if let Part::Text { text, rest, cached } = part {
                carry.part_rest(rest)?;
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

fn write_call(call: &Call<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    carry.part_rest(&call.rest)?;
    carry.unmarked(call.cached)?;
    let name = sent_name(Dialect::Chat, call.namespace.as_deref(), &call.name);
    let mut one = Object::begin(list.item());
    one.text("id", &fitting_id(Dialect::Chat, &call.id));
    match call.kind {
        CallKind::Function => {
            one.text("type", "function");
            one.object("function", |function| {
                function.text("name", &name);
                function.text("arguments", if call.args.trim().is_empty() { "{}" } else { &call.args });
            });
        }
        CallKind::Custom => {
            one.text("type", "custom");
            one.object("custom", |custom| {
                custom.text("name", &name);
                custom.text("input", &call.args);
            });
        }
    }
    one.end();
    Ok(())
}
