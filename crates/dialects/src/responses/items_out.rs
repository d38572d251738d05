//! Turns written as input items.

use crate::hub::{
    CallKind, Carry, Media, MediaSource, Part, Role, SealMaker, Turn, fitting_id, sent_name, tidy_data_url,
};
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

pub(super) fn write(turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
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
                    carry.drop_cache_mark(*cached)?;
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

fn mark(one: &mut Object<'_>, cached: bool) {
    if cached {
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
        Part::Text { text, cached, .. } => {
            carry.drop_cache_mark(*cached && assistant)?;
            list.object(|one| {
                one.text("type", super::text_kind(assistant));
                one.text("text", text);
                if assistant {
                    one.raw("annotations", "[]");
                }
                mark(one, *cached && !assistant);
            });
        }
        Part::Refusal { text, .. } => list.object(|one| {
            one.text("type", "refusal");
            one.text("refusal", text);
        }),
        Part::Image(media) => {
            if matches!(&media.place, MediaSource::Id(_)) {
                return refused("A picture given by a file id is known to another provider only.".to_owned());
            }
            list.object(|one| {
                one.text("type", "input_image");
                match &media.place {
                    MediaSource::Url(url) => one.text("image_url", url),
                    MediaSource::Data { mime, base64 } => one.text("image_url", &tidy_data_url(mime, base64)),
                    MediaSource::Id(id) | MediaSource::Text(id) => one.text("file_id", id),
                }
                one.text("detail", media.detail.as_deref().unwrap_or("auto"));
                mark(one, media.cached);
            });
        }
        Part::File(media) => {
            if !matches!(media.place, MediaSource::Data { .. }) {
                carry.drop_file_name(media)?;
            }
            file(media, turn, list)?;
        }
        Part::Audio(_) | Part::Video(_) => {
            return refused("The model's provider takes neither sound nor video.".to_owned());
        }
        Part::Foreign { words: Some(words), .. } => list.object(|one| {
            one.text("type", "input_text");
            one.text("text", words);
        }),
        Part::Foreign { what, .. } => return refused(format!("`{what}` is known to another provider only.")),
        _ => {}
    }
    Ok(())
}

fn file(media: &Media<'_>, turn: &Turn<'_>, list: &mut Array<'_>) -> Result<(), Problem> {
    if matches!(&media.place, MediaSource::Id(_)) {
        return Err(Problem::unsupported(&turn.at, "A file given by its id is known to another provider only."));
    }
    list.object(|one| {
        match &media.place {
            MediaSource::Text(text) => {
                one.text("type", "input_text");
                one.text("text", text);
            }
            place => {
                one.text("type", "input_file");
                match place {
                    MediaSource::Data { mime, base64 } => {
                        one.text("filename", media.name.as_deref().unwrap_or("document.pdf"));
                        one.text("file_data", &tidy_data_url(mime, base64));
                    }
                    MediaSource::Url(url) => one.text("file_url", url),
                    MediaSource::Id(id) | MediaSource::Text(id) => one.text("file_id", id),
                }
            }
        }
        mark(one, media.cached);
    });
    Ok(())
}

fn item(part: &Part<'_>, turn: &Turn<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    match part {
        Part::Call(call) => {
            carry.drop_cache_mark(call.cached)?;
            let custom = call.kind == CallKind::Custom;
            let nothing = !custom && call.args.trim().is_empty();
            let (id, name) =
                (fitting_id(Dialect::Responses, &call.id), sent_name(Dialect::Responses, None, &call.name));
            list.object(|one| {
                one.text("type", if custom { "custom_tool_call" } else { "function_call" });
                one.text("call_id", &id);
                one.maybe("namespace", call.namespace.as_deref());
                one.text("name", &name);
                let args = if nothing { "{}" } else { &call.args };
                one.text(if custom { "input" } else { "arguments" }, args);
            });
        }
        Part::Result { id, parts, kind, error, cached, .. } => {
            carry.drop_cache_mark(*cached)?;
            let mut one = Object::begin(list.item());
            let custom = *kind == CallKind::Custom;
            one.text("type", if custom { "custom_tool_call_output" } else { "function_call_output" });
            one.text("call_id", &fitting_id(Dialect::Responses, id));
            tool_output(parts, turn, &mut one, carry)?;
            one.maybe("status", error.then_some("incomplete"));
            one.end();
        }
        Part::Thought { thought, .. } => match &thought.seal {
            Some(seal) if seal.origin == SealMaker::OpenAi => list.object(|one| {
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

/// The result of a tool.
fn tool_output(
    parts: &[Part<'_>],
    turn: &Turn<'_>,
    one: &mut Object<'_>,
    carry: &mut Carry<'_>,
) -> Result<(), Problem> {
    match parts {
        [] => one.text("output", ""),
        [Part::Text { text, cached: false, rest }] if carry.is_plain(rest) => one.text("output", text),
        parts => {
            let mut inner = Array::begin(one.key("output"));
            for part in parts {
                match part {
                    // A tool may return anything: what has no form here is passed as it was
                    // written.
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
