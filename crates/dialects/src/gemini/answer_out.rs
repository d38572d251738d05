//! A whole answer written as a GenerateContentResponse.

use super::cites;
use crate::anthropic::input;
use crate::hub::{Answer, Choice, Citation, Finish, NEXT_TEXT, OutputBlock, Seal, SealMaker, Stop, ToolCall, Voice};
use tollgate_wire::Dialect;
use tollgate_wire::json::{Array, Object};
use tollgate_wire::usage::UsageShape;

pub(crate) fn write(answer: &Answer, voice: &Voice) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let mut body = Object::begin(&mut out);
    body.array("candidates", |list| {
        for (at, choice) in answer.choices.iter().enumerate() {
            list.object(|one| candidate(one, choice, at as u64));
        }
    });
    if let Some(usage) = &answer.usage {
        usage.write(UsageShape::Gemini, body.key("usageMetadata"));
    }
    body.text("modelVersion", &voice.model);
    body.text("responseId", &voice.prefixed(""));
    body.end();
    out
}

fn candidate(one: &mut Object<'_>, choice: &Choice, index: u64) {
    one.object("content", |content| {
        content.array("parts", |list| parts(list, choice));
        content.text("role", "model");
    });
    finish(one, choice.finish.as_ref(), choice.is_refused());
    one.number("index", index);
    let all: Vec<&Citation<'_>> = choice
        .outputs
        .iter()
        .flat_map(|output| match output {
            OutputBlock::Text { cites, .. } => cites.as_slice(),
            _ => &[],
        })
        .collect();
    let text: String = choice
        .outputs
        .iter()
        .map(|output| match output {
            OutputBlock::Text { text, .. } => text.as_str(),
            _ => "",
        })
        .collect();
    let searched: Vec<&str> = choice
        .outputs
        .iter()
        .filter_map(|output| match output {
            OutputBlock::Search(query) => Some(query.as_str()),
            _ => None,
        })
        .collect();
    grounding(one, &all, &searched, &text);
    if !choice.logprobs.is_empty() {
        cites::write_logprobs(one, &choice.logprobs);
    }
}

fn parts(list: &mut Array<'_>, choice: &Choice) {
    let mut seals: Vec<&Seal<'_>> = Vec::new();
    for (place, output) in choice.outputs.iter().enumerate() {
        match output {
            // Half a call is no call: an agent would run it.
            OutputBlock::Call(_) if choice.cut.contains(&place) => {}
            OutputBlock::Text { text, .. } => {
                let at = seals.iter().position(|seal| seal.bound == NEXT_TEXT);
                let seal = at.map(|at| seals.remove(at));
                list.object(|one| {
                    one.text("text", text);
                    signature(one, seal);
                });
            }
            OutputBlock::Refusal(text) => list.object(|one| one.text("text", text)),
            OutputBlock::Thought(thought) => {
                let bound =
                    thought.seal.as_ref().filter(|seal| seal.origin == SealMaker::Gemini && !seal.bound.is_empty());
                seals.extend(bound);
                if bound.is_none() || !thought.text.is_empty() {
                    list.object(|one| {
                        one.text("text", &thought.text);
                        one.bool("thought", true);
                        let seal = thought.seal.as_ref().filter(|_| bound.is_none());
                        signature(one, seal.map(|seal| seal.with_signed(thought.redacted, "")).as_deref());
                    });
                }
            }
            OutputBlock::Call(call) => {
                let at = seals.iter().position(|seal| seal.bound == call.id);
                let seal = at.map(|at| seals.remove(at));
                list.object(|one| write_call(one, call, seal));
            }
            OutputBlock::Image { mime, base64 } => list.object(|one| write_image(one, mime, base64)),
            OutputBlock::Audio(_) | OutputBlock::Search(_) | OutputBlock::Foreign { .. } => {}
        }
    }
}

pub(super) fn signature(one: &mut Object<'_>, seal: Option<&Seal<'_>>) {
    if let Some(seal) = seal {
        one.text("thoughtSignature", &seal.written(Dialect::Gemini));
    }
}

pub(super) fn write_call(one: &mut Object<'_>, call: &ToolCall<'_>, seal: Option<&Seal<'_>>) {
    one.object("functionCall", |inner| {
        inner.text("id", &call.id);
        inner.text("name", &call.name);
        inner.raw("args", &input(call));
    });
    signature(one, seal);
}

pub(super) fn write_image(one: &mut Object<'_>, mime: &str, base64: &str) {
    one.object("inlineData", |inner| {
        inner.text("mimeType", mime);
        inner.text("data", base64);
    });
}

/// `finishReason`, and what is said about a refusal.
pub(super) fn finish(one: &mut Object<'_>, finish: Option<&Finish<'_>>, refused: bool) {
    let reason = match Finish::stop_of(finish, false, refused) {
        Stop::Length | Stop::Context => "MAX_TOKENS",
        Stop::Filter => "SAFETY",
        Stop::Malformed => "MALFORMED_FUNCTION_CALL",
        Stop::Pause => "CONTINUATION",
        Stop::End | Stop::Sequence | Stop::Tools => "STOP",
    };
    one.text("finishReason", finish.and_then(|finish| finish.own(Dialect::Gemini)).unwrap_or(reason));
    if let Some(details) = finish.and_then(|finish| finish.details.as_ref()) {
        let said: Vec<&str> =
            [&details.category, &details.explanation].into_iter().flatten().map(|text| &**text).collect();
        if !said.is_empty() {
            one.text("finishMessage", &said.join(": "));
        }
    }
}

/// Links as grounding, their places in bytes, and what was searched for.
pub(super) fn grounding(one: &mut Object<'_>, all: &[&Citation<'_>], searched: &[&str], text: &str) {
    let links: Vec<_> = all
        .iter()
        .filter_map(|cite| match cite {
            Citation::Url { url, title, from, to, .. } => Some((url, title, from, to)),
            Citation::Foreign { .. } => None,
        })
        .collect();
    if links.is_empty() && searched.is_empty() {
        return;
    }
    one.object("groundingMetadata", |grounding| {
        if !searched.is_empty() {
            grounding.array("webSearchQueries", |list| searched.iter().for_each(|query| list.text(query)));
        }
        grounding.array("groundingChunks", |list| {
            for (url, title, ..) in &links {
                list.object(|chunk| {
                    chunk.object("web", |web| {
                        web.text("uri", url);
                        web.text("title", title);
                    });
                });
            }
        });
        grounding.array("groundingSupports", |list| {
            for (at, (_, _, from, to)) in links.iter().enumerate() {
                let Some(to) = to else { continue };
                list.object(|support| {
                    support.object("segment", |segment| {
                        segment.number("startIndex", cites::bytes_before(text, from.unwrap_or(0)));
                        segment.number("endIndex", cites::bytes_before(text, *to));
                    });
                    support.raw("groundingChunkIndices", &format!("[{at}]"));
                });
            }
        });
    });
}
