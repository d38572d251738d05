//! Operations as the functions of the database read them: JSON, written in one pass. Every call has
//! two of them, so they are not built as trees of values first.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::call::counters::{Columns, Counter};
use crate::call::row_hash::RowFacts;

/// Bytes as PostgreSQL reads them in text.
pub(super) fn bytes(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("\\x");
    for b in bytes {
        text.push(char::from(DIGITS[usize::from(b >> 4)]));
        text.push(char::from(DIGITS[usize::from(b & 15)]));
    }
    text
}

/// The same as a value of JSON.
pub(super) struct Hex<'a>(pub &'a [u8]);

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&bytes(self.0))
    }
}

/// A member that is not there is not the same as null: the functions ask for some of them by name.
#[derive(Serialize)]
pub(super) struct HoldBody<'a> {
    pub kind: &'static str,
    pub call: Hex<'a>,
    pub account: Hex<'a>,
    pub key: Hex<'a>,
    pub amount: i64,
    pub least: i64,
    pub price_id: Hex<'a>,
    pub model: &'a str,
    pub endpoint: &'a str,
    pub paid_only: bool,
    pub topped_up: bool,
    pub expires_at: i64,
    pub life: i64,
    pub at: i64,
    pub sure: i64,
    pub replica: Hex<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_hash: Option<Hex<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Hex<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Value>,
}

#[derive(Serialize)]
pub(super) struct CloseBody<'a> {
    pub kind: &'static str,
    pub call: Hex<'a>,
    pub account: Hex<'a>,
    pub charge: i64,
    pub at: i64,
    pub sure: i64,
    pub replica: Hex<'a>,
    pub keep: bool,
    pub row: RowBody<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub reply: Option<KeptReplyBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Value>,
}

/// What is stored under an idempotency key.
#[derive(Serialize)]
pub(super) struct KeptReplyBody<'a> {
    pub status: u16,
    pub content_type: &'a str,
    pub reply: Hex<'a>,
    pub reply_bytes: u64,
    pub reply_room: i64,
}

#[derive(Serialize)]
pub(super) struct RefusalBody<'a> {
    pub kind: &'static str,
    pub account: Hex<'a>,
    pub row: RowBody<'a>,
}

/// A row of the usage log, but for what the ledger decides.
#[derive(Serialize)]
pub(super) struct RowBody<'a> {
    account_id: Hex<'a>,
    call_id: Hex<'a>,
    key_id: Hex<'a>,
    at: i64,
    ended_at: i64,
    endpoint: &'a str,
    model: &'a str,
    provider: Option<&'a str>,
    upstream_model: Option<&'a str>,
    ending: i64,
    reason: &'a str,
    status: i64,
    estimated: bool,
    raw_usage: Option<&'a str>,
    attempts: i64,
    first_byte_ms: Option<i64>,
    tier: Option<&'a str>,
    dropped: Option<&'a str>,
    facts: Hex<'a>,
    tools: Option<&'a str>,
    cost: Option<i64>,
    #[serde(flatten)]
    counters: CounterMembers,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_id: Option<Hex<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hex<'a>>,
}

impl<'a> RowBody<'a> {
    /// `hash` is that of the facts.
    pub fn of(facts: &'a RowFacts<'a>, key: &'a [u8], hash: &'a [u8]) -> Self {
        Self {
            account_id: Hex(facts.account),
            call_id: Hex(facts.call),
            key_id: Hex(key),
            at: facts.at,
            ended_at: facts.ended_at,
            endpoint: facts.endpoint,
            model: facts.model,
            provider: facts.provider,
            upstream_model: facts.upstream_model,
            ending: facts.ending,
            reason: facts.reason,
            status: facts.status,
            estimated: facts.estimated,
            raw_usage: facts.raw_usage,
            attempts: facts.attempts,
            first_byte_ms: facts.first_byte_ms,
            tier: facts.tier,
            dropped: facts.dropped,
            facts: Hex(hash),
            tools: facts.tools.as_deref(),
            cost: facts.cost,
            counters: CounterMembers(facts.counters),
            price_id: None,
            hash: None,
        }
    }
}

/// Each counter as a member with the name of its column.
struct CounterMembers(Columns);

impl Serialize for CounterMembers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut members = to.serialize_map(Some(Counter::COUNT))?;
        for (counter, column) in Counter::ALL.into_iter().zip(self.0) {
            members.serialize_entry(counter.name(), &column)?;
        }
        members.end()
    }
}

/// As text. Nothing of these can fail to be written.
pub(super) fn text(body: &impl Serialize) -> String {
    let mut written = Vec::with_capacity(1_280);
    match serde_json::to_writer(&mut written, body) {
        Ok(()) => String::from_utf8(written).unwrap_or_default(),
        Err(_) => String::new(),
    }
}
