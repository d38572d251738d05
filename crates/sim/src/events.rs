//! A streamed reply as a script: the chunks OpenAI sends in the order it sends them, then bent as
//! the scenario says.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::dialect::priced;
use crate::refusal::Refusal;
use crate::reply::{CREATED, reply_model};
use crate::scenario::{Choice, Scenario as S};
use crate::script::{Ending, Step};
use crate::speech::{Call, Speech};

/// Long enough for the caller to have read what was sent before the cut.
const BEFORE_CUT: Duration = Duration::from_millis(20);

pub(crate) fn script(ask: &Ask, choice: &Choice, speech: &Speech, id: &str) -> (Vec<Step>, Ending) {
    let chunks = Chunks { ask, choice, id };
    let mut content = chunks.content(speech);
    let fault = matches!(choice.scenario, S::ErrorMidstream | S::CutMidstream | S::HangMidstream);
    if fault {
        content.truncate(choice.count("after", 3).saturating_mul(chunks.count()));
    }
    let mut out = Out::new(choice);
    match choice.scenario {
        S::ErrorFirst => {
            out.event(&error(choice));
            return (out.steps, Ending::Broken);
        }
        S::Garbage => return (vec![Step::Send(garbage(choice))], Ending::Broken),
        _ => {}
    }
    for index in 0..ask.choices {
        let content = if speech.calls.is_empty() { json!("") } else { Value::Null };
        let role = json!({"role": "assistant", "content": content, "refusal": null});
        out.event(&chunks.delta(index, role, Value::Null));
    }
    let delay = choice.millis("delay_ms").unwrap_or(match choice.scenario {
        S::Slow => Duration::from_millis(100),
        _ => Duration::ZERO,
    });
    for chunk in &content {
        out.steps.push(Step::Wait(delay));
        out.event(chunk);
    }
    match choice.scenario {
        S::ErrorMidstream => out.event(&error(choice)),
        S::CutMidstream => out.steps = cut(out.steps, choice),
        S::HangMidstream => out.steps.push(Step::Silence),
        S::HugeLine => {
            let head =
                r#"data: {"id":"sim","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""#;
            out.steps.extend(huge(head, "\"}}]}\n\n", choice));
        }
        _ => {}
    }
    if fault {
        return (out.steps, Ending::Broken);
    }
    chunks.end(speech, &mut out);
    (out.steps, Ending::Proper)
}

/// The error a provider puts into a stream, or into a 200.
pub(crate) fn error(choice: &Choice) -> Value {
    let text = "The server had an error while processing your request on sim-worker-3.internal.";
    Refusal::new(500, text).with_code(choice.text("code").or(Some("server_error"))).json()
}

pub(crate) fn cut(mut steps: Vec<Step>, choice: &Choice) -> Vec<Step> {
    steps.push(Step::Wait(BEFORE_CUT));
    match choice.text("cut") {
        // The body just ends: over HTTP/1 with its last chunk, as if it were complete.
        Some("eof") => {}
        Some("fin") => steps.push(Step::Cut { reset: false }),
        _ => steps.push(Step::Cut { reset: true }),
    }
    steps
}

pub(crate) fn huge(head: &str, tail: &str, choice: &Choice) -> Vec<Step> {
    let piece = Bytes::from(vec![b'x'; 64 << 10]);
    let mebibytes = choice.number("mib").unwrap_or(0);
    let times = if mebibytes == 0 { u64::MAX } else { mebibytes.saturating_mul(16) };
    vec![Step::Send(head.to_string().into()), Step::Repeat(piece, times), Step::Send(tail.to_string().into())]
}

pub(crate) fn garbage(choice: &Choice) -> Bytes {
    match choice.text("kind") {
        Some("binary") => (0..4096_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect(),
        Some("json") => Bytes::from_static(b"data: {\"id\": oops, \"choices\": [}\n\n"),
        Some("truncated") => Bytes::from_static(b"data: {\"id\":\"chatcmpl-sim\",\"choices\":[{\"ind"),
        _ => Bytes::from_static(b"upstream connect error or disconnect/reset before headers\n"),
    }
}

/// The text in pieces that end inside a character wherever there is one of several bytes.
pub(crate) fn split_characters(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = Bytes::copy_from_slice(text.as_bytes());
    while let Some(place) = rest.iter().position(|byte| *byte >= 0xC0) {
        steps.push(Step::Send(rest.split_to(place + 1)));
    }
    steps.push(Step::Send(rest));
    steps
}

/// Makes the chunks of one reply; they share id, time and model.
struct Chunks<'a> {
    ask: &'a Ask,
    choice: &'a Choice,
    id: &'a str,
}

