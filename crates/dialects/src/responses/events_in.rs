//! Response objects and streamed events read into the hub.
//!
//! Servers leave out what they please: items that were never announced, arguments only in the last
//! event, the whole output only in the terminal one. Each item is read from the first event that
//! has it and never twice.

use super::items_in::thought;
use super::known;
use crate::hub::{CallKind, Event, Finish, Rest, Sink, Stop};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::Node;
use tollgate_wire::usage::{UsageReport, UsageShape};

/// Items beyond this are not read.
const MOST_ITEMS: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct ResponsesReader {
    items: Vec<Item>,
    calls: u32,
    finished: bool,
}

#[derive(Debug)]
struct Item {
    index: Option<u64>,
    id: String,
    call: Option<u32>,
    /// Some of it was seen as deltas.
    said: bool,
    /// Parts of it that are over, and what of the open one was seen on the way: annotations, log
    /// probabilities.
    parts: usize,
    notes: usize,
    likely: bool,
    done: bool,
    /// Characters of the parts that are over, and of the open one: places count within a part.
    before: u64,
    open: u64,
}

impl Item {
    fn new(index: Option<u64>, id: &str) -> Item {
        Item {
            index,
            id: id.to_owned(),
            call: None,
            said: false,
            parts: 0,
            notes: 0,
            likely: false,
            done: false,
            before: 0,
            open: 0,
        }
    }

    /// A citation in the open part.
    fn cite(&self, note: &Node<'_>, sink: &mut Sink<'_>) {
        let citation = crate::chat::citation(note).moved(|place| place.saturating_add(self.before));
        sink(Event::Cite { choice: 0, citation });
    }
}

impl ResponsesReader {
    /// Reads a whole response object.
    pub fn whole(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        if node.get("output").is_none() && node.get("error").is_some() {
            return fail(node, sink);
        }
        start(node, sink);
        sink(Event::Rest(Rest { node, known: known::RESPONSE }));
        self.end(node, sink);
    }

