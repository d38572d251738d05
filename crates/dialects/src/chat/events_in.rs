//! Chat replies and chunks read as events.
//!
//! Compatible servers differ most in how they send tool calls: the same index for different calls,
//! no index, no id, the id in every fragment, arguments as an object. All of these are
//! distinguished here, so that writers see numbered calls.

use super::known;
use super::turns_in::{arguments, read_detail};
use crate::hub::{
    CallKind, Citation, Details, Event, Finish, ObjectTracker, Rest, Sink, Stop, Thought, made_id, owned_seal,
};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::{Node, Scan};
use tollgate_wire::usage::{UsageReport, UsageShape};

/// Choices beyond this are nobody's.
pub(super) const MOST_CHOICES: u64 = 128;
/// Calls beyond this in one choice are not read.
const MOST_CALLS: usize = 512;

#[derive(Debug)]
pub(crate) struct ChatReader {
    /// The call of ours that is answered.
    call: String,
    choices: Vec<Choice>,
}

#[derive(Debug, Default)]
struct Choice {
    /// What tells its calls from those of other choices and answers.
    turn: String,
    calls: Vec<Call>,
    thinking: bool,
    output: bool,
    finished: bool,
}

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: String,
    opened: bool,
    args: bool,
    whole: ObjectTracker,
}

/// What MiniMax says beside an answer, or in the place of one.
pub(crate) fn failed(node: &Node<'_>) -> Option<UpstreamError> {
    UpstreamError::base_resp(&mut Scan::new(node.get("base_resp")?.raw.as_bytes())).ok()?
}

impl ChatReader {
    pub fn new(call: &str) -> Self {
        ChatReader { call: call.to_owned(), choices: Vec::new() }
    }

    /// Reads one chunk, or a whole reply.
    pub fn read(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        if let Some(error) = node.get("error") {
            let whole = UpstreamError::read(node.raw.as_bytes());
            let text = error.text().map(|text| text.to_string());
            let alone = || UpstreamError { message: text.unwrap_or_default(), ..UpstreamError::default() };
            sink(Event::Fail(Box::new(whole.unwrap_or_else(alone))));
            return;
        }
        if let Some(error) = failed(node) {
            sink(Event::Fail(Box::new(error)));
            return;
        }
        if node.get("choices").is_none() && (node.str_of("object") == "error" || node.str_of("type") == "error") {
            sink(Event::Fail(Box::new(UpstreamError::read(node.raw.as_bytes()).unwrap_or_default())));
            return;
        }
        // Before the start, which some dialects tell it with.
        if let Some(tier) = node.text_of("service_tier") {
            sink(Event::Tier(tier.clone()));
        }
        if let Some(choices) = node.get("choices") {
            if !choices.items().is_empty() {
                let text = |name| node.text_of(name).cloned().unwrap_or_default();
                sink(Event::Start { id: text("id"), model: text("model") });
            }
            for choice in choices.items() {
                self.choice(choice, sink);
            }
        }
        usage(node, sink);
        sink(Event::Rest(Rest { node, known: known::REPLY }));
    }

    fn choice(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        let index = node.get("index").and_then(Node::number).unwrap_or(0);
        if index >= MOST_CHOICES || !node.is_map() {
            sink(Event::Lost { what: Cow::Borrowed("choices") });
            return;
        }
        let (number, at) = (index as u32, index as usize);
        for other in self.choices.len()..=at {
            self.choices.push(Choice { turn: format!("{}/{other}", self.call), ..Choice::default() });
        }
        let choice = &mut self.choices[at];
        if let Some(delta) = node.get("delta").or_else(|| node.get("message")) {
            choice.delta(delta, number, sink);
        }
        let logprobs = node.get("logprobs").and_then(|logprobs| logprobs.get("content"));
        if let Some(list) = logprobs.filter(|list| !list.items().is_empty()) {
            sink(Event::Logprobs { choice: number, raw: Cow::Borrowed(list.raw) });
        }
        if let Some(reason) = node.text_of("finish_reason") {
            let finish = Finish::new(Dialect::Chat, stop(reason), reason.clone());
            let mut finish = Finish { details: Details::read(node), ..finish };
            // Some servers name the sequence that was met.
            if let Some(met) = node.text_of("stop_reason").filter(|_| finish.stop == Stop::End) {
                finish = Finish { stop: Stop::Sequence, sequence: Some(met.clone()), ..finish };
            }
            choice.finish(number, finish, sink);
        }
        usage(node, sink);
    }

    /// `[DONE]`: choices that were never finished are finished now. False when nothing was said at
    /// all.
    pub fn done(&mut self, sink: &mut Sink<'_>) -> bool {
        let mut any = false;
        for (at, choice) in self.choices.iter_mut().enumerate() {
            any |= choice.output || choice.finished;
            if choice.output && !choice.finished {
                choice.finish(at as u32, Finish::new(Dialect::Chat, Stop::End, Cow::Borrowed("stop")), sink);
            }
        }
        if any {
            sink(Event::End);
        }
        any
    }

