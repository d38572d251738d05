//! Ledger entries for people and other programs: what `ledger export` writes.

use serde::{Deserialize, Serialize};
use tollgate_catalog::Money;

use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::EntryKind;
use crate::verify::StoredEntry;

/// The members of an entry, in the order in which tables have them.
pub const ENTRY_COLUMNS: [&str; 22] = [
    "seq",
    "at_ms",
    "account_id",
    "kind",
    "call_id",
    "key_id",
    "trial_nano_usd",
    "paid_nano_usd",
    "charged_trial_nano_usd",
    "charged_paid_nano_usd",
    "model",
    "endpoint",
    "price_id",
    "expires_at_ms",
    "paid_only",
    "reference",
    "actor",
    "reason",
    "lots",
    "replica",
    "link",
    "hash",
];

/// One entry. `trial` and `paid` are what it moves in either pot; `taken_…` (written `charged_…`)
/// is what of it was charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub seq: i64,
    #[serde(rename = "at_ms")]
    pub at: i64,
    #[serde(rename = "account_id")]
    pub account: Option<AccountId>,
    pub kind: String,
    #[serde(rename = "call_id")]
    pub call: Option<CallId>,
    #[serde(rename = "key_id")]
    pub key: Option<KeyId>,
    #[serde(rename = "trial_nano_usd")]
    pub trial: Money,
    #[serde(rename = "paid_nano_usd")]
    pub paid: Money,
    #[serde(rename = "charged_trial_nano_usd")]
    pub taken_trial: Money,
    #[serde(rename = "charged_paid_nano_usd")]
    pub taken_paid: Money,
    pub model: Option<String>,
    pub endpoint: Option<String>,
    /// Identity of the frozen price.
    #[serde(rename = "price_id")]
    pub price: Option<String>,
    #[serde(rename = "expires_at_ms")]
    pub expires_at: Option<i64>,
    pub paid_only: Option<bool>,
    pub reference: Option<String>,
    pub actor: Option<String>,
    pub reason: Option<String>,
    /// Which trial credits it came from.
    pub lots: Option<String>,
    pub replica: Option<String>,
    /// Place and hash in the account's chain.
    pub link: Option<i64>,
    pub hash: Option<String>,
}

/// Entries in the order they were written: of one account or of all, from a time (inclusive) to
/// another (exclusive).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EntryPage {
    #[serde(default)]
    pub account: Option<AccountId>,
    #[serde(default)]
    pub from: Option<i64>,
    #[serde(default)]
    pub to: Option<i64>,
    /// The last entry of the page before.
    #[serde(default)]
    pub after: i64,
    /// The last entry wanted ([`Store::last_entry`](crate::Store::last_entry)), so that all pages
    /// together are one moment.
    #[serde(default)]
    pub until: Option<i64>,
    pub limit: u32,
}

impl Entry {
    pub(crate) fn of(stored: &StoredEntry<'_>) -> Self {
        let c = &stored.content;
        let text = |text: Option<&str>| text.map(str::to_owned);
        let read = stored.read();
        Self {
            seq: stored.seq,
            at: c.at,
            account: AccountId::from_slice(c.account),
            kind: EntryKind::from_code(c.kind)
                .map_or_else(|| c.kind.to_string(), |kind| kind.told_by_pot(c.trial).to_owned()),
            call: read.as_ref().and_then(|e| e.call),
            key: read.as_ref().and_then(|e| e.key),
            trial: Money::from_nano(c.trial),
            paid: Money::from_nano(c.paid),
            taken_trial: Money::from_nano(c.take_trial),
            taken_paid: Money::from_nano(c.take_paid),
            model: text(c.model),
            endpoint: text(c.endpoint),
            price: c.price_id.map(hex),
            expires_at: c.expires_at,
            paid_only: c.paid_only,
            reference: text(c.reference),
            actor: text(c.actor),
            reason: text(c.reason),
            lots: text(c.lots),
            replica: c.replica.map(hex),
            link: stored.link,
            hash: stored.hash.map(hex),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
