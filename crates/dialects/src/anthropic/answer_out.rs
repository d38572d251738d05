//! A whole answer written as an Anthropic message.

use super::blocks_out::input;
use crate::hub::{
    Answer, Choice, Citation, Finish, OutputBlock, Seal, SealMaker, Stop, Thought, UNSIGNED, Voice, fitting_id, tier_in,
};
use tollgate_wire::Dialect;
use tollgate_wire::json::{Array, Object};
use tollgate_wire::usage::{Usage, UsageShape};

pub(crate) fn write(answer: &Answer, voice: &Voice) -> Vec<u8> {
    let nothing = Choice::default();
    let choice = answer.choices.first().unwrap_or(&nothing);
    let mut out = Vec::with_capacity(1024);
    let mut body = Object::begin(&mut out);
    body.text("id", &voice.prefixed("msg_"));
    body.text("type", "message");
    body.text("role", "assistant");
    body.text("model", &voice.model);
    body.array("content", |list| {
        for output in &choice.outputs {
            block(list, output);
        }
        if choice.outputs.is_empty() {
            list.raw(r#"{"type":"text","text":""}"#);
        }
    });
    let (reason, sequence) = stop_reason(choice.finish.as_ref(), choice.has_calls(), choice.is_refused());
    body.text("stop_reason", reason);
    body.or_null("stop_sequence", sequence);
    stop_details(&mut body, choice.finish.as_ref());
    usage(&answer.usage.unwrap_or_default(), answer.searches, answer.tier.as_deref(), body.key("usage"));
    body.end();
    out
}

pub(super) fn stop_reason<'f>(
    finish: Option<&'f Finish<'_>>,
    calls: bool,
    refused: bool,
) -> (&'f str, Option<&'f str>) {
    let stop = Finish::stop_of(finish, calls, refused);
    let sequence = finish.and_then(|finish| finish.sequence.as_deref());
    let (word, sequence) = match stop {
        Stop::End | Stop::Malformed => ("end_turn", None),
        Stop::Sequence => ("stop_sequence", sequence),
        Stop::Length => ("max_tokens", None),
        Stop::Context => ("model_context_window_exceeded", None),
        Stop::Tools => ("tool_use", None),
        Stop::Filter => ("refusal", None),
        Stop::Pause => ("pause_turn", None),
    };
    (finish.and_then(|finish| finish.own(Dialect::Anthropic)).unwrap_or(word), sequence)
}

/// The counters, how often the web was searched, and the tier.
pub(super) fn usage(usage: &Usage, searches: u64, tier: Option<&str>, out: &mut Vec<u8>) {
    usage.write_with(UsageShape::Anthropic, out, |object| {
        if searches > 0 {
            object.object("server_tool_use", |tools| {
                tools.number("web_search_requests", searches);
                tools.number("web_fetch_requests", 0);
            });
        }
        object.maybe("service_tier", tier.and_then(|tier| tier_in(Dialect::Anthropic, tier)));
    });
}

/// Whether a thought without a text is one that nobody may read, or one whose text its maker did
/// not send.
pub(super) fn is_redacted(seal: Option<&Seal<'_>>, redacted: bool) -> bool {
    redacted || seal.is_none_or(|seal| seal.origin != SealMaker::Anthropic)
}

pub(super) fn stop_details(object: &mut Object<'_>, finish: Option<&Finish<'_>>) {
    if let Some(details) = finish.and_then(|finish| finish.details.as_ref()) {
        details.write(object);
    }
}

fn block(list: &mut Array<'_>, output: &OutputBlock) {
    match output {
        OutputBlock::Text { text, cites } => list.object(|one| {
            one.text("type", "text");
            one.text("text", text);
            if cites.iter().any(is_ours) {
                one.array("citations", |list| cites.iter().for_each(|cite| citation(list, cite)));
            }
        }),
        OutputBlock::Refusal(text) => list.object(|one| {
            one.text("type", "text");
            one.text("text", text);
        }),
        OutputBlock::Thought(one) => thought(list, one),
        OutputBlock::Call(call) => list.object(|one| {
            one.text("type", "tool_use");
            one.text("id", &fitting_id(Dialect::Anthropic, &call.id));
            one.text("name", &call.name);
            one.raw("input", &input(call));
        }),
        // Anthropic's answers hold neither pictures nor sound; the client learns that there was
        // one.
        OutputBlock::Image { mime, .. } => list.object(|one| {
            one.text("type", "text");
            one.text("text", &format!("[{mime} image]"));
        }),
        OutputBlock::Audio(_) | OutputBlock::Search(_) | OutputBlock::Foreign { .. } => {}
    }
}

fn thought(list: &mut Array<'_>, thought: &Thought<'_>) {
    let seal = thought.seal.as_ref().map(|seal| seal.written(Dialect::Anthropic));
    list.object(|one| {
        if thought.text.is_empty() && is_redacted(thought.seal.as_ref(), thought.redacted) {
            one.text("type", "redacted_thinking");
            one.text("data", seal.as_deref().unwrap_or(""));
        } else {
            one.text("type", "thinking");
            one.text("thinking", &thought.text);
            one.text("signature", seal.as_deref().unwrap_or(UNSIGNED));
        }
    });
}

fn is_ours(cite: &Citation<'_>) -> bool {
    matches!(cite, Citation::Url { .. } | Citation::Foreign { origin: Dialect::Anthropic, .. })
}

/// A link, as a search result's; other citations only where they come from Anthropic.
pub(super) fn citation(list: &mut Array<'_>, cite: &Citation<'_>) {
    match cite {
        Citation::Url { url, title, quote, index, .. } => list.object(|one| {
            one.text("type", "web_search_result_location");
            one.text("cited_text", quote);
            one.text("encrypted_index", index);
            one.text("title", title);
            one.text("url", url);
        }),
        Citation::Foreign { origin: Dialect::Anthropic, raw, .. } => list.raw(raw),
        Citation::Foreign { .. } => {}
    }
}