    /// How many choices have ended.
    pub fn ended(&self) -> u64 {
        self.choices.iter().filter(|choice| choice.finished).count() as u64
    }

    /// Every choice that began has ended.
    pub fn finished(&self) -> bool {
        !self.choices.is_empty() && self.choices.iter().all(|choice| choice.finished)
    }
}

fn usage(node: &Node<'_>, sink: &mut Sink<'_>) {
    let report = node.get("usage").and_then(|usage| UsageReport::read(UsageShape::Chat, usage.raw.as_bytes()));
    if let Some(report) = report {
        sink(Event::Usage(Box::new(report)));
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "length" => Stop::Length,
        "tool_calls" | "function_call" => Stop::Tools,
        "content_filter" => Stop::Filter,
        _ => Stop::End,
    }
}

impl Choice {
    fn delta(&mut self, delta: &Node<'_>, choice: u32, sink: &mut Sink<'_>) {
        self.thoughts(delta, choice, sink);
        if let Some(content) = delta.get("content") {
            if let Some(text) = content.text().filter(|text| !text.is_empty()) {
                self.said(choice, sink);
                sink(Event::Text { choice, text: text.clone() });
            }
            for part in content.items() {
                self.part(part, choice, sink);
            }
        }
        if let Some(text) = delta.text_of("refusal").filter(|text| !text.is_empty()) {
            self.said(choice, sink);
            sink(Event::Refusal { choice, text: text.clone() });
        }
        for note in delta.get("annotations").map_or(&[][..], Node::items) {
            sink(Event::Cite { choice, citation: citation(note) });
        }
        for image in delta.get("images").map_or(&[][..], Node::items) {
            let url = image.get("image_url").and_then(|inner| inner.text().or_else(|| inner.text_of("url")));
            self.said(choice, sink);
            match url.map(crate::hub::place_of_url) {
                Some(crate::hub::MediaSource::Data { mime, base64 }) => sink(Event::Image { choice, mime, base64 }),
                // Nobody else gives an answer's image by its address, and we fetch nothing.
                _ => sink(foreign(choice, "images", image)),
            }
        }
        if let Some(audio) = delta.get("audio").filter(|audio| audio.is_map()) {
            self.said(choice, sink);
            sink(Event::Audio { choice, raw: Cow::Borrowed(audio.raw) });
        }
        for fragment in delta.get("tool_calls").map_or(&[][..], Node::items) {
            self.said(choice, sink);
            self.call(fragment, choice, sink);
        }
        if let Some(call) = delta.get("function_call") {
            self.said(choice, sink);
            self.fragment(0, None, call, CallKind::Function, choice, sink);
        }
    }

    /// One part of a content that is a list, as some servers send it.
    fn part(&mut self, part: &Node<'_>, choice: u32, sink: &mut Sink<'_>) {
        if part.str_of("type") == "thinking" {
            return self.thinking(part, choice, sink);
        }
        let text = |name| part.text_of(name).filter(|text| !text.is_empty()).cloned();
        let event = match (text("text"), text("refusal")) {
            (Some(text), _) => Event::Text { choice, text },
            (None, Some(text)) => Event::Refusal { choice, text },
            (None, None) if matches!(part.str_of("type"), "text" | "refusal") => return,
            (None, None) => {
                foreign(choice, Some(part.str_of("type")).filter(|kind| !kind.is_empty()).unwrap_or("content"), part)
            }
        };
        self.said(choice, sink);
        sink(event);
    }

    /// A thought in a part of its own: a text, or texts in parts.
    fn thinking(&mut self, part: &Node<'_>, choice: u32, sink: &mut Sink<'_>) {
        let Some(inner) = part.get("thinking") else { return };
        let texts = inner.items().iter().filter_map(|one| one.text_of("text")).chain(inner.text());
        for text in texts.filter(|text| !text.is_empty()) {
            self.output = true;
            self.thinking = true;
            sink(Event::Thought { choice, text: text.clone(), summary: false });
        }
    }

    /// Something other than a thought follows.
    fn said(&mut self, choice: u32, sink: &mut Sink<'_>) {
        self.output = true;
        if std::mem::take(&mut self.thinking) {
            sink(Event::ThoughtEnd { choice, seal: None, redacted: false });
        }
    }

    fn thoughts(&mut self, delta: &Node<'_>, choice: u32, sink: &mut Sink<'_>) {
        let details = delta.get("reasoning_details").map_or(&[][..], Node::items);
        let mut any = false;
        for detail in details {
            let mut thoughts: Vec<Thought<'_>> = Vec::new();
            read_detail(detail, &mut thoughts, &mut None);
            for thought in thoughts {
                any = true;
                self.output = true;
                if !thought.text.is_empty() {
                    self.thinking = true;
                    sink(Event::Thought { choice, text: thought.text, summary: thought.summary });
                }
                if let Some(seal) = thought.seal {
                    self.thinking = false;
                    sink(Event::ThoughtEnd { choice, seal: Some(owned_seal(&seal)), redacted: thought.redacted });
                }
            }
        }
        let plain = delta.text_of("reasoning_content").or_else(|| delta.text_of("reasoning"));
        if let Some(text) = plain.filter(|text| !any && !text.is_empty()) {
            self.output = true;
            self.thinking = true;
            sink(Event::Thought { choice, text: text.clone(), summary: false });
        }
    }

