//! A whole answer written as a response object.

use super::item::{self, MessagePart};
use super::object::{self, ResponseState};
use crate::hub::{Answer, Choice, Finish, OutputBlock, Stop, Voice, tier_in};
use tollgate_wire::Dialect;
use tollgate_wire::json::Object;

pub(crate) fn write(answer: &Answer, voice: &Voice) -> Vec<u8> {
    let nothing = Choice::default();
    let choice = answer.choices.first().unwrap_or(&nothing);
    let (status, reason) = status(choice.finish.as_ref());
    let mut items: Vec<String> = Vec::new();
    let mut said: Vec<MessagePart> = Vec::new();
    for (place, output) in choice.outputs.iter().enumerate() {
        match output {
            OutputBlock::Text { text, cites } => {
                let notes = cites.iter().filter_map(item::note).collect();
                let logprobs = if said.is_empty() { choice.logprobs.clone() } else { Vec::new() };
                said.push(MessagePart { refusal: false, text: text.clone(), notes, logprobs });
                continue;
            }
            OutputBlock::Refusal(text) => {
                said.push(MessagePart { refusal: true, text: text.clone(), ..MessagePart::default() });
                continue;
            }
            // Nothing is written for these: they do not part what was said around them.
            OutputBlock::Audio(_) | OutputBlock::Foreign { .. } => continue,
            _ => message(&mut items, &mut said, voice, "completed"),
        }
        let id = |prefix: &str| item_id(voice, prefix, items.len());
        let one = match output {
            OutputBlock::Thought(thought) => item::reasoning(&id("rs"), thought),
            OutputBlock::Call(call) => item::call(
                &id(call_prefix(call.kind)),
                if choice.cut.contains(&place) { "incomplete" } else { "completed" },
                call,
            ),
            OutputBlock::Image { base64, .. } => item::image(&id("ig"), base64),
            OutputBlock::Search(query) => item::search(&id("ws"), "completed", query),
            _ => continue,
        };
        items.push(one);
    }
    message(&mut items, &mut said, voice, status);
    let mut out = Vec::with_capacity(2048);
    let mut body = Object::begin(&mut out);
    let tier = answer.tier.as_deref().and_then(|tier| tier_in(Dialect::Responses, tier));
    object::write(
        &mut body,
        voice,
        &ResponseState {
            status,
            items: &items,
            usage: answer.usage.as_ref(),
            searches: answer.searches,
            reason,
            error: error(status),
            tier,
        },
    );
    body.end();
    out
}

fn message(items: &mut Vec<String>, said: &mut Vec<MessagePart>, voice: &Voice, status: &str) {
    if !said.is_empty() {
        let id = item_id(voice, "msg", items.len());
        items.push(item::message(&id, if status == "incomplete" { status } else { "completed" }, said));
        said.clear();
    }
}

pub(super) fn call_prefix(kind: crate::hub::CallKind) -> &'static str {
    if kind == crate::hub::CallKind::Custom { "ctc" } else { "fc" }
}

/// An id that is stable from an item's first event to the final object.
pub(super) fn item_id(voice: &Voice, prefix: &str, at: usize) -> String {
    format!("{}_{at}", voice.prefixed(&format!("{prefix}_")))
}

/// What a response says that ends in a call nobody can read.
pub(super) fn error(status: &str) -> Option<(&'static str, &'static str)> {
    (status == "failed").then_some(("upstream_invalid_reply", "The model wrote a tool call that cannot be read."))
}

/// The response's status, and why it is incomplete.
pub(super) fn status<'f>(finish: Option<&'f Finish<'_>>) -> (&'static str, Option<&'f str>) {
    let own = finish.and_then(|finish| finish.own(Dialect::Responses));
    match finish.map(|finish| finish.stop) {
        Some(Stop::Length | Stop::Context) => ("incomplete", own.or(Some("max_output_tokens"))),
        Some(Stop::Filter) => ("incomplete", own.or(Some("content_filter"))),
        Some(Stop::Malformed) => ("failed", None),
        _ => ("completed", None),
    }
}
