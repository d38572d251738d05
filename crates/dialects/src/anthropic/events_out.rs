//! Events written as Anthropic's stream.
//!
//! Held here: one `message_start`, first; blocks with contiguous indexes from 0, one open at a
//! time, each started empty and stopped; at most one signature per thought, last before its stop;
//! usage repeated in full with the stop reason; `message_stop` last. Every event has its `event:`
//! line, without which the SDKs see nothing.

use super::answer_out::{self, citation, is_redacted, stop_details, stop_reason};
use crate::hub::{
    CallKind, Citation, Event, FREE_TEXT, Finish, HeldBack, Lane, Saying, Seal, UNSIGNED, Voice, Waiting, fitting_id,
    quoted_text,
};
use tollgate_wire::Dialect;
use tollgate_wire::json::{Array, Object};
use tollgate_wire::usage::Usage;

#[derive(Debug)]
pub(crate) struct AnthropicWriter {
    id: String,
    model: String,
    started: bool,
    /// Index of the next block.
    next: u64,
    open: Option<Open>,
    lane: Lane,
    calls: bool,
    refused: bool,
    searches: u64,
    tier: Option<String>,
    finish: Option<Finish<'static>>,
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    Call { args: bool, custom: bool },
}

impl AnthropicWriter {
    pub fn new(voice: &Voice) -> Self {
        AnthropicWriter {
            id: voice.prefixed("msg_"),
            model: voice.model.clone(),
            started: false,
            next: 0,
            open: None,
            lane: Lane::default(),
            calls: false,
            refused: false,
            searches: 0,
            tier: None,
            finish: None,
            ended: false,
        }
    }

    /// More had to wait for its turn than may be buffered.
    pub fn is_full(&self) -> bool {
        self.lane.is_full()
    }

    pub fn write(&mut self, event: &Event<'_>, usage: Option<&Usage>, out: &mut Vec<u8>) {
        debug_assert!(!self.ended, "nothing follows message_stop");
        match event {
            Event::Start { .. } => self.start(usage, out),
            Event::Ping => out.extend_from_slice(Dialect::Anthropic.heartbeat()),
            Event::Searches { count, .. } => self.searches = *count,
            // Chat says it again with every chunk.
            Event::Tier(tier) if self.tier.as_deref() == Some(tier) => {}
            Event::Tier(tier) => self.tier = Some(tier.to_string()),
            _ if event.choice() != Some(0) => {}
            _ => {
                self.start(usage, out);
                self.block(event, out);
            }
        }
    }

    fn start(&mut self, usage: Option<&Usage>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        event(out, "message_start", |body| {
            body.object("message", |message| {
                message.text("id", &self.id);
                message.text("type", "message");
                message.text("role", "assistant");
                message.text("model", &self.model);
                message.raw("content", "[]");
                message.null("stop_reason");
                message.null("stop_sequence");
                answer_out::usage(
                    &usage.copied().unwrap_or_default(),
                    self.searches,
                    self.tier.as_deref(),
                    message.key("usage"),
                );
            });
        });
    }