    /// Reads one streamed event.
    pub fn read(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        let word = node.str_of("type");
        if let Some(known) = known::event(node) {
            sink(Event::Rest(Rest { node, known }));
        }
        match word {
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(response) = node.get("response") {
                    start(response, sink);
                }
            }
            "response.output_item.added" => self.added(node, sink),
            "response.output_item.done" => {
                let at = self.item(node);
                if let (Some(at), Some(item)) = (at, node.get("item")) {
                    self.done(at, item, sink);
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => self.text(node, word, sink),
            "response.output_text.annotation.added" => {
                if let (Some(at), Some(note)) = (self.item(node), node.get("annotation")) {
                    self.items[at].notes += 1;
                    self.items[at].cite(note, sink);
                }
            }
            "response.content_part.done" => {
                if let (Some(at), Some(part)) = (self.item(node), node.get("part")) {
                    self.part_done(at, part, sink);
                }
            }
            "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning.delta"
            | "response.reasoning_summary_part.added" => self.thinks(node, word, sink),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                if let Some(text) = node.text_of("delta").filter(|text| !text.is_empty()) {
                    self.args(node, text.clone(), sink);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                if let Some(response) = node.get("response") {
                    start(response, sink);
                    self.end(response, sink);
                }
            }
            "response.audio.delta" | "response.audio.transcript.delta" => sink(foreign("audio", node)),
            "error" => fail(node, sink),
            "" if node.get("error").is_some() => fail(node, sink),
            // Other news of the response is about items, which come whole when they are done.
            word if word.starts_with("response.") => {}
            "" | "keepalive" | "ping" => {}
            word => sink(Event::Lost { what: Cow::Borrowed(word) }),
        }
    }

    pub fn finished(&self) -> bool {
        self.finished
    }

    /// The item an event speaks of, by index or id; made when it was not announced.
    fn item(&mut self, node: &Node<'_>) -> Option<usize> {
        let index = node.get("output_index").and_then(Node::number);
        let id = node.text_of("item_id").or_else(|| node.get("item")?.text_of("id")).map_or("", |id| id);
        let found = self.items.iter().position(|item| match index {
            Some(_) => item.index == index,
            None => !id.is_empty() && item.id == id,
        });
        if found.is_none() && self.items.len() < MOST_ITEMS {
            self.items.push(Item::new(index, id));
            return Some(self.items.len() - 1);
        }
        found
    }

    fn added(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        let (Some(at), Some(item)) = (self.item(node), node.get("item")) else { return };
        if matches!(item.str_of("type"), "function_call" | "custom_tool_call") {
            self.open_call(at, item, sink);
        }
    }

    fn open_call(&mut self, at: usize, item: &Node<'_>, sink: &mut Sink<'_>) -> u32 {
        if let Some(call) = self.items[at].call {
            return call;
        }
        let call = self.calls;
        self.calls += 1;
        self.items[at].call = Some(call);
        let custom = item.str_of("type") == "custom_tool_call";
        sink(Event::CallOpen {
            choice: 0,
            call,
            id: item.text_of("call_id").or_else(|| item.text_of("id")).cloned().unwrap_or_default(),
            name: item.text_of("name").cloned().unwrap_or_default(),
            namespace: item.text_of("namespace").cloned(),
            kind: if custom { CallKind::Custom } else { CallKind::Function },
        });
        call
    }

    fn text(&mut self, node: &Node<'_>, word: &str, sink: &mut Sink<'_>) {
        let Some(text) = node.text_of("delta").filter(|text| !text.is_empty()) else { return };
        let Some(at) = self.item(node) else { return };
        self.items[at].said = true;
        let text = text.clone();
        if word == "response.refusal.delta" {
            sink(Event::Refusal { choice: 0, text });
        } else {
            self.items[at].open += text.chars().count() as u64;
            sink(Event::Text { choice: 0, text });
        }
        self.items[at].likely |= logprobs(node, sink);
    }

    /// A part whose text came in pieces is over: what is said about the text only now.
    fn part_done(&mut self, at: usize, part: &Node<'_>, sink: &mut Sink<'_>) {
        let item = &mut self.items[at];
        if !item.said || item.done {
            return;
        }
        item.parts += 1;
        let (notes, likely) = (std::mem::take(&mut item.notes), std::mem::take(&mut item.likely));
        for note in part.get("annotations").map_or(&[][..], Node::items).iter().skip(notes) {
            item.cite(note, sink);
        }
        item.before += std::mem::take(&mut item.open);
        if !likely {
            logprobs(part, sink);
        }
    }

    fn thinks(&mut self, node: &Node<'_>, word: &str, sink: &mut Sink<'_>) {
        let Some(at) = self.item(node) else { return };
        let summary = word.starts_with("response.reasoning_summary");
        if word == "response.reasoning_summary_part.added" {
            // A paragraph between the parts, none before the first.
            if self.items[at].said {
                sink(Event::Thought { choice: 0, text: Cow::Borrowed("\n\n"), summary });
            }
            return;
        }
        if let Some(text) = node.text_of("delta").filter(|text| !text.is_empty()) {
            self.items[at].said = true;
            sink(Event::Thought { choice: 0, text: text.clone(), summary });
        }
    }

    fn args(&mut self, node: &Node<'_>, text: Cow<'_, str>, sink: &mut Sink<'_>) {
        let Some(at) = self.item(node) else { return };
        if let Some(call) = self.items[at].call {
            self.items[at].said = true;
            sink(Event::CallArgs { choice: 0, call, text });
        }
    }

    /// A finished item: what was not seen yet, and its end.
    fn done(&mut self, at: usize, item: &Node<'_>, sink: &mut Sink<'_>) {
        if self.items[at].done {
            return;
        }
        let Item { said, parts, .. } = self.items[at];
        match item.str_of("type") {
            "message" => {
                for (number, part) in item.get("content").map_or(&[][..], Node::items).iter().enumerate() {
                    // Texts came as deltas; another part comes only here.
                    if !said || !matches!(part.str_of("type"), "output_text" | "refusal") {
                        whole_part(part, sink);
                    } else if number >= parts {
                        self.part_done(at, part, sink);
                    }
                }
                sink(Event::TextEnd { choice: 0 });
            }
            "function_call" | "custom_tool_call" => {
                let call = self.open_call(at, item, sink);
                if !said {
                    let custom = item.str_of("type") == "custom_tool_call";
                    let args = item.text_of(if custom { "input" } else { "arguments" }).filter(|args| !args.is_empty());
                    let text = args.cloned().unwrap_or(Cow::Borrowed(if custom { "" } else { "{}" }));
                    sink(Event::CallArgs { choice: 0, call, text });
                }
                sink(Event::CallClose { choice: 0, call });
            }
            "reasoning" => {
                let thought = thought(item);
                if !said && !thought.text.is_empty() {
                    sink(Event::Thought { choice: 0, text: thought.text.clone(), summary: thought.summary });
                }
                sink(Event::ThoughtEnd { choice: 0, seal: thought.seal, redacted: thought.redacted });
            }
            other => {
                let query = item.get("action").and_then(|action| action.text_of("query"));
                sink(match query.filter(|_| other == "web_search_call") {
                    Some(query) => Event::Search { choice: 0, query: query.clone() },
                    None => foreign(other, item),
                });
            }
        }
        self.items[at].done = true;
    }

    /// The terminal event or the whole response: what is still missing, usage, and why it ended.
    fn end(&mut self, response: &Node<'_>, sink: &mut Sink<'_>) {
        for (index, item) in response.get("output").map_or(&[][..], Node::items).iter().enumerate() {
            let id = item.str_of("id");
            let known = self
                .items
                .iter()
                .position(|known| known.index == Some(index as u64) || (!id.is_empty() && known.id == id));
            let at = match known {
                Some(at) => at,
                None if self.items.len() < MOST_ITEMS => {
                    self.items.push(Item::new(Some(index as u64), id));
                    self.items.len() - 1
                }
                None => {
                    sink(Event::Lost { what: Cow::Borrowed("output") });
                    break;
                }
            };
            self.done(at, item, sink);
        }
        let report =
            response.get("usage").and_then(|usage| UsageReport::read(UsageShape::Responses, usage.raw.as_bytes()));
        if let Some(report) = report {
            sink(Event::Usage(Box::new(report)));
        }
        let searched = response.get("tool_usage").and_then(|tools| tools.get("web_search")?.get("num_requests"));
        if let Some(count) = searched.and_then(Node::number).filter(|count| *count > 0) {
            sink(Event::Searches { what: "tool_usage", count });
        }
        if let Some(tier) = response.text_of("service_tier") {
            sink(Event::Tier(tier.clone()));
        }
        let status = response.str_of("status");
        if matches!(status, "failed" | "cancelled") || response.get("error").is_some() {
            return fail(response, sink);
        }
        let reason = response.get("incomplete_details").map_or("", |details| details.str_of("reason"));
        let stop = match (status, reason) {
            ("incomplete", "content_filter") => Stop::Filter,
            ("incomplete", _) => Stop::Length,
            _ => Stop::End,
        };
        let native = Cow::Owned(if reason.is_empty() { status.to_owned() } else { reason.to_owned() });
        self.finished = true;
        sink(Event::Finish {
            choice: 0,
            finish: Finish::new(Dialect::Responses, stop, native).with_calls(self.calls > 0),
        });
        sink(Event::End);
    }
}

fn whole_part(part: &Node<'_>, sink: &mut Sink<'_>) {
    match part.str_of("type") {
        "output_text" => {
            if let Some(text) = part.text_of("text") {
                sink(Event::Text { choice: 0, text: text.clone() });
            }
            for note in part.get("annotations").map_or(&[][..], Node::items) {
                sink(Event::Cite { choice: 0, citation: crate::chat::citation(note) });
            }
            logprobs(part, sink);
            sink(Event::TextEnd { choice: 0 });
        }
        "refusal" => {
            if let Some(text) = part.text_of("refusal") {
                sink(Event::Refusal { choice: 0, text: text.clone() });
            }
        }
        other => sink(foreign(other, part)),
    }
}

/// An item or a part that only this dialect knows.
fn foreign<'a>(what: &str, node: &Node<'a>) -> Event<'a> {
    Event::Foreign {
        choice: 0,
        origin: Dialect::Responses,
        what: Cow::Owned(what.to_owned()),
        raw: Cow::Borrowed(node.raw),
    }
}

/// Tells of log probabilities; whether there were any.
fn logprobs(node: &Node<'_>, sink: &mut Sink<'_>) -> bool {
    let list = node.get("logprobs").filter(|list| !list.items().is_empty());
    if let Some(list) = list {
        sink(Event::Logprobs { choice: 0, raw: Cow::Borrowed(list.raw) });
    }
    list.is_some()
}

fn start(response: &Node<'_>, sink: &mut Sink<'_>) {
    let text = |name| response.text_of(name).cloned().unwrap_or_default();
    sink(Event::Start { id: text("id"), model: text("model") });
}

fn fail(node: &Node<'_>, sink: &mut Sink<'_>) {
    sink(Event::Fail(Box::new(UpstreamError::read(node.raw.as_bytes()).unwrap_or_default())));
}
