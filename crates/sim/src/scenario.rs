//! Which behaviour a call asks for. One table names every scenario, what its model-name argument
//! means and what it does; `/v1/models`, the refusal of an unknown name and the command line's
//! listing all read it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::refusal::Refusal;

/// A behaviour of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    Plain,
    Tools,
    Reasoning,
    ReasoningTools,
    Refused,
    Agent,
    Cached,
    Slow,
    Error(u16),
    Html500,
    Redirect,
    ErrorMidstream,
    ErrorFirst,
    CutMidstream,
    Hang,
    HangMidstream,
    NoUsage,
    WrongUsage,
    ZeroUsageLast,
    TwoUsages,
    UsageOnContentChunk,
    Priced,
    Empty,
    Garbage,
    HugeLine,
    Crlf,
    Comments,
    Framing,
    NoContentType,
    NoDone,
    NoFinish,
    AfterDone,
    SplitUtf8,
    U2028,
    IgnoreMaxTokens,
    SameId,
    Strict,
    Unthinking,
    Budget,
    Fast,
    Faststream,
}

use Scenario as S;

/// Scenario, name, option that the argument of a model name sets, what it does.
const TABLE: &[(Scenario, &str, &str, &str)] = &[
    (S::Plain, "plain", "tokens", "a well-behaved reply"),
    (S::Tools, "tools", "calls", "tool calls with fragmented arguments; text once tool results are sent"),
    (S::Reasoning, "reasoning", "reasoning", "reasoning_content, and reasoning_tokens inside completion_tokens"),
    (
        S::ReasoningTools,
        "reasoning_tools",
        "calls",
        "thinks and calls tools, thinks again and says text once tool results are sent",
    ),
    (S::Agent, "agent", "calls", "one tool call when tools are offered, text when not and once results are sent"),
    (S::Refused, "refused", "kind", "a refusal by the model (Gemini, kind=prompt: the prompt is blocked)"),
    (S::Cached, "cached", "cached", "cached_tokens and cache_write_tokens inside prompt_tokens"),
    (S::Slow, "slow", "think_ms", "thinks a second, then 100 ms between events"),
    (S::Error(400), "error400", "code", "400 that names the field model_options"),
    (S::Error(401), "error401", "code", "401: the provider does not know our key"),
    (S::Error(402), "error402", "code", "402: our account with the provider is empty"),
    (S::Error(403), "error403", "code", "403: the provider does not let us use the model"),
    (S::Error(404), "error404", "code", "404: the provider does not know the model"),
    (S::Error(408), "error408", "code", "408: the provider gave up waiting"),
    (S::Error(413), "error413", "code", "413: the request is too large"),
    (S::Error(422), "error422", "code", "422: the request cannot be processed"),
    (S::Error(429), "error429", "retry_after", "429 with Retry-After"),
    (S::Error(500), "error500", "code", "500 with a stack trace and internal host names in its text"),
    (S::Error(502), "error502", "code", "502: the provider's own provider failed"),
    (S::Error(503), "error503", "code", "503: overloaded"),
    (S::Error(529), "error529", "code", "529: overloaded, the non-standard status"),
    (S::Html500, "html500", "code", "500 with a web page as its body"),
    (S::Redirect, "redirect", "code", "307 to another host"),
    (S::ErrorMidstream, "error_midstream", "after", "an error event after some content events"),
    (S::ErrorFirst, "error_first", "code", "200, then an error event before any token"),
    (S::CutMidstream, "cut_midstream", "after", "the connection ends after some content events (cut=reset|fin|eof)"),
    (S::Hang, "hang", "think_ms", "takes the call, never answers"),
    (S::HangMidstream, "hang_midstream", "after", "falls silent after some content events"),
    (S::NoUsage, "no_usage", "tokens", "never reports usage"),
    (
        S::WrongUsage,
        "wrong_usage",
        "kind",
        "usage that cannot be (kind=negative|huge|cached_over|strings|float|null|partial)",
    ),
    (S::ZeroUsageLast, "zero_usage_last", "tokens", "usage, then a second one of zeros"),
    (S::TwoUsages, "two_usages", "tokens", "a running usage, then the final one"),
    (
        S::UsageOnContentChunk,
        "usage_on_content_chunk",
        "tokens",
        "usage on the last chunk that has choices, asked for or not",
    ),
    (S::Priced, "priced", "tokens", "says beside its usage what the call cost, as a router of models does"),
    (S::Empty, "empty", "tokens", "a proper reply without any output"),
    (S::Garbage, "garbage", "kind", "200 with something that is not JSON (kind=text|binary|json|truncated)"),
    (S::HugeLine, "huge_line", "mib", "an event without a line end, endless unless mib is given"),
    (S::Crlf, "crlf", "kind", "CRLF line ends (kind=cr: CR alone)"),
    (S::Comments, "comments", "tokens", "comment lines before, between and inside events"),
    (
        S::Framing,
        "framing",
        "tokens",
        "byte order mark, data: without space, event:, id: and retry: lines, data over several lines",
    ),
    (S::NoContentType, "no_content_type", "tokens", "a stream without its content type"),
    (S::NoDone, "no_done", "tokens", "finishes without [DONE]"),
    (S::NoFinish, "no_finish", "tokens", "[DONE] without a finish_reason"),
    (S::AfterDone, "after_done", "tokens", "more events after [DONE]"),
    (S::SplitUtf8, "split_utf8", "tokens", "characters of several bytes, split over writes"),
    (S::U2028, "u2028", "tokens", "raw U+2028, U+2029 and U+0085 inside the JSON"),
    (S::IgnoreMaxTokens, "ignore_max_tokens", "tokens", "says more than it was allowed to"),
    (S::SameId, "same_id", "tokens", "always the same reply id"),
    (S::Strict, "strict", "tokens", "refuses all that OpenAI itself refuses; as a model it does so in every scenario"),
    (
        S::Unthinking,
        "unthinking",
        "tokens",
        "refuses settings of thinking, as OpenAI's models that do not; as a model it does so in every scenario",
    ),
    (
        S::Budget,
        "budget",
        "kind",
        "Gemini before 3, as a model: sim-budget-LEAST-MOST takes thinkingBudget between them, with -off at the end also 0",
    ),
    (S::Fast, "fast", "tokens", "a prebuilt reply, not recorded: for load"),
    (S::Faststream, "faststream", "chunks", "prebuilt events as fast as they are taken, not recorded: for load"),
];

