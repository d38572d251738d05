//! Output items written as JSON, the same in a stream's events and in a whole response.

use crate::chat::joined;
use crate::hub::{CallKind, Citation, Thought, ToolCall, UNSIGNED, fitting_id};
use tollgate_wire::Dialect;
use tollgate_wire::json::{Array, Object};

/// One content part of a message.
#[derive(Debug, Default)]
pub(super) struct MessagePart {
    pub refusal: bool,
    pub text: String,
    /// Annotations as JSON.
    pub notes: Vec<String>,
    pub logprobs: Vec<String>,
}

impl MessagePart {
    pub fn write(&self, one: &mut Object<'_>) {
        if self.refusal {
            one.text("type", "refusal");
            one.text("refusal", &self.text);
            return;
        }
        one.text("type", "output_text");
        one.text("text", &self.text);
        one.array("annotations", |list| self.notes.iter().for_each(|note| list.raw(note)));
        one.raw("logprobs", &joined(&self.logprobs));
    }
}

pub(super) fn message(id: &str, status: &str, parts: &[MessagePart]) -> String {
    text(|one| {
        one.text("type", "message");
        one.text("id", id);
        one.text("status", status);
        one.text("role", "assistant");
        one.array("content", |list| parts.iter().for_each(|part| list.object(|one| part.write(one))));
    })
}

pub(super) fn reasoning(id: &str, thought: &Thought<'_>) -> String {
    text(|one| {
        one.text("type", "reasoning");
        one.text("id", id);
        let part = |list: &mut Array<'_>, kind: &str| {
            list.object(|part| {
                part.text("type", kind);
                part.text("text", &thought.text);
            });
        };
        one.array("summary", |list| {
            if thought.summary && !thought.text.is_empty() {
                part(list, "summary_text");
            }
        });
        if !thought.summary && !thought.text.is_empty() {
            one.array("content", |list| part(list, "reasoning_text"));
        }
        // Clients send back what is encrypted and may leave out what was shown, and a signature is
        // of no use without its text.
        let seal = thought.seal.as_ref().map(|seal| seal.with_signed(thought.redacted, &thought.text));
        let seal = seal.as_ref().map(|seal| seal.written(Dialect::Responses));
        one.maybe("encrypted_content", seal.as_deref().or((!thought.text.is_empty()).then_some(UNSIGNED)));
    })
}

pub(super) fn call(id: &str, status: &str, call: &ToolCall<'_>) -> String {
    text(|one| {
        let custom = call.kind == CallKind::Custom;
        one.text("type", if custom { "custom_tool_call" } else { "function_call" });
        one.text("id", id);
        one.text("status", status);
        one.text("call_id", &fitting_id(Dialect::Responses, &call.id));
        one.maybe("namespace", call.namespace.as_deref());
        one.text("name", &call.name);
        one.text(if custom { "input" } else { "arguments" }, &call.args);
    })
}

pub(super) fn image(id: &str, base64: &str) -> String {
    text(|one| {
        one.text("type", "image_generation_call");
        one.text("id", id);
        one.text("status", "completed");
        one.text("result", base64);
    })
}

pub(super) fn search(id: &str, status: &str, query: &str) -> String {
    text(|one| {
        one.text("type", "web_search_call");
        one.text("id", id);
        one.text("status", status);
        one.object("action", |action| {
            action.text("type", "search");
            action.text("query", query);
        });
    })
}

/// An annotation; places in documents of other dialects are none.
pub(super) fn note(citation: &Citation<'_>) -> Option<String> {
    let Citation::Url { url, title, from, to, .. } = citation else { return None };
    Some(text(|one| {
        one.text("type", "url_citation");
        one.number("start_index", from.unwrap_or(0));
        one.number("end_index", to.unwrap_or(0));
        one.text("title", title);
        one.text("url", url);
    }))
}

fn text(write: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = Vec::with_capacity(256);
    let mut object = Object::begin(&mut out);
    write(&mut object);
    object.end();
    String::from_utf8(out).unwrap_or_default()
}
