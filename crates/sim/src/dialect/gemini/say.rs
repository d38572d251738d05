//! A reply as one generateContent answer, or as a stream of fragments of it.

use serde_json::{Value, json};

use super::super::stream::{Beat, Role};
use super::super::{Dialect, Said, usage};
use super::contents::made_for;
use crate::made::Made;
use crate::scenario::Scenario as S;

pub(in super::super) fn object(said: &Said<'_>) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    let thoughts = said.thoughts();
    if !thoughts.is_empty() && said.ask.shows_thoughts {
        parts.push(json!({"text": thoughts, "thought": true}));
    }
    let text = said.speech.text();
    if !(text.is_empty() || said.speech.refused || said.speech.made.is_voice()) {
        parts.push(text_part(said, &text, true));
    }
    parts.extend(drawn(said));
    parts.extend(calls(said));
    let mut reply = answer(said, &parts, Some(finish(said)));
    if let Some(usage) = usage::reported(Dialect::Gemini, said) {
        reply["usageMetadata"] = usage;
    }
    reply
}

pub(in super::super) fn beats(said: &Said<'_>) -> Vec<Beat> {
    let speech = said.speech;
    let mut parts = said_in_order(said);
    let reason = if said.choice.is(S::NoFinish) { None } else { Some(finish(said)) };
    // What is said last comes with the reason of the stop and the final usage, as from Google;
    // apart where the stream is bent by its pieces.
    let last = if bent_by_pieces(said) { None } else { parts.pop() };
    let piece = |(part, spoken): (Value, u64)| {
        let mut data = answer(said, &[part], None);
        if !matches!(said.choice.scenario, S::NoUsage | S::WrongUsage) {
            data["usageMetadata"] = usage::of(Dialect::Gemini, said, spoken.min(speech.completion_tokens));
        }
        Beat::new(Role::Piece, "", data)
    };
    let mut beats: Vec<Beat> = parts.into_iter().map(piece).collect();
    let mut end = answer(said, last.map(|(part, _)| part).as_slice(), reason);
    if let Some(usage) = usage::reported(Dialect::Gemini, said) {
        end["usageMetadata"] = usage;
    }
    // There is no mark of an end; the last fragment is it, and `no_done` changes nothing.
    let role = if reason.is_some() { Role::Finish } else { Role::Frame };
    beats.push(Beat::new(role, "", end));
    beats
}

/// The parts of the answer, each with the tokens spoken by then.
fn said_in_order(said: &Said<'_>) -> Vec<(Value, u64)> {
    let speech = said.speech;
    let mut parts = Vec::new();
    if said.ask.shows_thoughts {
        for (at, word) in speech.reasoning.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            parts.push((json!({"text": format!("{space}{word}"), "thought": true}), 1));
        }
    }
    let mut spoken = speech.reasoning_tokens;
    let last = speech.pieces.len();
    let words = speech.completion_tokens.saturating_sub(speech.reasoning_tokens);
    for (at, text) in speech.pieces.iter().enumerate().filter(|_| !(speech.refused || speech.made.is_voice())) {
        spoken = speech.reasoning_tokens + words * (at as u64 + 1) / last as u64;
        parts.push((text_part(said, text, at + 1 == last), spoken));
    }
    parts.extend(drawn(said).map(|part| (part, spoken)));
    for part in calls(said) {
        spoken += 1;
        parts.push((part, spoken));
    }
    parts
}

/// The scenario counts, repeats or swells pieces, or leaves the last fragment out.
fn bent_by_pieces(said: &Said<'_>) -> bool {
    matches!(
        said.choice.scenario,
        S::NoFinish | S::Faststream | S::HugeLine | S::ErrorMidstream | S::CutMidstream | S::HangMidstream
    )
}

fn text_part(said: &Said<'_>, text: &str, last: bool) -> Value {
    let mut part = json!({"text": text});
    if last && !said.speech.reasoning.is_empty() {
        part["thoughtSignature"] = json!(made_for(&part));
    }
    part
}

/// The picture or the voice, where one was asked for.
fn drawn(said: &Said<'_>) -> Option<Value> {
    let made = &said.speech.made;
    let kind = if made.is_voice() { "audio/L16;codec=pcm;rate=24000" } else { "image/png" };
    let part = || json!({"inlineData": {"mimeType": kind, "data": made.letters()}});
    (*made != Made::Nothing && !said.speech.refused).then(part)
}

/// Calls have ids where the model thinks, as from Gemini 3 on; only the first of several is signed.
fn calls(said: &Said<'_>) -> Vec<Value> {
    let thinks = !said.speech.reasoning.is_empty() || said.ask.model.starts_with("gemini-3");
    let part = |(place, call): (usize, &crate::speech::Call)| {
        let args: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let mut part = json!({"functionCall": {"name": call.name, "args": args}});
        if thinks && place == 0 {
            part["thoughtSignature"] = json!(made_for(&part));
        }
        if thinks {
            part["functionCall"]["id"] = json!(call.id);
        }
        part
    };
    said.speech.calls.iter().enumerate().map(part).collect()
}

fn finish(said: &Said<'_>) -> &'static str {
    match said.speech.finish {
        _ if said.speech.refused => "SAFETY",
        "length" => "MAX_TOKENS",
        _ => "STOP",
    }
}

fn answer(said: &Said<'_>, parts: &[Value], finish: Option<&str>) -> Value {
    let head = json!({"modelVersion": said.model(), "responseId": said.id("")});
    let mut reply = head;
    if said.choice.is(S::Refused) && said.choice.text("kind") == Some("prompt") {
        reply["promptFeedback"] = json!({"blockReason": "PROHIBITED_CONTENT", "safetyRatings": []});
        return reply;
    }
    let candidate = |index: u64| {
        let mut candidate = json!({"index": index});
        if !parts.is_empty() {
            candidate["content"] = json!({"role": "model", "parts": parts});
        }
        if let Some(reason) = finish {
            candidate["finishReason"] = json!(reason);
        }
        candidate
    };
    reply["candidates"] = (0..said.ask.choices).map(candidate).collect();
    reply
}
