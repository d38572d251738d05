//! GenerateContentResponse objects read into the hub: a whole reply is one, a stream is many.

use super::cites;
use super::known;
use super::parts_in::read_call;
use crate::hub::{Details, Event, Finish, NEXT_TEXT, Rest, Seal, Sink, Stop};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::Node;
use tollgate_wire::usage::{UsageReport, UsageShape};

/// Candidates beyond this are nobody's.
pub(super) const MOST_CHOICES: u64 = 128;
/// Text buffered to turn the byte places of citations into characters; beyond it they are left out.
const MOST_TEXT: usize = 4 << 20;

#[derive(Debug)]
pub(crate) struct GeminiReader {
    /// The call of ours that is answered.
    call: String,
    choices: Vec<Choice>,
    /// How much text may still be buffered: the client's dialect gives citations places in it, or
    /// does not.
    room: usize,
    /// The prompt was refused, which ends every choice.
    blocked: bool,
}

#[derive(Debug, Default)]
struct Choice {
    calls: u32,
    parts: usize,
    thinking: bool,
    /// The last part was text, which may go on.
    saying: bool,
    finished: bool,
    text: String,
}

impl GeminiReader {
    pub fn new(call: &str, places: bool) -> Self {
        GeminiReader {
            call: call.to_owned(),
            choices: Vec::new(),
            room: if places { MOST_TEXT } else { 0 },
            blocked: false,
        }
    }

    pub fn read(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        if node.get("error").is_some() {
            sink(Event::Fail(Box::new(UpstreamError::read(node.raw.as_bytes()).unwrap_or_default())));
            return;
        }
        let text = |camel, snake| node.either(camel, snake).and_then(Node::text).cloned().unwrap_or_default();
        let candidates = node.get("candidates").map_or(&[][..], Node::items);
        if !candidates.is_empty() || node.get("promptFeedback").is_some() {
            sink(Event::Start { id: text("responseId", "response_id"), model: text("modelVersion", "model_version") });
        }
        if let Some(usage) = node.either("usageMetadata", "usage_metadata")
            && let Some(report) = UsageReport::read(UsageShape::Gemini, usage.raw.as_bytes())
        {
            sink(Event::Usage(Box::new(report)));
        }
        for candidate in candidates {
            self.candidate(candidate, sink);
        }
        let feedback = node.get("promptFeedback");
        if let Some(reason) = feedback.and_then(|feedback| feedback.text_of("blockReason")) {
            if candidates.is_empty() {
                self.blocked = true;
                self.choices.resize_with(self.choices.len().max(1), Choice::default);
                let said = feedback.and_then(|feedback| feedback.text_of("blockReasonMessage"));
                self.choices[0].finish(0, ended(Stop::Filter, reason.clone(), said), sink);
            } else {
                sink(Event::Lost { what: Cow::Borrowed("promptFeedback.blockReason") });
            }
        }
        sink(Event::Rest(Rest { node, known: known::RESPONSE }));
    }

    /// How many choices have ended.
    pub fn ended(&self) -> u64 {
        let ended = self.choices.iter().filter(|choice| choice.finished).count() as u64;
        if self.blocked { MOST_CHOICES } else { ended }
    }

    pub fn finished(&self) -> bool {
        !self.choices.is_empty() && self.choices.iter().all(|choice| choice.finished)
    }

    fn candidate(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        let index = node.get("index").and_then(Node::number).unwrap_or(0);
        if index >= MOST_CHOICES {
            sink(Event::Lost { what: Cow::Borrowed("candidates") });
            return;
        }
        let (number, at) = (index as u32, index as usize);
        if self.choices.len() <= at {
            self.choices.resize_with(at + 1, Choice::default);
        }
        let choice = &mut self.choices[at];
        let parts = node.get("content").and_then(|content| content.get("parts")).map_or(&[][..], Node::items);
        for part in parts {
            choice.part(part, number, &self.call, &mut self.room, sink);
        }
        cites::read(node, number, &choice.text, sink);
        if let Some(raw) = node.either("logprobsResult", "logprobs_result").and_then(cites::logprobs) {
            sink(Event::Logprobs { choice: number, raw: Cow::Owned(raw) });
        }
        let reason = node.either("finishReason", "finish_reason").and_then(Node::text);
        if let Some(reason) = reason.filter(|reason| *reason != "FINISH_REASON_UNSPECIFIED") {
            let said = node.either("finishMessage", "finish_message").and_then(Node::text);
            if said.is_some_and(|said| !said.is_empty()) && stop(reason) != Stop::Filter {
                sink(Event::Lost { what: Cow::Borrowed("finishMessage") });
            }
            choice.finish(number, ended(stop(reason), reason.clone(), said), sink);
        }
    }
}

