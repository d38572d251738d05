//! Text and thoughts of a Responses stream: the parts of a message item, and reasoning items.

use super::events_out::{OpenItem, ResponsesWriter};
use super::item::{self, MessagePart};
use crate::hub::{Seal, Thought, owned_seal};
use tollgate_wire::json::{Object, lossy};

impl ResponsesWriter {
    pub(super) fn say(&mut self, text: &str, refusal: bool, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenItem::Message(_))) {
            self.close("completed", out);
            self.open = Some(OpenItem::Message(Vec::new()));
            let item = item::message(&self.id(), "in_progress", &[]);
            self.added(&item, out);
        }
        let Some(OpenItem::Message(parts)) = &mut self.open else { return };
        if parts.last().is_none_or(|part| part.refusal != refusal) {
            self.end_part(out);
            let Some(OpenItem::Message(parts)) = &mut self.open else { return };
            parts.push(MessagePart { refusal, ..MessagePart::default() });
            let at = parts.len() as u64 - 1;
            self.part(out, "response.content_part.added", ("content_index", at), |body| {
                body.object("part", |part| MessagePart { refusal, ..MessagePart::default() }.write(part));
            });
        }
        let Some(OpenItem::Message(parts)) = &mut self.open else { return };
        let at = parts.len() as u64 - 1;
        if let Some(part) = parts.last_mut() {
            part.text.push_str(text);
        }
        let name = if refusal { "response.refusal.delta" } else { "response.output_text.delta" };
        self.part(out, name, ("content_index", at), |body| {
            body.text("delta", text);
            if !refusal {
                body.raw("logprobs", "[]");
            }
        });
    }

    pub(super) fn cite(&mut self, note: String, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenItem::Message(_))) {
            // A source of what is over: it needs a message to stand in.
            self.say("", false, out);
        }
        let Some(OpenItem::Message(parts)) = &mut self.open else { return };
        let at = (parts.len() as u64).saturating_sub(1);
        let Some(part) = parts.last_mut() else { return };
        let index = part.notes.len() as u64;
        part.notes.push(note.clone());
        self.part(out, "response.output_text.annotation.added", ("content_index", at), |body| {
            body.number("annotation_index", index);
            body.raw("annotation", &note);
        });
    }

    /// A picture is an item that opens and ends at once.
    pub(super) fn picture(&mut self, base64: &str, out: &mut Vec<u8>) {
        self.close("completed", out);
        let item = item::image(&self.next_id("ig"), base64);
        self.added(&item, out);
        self.done(item, out);
    }

    /// A search that is over: its item, and the steps that clients follow.
    pub(super) fn search(&mut self, query: &str, out: &mut Vec<u8>) {
        self.close("completed", out);
        let id = self.next_id("ws");
        self.added(&item::search(&id, "in_progress", query), out);
        for step in ["in_progress", "searching", "completed"] {
            let at = self.at();
            self.send(out, &format!("response.web_search_call.{step}"), |body| {
                body.text("item_id", &id);
                body.number("output_index", at);
            });
        }
        self.done(item::search(&id, "completed", query), out);
    }

    /// Ends the last part of the open message.
    pub(super) fn end_part(&mut self, out: &mut Vec<u8>) {
        let Some(OpenItem::Message(parts)) = &self.open else { return };
        let Some(part) = parts.last() else { return };
        let at = parts.len() as u64 - 1;
        let (refusal, text, logprobs) = (part.refusal, part.text.clone(), crate::chat::joined(&part.logprobs));
        let mut whole = Vec::new();
        let mut object = Object::begin(&mut whole);
        part.write(&mut object);
        object.end();
        let name = if refusal { "response.refusal.done" } else { "response.output_text.done" };
        self.part(out, name, ("content_index", at), |body| {
            body.text(if refusal { "refusal" } else { "text" }, &text);
            if !refusal {
                body.raw("logprobs", &logprobs);
            }
        });
        self.part(out, "response.content_part.done", ("content_index", at), |body| {
            body.raw("part", &lossy(&whole));
        });
    }

    pub(super) fn think(&mut self, text: &str, summary: bool, out: &mut Vec<u8>) {
        if !matches!(&self.open, Some(OpenItem::Thought(thought)) if thought.summary == summary) {
            self.close("completed", out);
            self.open_thought(summary, out);
        }
        if let Some(OpenItem::Thought(thought)) = &mut self.open {
            thought.text.to_mut().push_str(text);
        }
        let (name, content) = match summary {
            true => ("response.reasoning_summary_text.delta", "summary_index"),
            false => ("response.reasoning_text.delta", "content_index"),
        };
        self.part(out, name, (content, 0), |body| body.text("delta", text));
    }

    pub(super) fn open_thought(&mut self, summary: bool, out: &mut Vec<u8>) {
        self.open = Some(OpenItem::Thought(Thought { summary, ..Thought::default() }));
        let item = item::reasoning(&self.id(), &Thought::default());
        self.added(&item, out);
        // Helpers refuse a piece of a part that was not announced.
        let (name, index, part) = match summary {
            true => ("response.reasoning_summary_part.added", "summary_index", r#"{"type":"summary_text","text":""}"#),
            false => ("response.content_part.added", "content_index", r#"{"type":"reasoning_text","text":""}"#),
        };
        self.part(out, name, (index, 0), |body| body.raw("part", part));
    }

    pub(super) fn seal(&mut self, seal: Option<&Seal<'_>>, redacted: bool, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenItem::Thought(_))) {
            if seal.is_none() {
                return;
            }
            self.close("completed", out);
            self.open = Some(OpenItem::Thought(Thought::default()));
            let item = item::reasoning(&self.id(), &Thought::default());
            self.added(&item, out);
        }
        if let Some(OpenItem::Thought(thought)) = &mut self.open {
            thought.seal = seal.map(owned_seal);
            thought.redacted = redacted;
        }
        self.close("completed", out);
    }

    pub(super) fn end_thought(&mut self, out: &mut Vec<u8>) {
        let Some(OpenItem::Thought(thought)) = &self.open else { return };
        if thought.text.is_empty() {
            return;
        }
        let text = thought.text.to_string();
        let (said, ended, index, kind) = match thought.summary {
            true => {
                let names = ("response.reasoning_summary_text.done", "response.reasoning_summary_part.done");
                (names.0, names.1, "summary_index", "summary_text")
            }
            false => ("response.reasoning_text.done", "response.content_part.done", "content_index", "reasoning_text"),
        };
        self.part(out, said, (index, 0), |body| body.text("text", &text));
        self.part(out, ended, (index, 0), |body| {
            body.object("part", |part| {
                part.text("type", kind);
                part.text("text", &text);
            });
        });
    }
}