    fn block(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.refused |= matches!(event, Event::Refusal { .. });
        match event {
            Event::TextEnd { .. } | Event::ThoughtEnd { .. } if self.lane.is_busy() => {}
            Event::Text { text, .. } | Event::Refusal { text, .. } => self.say(text, Saying::Text, out),
            Event::TextEnd { .. } => self.close_if(Open::Text, out),
            Event::Thought { text, .. } => self.say(text, Saying::Thought, out),
            Event::ThoughtEnd { seal, redacted, .. } => self.seal(seal.as_ref(), *redacted, out),
            Event::CallOpen { call, id, name, kind, .. } => {
                self.calls = true;
                let waiting = Waiting {
                    call: *call,
                    id: id.to_string(),
                    name: name.to_string(),
                    namespace: None,
                    kind: *kind,
                    args: String::new(),
                    closed: false,
                };
                if self.lane.is_free() {
                    self.close(out);
                    self.open_call(&waiting, out);
                } else {
                    self.lane.wait(waiting);
                }
            }
            Event::CallArgs { call, text, .. } if self.lane.args(*call, text) => self.args(text, out),
            Event::CallClose { call, .. } if self.lane.close(*call) => {
                self.close(out);
                self.drain(false, out);
            }
            Event::Cite { citation: Citation::Foreign { origin, .. }, .. } if *origin != Dialect::Anthropic => {}
            Event::Cite { citation: cite, .. } => {
                let mut one = Vec::new();
                let mut list = Array::begin(&mut one);
                citation(&mut list, cite);
                list.end();
                self.say(&String::from_utf8_lossy(&one[1..one.len() - 1]), Saying::Note, out);
            }
            Event::Image { mime, .. } => self.say(&format!("[{mime} image]"), Saying::Text, out),
            Event::Finish { finish, .. } => {
                self.close(out);
                self.drain(true, out);
                self.finish = Some(finish.owned());
            }
            _ => {}
        }
    }

    /// Writes what belongs to a block of its own, now or after the call that is being written.
    fn say(&mut self, text: &str, what: Saying, out: &mut Vec<u8>) {
        if !self.lane.keep(text, what) {
            self.piece(text, what, out);
        }
    }

    fn piece(&mut self, text: &str, what: Saying, out: &mut Vec<u8>) {
        match what {
            Saying::Thought => {
                self.turn_to(Open::Thinking, out);
                self.delta(out, "thinking_delta", |delta| delta.text("thinking", text));
            }
            Saying::Note => {
                self.turn_to(Open::Text, out);
                self.delta(out, "citations_delta", |delta| delta.raw("citation", text));
            }
            Saying::Text | Saying::Refusal | Saying::Picture | Saying::Search => {
                self.turn_to(Open::Text, out);
                self.delta(out, "text_delta", |delta| delta.text("text", text));
            }
        }
    }

    /// Makes sure that a block of this kind is open.
    fn turn_to(&mut self, kind: Open, out: &mut Vec<u8>) {
        if self.open == Some(kind) {
            return;
        }
        self.close(out);
        debug_assert!(self.open.is_none(), "one block at a time");
        self.open = Some(kind);
        self.begin(out, |block| match kind {
            Open::Thinking => {
                block.text("type", "thinking");
                block.text("thinking", "");
                block.text("signature", "");
            }
            _ => {
                block.text("type", "text");
                block.text("text", "");
            }
        });
    }

    fn begin(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
        debug_assert!(self.started, "message_start comes first");
        let index = self.next;
        self.next += 1;
        event(out, "content_block_start", |body| {
            body.number("index", index);
            body.object("content_block", write);
        });
    }

