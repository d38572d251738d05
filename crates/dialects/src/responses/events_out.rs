//! Events written as a Responses stream.
//!
//! Held here: `response.created` and `.in_progress` first; numbers that rise by one; each item
//! added, filled and done before the next; a delta for the arguments of every call; ids that stay
//! the same up to the final object, which repeats every item; one terminal event, then `[DONE]`.

use super::answer_out::{call_prefix, item_id, status};
use super::item::{self, MessagePart};
use crate::hub::{
    CallKind, Event, Finish, HeldBack, Lane, Saying, Thought, ToolCall, Voice, Waiting, fitting_id, tier_in,
};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::json::Object;

#[derive(Debug)]
pub(crate) struct ResponsesWriter {
    pub(super) voice: Voice,
    pub(super) started: bool,
    /// Number of the next event.
    pub(super) number: u64,
    pub(super) items: Vec<String>,
    pub(super) open: Option<OpenItem>,
    pub(super) lane: Lane,
    pub(super) finish: Option<Finish<'static>>,
    pub(super) tier: Option<String>,
    pub(super) searches: u64,
    pub(super) object: Option<String>,
    /// A response of the provider's own that reached the client and is ended here, as JSON.
    pub(super) begun: Option<String>,
}

#[derive(Debug)]
pub(super) enum OpenItem {
    Message(Vec<MessagePart>),
    Thought(Thought<'static>),
    Call(ToolCall<'static>),
}

impl ResponsesWriter {
    pub fn new(voice: &Voice) -> Self {
        ResponsesWriter {
            voice: voice.clone(),
            started: false,
            number: 0,
            items: Vec::new(),
            open: None,
            lane: Lane::default(),
            finish: None,
            tier: None,
            searches: 0,
            object: None,
            begun: None,
        }
    }

    /// More had to wait for its turn than may be buffered.
    pub fn is_full(&self) -> bool {
        self.lane.is_full()
    }

    pub fn write(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        debug_assert!(self.object.is_none(), "nothing follows the terminal event");
        match event {
            Event::Start { .. } => self.start(out),
            // Chat says it again with every chunk.
            Event::Tier(tier) if self.tier.as_deref() == Some(tier) => {}
            Event::Tier(tier) => self.tier = tier_in(Dialect::Responses, tier).map(str::to_owned),
            Event::Ping => out.extend_from_slice(Dialect::Responses.heartbeat()),
            Event::Searches { count, .. } => self.searches = *count,
            _ if event.choice() != Some(0) => {}
            _ => {
                self.start(out);
                self.block(event, out);
            }
        }
    }

    fn block(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Text { text, .. } if self.lane.keep(text, Saying::Text) => {}
            Event::Refusal { text, .. } if self.lane.keep(text, Saying::Refusal) => {}
            Event::Thought { text, .. } if self.lane.keep(text, Saying::Thought) => {}
            Event::Image { base64, .. } if self.lane.keep(base64, Saying::Picture) => {}
            Event::Search { query, .. } if self.lane.keep(query, Saying::Search) => {}
            Event::TextEnd { .. } | Event::ThoughtEnd { .. } if self.lane.is_busy() => {}
            Event::Text { text, .. } => self.say(text, false, out),
            Event::Refusal { text, .. } => self.say(text, true, out),
            Event::TextEnd { .. } => {
                if matches!(self.open, Some(OpenItem::Message(_))) {
                    self.close("completed", out);
                }
            }
            Event::Thought { text, summary, .. } => self.think(text, *summary, out),
            Event::ThoughtEnd { seal, redacted, .. } => self.seal(seal.as_ref(), *redacted, out),
            Event::CallOpen { call, id, name, namespace, kind, .. } => {
                let waiting = Waiting {
                    call: *call,
                    id: id.to_string(),
                    name: name.to_string(),
                    namespace: namespace.as_deref().map(str::to_owned),
                    kind: *kind,
                    args: String::new(),
                    closed: false,
                };
                if self.lane.is_free() {
                    self.close("completed", out);
                    self.open_call(waiting, out);
                } else {
                    self.lane.wait(waiting);
                }
            }
            Event::CallArgs { call, text, .. } if self.lane.args(*call, text) => self.args(text, out),
            Event::CallClose { call, .. } if self.lane.close(*call) => {
                self.close("completed", out);
                self.drain(false, "completed", out);
            }
            Event::Cite { citation, .. } => {
                if let Some(note) = item::note(citation).filter(|note| !self.lane.keep(note, Saying::Note)) {
                    self.cite(note, out);
                }
            }
            Event::Logprobs { raw, .. } => {
                if let Some(OpenItem::Message(parts)) = &mut self.open
                    && let Some(part) = parts.last_mut()
                {
                    part.logprobs.push(raw.to_string());
                }
            }
            Event::Image { base64, .. } => self.picture(base64, out),
            Event::Search { query, .. } => self.search(query, out),
            Event::Finish { finish, .. } => {
                let (ending, _) = status(Some(finish));
                let cut = if ending == "incomplete" { "incomplete" } else { "completed" };
                self.close(cut, out);
                self.drain(true, cut, out);
                self.finish = Some(finish.owned());
            }
            _ => {}
        }
    }

    pub(super) fn at(&self) -> u64 {
        self.items.len() as u64
    }

    pub(super) fn id(&self) -> String {
        let prefix = match &self.open {
            Some(OpenItem::Thought(_)) => "rs",
            Some(OpenItem::Call(call)) => call_prefix(call.kind),
            _ => "msg",
        };
        item_id(&self.voice, prefix, self.items.len())
    }

    pub(super) fn send(&mut self, out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Object<'_>)) {
        event(out, &mut self.number, name, write);
    }

    pub(super) fn added(&mut self, item: &str, out: &mut Vec<u8>) {
        debug_assert!(self.started, "response.created comes first");
        let at = self.at();
        self.send(out, "response.output_item.added", |body| {
            body.number("output_index", at);
            body.raw("item", item);
        });
    }

    /// The id of an item that opens and ends at once.
    pub(super) fn next_id(&self, prefix: &str) -> String {
        item_id(&self.voice, prefix, self.items.len())
    }

    pub(super) fn done(&mut self, item: String, out: &mut Vec<u8>) {
        let at = self.at();
        debug_assert!(self.open.is_none(), "an item is done when nothing of it is open");
        self.send(out, "response.output_item.done", |body| {
            body.number("output_index", at);
            body.raw("item", &item);
        });
        self.items.push(item);
    }

    /// Names the part an event is about.
    pub(super) fn part(
        &mut self,
        out: &mut Vec<u8>,
        name: &str,
        content: (&str, u64),
        write: impl FnOnce(&mut Object<'_>),
    ) {
        debug_assert!(self.open.is_some(), "a part belongs to an item that was added");
        let (id, at) = (self.id(), self.at());
        self.send(out, name, |body| {
            body.text("item_id", &id);
            body.number("output_index", at);
            body.number(content.0, content.1);
            write(body);
        });
    }

    fn open_call(&mut self, waiting: Waiting, out: &mut Vec<u8>) {
        debug_assert!(self.open.is_none(), "one item at a time");
        self.lane.open(waiting.call);
        let call = ToolCall {
            id: Cow::Owned(fitting_id(Dialect::Responses, &waiting.id).into_owned()),
            name: Cow::Owned(waiting.name),
            namespace: waiting.namespace.map(Cow::Owned),
            kind: waiting.kind,
            args: Cow::Borrowed(""),
            cached: false,
            rest: Vec::new(),
        };
        self.open = Some(OpenItem::Call(call));
        let Some(OpenItem::Call(call)) = &self.open else { return };
        let item = item::call(&self.id(), "in_progress", call);
        self.added(&item, out);
        if !waiting.args.is_empty() {
            self.lane.args(waiting.call, &waiting.args);
            self.args(&waiting.args, out);
        }
        if waiting.closed {
            self.lane.close(waiting.call);
            self.close("completed", out);
        }
    }

    fn args(&mut self, text: &str, out: &mut Vec<u8>) {
        let Some(OpenItem::Call(call)) = &mut self.open else { return };
        call.args.to_mut().push_str(text);
        let name = match call.kind {
            CallKind::Function => "response.function_call_arguments.delta",
            CallKind::Custom => "response.custom_tool_call_input.delta",
        };
        let (id, at) = (self.id(), self.at());
        self.send(out, name, |body| {
            body.text("item_id", &id);
            body.number("output_index", at);
            body.text("delta", text);
        });
    }

    /// Ends the open item.
    pub(super) fn close(&mut self, status: &str, out: &mut Vec<u8>) {
        let id = self.id();
        let item = match &self.open {
            None => return,
            Some(OpenItem::Message(_)) => {
                self.end_part(out);
                let Some(OpenItem::Message(parts)) = &self.open else { return };
                item::message(&id, status, parts)
            }
            Some(OpenItem::Thought(_)) => {
                self.end_thought(out);
                let Some(OpenItem::Thought(thought)) = &self.open else { return };
                item::reasoning(&id, thought)
            }
            Some(OpenItem::Call(_)) => {
                self.lane.end();
                self.end_call(status, out);
                let Some(OpenItem::Call(call)) = &self.open else { return };
                item::call(&id, status, call)
            }
        };
        self.open = None;
        self.done(item, out);
    }

    fn end_call(&mut self, status: &str, out: &mut Vec<u8>) {
        let Some(OpenItem::Call(call)) = &self.open else { return };
        if call.args.is_empty() && status == "completed" && call.kind == CallKind::Function {
            self.args("{}", out);
        }
        let Some(OpenItem::Call(call)) = &self.open else { return };
        let (custom, args, name) = (call.kind == CallKind::Custom, call.args.to_string(), call.name.to_string());
        let (id, at) = (self.id(), self.at());
        let event =
            if custom { "response.custom_tool_call_input.done" } else { "response.function_call_arguments.done" };
        self.send(out, event, |body| {
            body.text("item_id", &id);
            body.number("output_index", at);
            if !custom {
                body.text("name", &name);
            }
            body.text(if custom { "input" } else { "arguments" }, &args);
        });
    }

    pub(super) fn drain(&mut self, all: bool, status: &str, out: &mut Vec<u8>) {
        while let Some(call) = self.lane.next() {
            self.open_call(call, out);
            if all {
                self.close(status, out);
            } else if self.open.is_some() {
                return;
            }
        }
        for HeldBack { text, what } in self.lane.said() {
            match what {
                Saying::Text => self.say(&text, false, out),
                Saying::Refusal => self.say(&text, true, out),
                Saying::Thought => self.think(&text, false, out),
                Saying::Note => self.cite(text, out),
                Saying::Picture => self.picture(&text, out),
                Saying::Search => self.search(&text, out),
            }
        }
        if all {
            self.close(status, out);
        }
    }
}

/// One event: its name, the same name as `type`, its number.
pub(super) fn event(out: &mut Vec<u8>, number: &mut u64, name: &str, write: impl FnOnce(&mut Object<'_>)) {
    for part in [b"event: ", name.as_bytes(), b"\ndata: "] {
        out.extend_from_slice(part);
    }
    let mut body = Object::begin(out);
    body.text("type", name);
    body.number("sequence_number", *number);
    *number += 1;
    write(&mut body);
    body.end();
    out.extend_from_slice(b"\n\n");
}
