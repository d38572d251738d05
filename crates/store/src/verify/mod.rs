//! The audit: recomputes every balance and every charge. Each engine streams its rows, entries in order, through the
//! [`Auditor`] and runs the questions of `questions`; memory is bounded by accounts and open holds, not by history.

mod questions;
mod terms;

use std::collections::HashMap;

use tollgate_catalog::{Money, Price};

use crate::call::Counters;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::{Kind, Pots};
use crate::limits::Used;
use crate::lots::CreditKey;
use crate::report::{Breach, Report};

pub(crate) use questions::QUESTIONS;
use terms::{CallTerms, Terms};

/// So many rows are shown per invariant; more would only say the same.
const SHOWN: usize = 20;
/// How long past its time an open hold may be seen: two sweeps.
const SWEEPS_MS: i64 = 120_000;

/// A ledger entry as the audit needs it.
pub(crate) struct EntryRow {
    pub seq: i64,
    pub kind: i64,
    pub account: AccountId,
    pub call: Option<CallId>,
    pub pots: Pots,
    pub take: Pots,
    pub at: i64,
    pub expires_at: Option<i64>,
    pub key: Option<KeyId>,
    pub paid_only: bool,
    /// From which trial credit it comes.
    pub lots: Option<String>,
    /// The credit it is, or the one that expired.
    pub credit: Option<CreditKey>,
    /// An extension that a settlement took.
    pub settling: bool,
}

/// What a row says is used in its day and month.
pub(crate) struct UsedRow {
    pub whose: Result<KeyId, AccountId>,
    pub used: Used,
}

/// The columns of an entry that both engines read, and how a row becomes what the audit wants.
pub(crate) const ENTRY: &str = "seq, kind, account_id, call_id, trial, paid, take_trial, take_paid, at, expires_at, key_id, \
     paid_only, lots, op_id";

impl EntryRow {
    /// Fills in what the identity of the entry says.
    pub fn identified(mut self, op_id: &[u8]) -> Self {
        let kind = Kind::from_code(self.kind);
        self.settling = kind == Some(Kind::Extend) && op_id.len() == 17;
        if matches!(kind, Some(Kind::TopUp | Kind::Adjust | Kind::Lapse)) {
            self.credit = op_id.first_chunk().copied();
        }
        self
    }
}

/// A charged usage row as the audit needs it.
pub(crate) struct ChargeRow {
    pub call: CallId,
    pub counters: Counters,
    /// Charged and written off together: what the call should have cost.
    pub cost: i64,
    pub price_id: [u8; 16],
}

/// Key and detail of one row that answers a question it should not.
pub(crate) fn show(id: Option<&[u8]>, detail: &str) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for byte in id.unwrap_or_default() {
        let _ = write!(text, "{byte:02x}");
    }
    format!("{text} {detail}")
}

#[derive(Default)]
struct Running {
    available: Pots,
    held: Pots,
    at: i64,
}

struct OpenHold {
    account: AccountId,
    held: Pots,
    expires_at: i64,
    paid_only: bool,
    terms: CallTerms,
}

#[derive(Default)]
pub(crate) struct Auditor {
    report: Report,
    accounts: HashMap<AccountId, Running>,
    open: HashMap<CallId, OpenHold>,
    prices: HashMap<[u8; 16], Option<Price>>,
    pub terms: Terms,
    lots_seen: usize,
}

impl Auditor {
    pub fn breach(&mut self, invariant: &'static str, row: String) {
        let breaches = &mut self.report.breaches;
        match breaches.iter_mut().find(|b| b.invariant == invariant) {
            Some(breach) if breach.rows.len() >= SHOWN => {}
            Some(breach) => breach.rows.push(row),
            None => breaches.push(Breach { invariant, rows: vec![row] }),
        }
    }

    /// Entries of one account must come in the order of `seq`.
    pub fn entry(&mut self, e: &EntryRow) {
        self.report.entries += 1;
        let Some(kind) = Kind::from_code(e.kind) else {
            return self.breach("I2", format!("entry {}: unknown kind {}", e.seq, e.kind));
        };
        self.hold_life(kind, e);
        let running = self.accounts.entry(e.account).or_default();
        let back = e.pots.minus(e.take);
        match kind {
            Kind::Hold | Kind::Extend => {
                running.available = running.available.minus(e.pots);
                running.held = running.held.plus(e.pots);
            }
            Kind::Settle | Kind::Void | Kind::Expire => {
                running.held = running.held.minus(e.pots);
                running.available = running.available.plus(back);
            }
            Kind::TopUp | Kind::Adjust | Kind::Refund => running.available = running.available.plus(e.pots),
            Kind::Lapse => running.available = running.available.minus(e.pots),
            Kind::WriteOff | Kind::Reopen => {}
        }
        let (a, h, late) = (running.available, running.held, e.at < running.at);
        running.at = running.at.max(e.at);
        if a.trial < 0 || a.paid < 0 || h.trial < 0 || h.paid < 0 {
            self.breach("I3", format!("{} at entry {}: available {a:?}, held {h:?}", e.account, e.seq));
        }
        let sound = match kind {
            Kind::TopUp | Kind::Adjust => self.terms.credit(e),
            Kind::Lapse => self.terms.lapse(e),
            _ => true,
        };
        if !sound {
            self.breach(
                "I3",
                format!("{} at entry {}: takes trial credit that is not there, or too early", e.account, e.seq),
            );
        }
        if late {
            self.breach("I20", format!("{} at entry {}: time goes back", e.account, e.seq));
        }
    }

