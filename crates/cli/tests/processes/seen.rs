//! What the client of a call saw of it, recorded to be compared with the books.

use crate::kinds::Kind;
use reqwest::Response;
use serde_json::Value;
use std::collections::BTreeMap;

/// How one call ended for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A whole 200, or a stream up to `[DONE]`; of a video, that it is being made. The charge where
    /// a header named it.
    Answered { call: String, charge: Option<String>, replayed: bool },
    /// A refusal or a provider's fault, as a status or as the last event of a stream. A tool's has
    /// no status.
    Failed { call: String, status: u16, code: String },
    /// The call that this Idempotency-Key was used for is over and was charged; its answer was not
    /// stored.
    Spent { call: String },
    /// The client hung up, as it had planned; so many words had come in by then.
    Left { call: String, words: usize },
    /// The connection broke; so many words had come in by then.
    Lost { call: Option<String>, words: usize },
}

#[derive(Clone, Debug)]
pub struct Record {
    pub tag: String,
    pub kind: Kind,
    pub seen: Seen,
}

impl Seen {
    pub const NOTHING: Seen = Seen::Lost { call: None, words: 0 };

    /// Nobody knows, nor will know, whether it was made.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Seen::Failed { code, .. } if code == "charge_state_unknown")
    }

    /// The same Idempotency-Key may bring more.
    pub fn is_unfinished(&self, kind: Kind) -> bool {
        match self {
            Seen::Lost { .. } => true,
            _ if self.is_unknown() && kind.is_begun_once() => false,
            // A stream that broke off, a provider's fault, a ledger that is away: whether it was
            // charged is shown when it is asked for again.
            Seen::Failed { status: 200 | 502..=504, .. } => true,
            // A tool's failure, of which the status is not known.
            Seen::Failed { status: 0, .. } => true,
            Seen::Failed { code, .. } => code == "idempotency_in_progress",
            _ => false,
        }
    }

    pub fn outcome(&self) -> &'static str {
        match self {
            Seen::Answered { .. } => "answered",
            Seen::Failed { code, .. } if code == "idempotency_in_progress" => "asked to wait",
            Seen::Failed { status: 503, .. } => "unavailable",
            Seen::Failed { code, .. } if code == "ledger_unavailable" => "unavailable",
            Seen::Failed { .. } => "failed",
            Seen::Spent { .. } => "informed that it was charged",
            Seen::Left { .. } => "left",
            Seen::Lost { words: 0, .. } => "lost",
            Seen::Lost { .. } => "lost in mid-stream",
        }
    }
}

/// How many of each outcome there were, for checks that the load was real.
pub fn tally(records: &[Record]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for record in records {
        *counts.entry(record.seen.outcome()).or_default() += 1;
    }
    counts
}

/// How often this was the outcome.
pub fn count(records: &[Record], outcome: &str) -> usize {
    records.iter().filter(|record| record.seen.outcome() == outcome).count()
}

/// The same for each kind, for people.
pub fn by_kind(records: &[Record]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for record in records {
        *counts.entry(format!("{} {}", record.kind.name(), record.seen.outcome())).or_default() += 1;
    }
    counts
}

/// Reads a reply to its end, or leaves after so many pieces.
pub async fn read(mut reply: Response, leave_after: Option<usize>) -> Seen {
    let header = |name: &str| reply.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let status = reply.status().as_u16();
    let (call, charge) = (header("x-request-id").unwrap_or_default(), header("x-tollgate-charge-usd"));
    let replayed = header("idempotency-replayed").is_some();
    let kind = header("content-type").unwrap_or_default();
    let streams = kind.starts_with("text/event-stream");
    let sounds = kind.starts_with("audio/");
    let mut text = Vec::new();
    for pieces in 0.. {
        if (streams || sounds) && leave_after.is_some_and(|limit| pieces >= limit) {
            return Seen::Left { call, words: words(&String::from_utf8_lossy(&text)) };
        }
        match reply.chunk().await {
            Ok(Some(piece)) => text.extend_from_slice(&piece),
            Ok(None) => break,
            Err(_) => {
                return Seen::Lost { call: Some(call), words: words(&String::from_utf8_lossy(&text)) };
            }
        }
    }
    let text = String::from_utf8_lossy(&text);
    if status != 200 {
        return failed(call, status, &serde_json::from_str(&text).unwrap_or_default());
    }
    if sounds {
        return Seen::Answered { call, charge, replayed };
    }
    if !streams {
        let whole: Value = serde_json::from_str(&text).expect("a whole body is JSON");
        if whole["jsonrpc"] == "2.0" {
            return tool(&whole["result"], replayed);
        }
        let kinds = ["chat.completion", "video", "social.result"];
        // Pictures, vectors, songs, orders and decisions come as a list, a transcript as a text.
        let listed = ["data", "results", "answers"].iter().any(|name| whole[*name].is_array());
        let media = listed || whole["text"].is_string();
        assert!(media || kinds.iter().any(|kind| whole["object"] == *kind), "{whole}");
        return Seen::Answered { call, charge, replayed };
    }
    let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
    match last.trim() {
        "data: [DONE]" => Seen::Answered { call, charge, replayed },
        event if event.contains("\"error\"") => Seen::Failed { call, status, code: String::new() },
        other => panic!("{call} ended without [DONE] and without an error: {other:?}"),
    }
}

fn failed(call: String, status: u16, body: &Value) -> Seen {
    let part = |name: &str| body["error"][name].as_str().unwrap_or_default();
    refused(call, status, part("code"), part("message"))
}

/// A tool that fails says so in words, which begin with the code.
fn tool(result: &Value, replayed: bool) -> Seen {
    let call = result["_meta"]["call_id"].as_str().unwrap_or_else(|| panic!("no tool's result: {result}")).to_owned();
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    if result["isError"] == false {
        assert!(text.contains("\"social.result\""), "{result}");
        return Seen::Answered { call, charge: None, replayed };
    }
    let (code, message) = text.split_once(": ").unwrap_or((text, ""));
    refused(call, 0, code, message)
}

fn refused(call: String, status: u16, code: &str, message: &str) -> Seen {
    if code != "idempotency_conflict" {
        return Seen::Failed { call, status, code: code.to_owned() };
    }
    // It is not about this request, but about the one that had the key before.
    let named = message.split_whitespace().find(|word| word.starts_with("call_"));
    Seen::Spent { call: named.unwrap_or_else(|| panic!("it names no call: {message}")).to_owned() }
}

/// Events that say something; the first of a stream only names the speaker.
fn words(text: &str) -> usize {
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    events.filter(|event| event["choices"][0]["delta"]["content"].as_str().is_some_and(|word| !word.is_empty())).count()
}
