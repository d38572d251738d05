//! A whole reply on its way from a provider's dialect to the caller's.

use super::meter::StreamMeter;
use super::ours::OwnMembers;
use super::reader::DialectReader;
use crate::chat::{self, ChatReply, NotAReply};
use crate::hub::{Answer, CitationPlaces, Dropped, Event, Gather, Lost, Restore, Stop, ToolNames, Voice};
use crate::{anthropic, gemini, responses};
use bytes::Bytes;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::{self, Node};

/// A reply for the caller, and what it says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The body in the caller's dialect; the provider's own bytes when nothing had to change.
    pub body: Bytes,
    /// Usage, output, and an error in disguise. When there is an error, `body` is the provider's
    /// and not for the caller.
    pub facts: ChatReply,
    /// What of the answer the caller's dialect has no form for.
    pub dropped: Dropped,
    /// Own count of the output, whatever was reported.
    pub counted: u64,
}

/// Translates a whole reply. `names` are those of the request that was sent.
pub fn convert(
    from: Dialect,
    to: Dialect,
    body: Bytes,
    names: &ToolNames,
    voice: &Voice,
) -> Result<Converted, NotAReply> {
    if from == Dialect::Chat && to == Dialect::Chat {
        let facts = chat::read_reply(&body)?;
        let counted = chat::count_output(&body);
        let body = facts.with_model(body, &voice.model);
        return Ok(Converted { body, facts, dropped: Dropped::default(), counted });
    }
    let text = json::lossy(&body);
    let node = Node::read(&text).map_err(|_| NotAReply)?;
    if !is_reply(from, &node) {
        return Err(NotAReply);
    }
    let mut meter = StreamMeter::new(from);
    let mut gather = Gather::default();
    let mut lost = Lost::new(from, to, names);
    let mut restore = Restore::new(names.clone());
    let mut places = CitationPlaces::new(from, to);
    DialectReader::new(from, to, &voice.id).whole(&node, &mut |event: Event<'_>| {
        restore.pass(event, &mut |event| {
            meter.see(&event);
            places.pass(event, &mut |event| {
                if from != to {
                    lost.see(&event);
                }
                gather.take(&event);
            });
        });
    });
    meter.look(from, &node, true);
    let mut answer = gather.answer;
    answer.usage = meter.usage_so_far(voice.prompt_tokens).or(answer.usage);
    if from != to && !meter.output {
        answer.error = answer.error.take().or_else(|| unreadable(&answer));
    }
    let counted = meter.counted();
    let facts = ChatReply {
        usage: meter.usage().copied(),
        raw_usage: meter.raw().map(str::to_owned),
        has_output: meter.output,
        has_answer: meter.answer,
        counted_output: if meter.usage().is_none_or(|usage| usage.output_total() == 0) { counted } else { 0 },
        error: answer.error.clone(),
        tools: meter.tools,
        ..ChatReply::default()
    };
    if facts.error.is_some() {
        drop(node);
        return Ok(Converted { body, facts, dropped: Dropped::default(), counted });
    }
    let written = match from == to {
        true => as_ours(from, &text, &node, voice, &body),
        false => written(to, &answer, voice, names).into(),
    };
    Ok(Converted { body: written, facts, dropped: lost.dropped, counted })
}

/// The answer as a client of the dialect reads it.
pub(super) fn written(to: Dialect, answer: &Answer, voice: &Voice, names: &ToolNames) -> Vec<u8> {
    match to {
        Dialect::Chat => chat::answer_out::write(answer, voice, names.is_old()),
        Dialect::Anthropic => anthropic::answer_out::write(answer, voice),
        Dialect::Responses => responses::answer_out::write(answer, voice),
        Dialect::Gemini => gemini::answer_out::write(answer, voice),
    }
}

/// An answer that is nothing but a call which cannot be read is a fault of the provider's.
fn unreadable(answer: &Answer) -> Option<UpstreamError> {
    let finish = answer.choices.iter().find_map(|choice| choice.finish.as_ref())?;
    (finish.stop == Stop::Malformed).then(|| malformed(&finish.native))
}

pub(super) fn malformed(native: &str) -> UpstreamError {
    UpstreamError { status: Some(502), code: Some(native.to_owned()), ..UpstreamError::default() }
}

/// Whether this is a reply of the dialect at all, or an error of any.
fn is_reply(from: Dialect, node: &Node<'_>) -> bool {
    if node.get("error").is_some() || (from == Dialect::Chat && chat::events_in::failed(node).is_some()) {
        return true;
    }
    match from {
        Dialect::Chat => node.get("choices").is_some_and(Node::is_list),
        Dialect::Anthropic => node.get("content").is_some_and(Node::is_list),
        Dialect::Responses => node.get("output").is_some_and(Node::is_list),
        Dialect::Gemini => node.get("candidates").is_some_and(Node::is_list) || node.get("promptFeedback").is_some(),
    }
}

/// The same body with what only we know: the public name of the model, and the response that this
/// one goes on from.
fn as_ours(dialect: Dialect, text: &str, node: &Node<'_>, voice: &Voice, body: &Bytes) -> Bytes {
    let ours = OwnMembers::new(dialect, true, voice);
    let edits = ours.edits(text, node);
    let same = edits.iter().all(|(place, new)| text.as_bytes()[place.clone()] == **new);
    if same { body.clone() } else { Bytes::from(json::splice(text.as_bytes(), &edits)) }
}