    fn delta(&self, out: &mut Vec<u8>, kind: &str, write: impl FnOnce(&mut Object<'_>)) {
        debug_assert!(self.next > 0, "a delta belongs to a block");
        event(out, "content_block_delta", |body| {
            body.number("index", self.next - 1);
            body.object("delta", |delta| {
                delta.text("type", kind);
                write(delta);
            });
        });
    }

    fn close_if(&mut self, kind: Open, out: &mut Vec<u8>) {
        if self.open == Some(kind) {
            self.close(out);
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        match self.open.take() {
            None => return,
            Some(Open::Call { args, custom }) => {
                if custom {
                    self.delta(out, "input_json_delta", |delta| delta.text("partial_json", "\"}"));
                } else if !args {
                    self.delta(out, "input_json_delta", |delta| delta.text("partial_json", "{}"));
                }
                self.lane.end();
            }
            Some(Open::Thinking) => self.delta(out, "signature_delta", |delta| delta.text("signature", UNSIGNED)),
            Some(_) => {}
        }
        self.stop(out);
    }

    fn stop(&mut self, out: &mut Vec<u8>) {
        self.open = None;
        event(out, "content_block_stop", |body| body.number("index", self.next - 1));
    }

    fn seal(&mut self, seal: Option<&Seal<'_>>, redacted: bool, out: &mut Vec<u8>) {
        if seal.is_some() && !is_redacted(seal, redacted) {
            self.turn_to(Open::Thinking, out);
        }
        let Some(seal) = seal else { return self.close_if(Open::Thinking, out) };
        if self.open == Some(Open::Thinking) {
            let text = seal.written(Dialect::Anthropic);
            self.delta(out, "signature_delta", |delta| delta.text("signature", &text));
            self.stop(out);
        } else {
            self.close(out);
            let data = seal.written(Dialect::Anthropic).into_owned();
            self.begin(out, |block| {
                block.text("type", "redacted_thinking");
                block.text("data", &data);
            });
            event(out, "content_block_stop", |body| body.number("index", self.next - 1));
        }
    }

    fn open_call(&mut self, call: &Waiting, out: &mut Vec<u8>) {
        self.lane.open(call.call);
        let custom = call.kind == CallKind::Custom;
        debug_assert!(self.open.is_none(), "one block at a time");
        self.open = Some(Open::Call { args: false, custom });
        self.begin(out, |block| {
            block.text("type", "tool_use");
            block.text("id", &fitting_id(Dialect::Anthropic, &call.id));
            block.text("name", &call.name);
            block.raw("input", "{}");
        });
        if custom {
            // Free text as the one argument of a function.
            let head = format!("{{{}:\"", quoted_text(FREE_TEXT));
            self.delta(out, "input_json_delta", |delta| delta.text("partial_json", &head));
        }
        if !call.args.is_empty() {
            self.lane.args(call.call, &call.args);
            self.args(&call.args, out);
        }
        if call.closed {
            self.lane.close(call.call);
            self.close(out);
        }
    }

    fn args(&mut self, text: &str, out: &mut Vec<u8>) {
        let Some(Open::Call { args, custom }) = &mut self.open else { return };
        *args = true;
        if *custom {
            let quoted = quoted_text(text);
            self.delta(out, "input_json_delta", |delta| delta.text("partial_json", &quoted[1..quoted.len() - 1]));
        } else {
            self.delta(out, "input_json_delta", |delta| delta.text("partial_json", text));
        }
    }

    /// Writes calls that waited; at the end all of them.
    fn drain(&mut self, all: bool, out: &mut Vec<u8>) {
        while let Some(call) = self.lane.next() {
            self.open_call(&call, out);
            if all {
                self.close(out);
            } else if self.open.is_some() {
                return;
            }
        }
        for HeldBack { text, what } in self.lane.said() {
            self.piece(&text, what, out);
        }
        if all {
            self.close(out);
        }
    }

    pub fn end(&mut self, usage: Option<&Usage>, out: &mut Vec<u8>) {
        self.start(usage, out);
        self.close(out);
        self.drain(true, out);
        if self.next == 0 {
            // Clients look at the first block without asking.
            self.turn_to(Open::Text, out);
            self.close(out);
        }
        debug_assert!(self.open.is_none(), "every block is stopped before the message");
        debug_assert!(!self.ended, "one message_stop");
        self.ended = true;
        let (reason, sequence) = stop_reason(self.finish.as_ref(), self.calls, self.refused);
        event(out, "message_delta", |body| {
            body.object("delta", |delta| {
                delta.text("stop_reason", reason);
                delta.or_null("stop_sequence", sequence);
                stop_details(delta, self.finish.as_ref());
            });
            answer_out::usage(
                &usage.copied().unwrap_or_default(),
                self.searches,
                self.tier.as_deref(),
                body.key("usage"),
            );
        });
        event(out, "message_stop", |_| {});
    }
}

/// One event: its name, and the same name as `type` in its data.
fn event(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Object<'_>)) {
    for part in [b"event: ", name.as_bytes(), b"\ndata: "] {
        out.extend_from_slice(part);
    }
    let mut body = Object::begin(out);
    body.text("type", name);
    write(&mut body);
    body.end();
    out.extend_from_slice(b"\n\n");
}
