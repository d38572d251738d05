//! The money side of one call: the hold before anything is sent, the close after, and the usage row
//! that explains it.

pub(crate) mod counters;
pub(crate) mod group;
pub(crate) mod price;
pub(crate) mod refusals;
pub(crate) mod row_hash;
pub(crate) mod used;
pub(crate) mod wish;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tollgate_catalog::{Money, Price};

use crate::account::limits::LimitReached;
use crate::call::counters::Counters;
use crate::ids::{AccountId, CallId, KeyId};
use crate::response::quota::ROW_BYTES;
use crate::world::Options;

/// A wish to reserve money for a call.
#[derive(Clone)]
pub struct Hold {
    pub call: CallId,
    pub account: AccountId,
    pub key: KeyId,
    pub amount: Money,
    /// The hold is granted with less than `amount`, all that there is, as long as it is at least
    /// this much. The same as `amount`: all or nothing.
    pub least: Money,
    /// The price the amount was computed with; frozen with the hold.
    pub price: Arc<Price>,
    pub model: String,
    pub endpoint: &'static str,
    /// Trial credit may not pay for this call.
    pub paid_only: bool,
    /// Whether the price is that of an account that has topped up.
    pub topped_up: bool,
    pub expires_at: i64,
    pub at: i64,
    pub idem: Option<Idem>,
}

/// A wish to reserve more for a running call, whose deadline stays what it was.
#[derive(Clone, Copy, Debug)]
pub struct Extend {
    pub call: CallId,
    pub account: AccountId,
    /// Counts the extensions of this call from 1: the same step is applied once, however often it
    /// is asked for.
    pub step: u32,
    pub more: Money,
    /// Less than `more`, all that there is, is granted too, as long as it is at least this much.
    pub least: Money,
}

/// A client's idempotency key: the same key must come with the same body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idem {
    pub key_hash: [u8; 32],
    pub fingerprint: [u8; 32],
}

/// Why there is no hold (nothing may be sent upstream), or why it was not extended (it is as large
/// as it was).
#[derive(Clone, Debug, thiserror::Error)]
pub enum HoldRefused {
    #[error("the balance does not cover the call")]
    Insufficient {
        /// What the account has for such a call.
        available: Money,
    },
    #[error("a spending limit does not cover the call")]
    Limit(LimitReached),
    /// The amount was computed for an account that had never topped up, and it has since: compute
    /// it again.
    #[error("the account has topped up since the call was priced")]
    ToppedUp,
    #[error("no such account or key")]
    NoAccount,
    #[error("the account is suspended")]
    Suspended,
    /// Of an extension only: the call has ended or never had a hold.
    #[error("the call has no open hold")]
    NotOpen,
    #[error("the ledger is not available")]
    Unavailable,
    #[error("the idempotency key was used with another body")]
    IdemConflict,
    #[error("the first call with this idempotency key is still running")]
    IdemRunning(CallId),
    #[error("the first call with this idempotency key has ended")]
    IdemDone { call: CallId, reply: Option<StoredReply> },
}

/// A reply stored for repeated requests with the same idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    pub status: u16,
    pub content_type: String,
    pub body: Bytes,
}

impl StoredReply {
    /// What it counts against [`crate::Options::reply_bytes`].
    pub(crate) fn counted_bytes(&self) -> u64 {
        ROW_BYTES.saturating_add(u64::try_from(self.body.len()).unwrap_or(u64::MAX))
    }
}

/// Stored replies are counted by the hour.
pub(crate) const HOUR_MS: i64 = 3_600_000;

/// How a call ended. Every call ends in exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Answered,
    Refused,
    UpstreamFault,
    ClientLeft,
    Expired,
}

impl Ending {
    pub const ALL: [Self; 5] = [Self::Answered, Self::Refused, Self::UpstreamFault, Self::ClientLeft, Self::Expired];

    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::UpstreamFault => "upstream_fault",
            Self::ClientLeft => "client_left",
            Self::Expired => "expired",
        }
    }

    pub(crate) fn code(self) -> i16 {
        self as i16
    }

    pub(crate) fn from_code(code: i64) -> Self {
        usize::try_from(code).ok().and_then(|i| Self::ALL.get(i).copied()).unwrap_or(Self::Expired)
    }
}

/// What the usage row says besides the money.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UsageFacts {
    pub key: KeyId,
    pub at: i64,
    pub ended_at: i64,
    pub endpoint: Cow<'static, str>,
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_model: Option<String>,
    /// HTTP status the client got.
    pub status: u16,
    pub counters: Counters,
    /// The counters are our own count, not the provider's report.
    pub estimated: bool,
    /// The provider's usage object as it came; cut to 4 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_usage: Option<String>,
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Fields of the request that the provider did not get, by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
    /// What it cost the operator; `None`: nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The price of the charge when it is not the price of the hold (a cheaper tier applied in the
    /// end).
    #[serde(skip)]
    pub price: Option<Arc<Price>>,
}

