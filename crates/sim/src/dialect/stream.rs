//! Streamed replies: the events a dialect sends in the order it sends them, then bent as the
//! scenario says.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Asked, Dialect, Said, anthropic, error, gemini, responses};
use crate::events::{self, Out};
use crate::refusal::Refusal;
use crate::scenario::{Choice, Scenario as S};
use crate::script::{Ending, Step};

/// What an event is for, which is all a scenario has to know of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Before any content.
    Head,
    /// A piece of content.
    Piece,
    /// The frame around pieces: openings and closings.
    Frame,
    /// Says why it stops.
    Finish,
    /// Says that it is over.
    End,
}

pub(super) struct Beat {
    pub role: Role,
    /// Of the `event:` line; empty where there is none.
    pub name: &'static str,
    pub data: Value,
}

impl Beat {
    pub fn new(role: Role, name: &'static str, data: Value) -> Self {
        Self { role, name, data }
    }
}

pub(super) fn script(asked: &Asked, said: &Said<'_>) -> (Vec<Step>, Ending) {
    let choice = said.choice;
    let mut beats = match asked.dialect {
        Dialect::Anthropic => anthropic::beats(said),
        Dialect::Responses => responses::beats(said),
        Dialect::Gemini => gemini::beats(said),
    };
    let broken = match choice.scenario {
        S::Garbage => return (vec![Step::Send(events::garbage(choice))], Ending::Broken),
        S::Faststream => return (quickly(choice, beats), Ending::Proper),
        S::ErrorFirst => {
            beats.clear();
            true
        }
        S::ErrorMidstream | S::CutMidstream | S::HangMidstream => {
            beats.truncate(until(&beats, choice.count("after", 3)));
            true
        }
        S::NoDone => {
            beats.retain(|beat| beat.role != Role::End);
            false
        }
        S::NoFinish => {
            beats.retain(|beat| beat.role != Role::Finish);
            false
        }
        _ => false,
    };
    if matches!(choice.scenario, S::ErrorFirst | S::ErrorMidstream) {
        beats.extend(failures(asked.dialect, said, beats.len()));
    }
    let mut steps = if asked.sse { framed(asked.dialect, said, &beats) } else { listed(choice, &beats, broken) };
    match choice.scenario {
        S::CutMidstream => steps = events::cut(steps, choice),
        S::HangMidstream => steps.push(Step::Silence),
        _ => {}
    }
    (steps, if broken { Ending::Broken } else { Ending::Proper })
}

/// How many events there are up to the nth piece; without pieces, those in front of all content.
fn until(beats: &[Beat], pieces: usize) -> usize {
    let head = beats.iter().take_while(|beat| beat.role == Role::Head).count();
    let ends = beats.iter().enumerate().filter(|(_, beat)| beat.role == Role::Piece).map(|(at, _)| at + 1);
    ends.take(pieces).last().unwrap_or(head)
}

/// The error a provider puts into a stream, or into a 200.
pub(super) fn failure(choice: &Choice) -> Refusal {
    let text = "The server had an error while processing your request on sim-worker-3.internal.";
    Refusal::new(500, text).with_code(choice.text("code").or(Some("server_error")))
}

fn failures(dialect: Dialect, said: &Said<'_>, sequence: usize) -> Vec<Beat> {
    let refusal = failure(said.choice);
    match dialect {
        Dialect::Anthropic => vec![Beat::new(Role::End, "error", error::body(dialect, &refusal, &[]))],
        Dialect::Responses => responses::failures(said, &refusal, sequence),
        Dialect::Gemini => vec![Beat::new(Role::End, "", error::body(dialect, &refusal, &[]))],
    }
}

fn framed(dialect: Dialect, said: &Said<'_>, beats: &[Beat]) -> Vec<Step> {
    let choice = said.choice;
    let mut out = Out::new(choice);
    let last_piece = beats.iter().rposition(|beat| beat.role == Role::Piece);
    for (at, beat) in beats.iter().enumerate() {
        let says = beat.role == Role::Piece || beat.data.pointer("/candidates/0/content").is_some();
        if says {
            out.steps.push(Step::Wait(delay(choice)));
        }
        if beat.data.get("error").is_some() && choice.text("kind") == Some("bare") {
            // As Google itself does: an error page in the middle of the events.
            let page = serde_json::to_string_pretty(&beat.data).unwrap_or_default();
            out.steps.push(Step::Send(format!("{page}\n").into()));
            continue;
        }
        out.named(beat.name, &beat.data);
        if choice.is(S::HugeLine) && last_piece == Some(at) {
            let (head, tail) = around(beat);
            out.steps.extend(events::huge(&head, &tail, choice));
        }
    }
    if choice.is(S::NoFinish) && dialect == Dialect::Responses {
        out.line("[DONE]");
    }
    if choice.is(S::AfterDone) {
        for beat in beats.iter().filter(|beat| matches!(beat.role, Role::Piece | Role::Finish | Role::End)) {
            out.named(beat.name, &beat.data);
        }
    }
    out.steps
}

/// The text of an event up to its piece of text, and after it.
fn around(beat: &Beat) -> (String, String) {
    let mut data = beat.data.clone();
    let mark = "@@piece@@";
    for place in ["/delta/text", "/delta", "/candidates/0/content/parts/0/text"] {
        if let Some(text @ Value::String(_)) = data.pointer_mut(place) {
            *text = json!(mark);
            break;
        }
    }
    let name = if beat.name.is_empty() { String::new() } else { format!("event: {}\n", beat.name) };
    let text = format!("{name}data: {data}\n\n");
    let (head, tail) = text.split_once(mark).unwrap_or((&text, ""));
    (head.to_string(), tail.to_string())
}

/// One JSON list, handed out entry by entry; an error ends it without its bracket.
fn listed(choice: &Choice, beats: &[Beat], broken: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for (at, beat) in beats.iter().enumerate() {
        steps.push(Step::Wait(delay(choice)));
        let before = if at == 0 { "[" } else { ",\n" };
        steps.push(Step::Send(format!("{before}{}", beat.data).into()));
    }
    if !broken {
        steps.push(Step::Send("]".into()));
    }
    steps
}

/// The first piece again and again, as fast as it is taken.
fn quickly(choice: &Choice, beats: Vec<Beat>) -> Vec<Step> {
    let mut steps = Vec::new();
    let times = choice.number("chunks").unwrap_or(100);
    let mut repeated = false;
    for beat in beats {
        let event = if beat.name.is_empty() { String::new() } else { format!("event: {}\n", beat.name) };
        let bytes = Bytes::from(format!("{event}data: {}\n\n", beat.data));
        match beat.role {
            Role::Piece if std::mem::replace(&mut repeated, true) => {}
            Role::Piece => steps.push(Step::Repeat(bytes, times)),
            _ => steps.push(Step::Send(bytes)),
        }
    }
    steps
}

fn delay(choice: &Choice) -> Duration {
    choice.millis("delay_ms").unwrap_or(match choice.scenario {
        S::Slow => Duration::from_millis(100),
        _ => Duration::ZERO,
    })
}