/// Every scenario with a line about it, for listings.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().map(|&(_, name, _, meaning)| (name, meaning))
}

/// All option keys; anything else in a marker is a mistake in the test, and is refused.
const KEYS: &str = "tokens chunks size prompt think_ms delay_ms after cut kind cached written reasoning mib \
    retry_after code calls tool args reply_model door";

/// A scenario with its options.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub scenario: Scenario,
    options: BTreeMap<String, String>,
}

impl Choice {
    /// The marker in the last user message wins over the model name, option by option.
    pub fn of(model: &str, last_user: &str) -> Result<Self, Refusal> {
        let mut choice = Self::from_model(model)?;
        if let Some((_, rest)) = last_user.split_once("[[sim:") {
            let inside = rest.split_once("]]").map(|(inside, _)| inside);
            choice.read_marker(inside.ok_or_else(|| Refusal::bad("messages", "a [[sim:…]] marker does not end"))?)?;
        }
        Ok(choice)
    }

    fn from_model(model: &str) -> Result<Self, Refusal> {
        let plain = Self { scenario: S::Plain, options: BTreeMap::new() };
        let Some(rest) = model.strip_prefix("sim-") else {
            return Ok(plain);
        };
        let mut fitting: Vec<_> = TABLE.iter().filter(|row| fits(rest, row.1)).collect();
        fitting.sort_by_key(|row| row.1.len());
        let Some(&(scenario, name, key, _)) = fitting.pop() else {
            return Err(Refusal::unknown_model(model));
        };
        let mut choice = Self { scenario, ..plain };
        if let Some(argument) = rest[name.len()..].strip_prefix('-') {
            choice.options.insert(key.to_string(), argument.to_string());
        }
        Ok(choice)
    }

    fn read_marker(&mut self, marker: &str) -> Result<(), Refusal> {
        for (place, word) in marker.split_whitespace().enumerate() {
            match word.split_once('=') {
                Some((key, value)) if is_key(key) => {
                    self.options.insert(key.to_string(), value.to_string());
                }
                None if place == 0 => {
                    let row = TABLE.iter().find(|row| row.1 == word);
                    let row = row.ok_or_else(|| Refusal::bad("messages", &format!("no scenario `{word}`")))?;
                    if row.0 != self.scenario {
                        self.options.clear();
                    }
                    self.scenario = row.0;
                }
                _ => return Err(Refusal::bad("messages", &format!("no scenario option `{word}`"))),
            }
        }
        Ok(())
    }

    pub fn name(&self) -> &'static str {
        let row = TABLE.iter().find(|row| row.0 == self.scenario);
        row.map_or("plain", |row| row.1)
    }

    pub fn is(&self, scenario: Scenario) -> bool {
        self.scenario == scenario
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        debug_assert!(is_key(key));
        self.options.get(key).map(String::as_str)
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.text(key).and_then(|text| text.parse().ok())
    }

    pub fn count(&self, key: &str, otherwise: usize) -> usize {
        self.number(key).and_then(|n| usize::try_from(n).ok()).unwrap_or(otherwise)
    }

    pub fn millis(&self, key: &str) -> Option<Duration> {
        self.number(key).map(Duration::from_millis)
    }
}

fn fits(rest: &str, name: &str) -> bool {
    rest.strip_prefix(name).is_some_and(|tail| tail.is_empty() || tail.starts_with('-'))
}

fn is_key(key: &str) -> bool {
    KEYS.split(' ').any(|known| known == key)
}
