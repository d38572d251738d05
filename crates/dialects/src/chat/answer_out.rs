//! A whole answer written as a chat completion.

use super::details::write_thought;
use crate::hub::{Answer, CallKind, Choice, Citation, Finish, OutputBlock, Stop, Voice, data_url, fitting_id, tier_in};
use tollgate_wire::Dialect;
use tollgate_wire::json::{Array, Object};
use tollgate_wire::usage::UsageShape;

/// `old`: the client declared `functions`, and reads one call as `function_call`.
pub(crate) fn write(answer: &Answer, voice: &Voice, old: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let mut body = Object::begin(&mut out);
    body.text("id", &voice.prefixed("chatcmpl-"));
    body.text("object", "chat.completion");
    body.number("created", voice.created);
    body.text("model", &voice.model);
    body.array("choices", |list| {
        for (at, choice) in answer.choices.iter().enumerate() {
            list.object(|one| write_choice(one, choice, at as u64, old));
        }
        if answer.choices.is_empty() {
            list.object(|one| write_choice(one, &Choice::default(), 0, old));
        }
    });
    if let Some(usage) = &answer.usage {
        usage.write(UsageShape::Chat, body.key("usage"));
    }
    body.maybe("service_tier", answer.tier.as_deref().and_then(|tier| tier_in(Dialect::Chat, tier)));
    body.end();
    out
}

fn write_choice(one: &mut Object<'_>, choice: &Choice, index: u64, old: bool) {
    one.number("index", index);
    one.object("message", |message| write_message(message, choice, old));
    if choice.logprobs.is_empty() {
        one.null("logprobs");
    } else {
        one.object("logprobs", |logprobs| {
            logprobs.raw("content", &joined(&choice.logprobs));
            logprobs.null("refusal");
        });
    }
    finish(one, choice.finish.as_ref(), choice.has_calls(), old);
}

/// Several JSON arrays as one.
pub(crate) fn joined(lists: &[String]) -> String {
    let inner = lists.iter().map(|list| list.trim().trim_start_matches('[').trim_end_matches(']').trim());
    let inner: Vec<&str> = inner.filter(|list| !list.is_empty()).collect();
    format!("[{}]", inner.join(","))
}

/// The words of the four dialects for an answer that is over because all was said.
const USUAL: [&str; 5] = ["stop", "end_turn", "completed", "STOP", ""];

/// `finish_reason`, and the provider's own word where chat has none for it.
pub(super) fn finish(one: &mut Object<'_>, finish: Option<&Finish<'_>>, calls: bool, old: bool) {
    let stop = finish.map_or(if calls { Stop::Tools } else { Stop::End }, |finish| finish.stop);
    let word = match stop {
        Stop::End | Stop::Sequence | Stop::Pause | Stop::Malformed => "stop",
        Stop::Length | Stop::Context => "length",
        Stop::Tools if old => "function_call",
        Stop::Tools => "tool_calls",
        Stop::Filter => "content_filter",
    };
    one.text("finish_reason", finish.and_then(|finish| finish.own(Dialect::Chat)).unwrap_or(word));
    let Some(finish) = finish else { return };
    let odd = stop == Stop::End && !USUAL.contains(&finish.native.as_ref());
    if odd || matches!(stop, Stop::Pause | Stop::Malformed | Stop::Context | Stop::Filter) {
        one.text("native_finish_reason", &finish.native);
    }
    if let Some(details) = &finish.details {
        details.write(one);
    }
}