/// Replies up to this size are stored for an Idempotency-Key, in the journal as in the database:
/// what was paid for can be had again whenever the process dies.
pub const MAX_STORED_REPLY: usize = 1 << 20;

/// The end of a held call: settle when `charge` is above zero, void otherwise.
#[derive(Clone)]
pub struct Close {
    pub call: CallId,
    pub account: AccountId,
    pub ending: Ending,
    pub reason: String,
    /// What the counters of the row come to.
    pub charge: Money,
    /// What of it the customer pays at most; the rest is written off. `None`: all of it, as far as
    /// the account has it.
    pub most: Option<Money>,
    pub row: UsageFacts,
    /// Stored for repeated requests when the call had an idempotency key.
    pub reply: Option<StoredReply>,
}

/// What the close did to the account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Closed {
    pub captured: Money,
    /// What the account could not pay, or was not to pay; the operator's loss.
    pub write_off: Money,
    /// `false`: the hold had been closed before (expired, or a repeated close); nothing was
    /// changed.
    pub applied: bool,
}

/// Evidence of progress of a long call: what it would be charged if the process died now.
#[derive(Clone)]
pub struct Mark {
    pub call: CallId,
    pub account: AccountId,
    pub charge: Money,
    /// As in [`Close`].
    pub most: Option<Money>,
    pub row: UsageFacts,
}

/// One line of the usage log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRow {
    #[serde(rename = "call_id")]
    pub call: CallId,
    #[serde(rename = "account_id")]
    pub account: AccountId,
    #[serde(rename = "key_id")]
    pub key: KeyId,
    #[serde(rename = "started_at_ms")]
    pub at: i64,
    #[serde(rename = "ended_at_ms")]
    pub ended_at: i64,
    pub endpoint: String,
    pub model: String,
    pub provider: Option<String>,
    pub upstream_model: Option<String>,
    pub ending: Ending,
    pub reason: String,
    pub status: u16,
    #[serde(rename = "usage")]
    pub counters: Counters,
    pub estimated: bool,
    #[serde(rename = "hold_nano_usd")]
    pub hold: Money,
    #[serde(rename = "charge_nano_usd")]
    pub charge: Money,
    #[serde(rename = "refunded_nano_usd")]
    pub refunded: Money,
    #[serde(rename = "write_off_nano_usd")]
    pub write_off: Money,
    pub raw_usage: Option<String>,
    pub attempts: u32,
    pub first_byte_ms: Option<u32>,
    pub tier: Option<String>,
    /// Fields of the request that the provider did not get, by commas.
    #[serde(default, with = "dropped_list")]
    pub dropped: Option<String>,
    /// What it cost the operator, for operators only; `None`: nobody knows.
    #[serde(rename = "cost_nano_usd", default)]
    pub cost: Option<Money>,
    /// The frozen price, on request ([`crate::Store::usage_of`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<serde_json::Value>,
}

impl UsageRow {
    /// What is left of the charge for the operator, after refunds and what the call cost.
    pub fn margin(&self) -> Option<Money> {
        self.charge.checked_sub(self.refunded)?.checked_sub(self.cost?)
    }

    /// The row under the names that everybody uses: customers over HTTP (who see less of it),
    /// operators, receipts.
    pub fn record(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.insert("object".to_owned(), "usage".into());
            object.insert("charge_usd".to_owned(), self.charge.to_string().into());
            object.insert("margin_nano_usd".to_owned(), self.margin().map(Money::nano).into());
        }
        value
    }
}

/// Stored as one text, shown as a list.
mod dropped_list {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(dropped: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(dropped.iter().flat_map(|list| list.split(',')))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        let list = Vec::<String>::deserialize(from)?;
        Ok((!list.is_empty()).then(|| list.join(",")))
    }
}

/// Newest first; `before` is the last call of the page before.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct UsagePage {
    pub before: Option<CallId>,
    pub limit: u32,
}

impl Default for UsagePage {
    fn default() -> Self {
        Self { before: None, limit: 50 }
    }
}

/// The provider's usage object is stored as evidence: without NUL (PostgreSQL refuses it) and
/// bounded.
pub(crate) fn tidy_raw_usage(raw: Option<String>) -> Option<String> {
    const LIMIT: usize = 4096;
    let mut raw = raw?;
    if raw.contains('\0') {
        raw.retain(|c| c != '\0');
    }
    raw.truncate(raw.floor_char_boundary(LIMIT));
    Some(raw)
}

