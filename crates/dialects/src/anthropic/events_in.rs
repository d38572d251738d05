//! Messages and streamed events read into the hub.

use super::blocks_in::thinking;
use super::known;
use crate::hub::{CallKind, Citation, Details, Event, Finish, Rest, Seal, Sink, Stop};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::Node;
use tollgate_wire::usage::{UsageReport, UsageShape};

/// Longer questions are nobody's.
const MOST_QUERY: usize = 64 << 10;
/// A longer signature is none: nobody makes such.
const MOST_SEAL: usize = 4 << 20;

#[derive(Debug, Default)]
pub(crate) struct AnthropicReader {
    open: Option<Block>,
    calls: u32,
    finished: bool,
    signature: String,
    /// The input a block began with, where a server sends it whole.
    input: String,
    args: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
    /// A thought nobody can read, which comes in one piece.
    Sealed,
    Call(u32),
    /// A search of the provider's own; what for comes in pieces.
    Search,
    /// Reported as a whole.
    Other,
}

impl AnthropicReader {
    /// Reads a whole message.
    pub fn whole(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        if node.str_of("type") == "error" || node.get("error").is_some() {
            return fail(node, sink);
        }
        start(node, sink);
        for block in node.get("content").map_or(&[][..], Node::items) {
            self.begin(block, sink);
            if let Some(text) = block.text_of("thinking") {
                sink(Event::Thought { choice: 0, text: text.clone(), summary: false });
            }
            if let Some(signature) = block.text_of("signature") {
                self.signature.push_str(signature);
            }
            for citation in block.get("citations").map_or(&[][..], Node::items) {
                sink(Event::Cite { choice: 0, citation: read_citation(citation) });
            }
            self.stop(sink);
        }
        self.finish(node, sink);
        sink(Event::Rest(Rest { node, known: known::MESSAGE }));
        sink(Event::End);
    }