impl Chunks<'_> {
    fn count(&self) -> usize {
        usize::try_from(self.ask.choices).unwrap_or(1)
    }

    fn chunk(&self, choices: Value, usage: Option<Value>) -> Value {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": CREATED,
            "model": reply_model(self.ask, self.choice), "choices": choices,
            "service_tier": "default", "system_fingerprint": "fp_sim",
        });
        match usage {
            Some(usage) => chunk["usage"] = usage,
            None if self.ask.include_usage && !self.choice.is(S::NoUsage) => chunk["usage"] = Value::Null,
            None => {}
        }
        chunk
    }

    fn delta(&self, index: u64, delta: Value, finish: Value) -> Value {
        self.chunk(json!([{"index": index, "delta": delta, "logprobs": null, "finish_reason": finish}]), None)
    }

    /// Everything between the role and the finish, for all choices in turn.
    fn content(&self, speech: &Speech) -> Vec<Value> {
        let mut deltas = Vec::new();
        for (place, word) in speech.reasoning.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            deltas.push(json!({"reasoning_content": format!("{space}{word}")}));
        }
        let said = if speech.refused { "refusal" } else { "content" };
        match speech.made.voice_pieces(&speech.pieces) {
            Some(voice) => deltas.extend(voice),
            None => deltas.extend(speech.pieces.iter().map(|piece| json!({said: piece}))),
        }
        for (place, call) in speech.calls.iter().enumerate() {
            deltas.extend(fragments(place, call));
        }
        let of_choices = |delta: Value| (0..self.ask.choices).map(move |index| (index, delta.clone()));
        let all = deltas.into_iter().flat_map(of_choices);
        all.map(|(index, delta)| self.delta(index, delta, Value::Null)).collect()
    }

    /// Finish, usage and `[DONE]`, each as the scenario has it.
    fn end(&self, speech: &Speech, out: &mut Out<'_>) {
        let scenario = self.choice.scenario;
        for index in 0..self.ask.choices {
            let mut chunk = self.delta(index, json!({}), Value::from(speech.finish));
            if scenario == S::UsageOnContentChunk && index + 1 == self.ask.choices {
                chunk["usage"] = speech.usage();
            }
            if scenario != S::NoFinish {
                out.event(&chunk);
            }
        }
        if self.ask.include_usage {
            for usage in usages(self.choice, speech) {
                out.event(&self.chunk(json!([]), Some(usage)));
            }
        }
        if scenario != S::NoDone {
            out.line("[DONE]");
        }
        if scenario == S::AfterDone {
            out.event(&self.delta(0, json!({"content": " afterthought"}), Value::Null));
            out.event(&self.chunk(json!([]), Some(speech.usage_of(speech.completion_tokens + 1000))));
            out.line("[DONE]");
        }
    }
}

fn usages(choice: &Choice, speech: &Speech) -> Vec<Value> {
    match choice.scenario {
        S::NoUsage | S::UsageOnContentChunk => vec![],
        S::WrongUsage => vec![speech.wrong_usage(choice.text("kind").unwrap_or_default())],
        S::ZeroUsageLast => vec![speech.usage(), Speech::zero_usage()],
        S::TwoUsages => vec![speech.usage_of(speech.completion_tokens / 2), speech.usage()],
        S::Priced => vec![priced(speech.usage())],
        _ => vec![speech.usage()],
    }
}

/// The name first, then the arguments a few bytes at a time.
fn fragments(place: usize, call: &Call) -> Vec<Value> {
    let (kind, body) = call.kind();
    let first = json!({"index": place, "id": call.id, "type": kind, kind: {"name": call.name, body: ""}});
    let later = call.pieces().into_iter().map(|text| json!({"index": place, kind: {body: text}}));
    std::iter::once(first).chain(later).map(|call| json!({"tool_calls": [call]})).collect()
}

/// Collects steps, framing each event the way the scenario does.
pub(crate) struct Out<'a> {
    choice: &'a Choice,
    pub steps: Vec<Step>,
    events: u64,
}

impl<'a> Out<'a> {
    pub fn new(choice: &'a Choice) -> Self {
        Self { choice, steps: Vec::new(), events: 0 }
    }

    fn event(&mut self, chunk: &Value) {
        self.named("", chunk);
    }

    /// An event with its `event:` line, where the dialect has one.
    pub fn named(&mut self, name: &str, chunk: &Value) {
        if self.choice.is(S::Framing) && self.events % 2 == 1 {
            let lines = serde_json::to_string_pretty(chunk).unwrap_or_default();
            let data: String = lines.lines().map(|line| format!("data: {line}\n")).collect();
            self.events += 1;
            self.steps.push(Step::Send(format!("{}{data}\n", event_line(name, "\n")).into()));
        } else {
            self.frame(name, &chunk.to_string());
        }
    }

    pub fn line(&mut self, data: &str) {
        self.frame("", data);
    }

    fn frame(&mut self, name: &str, data: &str) {
        let first = self.events == 0;
        self.events += 1;
        let head = event_line(name, "\n");
        let odd = if name.is_empty() { "event: message\n" } else { &head };
        let text = match self.choice.scenario {
            S::Crlf if self.choice.text("kind") == Some("cr") => format!("{}data: {data}\r\r", event_line(name, "\r")),
            S::Crlf => format!("{}data: {data}\r\n\r\n", event_line(name, "\r\n")),
            S::Comments if first => format!(": first\n\n: PROCESSING\n{head}data: {data}\n: inside\n\n"),
            S::Comments => format!(":\n: PROCESSING\n\n{head}data: {data}\n\n"),
            S::Framing if first => format!("\u{feff}retry: 1000\n{odd}data:{data}\n\n"),
            S::Framing => format!("id: {}\n{odd}data:{data}\n\n", self.events),
            S::SplitUtf8 => {
                for step in split_characters(&format!("{head}data: {data}\n\n")) {
                    self.steps.push(step);
                    self.steps.push(Step::Wait(Duration::from_millis(1)));
                }
                return;
            }
            _ => format!("{head}data: {data}\n\n"),
        };
        self.steps.push(Step::Send(text.into()));
    }
}

fn event_line(name: &str, end: &str) -> String {
    if name.is_empty() { String::new() } else { format!("event: {name}{end}") }
}