impl UsageFacts {
    /// What is known of a call that nobody will say more about.
    pub(crate) fn unanswered(key: KeyId, at: i64, ended_at: i64, endpoint: Cow<'static, str>, model: String) -> Self {
        Self {
            key,
            at,
            ended_at: ended_at.max(at),
            endpoint,
            model,
            provider: None,
            upstream_model: None,
            status: 0,
            counters: Counters::default(),
            estimated: false,
            raw_usage: None,
            attempts: 0,
            first_byte_ms: None,
            tier: None,
            dropped: None,
            cost: None,
            price: None,
        }
    }
}

impl Close {
    /// The provider whose word is missing, where the charge is by our own count.
    pub(crate) fn estimated_for(&self) -> Option<String> {
        self.row.provider.clone().filter(|_| self.row.estimated && !self.charge.is_zero())
    }

    /// Whether whoever repeats the call's idempotency key gets this end again, although it cost
    /// nothing. An answer that only says that there is nothing, and is not stored, is asked for
    /// again.
    pub(crate) fn keeps_key(&self) -> bool {
        self.reply.is_some() || (self.ending == Ending::Answered && self.row.status < 400)
    }

    /// The end of a call that left no evidence: nothing is charged.
    pub(crate) fn unanswered(call: CallId, account: AccountId, ending: Ending, reason: &str, row: UsageFacts) -> Self {
        Self { call, account, ending, reason: reason.into(), charge: Money::ZERO, most: None, row, reply: None }
    }

    /// The end of a call at what it had produced when it was last heard of.
    pub(crate) fn at_mark(mark: Mark, reason: &str) -> Self {
        Self {
            call: mark.call,
            account: mark.account,
            ending: Ending::Expired,
            reason: reason.into(),
            charge: mark.charge,
            most: mark.most,
            row: mark.row,
            reply: None,
        }
    }

    /// An end that nobody saw: what costs nothing leaves this under its key, if anything.
    pub(crate) fn lost(self, options: &Options) -> Self {
        let reply = if self.charge.is_zero() { (options.lost_reply)(&self.row.endpoint) } else { None };
        Self { reply, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_called_what_scripts_know_them_as() {
        for ending in Ending::ALL {
            assert_eq!(serde_json::to_value(ending).expect("JSON"), ending.name());
            assert_eq!(Ending::from_code(ending.code().into()), ending);
        }
        assert_eq!(Ending::from_code(-1), Ending::Expired);
        assert_eq!(Ending::from_code(99), Ending::Expired);
    }

    #[test]
    fn raw_usage_is_stored_whole_up_to_its_limit() {
        let tidy = |raw: &str| tidy_raw_usage(Some(raw.to_owned())).expect("something");
        assert_eq!(tidy_raw_usage(None), None);
        assert_eq!(tidy("{\"a\":\0 1\0}"), "{\"a\": 1}");
        for length in [0, 1, 4_095, 4_096] {
            assert_eq!(tidy(&"x".repeat(length)).len(), length);
        }
        assert_eq!(tidy(&"x".repeat(4_097)).len(), 4_096);
        assert_eq!(tidy(&"\u{20ac}".repeat(2_000)).len(), 4_095, "no character is cut");
    }

    #[test]
    fn an_estimate_is_one_that_was_charged_for_a_provider() {
        for (provider, estimated, charge, of) in [
            (Some("maker"), true, 5, Some("maker")),
            (Some("maker"), true, 0, None),
            (Some("maker"), false, 5, None),
            (Some("maker"), false, 0, None),
            (None, true, 5, None),
        ] {
            let row = UsageFacts::unanswered(KeyId([1; 16]), 0, 0, "chat".into(), "m".to_owned());
            let row = UsageFacts { provider: provider.map(str::to_owned), estimated, ..row };
            let close = Close::unanswered(CallId([1; 16]), AccountId([1; 16]), Ending::Answered, "", row);
            let close = Close { charge: Money::from_nano(charge), ..close };
            assert_eq!(close.estimated_for().as_deref(), of, "{provider:?} {estimated} {charge}");
        }
    }

    #[test]
    fn a_free_end_keeps_its_key_if_it_has_an_answer() {
        let reply = StoredReply { status: 200, content_type: "text/plain".to_owned(), body: Bytes::new() };
        for (ending, status, reply, keeps) in [
            (Ending::Answered, 200, None, true),
            (Ending::Answered, 399, None, true),
            (Ending::Answered, 400, None, false),
            (Ending::Answered, 404, None, false),
            (Ending::Answered, 404, Some(reply.clone()), true),
            (Ending::UpstreamFault, 200, None, false),
            (Ending::UpstreamFault, 200, Some(reply), true),
        ] {
            let row = UsageFacts::unanswered(KeyId([1; 16]), 0, 0, "chat".into(), "m".to_owned());
            let row = UsageFacts { status, ..row };
            let close = Close::unanswered(CallId([1; 16]), AccountId([1; 16]), ending, "", row);
            assert_eq!(Close { reply, ..close }.keeps_key(), keeps, "{ending:?} {status}");
        }
    }
}