fn ended<'a>(stop: Stop, native: Cow<'a, str>, said: Option<&Cow<'a, str>>) -> Finish<'a> {
    let details = said.filter(|_| stop == Stop::Filter);
    let details = details.map(|said| Details { category: None, explanation: Some(said.clone()) });
    Finish { details, ..Finish::new(Dialect::Gemini, stop, native) }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "MAX_TOKENS" => Stop::Length,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "NO_IMAGE" => Stop::Filter,
        image if image.starts_with("IMAGE_") => Stop::Filter,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
            Stop::Malformed
        }
        "CONTINUATION" => Stop::Pause,
        _ => Stop::End,
    }
}

impl Choice {
    fn part(&mut self, node: &Node<'_>, choice: u32, call: &str, room: &mut usize, sink: &mut Sink<'_>) {
        let at = self.parts;
        self.parts += 1;
        let signature = node.either("thoughtSignature", "thought_signature").and_then(Node::text).cloned();
        self.saying &= node.text_of("text").is_some() && node.get("thought").and_then(Node::bool) != Some(true);
        if let Some(text) = node.text_of("text") {
            if node.get("thought").and_then(Node::bool) == Some(true) {
                if !text.is_empty() {
                    self.thinking = true;
                    sink(Event::Thought { choice, text: text.clone(), summary: false });
                }
                if let Some(data) = signature {
                    self.end_thought(choice, Some(Seal::read(Dialect::Gemini, data, "".into())), sink);
                }
                return;
            }
            let seal = signature.map(|data| Seal::read(Dialect::Gemini, data, NEXT_TEXT.into()));
            // In front of a text that goes on it would break it in two, and clients would see two
            // answers.
            let (before, after) = if self.saying && !text.is_empty() { (None, seal) } else { (seal, None) };
            self.end_thought(choice, before, sink);
            if !text.is_empty() {
                if *room > 0 {
                    *room = room.saturating_sub(text.len());
                    self.text.push_str(text);
                }
                sink(Event::Text { choice, text: text.clone() });
                self.saying = true;
            }
            self.end_thought(choice, after, sink);
            return;
        }
        if let Some(node) = node.either("functionCall", "function_call") {
            let call = read_call(node, &format!("{call}/{choice}"), at);
            let seal = signature.map(|data| Seal::read(Dialect::Gemini, data, call.id.clone()));
            self.end_thought(choice, seal, sink);
            let number = self.calls;
            self.calls += 1;
            sink(Event::CallOpen {
                choice,
                call: number,
                id: call.id,
                name: call.name,
                namespace: None,
                kind: call.kind,
            });
            sink(Event::CallArgs { choice, call: number, text: call.args });
            sink(Event::CallClose { choice, call: number });
            return;
        }
        self.end_thought(choice, signature.map(|data| Seal::read(Dialect::Gemini, data, NEXT_TEXT.into())), sink);
        let thought = node.get("thought").and_then(Node::bool) == Some(true);
        // A picture that was thought is no answer, and others have no form for it.
        if let Some(data) = node.either("inlineData", "inline_data").filter(|_| !thought) {
            let mime = data.either("mimeType", "mime_type").and_then(Node::text).cloned().unwrap_or_default();
            if mime.starts_with("image/") {
                let base64 = crate::hub::base64_standard(data.text_of("data").cloned().unwrap_or_default());
                sink(Event::Image { choice, mime, base64 });
                return;
            }
        }
        if let Some((what, _)) = node.members().iter().find(|(name, _)| name != "thought") {
            let raw = Cow::Borrowed(node.raw);
            sink(Event::Foreign { choice, origin: Dialect::Gemini, what: what.clone(), raw });
        }
    }

    /// Ends an open thought, or passes a signature that belongs to the part that follows.
    fn end_thought(&mut self, choice: u32, seal: Option<Seal<'_>>, sink: &mut Sink<'_>) {
        if std::mem::take(&mut self.thinking) || seal.is_some() {
            sink(Event::ThoughtEnd { choice, seal, redacted: false });
        }
    }

    fn finish(&mut self, choice: u32, finish: Finish<'_>, sink: &mut Sink<'_>) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.end_thought(choice, None, sink);
        sink(Event::Finish { choice, finish: finish.with_calls(self.calls > 0) });
    }
}
