//! The audit: recomputes every balance and every charge. Each engine streams its rows, entries in order, through the
//! [`Auditor`] and runs the questions of `questions`; memory is bounded by accounts and open holds, not by history.

mod questions;

use std::collections::HashMap;

use tollgate_catalog::{Money, Price};

use crate::call::Counters;
use crate::ids::{AccountId, CallId};
use crate::ledger::{Kind, Pots};
use crate::report::{Breach, Report};

pub(crate) use questions::QUESTIONS;

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
}

#[derive(Default)]
pub(crate) struct Auditor {
    report: Report,
    accounts: HashMap<AccountId, Running>,
    open: HashMap<CallId, OpenHold>,
    prices: HashMap<[u8; 16], Option<Price>>,
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
            Kind::WriteOff | Kind::Reopen => {}
        }
        let (a, h, late) = (running.available, running.held, e.at < running.at);
        running.at = running.at.max(e.at);
        if a.trial < 0 || a.paid < 0 || h.trial < 0 || h.paid < 0 {
            self.breach("I3", format!("{} at entry {}: available {a:?}, held {h:?}", e.account, e.seq));
        }
        if late {
            self.breach("I20", format!("{} at entry {}: time goes back", e.account, e.seq));
        }
    }

    fn hold_life(&mut self, kind: Kind, e: &EntryRow) {
        let Some(call) = e.call else { return };
        match kind {
            Kind::Hold => {
                let hold = OpenHold { account: e.account, held: e.pots, expires_at: e.expires_at.unwrap_or(i64::MAX) };
                if self.open.insert(call, hold).is_some() {
                    self.breach("I4", format!("{call}: held twice"));
                }
            }
            Kind::Reopen => {
                let hold = OpenHold { account: e.account, held: e.pots, expires_at: i64::MAX };
                if self.open.insert(call, hold).is_some() {
                    self.breach("I4", format!("{call}: opened again while it was open"));
                }
            }
            Kind::Extend => match self.open.get_mut(&call) {
                Some(open) => open.held = open.held.plus(e.pots),
                None => self.breach("I4", format!("{call}: extended without a hold")),
            },
            Kind::Settle | Kind::Void | Kind::Expire => match self.open.remove(&call) {
                None => self.breach("I5", format!("{call}: closed without an open hold")),
                Some(open) => {
                    if open.held != e.pots || open.account != e.account {
                        self.breach("I6", format!("{call}: held {:?}, released {:?}", open.held, e.pots));
                    }
                    if e.take.trial > e.pots.trial || e.take.paid > e.pots.paid {
                        self.breach("I6", format!("{call}: held {:?}, captured {:?}", e.pots, e.take));
                    }
                }
            },
            Kind::WriteOff | Kind::TopUp | Kind::Adjust | Kind::Refund => {}
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
        self.report.accounts = accounts;
        self.report.usage_rows = usage_rows;
        self.report
    }
}