fn write_message(message: &mut Object<'_>, choice: &Choice, old: bool) {
    let mut text = String::new();
    let mut refusal = String::new();
    let mut thoughts = String::new();
    let mut said = false;
    for output in &choice.outputs {
        match output {
            OutputBlock::Text { text: piece, .. } => {
                said = true;
                text.push_str(piece);
            }
            OutputBlock::Refusal(piece) => refusal.push_str(piece),
            OutputBlock::Thought(thought) => thoughts.push_str(&thought.text),
            _ => {}
        }
    }
    message.text("role", "assistant");
    message.or_null("content", (said || !choice.has_calls()).then_some(&text));
    message.or_null("refusal", (!refusal.is_empty()).then_some(&refusal));
    if !thoughts.is_empty() {
        message.text("reasoning_content", &thoughts);
    }
    let all = choice.outputs.iter();
    let sealed: Vec<_> = all
        .clone()
        .filter_map(|output| match output {
            OutputBlock::Thought(thought) => Some(thought),
            _ => None,
        })
        .collect();
    if !sealed.is_empty() {
        message.array("reasoning_details", |list| {
            sealed.iter().enumerate().for_each(|(at, thought)| write_thought(list, thought, at as u64));
        });
    }
    cites(message, choice);
    let mut calls = all.clone().filter_map(|output| match output {
        OutputBlock::Call(call) => Some(call),
        _ => None,
    });
    if old && let Some(call) = calls.next() {
        message.object("function_call", |one| write_function(one, call));
    } else if choice.has_calls() {
        message.array("tool_calls", |list| calls.for_each(|call| list.object(|one| write_call(one, call))));
    }
    for output in all.clone() {
        if let OutputBlock::Audio(raw) = output {
            message.raw("audio", raw);
            break;
        }
    }
    if all.clone().any(|output| matches!(output, OutputBlock::Image { .. })) {
        message.array("images", |list| {
            for output in all {
                if let OutputBlock::Image { mime, base64 } = output {
                    list.object(|one| write_image(one, mime, base64));
                }
            }
        });
    }
}

pub(super) fn write_image(one: &mut Object<'_>, mime: &str, base64: &str) {
    one.text("type", "image_url");
    one.object("image_url", |inner| inner.text("url", &data_url(mime, base64)));
}

fn write_call(one: &mut Object<'_>, call: &crate::hub::ToolCall<'_>) {
    one.text("id", &fitting_id(Dialect::Chat, &call.id));
    match call.kind {
        CallKind::Function => {
            one.text("type", "function");
            one.object("function", |function| write_function(function, call));
        }
        CallKind::Custom => {
            one.text("type", "custom");
            one.object("custom", |custom| {
                custom.text("name", &call.name);
                custom.text("input", &call.args);
            });
        }
    }
}

fn write_function(function: &mut Object<'_>, call: &crate::hub::ToolCall<'_>) {
    function.text("name", &call.name);
    function.text("arguments", if call.args.trim().is_empty() { "{}" } else { &call.args });
}

/// Links as annotations, places in documents as they came.
fn cites(message: &mut Object<'_>, choice: &Choice) {
    let all = || {
        choice.outputs.iter().flat_map(|output| match output {
            OutputBlock::Text { cites, .. } => cites.as_slice(),
            _ => &[],
        })
    };
    if all().any(|cite| matches!(cite, Citation::Url { .. })) {
        message.array("annotations", |list| all().for_each(|cite| write_cite(list, cite, None)));
    }
    if all().any(|cite| matches!(cite, Citation::Foreign { .. })) {
        message.array("citations", |list| {
            for cite in all() {
                write_place(list, cite);
            }
        });
    }
}

/// A place in a document as it came; where in the answer it belongs is added, in the words of a
/// `url_citation`.
pub(super) fn write_place(list: &mut Array<'_>, cite: &Citation<'_>) {
    let Citation::Foreign { raw, place, .. } = cite else { return };
    match (place, raw.trim_end().strip_suffix('}').filter(|open| open.trim_end().len() > 1)) {
        (Some((from, to)), Some(open)) => list.raw(&format!("{open},\"start_index\":{from},\"end_index\":{to}}}")),
        _ => list.raw(raw),
    }
}

/// A `url_citation`; other citations are not annotations. In a stream each has its place in the
/// list, by which clients put them together.
pub(super) fn write_cite(list: &mut Array<'_>, cite: &Citation<'_>, place: Option<u64>) {
    let Citation::Url { url, title, from, to, .. } = cite else { return };
    list.object(|one| {
        if let Some(place) = place {
            one.number("index", place);
        }
        one.text("type", "url_citation");
        one.object("url_citation", |inner| {
            inner.number("start_index", from.unwrap_or(0));
            inner.number("end_index", to.unwrap_or(0));
            inner.text("title", title);
            inner.text("url", url);
        });
    });
}
