//! What an answer used, from its events: the provider's report and our own count.

use crate::hub::Event;
use crate::pattern::Said;
use crate::reads::ToolUses;
use tollgate_wire::Dialect;
use tollgate_wire::count::{IMAGE, SPOKEN_LETTERS, TokenCounter};
use tollgate_wire::json::Node;
use tollgate_wire::usage::{Usage, UsageReport};

#[derive(Debug)]
pub(super) struct StreamMeter {
    report: UsageReport,
    usage: Option<Usage>,
    /// Output came after the last report.
    since: bool,
    /// A report came with the event that is being read.
    reported: bool,
    pub output: bool,
    /// There is an answer at all, with or without output.
    pub answer: bool,
    text: TokenCounter,
    thought: TokenCounter,
    call: TokenCounter,
    raw: String,
    raw_first: String,
    /// Uses of tools that ran at the provider.
    pub tools: ToolUses,
    from: Dialect,
}

/// Longest report stored as text.
const MOST_RAW: usize = 8 << 10;

impl StreamMeter {
    pub fn new(from: Dialect) -> Self {
        StreamMeter {
            report: UsageReport::new(from.usage()),
            usage: None,
            since: false,
            reported: false,
            output: false,
            answer: false,
            text: TokenCounter::default(),
            thought: TokenCounter::default(),
            call: TokenCounter::default(),
            raw: String::new(),
            raw_first: String::new(),
            tools: ToolUses::new(from),
            from,
        }
    }

    pub fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::Text { text, .. } | Event::Refusal { text, .. } => self.text.text(text.as_bytes()),
            Event::Thought { text, .. } => self.thought.text(text.as_bytes()),
            Event::CallOpen { name, .. } => self.call.text(name.as_bytes()),
            Event::CallArgs { text, .. } => self.call.text(text.as_bytes()),
            Event::Image { .. } => self.text.add(IMAGE),
            Event::Audio { raw, .. } => self.text.add((raw.len() as u64).div_ceil(SPOKEN_LETTERS)),
            Event::Usage(report) => {
                if self.report.merge(report) {
                    self.usage = self.report.usage();
                    self.since = false;
                    self.reported = true;
                }
                return;
            }
            Event::Searches { count, .. } => {
                self.tools.searches(*count);
                return;
            }
            Event::Search { .. } => self.tools.searched(self.from),
            Event::Foreign { origin, what, .. } => self.tools.left(*origin, what),
            // A sealed thought is output too, though nobody can count it.
            Event::ThoughtEnd { seal: Some(_), .. } => {}
            _ => return,
        }
        self.output = true;
        self.since = true;
    }

    /// An event was read to its end: a report covers all that came with it, in whichever order its
    /// reader tells them.
    pub fn over(&mut self) {
        if std::mem::take(&mut self.reported) {
            self.since = false;
        }
    }

    /// What is written now to end the answer was not said after the report: it is ours.
    pub fn ending(&mut self) {
        self.reported = !self.since;
    }

    /// Counts text that passed without being read as an event.
    pub fn say(&mut self, said: Said, text: &[u8]) {
        match said {
            Said::Text => self.text.text(text),
            Said::Thought => self.thought.text(text),
        }
        self.output = true;
        self.since = true;
    }

    /// Looks at a whole reply or an event for what its reader does not tell: whether there is an
    /// answer, and the text of a report.
    pub fn look(&mut self, from: Dialect, node: &Node<'_>, whole: bool) {
        self.answer = self.answer || self.output || has_answer(from, node, whole);
        self.keep_raw(from, node, whole);
        if from == Dialect::Gemini {
            self.tools.grounded(node);
        }
    }

    /// Keeps the text of a report.
    fn keep_raw(&mut self, from: Dialect, node: &Node<'_>, whole: bool) {
        let Some(raw) = raw_usage(from, node, whole).filter(|raw| raw.len() <= MOST_RAW) else { return };
        // Anthropic's first report has numbers that its last one lacks.
        if from == Dialect::Anthropic && !whole && node.str_of("type") == "message_start" {
            self.raw_first = raw.to_owned();
        }
        self.raw.clear();
        if self.raw_first.is_empty() || self.raw_first == raw {
            self.raw.push_str(raw);
        } else {
            for piece in ["[", &self.raw_first, ",", raw, "]"] {
                self.raw.push_str(piece);
            }
        }
    }

    /// The reports as they came: the last one, or a list of the first and the last.
    pub fn raw(&self) -> Option<&str> {
        (!self.raw.is_empty()).then_some(self.raw.as_str())
    }

    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// What the client gets: the report, or our own count where there is none, for that is what
    /// it is charged by then.
    pub fn usage_so_far(&self, prompt: u64) -> Option<Usage> {
        let says_nothing = self.usage.is_none_or(|usage| self.output && usage.output_total() == 0);
        if !says_nothing || prompt == 0 {
            return self.usage;
        }
        let input = self.usage.filter(|usage| usage.input_total() > 0);
        Some(Usage { output: self.counted(), ..input.unwrap_or(Usage { input: prompt, ..Usage::default() }) })
    }

    pub fn is_current(&self) -> bool {
        let denied = self.output && self.usage.is_some_and(|usage| usage.output_total() == 0);
        self.usage.is_some() && !self.since && !denied
    }

    pub fn counted(&self) -> u64 {
        self.text.tokens() + self.thought.tokens() + self.call.tokens()
    }
}