    fn hold_life(&mut self, kind: Kind, e: &EntryRow) {
        let Some(call) = e.call else { return };
        match kind {
            Kind::Hold => {
                let mut terms = CallTerms::default();
                let sound = self.terms.hold(&mut terms, e);
                let expires_at = e.expires_at.unwrap_or(i64::MAX);
                let hold = OpenHold { account: e.account, held: e.pots, expires_at, paid_only: e.paid_only, terms };
                if self.open.insert(call, hold).is_some() {
                    self.breach("I4", format!("{call}: held twice"));
                }
                self.taken(call, e, sound, e.paid_only);
            }
            Kind::Reopen => {
                let terms = CallTerms::default();
                let hold = OpenHold { account: e.account, held: e.pots, expires_at: i64::MAX, paid_only: false, terms };
                if self.open.insert(call, hold).is_some() {
                    self.breach("I4", format!("{call}: opened again while it was open"));
                }
            }
            Kind::Extend => match self.open.get_mut(&call) {
                Some(open) => {
                    open.held = open.held.plus(e.pots);
                    let (sound, paid_only) = (self.terms.hold(&mut open.terms, e), open.paid_only);
                    self.taken(call, e, sound, paid_only);
                }
                None => self.breach("I4", format!("{call}: extended without a hold")),
            },
            Kind::Settle | Kind::Void | Kind::Expire => match self.open.remove(&call) {
                None => self.breach("I5", format!("{call}: closed without an open hold")),
                Some(open) => {
                    self.terms.close(&open.terms, e);
                    if open.held != e.pots || open.account != e.account {
                        self.breach("I6", format!("{call}: held {:?}, released {:?}", open.held, e.pots));
                    }
                    if e.take.trial > e.pots.trial || e.take.paid > e.pots.paid {
                        self.breach("I6", format!("{call}: held {:?}, captured {:?}", e.pots, e.take));
                    }
                }
            },
            Kind::WriteOff | Kind::TopUp | Kind::Adjust | Kind::Refund | Kind::Lapse => {}
        }
    }

    fn taken(&mut self, call: CallId, e: &EntryRow, sound: bool, paid_only: bool) {
        if !sound {
            self.breach("I3", format!("{call} at entry {}: holds trial credit that is not there", e.seq));
        }
        if paid_only && e.pots.trial > 0 {
            self.breach("I16", format!("{call} at entry {}: trial money where only paid money may be", e.seq));
        }
    }

    /// A row of trial credit that expires, after all entries.
    pub fn lot(&mut self, account: AccountId, credit: &CreditKey, free: i64, held: i64) {
        self.lots_seen += 1;
        let expected = self.terms.lot(account, credit);
        if expected != Some((free, held)) {
            self.breach(
                "I1",
                format!("{account}: trial credit is free {free}, held {held}; by the ledger {expected:?}"),
            );
        }
    }

    /// What an account or key says it has used, after all entries.
    pub fn used(&mut self, row: &UsedRow) {
        let (name, expected) = match row.whose {
            Ok(key) => (key.to_string(), self.terms.key_used(key)),
            Err(account) => (account.to_string(), self.terms.account_used(account)),
        };
        if expected != row.used {
            self.breach("I1", format!("{name}: counts {:?}; by the ledger {expected:?}", row.used));
        }
    }

    /// The price of a charge, by id; `json` is asked for once per price.
    pub fn needs_price(&self, id: &[u8; 16]) -> bool {
        !self.prices.contains_key(id)
    }

    pub fn price(&mut self, id: [u8; 16], json: Option<&str>) {
        let price = json.and_then(|j| serde_json::from_str::<Price>(j).ok()).filter(|p| p.id() == id);
        self.prices.insert(id, price);
    }

    pub fn charge(&mut self, row: &ChargeRow) {
        let expected = match self.prices.get(&row.price_id) {
            Some(Some(price)) => row.counters.charge(price).ok(),
            _ => None,
        };
        if expected != Some(Money::from_nano(row.cost)) {
            let expected = expected.map_or("nothing (no such price)".to_owned(), |m| m.to_string());
            self.breach("I18", format!("{}: cost {}, recomputed {expected}", row.call, Money::from_nano(row.cost)));
        }
    }

    pub fn finish(mut self, accounts: u64, usage_rows: u64, now: i64) -> Report {
        let late: Vec<String> = self
            .open
            .iter()
            .filter(|(_, o)| o.expires_at.saturating_add(SWEEPS_MS) < now)
            .map(|(call, o)| format!("{call} of {}: open since before {}", o.account, o.expires_at))
            .collect();
        for row in late {
            self.breach("I7", row);
        }
        let outside = self.accounts.iter().filter(|(id, r)| !self.terms.lots_within(**id, r.available, r.held));
        let outside: Vec<String> =
            outside.map(|(id, _)| format!("{id}: more expires than there is trial credit")).collect();
        for row in outside {
            self.breach("I3", row);
        }
        if self.lots_seen != self.terms.lots_given() {
            let given = self.terms.lots_given();
            self.breach("I1", format!("{given} credits that expire were given, {} are known", self.lots_seen));
        }
        self.report.accounts = accounts;
        self.report.usage_rows = usage_rows;
        self.report
    }
}
