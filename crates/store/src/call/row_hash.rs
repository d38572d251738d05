//! The hash of a usage row. The entry that ends a call carries it as its `reference`, so the
//! account's hash chain covers the row from which receipts are signed. It is made in two steps:
//! what the call was like is hashed where the row is made, and what the ledger decided (key, price,
//! amounts) is added where it is decided, on PostgreSQL by `tollgate_row_hash`. `refunded` is not
//! in it: a refund comes later and has its own entry. The row keeps its hash too: a refusal has no
//! entry, and the audit reads rows by themselves. A column that comes later is hashed at the end of
//! [`RowFacts`], and only where it is not NULL: older rows then keep their hash.

use std::borrow::Cow;

use tollgate_catalog::Money;

use crate::call::counters::Columns;
use crate::call::{Ending, UsageFacts};
use crate::ids::{AccountId, CallId};
use crate::ledger::chain::{Hash, HashText, Packed};

/// What the reference of an entry begins with that carries the hash of a row.
const REFERENCE: &str = "usage-1:";

/// What a usage row says of the call itself, as its columns have it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowFacts<'a> {
    pub account: &'a [u8],
    pub call: &'a [u8],
    pub at: i64,
    pub ended_at: i64,
    pub endpoint: &'a str,
    pub model: &'a str,
    pub provider: Option<&'a str>,
    pub upstream_model: Option<&'a str>,
    pub ending: i64,
    pub reason: &'a str,
    pub status: i64,
    pub counters: Columns,
    pub estimated: bool,
    pub raw_usage: Option<&'a str>,
    pub attempts: i64,
    pub first_byte_ms: Option<i64>,
    pub tier: Option<&'a str>,
    pub dropped: Option<&'a str>,
    pub tools: Option<Cow<'a, str>>,
    pub cost: Option<i64>,
}

/// What the ledger decided about the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided<'a> {
    pub key: &'a [u8],
    pub price_id: Option<&'a [u8]>,
    pub hold: i64,
    pub charge: i64,
    pub write_off: i64,
}

impl<'a> RowFacts<'a> {
    /// The row as both engines write it.
    pub fn of(
        call: &'a CallId,
        account: &'a AccountId,
        ending: Ending,
        reason: &'a str,
        row: &'a UsageFacts,
    ) -> RowFacts<'a> {
        RowFacts {
            account: &account.0,
            call: &call.0,
            at: row.at,
            // A clock that was set back meanwhile ends nothing before it began.
            ended_at: row.ended_at.max(row.at),
            endpoint: &row.endpoint,
            model: &row.model,
            provider: row.provider.as_deref(),
            upstream_model: row.upstream_model.as_deref(),
            ending: ending.code().into(),
            reason,
            status: row.status.into(),
            counters: row.counters.columns(),
            estimated: row.estimated,
            raw_usage: row.raw_usage.as_deref(),
            attempts: row.attempts.into(),
            first_byte_ms: row.first_byte_ms.map(i64::from),
            tier: row.tier.as_deref(),
            dropped: row.dropped.as_deref(),
            tools: row.counters.tools.text().map(Cow::Owned),
            cost: row.cost.map(Money::nano),
        }
    }

    pub fn hash(&self) -> Hash {
        let mut packed = Packed::new();
        self.pack(&mut packed);
        packed.hash()
    }

    /// What is hashed of them.
    pub fn pack(&self, packed: &mut impl HashText) {
        packed.bytes(Some(self.account));
        packed.bytes(Some(self.call));
        packed.number(self.at);
        packed.number(self.ended_at);
        packed.bytes(Some(self.endpoint.as_bytes()));
        packed.bytes(Some(self.model.as_bytes()));
        packed.bytes(self.provider.map(str::as_bytes));
        packed.bytes(self.upstream_model.map(str::as_bytes));
        packed.number(self.ending);
        packed.bytes(Some(self.reason.as_bytes()));
        packed.number(self.status);
        for counter in self.counters {
            packed.number(counter);
        }
        packed.number(self.estimated.into());
        packed.bytes(self.raw_usage.map(str::as_bytes));
        packed.number(self.attempts);
        packed.bytes(self.first_byte_ms.map(i64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice));
        packed.bytes(self.tier.map(str::as_bytes));
        packed.bytes(self.dropped.map(str::as_bytes));
        if let Some(tools) = &self.tools {
            packed.bytes(Some(tools.as_bytes()));
        }
        if let Some(cost) = self.cost {
            // Under its name, so that it is never taken for tools.
            packed.bytes(Some(b"cost"));
            packed.number(cost);
        }
    }
}

impl Decided<'_> {
    /// The hash of the whole row.
    pub fn hash(&self, facts: &Hash) -> Hash {
        let mut packed = Packed::new();
        packed.raw(facts);
        self.pack(&mut packed);
        packed.hash()
    }

    /// What is hashed behind the hash of the facts.
    pub fn pack(&self, packed: &mut impl HashText) {
        packed.bytes(Some(self.key));
        packed.bytes(self.price_id);
        for amount in [self.hold, self.charge, self.write_off] {
            packed.number(amount);
        }
    }
}

/// The reference of the entry that ends a call.
pub(crate) fn reference(hash: &Hash) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [[0; 2]; size_of::<Hash>()];
    for (two, byte) in digits.iter_mut().zip(hash) {
        *two = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    // Digits are text, so the default never is.
    [REFERENCE, str::from_utf8(digits.as_flattened()).unwrap_or_default()].concat()
}