    /// Reads one streamed event.
    pub fn read(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        let aside = matches!(self.open, Some(Block::Search | Block::Other));
        if let Some(known) = known::event(node, aside) {
            sink(Event::Rest(Rest { node, known }));
        }
        match node.str_of("type") {
            "message_start" => {
                if let Some(message) = node.get("message") {
                    start(message, sink);
                }
            }
            "content_block_start" => {
                if let Some(block) = node.get("content_block") {
                    self.begin(block, sink);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = node.get("delta") {
                    self.delta(delta, sink);
                }
            }
            "content_block_stop" => self.stop(sink),
            "message_delta" => {
                usage(node, sink);
                if let Some(delta) = node.get("delta") {
                    self.finish(delta, sink);
                }
            }
            "message_stop" => sink(Event::End),
            "ping" => sink(Event::Ping),
            "error" => fail(node, sink),
            _ if node.get("error").is_some() => fail(node, sink),
            "" => {}
            other => sink(Event::Lost { what: Cow::Borrowed(other) }),
        }
    }

    pub fn finished(&self) -> bool {
        self.finished
    }

    fn begin(&mut self, block: &Node<'_>, sink: &mut Sink<'_>) {
        self.stop(sink);
        self.signature.clear();
        self.input.clear();
        self.args = false;
        self.open = Some(match block.str_of("type") {
            "text" => {
                if let Some(text) = block.text_of("text").filter(|text| !text.is_empty()) {
                    sink(Event::Text { choice: 0, text: text.clone() });
                }
                Block::Text
            }
            "thinking" => Block::Thinking,
            "redacted_thinking" => {
                let seal = thinking("".into(), block.text_of("data").cloned()).seal;
                let redacted = true;
                sink(Event::ThoughtEnd { choice: 0, seal, redacted });
                Block::Sealed
            }
            "tool_use" => {
                let call = self.calls;
                self.calls += 1;
                let text = |name| block.text_of(name).cloned().unwrap_or_default();
                sink(Event::CallOpen {
                    choice: 0,
                    call,
                    id: text("id"),
                    name: text("name"),
                    namespace: None,
                    kind: CallKind::Function,
                });
                if let Some(input) = block.get("input").filter(|input| !input.members().is_empty()) {
                    self.input.push_str(input.raw);
                }
                Block::Call(call)
            }
            "server_tool_use" if block.str_of("name") == "web_search" => {
                if let Some(input) = block.get("input").filter(|input| !input.members().is_empty()) {
                    self.input.push_str(input.raw);
                }
                Block::Search
            }
            other => {
                sink(Event::Foreign {
                    choice: 0,
                    origin: Dialect::Anthropic,
                    what: Cow::Owned(other.to_owned()),
                    raw: Cow::Borrowed(block.raw),
                });
                Block::Other
            }
        });
    }

    fn delta(&mut self, delta: &Node<'_>, sink: &mut Sink<'_>) {
        let text = |name| delta.text_of(name).filter(|text| !text.is_empty()).cloned();
        match delta.str_of("type") {
            "text_delta" => {
                if let Some(text) = text("text") {
                    sink(Event::Text { choice: 0, text });
                }
            }
            "thinking_delta" => {
                if let Some(text) = text("thinking") {
                    sink(Event::Thought { choice: 0, text, summary: false });
                }
            }
            "signature_delta" if self.signature.len() <= MOST_SEAL => {
                self.signature.push_str(delta.str_of("signature"))
            }
            "input_json_delta" if self.open == Some(Block::Search) && self.input.len() < MOST_QUERY => {
                self.input.push_str(delta.str_of("partial_json"));
            }
            "input_json_delta" => {
                if let (Some(text), Some(Block::Call(call))) = (text("partial_json"), self.open) {
                    self.args = true;
                    sink(Event::CallArgs { choice: 0, call, text });
                }
            }
            "citations_delta" => {
                if let Some(citation) = delta.get("citation") {
                    sink(Event::Cite { choice: 0, citation: read_citation(citation) });
                }
            }
            "signature_delta" | "" => {}
            // A block that is reported as a whole has pieces of its own kinds.
            _ if self.open == Some(Block::Other) => {}
            other => sink(Event::Lost { what: Cow::Borrowed(other) }),
        }
    }

    fn stop(&mut self, sink: &mut Sink<'_>) {
        match self.open.take() {
            Some(Block::Text) => sink(Event::TextEnd { choice: 0 }),
            Some(Block::Thinking) => {
                let signature = std::mem::take(&mut self.signature);
                if signature.len() > MOST_SEAL {
                    sink(Event::Lost { what: Cow::Borrowed("signature") });
                }
                let sound = (1..=MOST_SEAL).contains(&signature.len());
                let seal = sound.then(|| Seal::read(Dialect::Anthropic, signature.into(), "".into()));
                sink(Event::ThoughtEnd { choice: 0, seal, redacted: false });
            }
            Some(Block::Call(call)) => {
                if !self.args {
                    let input = std::mem::take(&mut self.input);
                    let text = if input.is_empty() { Cow::Borrowed("{}") } else { Cow::Owned(input) };
                    sink(Event::CallArgs { choice: 0, call, text });
                }
                sink(Event::CallClose { choice: 0, call });
            }
            Some(Block::Search) => {
                let input = std::mem::take(&mut self.input);
                let node = Node::read(&input).ok();
                let query = node.as_ref().map_or("", |node| node.str_of("query"));
                sink(match query {
                    "" => Event::Lost { what: Cow::Borrowed("server_tool_use") },
                    query => Event::Search { choice: 0, query: Cow::Borrowed(query) },
                });
            }
            Some(Block::Sealed | Block::Other) | None => {}
        }
    }

    fn finish(&mut self, node: &Node<'_>, sink: &mut Sink<'_>) {
        let Some(reason) = node.text_of("stop_reason") else { return };
        self.stop(sink);
        self.finished = true;
        let stop = match reason.as_ref() {
            "max_tokens" => Stop::Length,
            "stop_sequence" => Stop::Sequence,
            "tool_use" => Stop::Tools,
            "pause_turn" => Stop::Pause,
            "refusal" => Stop::Filter,
            "model_context_window_exceeded" => Stop::Context,
            _ => Stop::End,
        };
        let finish = Finish {
            sequence: node.text_of("stop_sequence").cloned(),
            details: Details::read(node),
            ..Finish::new(Dialect::Anthropic, stop, reason.clone())
        };
        sink(Event::Finish { choice: 0, finish: finish.with_calls(self.calls > 0) });
    }
}

fn start(message: &Node<'_>, sink: &mut Sink<'_>) {
    let text = |name| message.text_of(name).cloned().unwrap_or_default();
    sink(Event::Start { id: text("id"), model: text("model") });
    usage(message, sink);
}

fn usage(node: &Node<'_>, sink: &mut Sink<'_>) {
    let Some(usage) = node.get("usage") else { return };
    if let Some(report) = UsageReport::read(UsageShape::Anthropic, usage.raw.as_bytes()) {
        sink(Event::Usage(Box::new(report)));
    }
    let searched = usage.get("server_tool_use").and_then(|tools| tools.get("web_search_requests"));
    if let Some(count) = searched.and_then(Node::number).filter(|count| *count > 0) {
        sink(Event::Searches { what: "usage.server_tool_use", count });
    }
    if let Some(tier) = usage.text_of("service_tier") {
        sink(Event::Tier(tier.clone()));
    }
}

fn fail(node: &Node<'_>, sink: &mut Sink<'_>) {
    sink(Event::Fail(Box::new(UpstreamError::read(node.raw.as_bytes()).unwrap_or_default())));
}

fn read_citation<'a>(node: &Node<'a>) -> Citation<'a> {
    match node.text_of("url") {
        Some(url) => Citation::Url {
            url: url.clone(),
            title: node.text_of("title").cloned().unwrap_or_default(),
            from: None,
            to: None,
            quote: node.text_of("cited_text").cloned().unwrap_or_default(),
            index: node.text_of("encrypted_index").cloned().unwrap_or_default(),
        },
        None => Citation::Foreign { origin: Dialect::Anthropic, raw: Cow::Borrowed(node.raw), place: None },
    }
}