/// A choice, a block, an item, a candidate: whatever is in it.
fn has_answer(from: Dialect, node: &Node<'_>, whole: bool) -> bool {
    let some = |list: Option<&Node<'_>>| list.is_some_and(|list| !list.items().is_empty());
    match from {
        Dialect::Chat => some(node.get("choices")),
        Dialect::Gemini => some(node.get("candidates")),
        Dialect::Anthropic if whole => some(node.get("content")),
        Dialect::Anthropic => node.str_of("type") == "content_block_start",
        Dialect::Responses if whole => some(node.get("output")),
        Dialect::Responses => {
            node.str_of("type").starts_with("response.output_item")
                || some(node.get("response").and_then(|response| response.get("output")))
        }
    }
}

fn raw_usage<'a>(from: Dialect, node: &Node<'a>, whole: bool) -> Option<&'a str> {
    let place = match (from, whole) {
        (Dialect::Gemini, _) => node.either("usageMetadata", "usage_metadata"),
        (Dialect::Responses, false) => node.get("response")?.get("usage"),
        (Dialect::Anthropic, false) => node.get("usage").or_else(|| node.get("message")?.get("usage")),
        (Dialect::Chat, _) => {
            let inside = || node.get("choices")?.items().iter().find_map(|choice| choice.get("usage"));
            node.get("usage").or_else(inside)
        }
        _ => node.get("usage"),
    };
    place.filter(|usage| usage.is_map()).map(|usage| usage.raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole replies and events with and without an answer in them.
    #[test]
    fn an_answer_is_a_choice_a_block_an_item_or_a_candidate() {
        let table = [
            (Dialect::Chat, true, r#"{"choices":[],"usage":{"completion_tokens":9}}"#, false),
            (Dialect::Chat, true, r#"{"choices":[{"message":{"content":""},"finish_reason":"length"}]}"#, true),
            (Dialect::Chat, false, r#"{"choices":[]}"#, false),
            (Dialect::Chat, false, r#"{"choices":[{"delta":{}}]}"#, true),
            (Dialect::Anthropic, true, r#"{"content":[],"stop_reason":"end_turn"}"#, false),
            (Dialect::Anthropic, true, r#"{"content":[{"type":"thinking","thinking":""}]}"#, true),
            (Dialect::Anthropic, false, r#"{"type":"message_start","message":{"content":[]}}"#, false),
            (Dialect::Anthropic, false, r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#, false),
            (Dialect::Anthropic, false, r#"{"type":"content_block_start","index":0}"#, true),
            (Dialect::Responses, true, r#"{"output":[],"status":"completed"}"#, false),
            (Dialect::Responses, true, r#"{"output":[{"type":"reasoning","summary":[]}]}"#, true),
            (Dialect::Responses, false, r#"{"type":"response.completed","response":{"output":[]}}"#, false),
            (Dialect::Responses, false, r#"{"type":"response.output_item.added","item":{"type":"reasoning"}}"#, true),
            (Dialect::Responses, false, r#"{"type":"response.completed","response":{"output":[{}]}}"#, true),
            (Dialect::Gemini, true, r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, false),
            (Dialect::Gemini, true, r#"{"candidates":[]}"#, false),
            (Dialect::Gemini, false, r#"{"candidates":[{"finishReason":"MAX_TOKENS"}]}"#, true),
        ];
        for (from, whole, text, expected) in table {
            let node = Node::read(text).expect("JSON");
            assert_eq!(has_answer(from, &node, whole), expected, "{from:?} {text}");
        }
    }
}
