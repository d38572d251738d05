//! What the simulator says: words, reasoning and tool calls of one reply, and the usage it reports for them.

use serde_json::{Value, json};

use crate::ask::{Ask, words};
use crate::scenario::{Choice, Scenario as S};

const WORDS: &[&str] =
    &["the", "gate", "opens", "for", "every", "coin", "and", "counts", "each", "one", "with", "care"];
/// Two, three and four bytes per character.
const WIDE: &[&str] = &["naïve", "東京", "🙂", "Übergröße", "مرحبا"];
const SEPARATORS: &[&str] = &["a\u{2028}b", "c\u{2029}d", "e\u{85}f"];

/// One reply, not yet in any shape. Every choice says the same.
#[derive(Debug)]
pub(crate) struct Speech {
    pub reasoning: Vec<String>,
    /// Pieces of the text; joined without anything between them they are the whole.
    pub pieces: Vec<String>,
    pub calls: Vec<Call>,
    pub finish: &'static str,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    reasoning_tokens: u64,
    cached_tokens: u64,
    written_tokens: u64,
}

/// A tool call.
#[derive(Debug)]
pub(crate) struct Call {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

impl Speech {
    pub fn of(ask: &Ask, choice: &Choice) -> Self {
        let prompt_tokens = choice.number("prompt").unwrap_or(ask.prompt_words);
        let (mut cached_tokens, mut written_tokens) = (0, 0);
        if choice.is(S::Cached) {
            cached_tokens = choice.number("cached").unwrap_or(prompt_tokens / 2);
            written_tokens = choice.number("written").unwrap_or(prompt_tokens / 4);
        }
        let allowed = if choice.is(S::IgnoreMaxTokens) { None } else { ask.limit };
        let mut left = usize::try_from(allowed.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let thoughts = if choice.is(S::Reasoning) { choice.count("reasoning", 7) } else { 0 };
        let thought = thoughts.min(left);
        left -= thought;
        let calls = if choice.is(S::Tools) && !ask.wants_text { tool_calls(ask, choice) } else { Vec::new() };
        let wanted = if choice.is(S::Empty) || !calls.is_empty() {
            0
        } else {
            choice.count("tokens", choice.count("chunks", WORDS.len()))
        };
        let said = wanted.min(left);
        let finish = match (said < wanted || thought < thoughts, calls.is_empty()) {
            (true, _) => "length",
            (false, true) => "stop",
            (false, false) => "tool_calls",
        };
        let spoken: u64 = calls.iter().map(|call| 1 + words(&call.arguments)).sum();
        let reasoning_tokens = number(thought) * ask.choices;
        Self {
            reasoning: (0..thought).map(|place| word(WORDS, place, 0)).collect(),
            pieces: pieces(choice, said),
            calls,
            finish,
            prompt_tokens,
            completion_tokens: (number(said) + spoken) * ask.choices + reasoning_tokens,
            reasoning_tokens,
            cached_tokens,
            written_tokens,
        }
    }

    pub fn text(&self) -> String {
        self.pieces.concat()
    }

    pub fn usage(&self) -> Value {
        self.usage_of(self.completion_tokens)
    }

    /// Usage as reported when only part of the reply was said.
    pub fn usage_of(&self, completion_tokens: u64) -> Value {
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": self.prompt_tokens.saturating_add(completion_tokens),
            "prompt_tokens_details": {
                "cached_tokens": self.cached_tokens,
                "cache_write_tokens": self.written_tokens,
                "audio_tokens": 0,
            },
            "completion_tokens_details": {
                "reasoning_tokens": self.reasoning_tokens,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        })
    }

    /// A usage no honest meter could produce.
    pub fn wrong_usage(&self, kind: &str) -> Value {
        match kind {
            "huge" => json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX, "total_tokens": u64::MAX}),
            "cached_over" => {
                let mut usage = self.usage();
                usage["prompt_tokens_details"]["cached_tokens"] = json!(self.prompt_tokens + 1000);
                usage["completion_tokens_details"]["reasoning_tokens"] = json!(self.completion_tokens + 1000);
                usage
            }
            "strings" => json!({"prompt_tokens": "12", "completion_tokens": "many", "total_tokens": ""}),
            "float" => json!({"prompt_tokens": 12.5, "completion_tokens": 1e30, "total_tokens": 1e30}),
            "null" => json!({"prompt_tokens": null, "completion_tokens": null, "total_tokens": null}),
            "partial" => json!({"total_tokens": self.prompt_tokens + self.completion_tokens}),
            _ => json!({"prompt_tokens": -5, "completion_tokens": -7, "total_tokens": -12}),
        }
    }

    pub fn zero_usage() -> Value {
        json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})
    }
}

fn pieces(choice: &Choice, said: usize) -> Vec<String> {
    let list = match choice.scenario {
        S::SplitUtf8 => WIDE,
        S::U2028 => SEPARATORS,
        _ => WORDS,
    };
    let size = choice.count("size", 0);
    let spaced = |place: usize| {
        let space = if place == 0 { "" } else { " " };
        format!("{space}{}", word(list, place, size))
    };
    let count = choice.count("chunks", said).clamp(1, said.max(1));
    // Spread evenly: piece i holds the words from i·said/count up to (i+1)·said/count.
    let piece = |i: usize| (i * said / count..(i + 1) * said / count).map(spaced).collect::<String>();
    (0..count).map(piece).filter(|piece| !piece.is_empty()).collect()
}

fn word(list: &[&str], place: usize, size: usize) -> String {
    let mut word = list[place % list.len()].to_string();
    while word.len() < size {
        word.push('x');
    }
    word
}

fn tool_calls(ask: &Ask, choice: &Choice) -> Vec<Call> {
    let some_tool = [("get_weather".to_string(), json!({"properties": {"city": {"type": "string"}}}))];
    let tools = if ask.tools.is_empty() { &some_tool[..] } else { &ask.tools[..] };
    let count = if ask.one_call { 1 } else { choice.count("calls", 2) };
    let call = |place: usize| {
        let (name, schema) = &tools[place % tools.len()];
        Call { id: format!("call_sim_{place}"), name: name.clone(), arguments: example(schema, true).to_string() }
    };
    (0..count).map(call).collect()
}

/// A value that fits a parameter schema, so that clients which check arguments are content.
fn example(schema: &Value, object: bool) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(7),
        Some("boolean") => json!(true),
        Some("array") => json!([example(&schema["items"], false)]),
        None if !object => json!("Paris"),
        Some("string") => json!("Paris"),
        _ => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, schema)| (name.clone(), example(schema, false))).collect()
        }
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