    fn call(&mut self, node: &Node<'_>, choice: u32, sink: &mut Sink<'_>) {
        let index = node.get("index").and_then(Node::number);
        let id = node.text_of("id").filter(|id| !id.is_empty());
        let kind = super::ask_in::call_kind(node);
        let inner = node.get(if kind == CallKind::Custom { "custom" } else { "function" });
        let known = match id {
            Some(id) => self.calls.iter().position(|call| call.id == **id).or_else(|| {
                self.calls.iter().position(|call| call.id.is_empty() && call.index == index && index.is_some())
            }),
            None if index.is_some() => self.calls.iter().rposition(|call| call.index == index),
            None => self.calls.len().checked_sub(1),
        };
        let at = known.unwrap_or(self.calls.len());
        if at == self.calls.len() {
            if at >= MOST_CALLS {
                sink(Event::Lost { what: Cow::Borrowed("tool_calls") });
                return;
            }
            self.calls.push(Call {
                index,
                id: String::new(),
                opened: false,
                args: false,
                whole: ObjectTracker::default(),
            });
        }
        if let Some(id) = id
            && self.calls[at].id.is_empty()
        {
            self.calls[at].id = id.to_string();
        }
        let nothing = Node { raw: "{}", kind: tollgate_wire::json::NodeKind::Map(Vec::new()) };
        self.fragment(at, index, inner.unwrap_or(&nothing), kind, choice, sink);
    }

    fn fragment(
        &mut self,
        at: usize,
        index: Option<u64>,
        inner: &Node<'_>,
        kind: CallKind,
        choice: u32,
        sink: &mut Sink<'_>,
    ) {
        if at == self.calls.len() {
            self.calls.push(Call {
                index,
                id: String::new(),
                opened: false,
                args: false,
                whole: ObjectTracker::default(),
            });
        }
        let call = &mut self.calls[at];
        let name = inner.text_of("name").filter(|name| !name.is_empty());
        let args = inner.get(if kind == CallKind::Custom { "input" } else { "arguments" }).map(arguments);
        let args = args.filter(|args| !args.is_empty());
        if !call.opened && (name.is_some() || args.is_some()) {
            call.opened = true;
            let name = name.cloned().unwrap_or_default();
            if call.id.is_empty() {
                call.id = made_id(&self.turn, at, &name, "");
            }
            let id = Cow::Owned(call.id.clone());
            sink(Event::CallOpen { choice, call: at as u32, id, name, namespace: None, kind });
        }
        if let Some(text) = args {
            call.args = true;
            call.whole.feed(&text);
            sink(Event::CallArgs { choice, call: at as u32, text });
        }
    }

    fn finish(&mut self, choice: u32, finish: Finish<'_>, sink: &mut Sink<'_>) {
        if self.finished {
            return;
        }
        self.finished = true;
        if std::mem::take(&mut self.thinking) {
            sink(Event::ThoughtEnd { choice, seal: None, redacted: false });
        }
        let cut = finish.stop.cuts();
        for (at, call) in self.calls.iter().enumerate().filter(|(_, call)| call.opened) {
            if !call.args && !cut {
                sink(Event::CallArgs { choice, call: at as u32, text: Cow::Borrowed("{}") });
            }
            // Half a call has no end.
            if !cut || call.whole.is_whole() {
                sink(Event::CallClose { choice, call: at as u32 });
            }
        }
        let calls = self.calls.iter().any(|call| call.opened);
        sink(Event::Finish { choice, finish: finish.with_calls(calls) });
    }
}

/// Output that only this dialect knows.
fn foreign<'a>(choice: u32, what: &str, node: &Node<'a>) -> Event<'a> {
    let what = Cow::Owned(what.to_owned());
    Event::Foreign { choice, origin: Dialect::Chat, what, raw: Cow::Borrowed(node.raw) }
}

/// `url_citation`, or whatever else stands there.
pub(crate) fn citation<'a>(note: &Node<'a>) -> Citation<'a> {
    let inner = note.get("url_citation").unwrap_or(note);
    match inner.text_of("url") {
        Some(url) if note.str_of("type") == "url_citation" => Citation::Url {
            url: url.clone(),
            title: inner.text_of("title").cloned().unwrap_or_default(),
            from: inner.get("start_index").and_then(Node::number),
            to: inner.get("end_index").and_then(Node::number),
            quote: Cow::Borrowed(""),
            index: Cow::Borrowed(""),
        },
        _ => Citation::Foreign { origin: Dialect::Chat, raw: Cow::Borrowed(note.raw), place: None },
    }
}
