//! What the simulator says: words, reasoning and tool calls of one reply, and the usage it reports
//! for them.

use serde_json::{Value, json};

use crate::ask::{Ask, Tool, words};
use crate::made::Made;
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
    /// The text is the model's refusal.
    pub refused: bool,
    /// The stop sequence that ended the text.
    pub stopped_by: Option<String>,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub reasoning_tokens: u64,
    pub cached_tokens: u64,
    pub written_tokens: u64,
    /// What is made beside words, and its tokens.
    pub made: Made,
}

/// A tool call.
#[derive(Debug)]
pub(crate) struct Call {
    pub id: String,
    pub name: String,
    pub arguments: String,
    /// The arguments are free text.
    pub free: bool,
}

impl Call {
    /// How chat names the kind of call and the field of its arguments.
    pub fn kind(&self) -> (&'static str, &'static str) {
        if self.free { ("custom", "input") } else { ("function", "arguments") }
    }

    /// The arguments a few characters at a time.
    pub fn pieces(&self) -> Vec<String> {
        in_fives(&self.arguments)
    }
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
        let thinks = matches!(choice.scenario, S::Reasoning | S::ReasoningTools);
        let thoughts = if thinks { choice.count("reasoning", 7) } else { 0 };
        let thought = thoughts.min(left);
        left -= thought;
        let calling = match choice.scenario {
            S::Tools | S::ReasoningTools => !ask.wants_text,
            S::Agent => !ask.wants_text && !ask.tools.is_empty(),
            S::Plain | S::Strict => ask.forced.is_some(),
            _ => false,
        };
        let calls = if calling { tool_calls(ask, choice) } else { Vec::new() };
        let said = text(ask, choice, calls.is_empty(), left);
        let finish = match (said.cut || thought < thoughts, calls.is_empty()) {
            (true, _) => "length",
            (false, true) => "stop",
            (false, false) => "tool_calls",
        };
        let spoken: u64 = calls.iter().map(|call| 1 + words(&call.arguments)).sum();
        let reasoning_tokens = number(thought) * ask.choices;
        Self {
            reasoning: (0..thought).map(|place| word(WORDS, place, 0)).collect(),
            completion_tokens: (said.tokens + spoken) * ask.choices + reasoning_tokens,
            pieces: said.pieces,
            calls,
            finish,
            refused: choice.is(S::Refused),
            stopped_by: said.stopped_by,
            prompt_tokens,
            reasoning_tokens,
            cached_tokens,
            written_tokens,
            made: ask.made.clone(),
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
        let voice = self.made.tokens();
        let completion_tokens = completion_tokens.saturating_add(voice);
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
                "audio_tokens": voice,
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

/// The text of a reply before it is part of one.
struct Words {
    pieces: Vec<String>,
    tokens: u64,
    /// The limit came first.
    cut: bool,
    stopped_by: Option<String>,
}

fn text(ask: &Ask, choice: &Choice, speaks: bool, left: usize) -> Words {
    let nothing = Words { pieces: Vec::new(), tokens: 0, cut: false, stopped_by: None };
    if !speaks || choice.is(S::Empty) {
        return nothing;
    }
    if choice.is(S::Faststream) {
        // One piece, which is sent again and again.
        let piece = crate::fast::piece(choice.count("size", 0));
        return Words { pieces: vec![piece], tokens: choice.number("chunks").unwrap_or(100), ..nothing };
    }
    if let Some(schema) = &ask.schema {
        let json = example(schema, true).to_string();
        return Words { pieces: in_fives(&json), tokens: words(&json), ..nothing };
    }
    if let Some(vtt) = subtitles(ask, choice) {
        return Words { pieces: in_fives(vtt), tokens: words(vtt), ..nothing };
    }
    let wanted = choice.count("tokens", choice.count("chunks", WORDS.len()));
    let said = wanted.min(left);
    let mut pieces = pieces(choice, said);
    let whole = pieces.concat();
    let found = ask.stop.iter().filter_map(|stop| Some((whole.find(stop.as_str())?, stop)));
    let Some((mut place, stop)) = found.min() else {
        return Words { pieces, tokens: number(said), cut: said < wanted, stopped_by: None };
    };
    for piece in &mut pieces {
        let sent = place.min(piece.len());
        place -= sent;
        piece.truncate(sent);
    }
    pieces.retain(|piece| !piece.is_empty());
    Words { tokens: words(&pieces.concat()), pieces, cut: false, stopped_by: Some(stop.clone()) }
}

/// Whoever is given subtitles and nothing else to do gives them back, cue by cue.
fn subtitles<'a>(ask: &'a Ask, choice: &Choice) -> Option<&'a str> {
    let free = choice.is(S::Plain) && choice.number("tokens").or(choice.number("chunks")).is_none();
    let place = ask.last_user.find("WEBVTT\n").filter(|_| free)?;
    let begins = place == 0 || ask.last_user[..place].ends_with('\n');
    begins.then(|| &ask.last_user[place..])
}

fn in_fives(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(5).map(|part| part.iter().collect()).collect()
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
    let schema = json!({"properties": {"city": {"type": "string"}}});
    let some_tool = Tool { name: "get_weather".to_string(), schema, free: false };
    let forced = ask.forced.as_deref().filter(|name| !name.is_empty());
    let wanted = |tool: &&Tool| choice.text("tool").or(forced).is_none_or(|name| tool.name == name);
    let mut tools: Vec<&Tool> = ask.tools.iter().filter(wanted).collect();
    if tools.is_empty() {
        tools.push(&some_tool);
    }
    let count = if ask.one_call {
        1
    } else {
        choice.count("calls", if matches!(choice.scenario, S::Agent | S::Plain | S::Strict) { 1 } else { 2 })
    };
    let call = |place: usize| {
        let tool = tools[place % tools.len()];
        let arguments = match (choice.text("args"), tool.free) {
            (Some(given), _) => given.to_string(),
            (None, true) => "Paris, and some free text".to_string(),
            (None, false) => example(&tool.schema, true).to_string(),
        };
        let id = format!("call_sim_{}", ask.earlier_calls + place);
        Call { id, name: tool.name.clone(), arguments, free: tool.free }
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