/// The hash that a reference carries.
pub(crate) fn referred(reference: &str) -> Option<Hash> {
    let digits = reference.strip_prefix(REFERENCE)?.as_bytes();
    let digit = |n: usize| digits.get(n).and_then(|digit| char::from(*digit).to_digit(16)).map(|digit| digit as u8);
    let mut hash = [0; 32];
    for (n, byte) in hash.iter_mut().enumerate() {
        *byte = digit(2 * n)? << 4 | digit(2 * n + 1)?;
    }
    (digits.len() == 64).then_some(hash)
}

/// What an audit, or whoever signs a receipt, finds out about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowSeal {
    Whole,
    Changed,
    /// Written before rows were hashed, or by a replica of such a version.
    Missing,
    /// Its hash is computed later, with many others.
    Unproved,
}

/// Compares a row with the reference of the entry that ended its call, or with its own hash where
/// that is not known.
pub(crate) fn seal(facts: &RowFacts<'_>, decided: &Decided<'_>, entry: Option<&str>, own: Option<&[u8]>) -> RowSeal {
    let whole = match (entry, own) {
        (None, None) => return RowSeal::Missing,
        (Some(entry), _) => entry == reference(&decided.hash(&facts.hash())),
        (None, Some(own)) => own == decided.hash(&facts.hash()),
    };
    if whole { RowSeal::Whole } else { RowSeal::Changed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::counters::Counter;

    fn facts() -> RowFacts<'static> {
        RowFacts {
            account: b"account",
            call: b"call",
            at: 1,
            ended_at: 2,
            endpoint: "/v1",
            model: "m",
            provider: None,
            upstream_model: None,
            ending: 0,
            reason: "",
            status: 200,
            counters: [0; Counter::COUNT],
            estimated: false,
            raw_usage: None,
            attempts: 1,
            first_byte_ms: None,
            tier: None,
            dropped: None,
            tools: None,
            cost: None,
        }
    }

    const DECIDED: Decided<'_> = Decided { key: b"key", price_id: None, hold: 5, charge: 3, write_off: 0 };

    #[test]
    fn every_field_counts() {
        let mut all = vec![
            facts(),
            RowFacts { account: b"accounT", ..facts() },
            RowFacts { call: b"cal", ..facts() },
            RowFacts { at: 2, ended_at: 1, ..facts() },
            RowFacts { ended_at: 3, ..facts() },
            RowFacts { endpoint: "/v2", ..facts() },
            RowFacts { model: "n", ..facts() },
            RowFacts { provider: Some(""), ..facts() },
            RowFacts { upstream_model: Some(""), ..facts() },
            RowFacts { ending: 1, ..facts() },
            RowFacts { reason: "x", ..facts() },
            RowFacts { status: 201, ..facts() },
            RowFacts { estimated: true, ..facts() },
            RowFacts { raw_usage: Some("{}"), ..facts() },
            RowFacts { attempts: 2, ..facts() },
            RowFacts { first_byte_ms: Some(0), ..facts() },
            RowFacts { tier: Some(""), ..facts() },
            RowFacts { dropped: Some(""), ..facts() },
            RowFacts { tools: Some(Cow::Borrowed("cost")), ..facts() },
            RowFacts { cost: Some(0), ..facts() },
            RowFacts { cost: Some(1), ..facts() },
        ];
        for n in 0..Counter::COUNT {
            let mut counters = [0; Counter::COUNT];
            counters[n] = 1;
            all.push(RowFacts { counters, ..facts() });
        }
        let mut hashes: Vec<Hash> = all.iter().map(|facts| DECIDED.hash(&facts.hash())).collect();
        let decided = [
            Decided { key: b"keY", ..DECIDED },
            Decided { price_id: Some(b""), ..DECIDED },
            Decided { hold: 6, ..DECIDED },
            Decided { hold: 3, charge: 5, ..DECIDED },
            Decided { write_off: 1, ..DECIDED },
        ];
        hashes.extend(decided.iter().map(|decided| decided.hash(&facts().hash())));
        let all = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), all, "two of them are the same");
    }

    #[test]
    fn the_entry_speaks_for_its_row_and_a_row_without_one_for_itself() {
        let hash = DECIDED.hash(&facts().hash());
        let changed = RowFacts { model: "other", ..facts() };
        let seal = |facts: &RowFacts<'_>, entry: Option<&str>, own: Option<&[u8]>| seal(facts, &DECIDED, entry, own);
        let entry = reference(&hash);
        assert_eq!((entry.len(), referred(&entry)), (72, Some(hash)));
        for other in
            ["", "usage-1:", &entry[1..], &entry[..71], &format!("{entry}0"), &entry.replace("usage-1", "usage-2")]
        {
            assert_eq!(referred(other), None, "{other}");
        }
        assert_eq!(seal(&facts(), Some(&entry), None), RowSeal::Whole);
        assert_eq!(seal(&facts(), None, Some(&hash)), RowSeal::Whole);
        assert_eq!(seal(&facts(), None, None), RowSeal::Missing);
        assert_eq!(seal(&changed, Some(&entry), None), RowSeal::Changed);
        assert_eq!(seal(&changed, None, Some(&hash)), RowSeal::Changed);
        let of_changed = DECIDED.hash(&changed.hash());
        assert_eq!(seal(&changed, Some(&entry), Some(&of_changed)), RowSeal::Changed, "the entry has the word");
        assert_eq!(seal(&facts(), Some(""), None), RowSeal::Changed);
    }
}
