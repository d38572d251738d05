//! The audit that goes on: it knows how every account stood when it looked last, reads the entries
//! since, and compares what they touched (accounts, keys, calls) with the rows of those alone.
//! Cheap enough for every minute.

use std::collections::BTreeSet;

use crate::ids::{AccountId, CallId, IdMap, KeyId};
use crate::ledger::EntryKind;
use crate::report::AuditReport;

use super::Auditor;
use super::invariants::{Looked, looked_at};
use super::rows::{ChargeRow, EntryRow};

/// What the new entries concern.
#[derive(Default)]
pub(crate) struct Touched {
    pub accounts: BTreeSet<AccountId>,
    pub keys: BTreeSet<KeyId>,
    pub calls: IdMap<CallId, Expected>,
}

/// What the usage row of a call must say. What no new entry is about is not asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub account: AccountId,
    charge: Option<i64>,
    write_off: Option<i64>,
    refunded: Option<i64>,
}

impl Touched {
    pub fn entry(&mut self, e: &EntryRow<'_>) {
        self.accounts.insert(e.account);
        self.keys.extend(e.key);
        let Some(call) = e.call.filter(|_| !matches!(e.kind, EntryKind::Hold | EntryKind::Extend)) else { return };
        let nothing = Expected { account: e.account, charge: None, write_off: None, refunded: None };
        let expected = self.calls.entry(call).or_insert(nothing);
        match e.kind {
            EntryKind::Settle | EntryKind::Void | EntryKind::Expire => {
                expected.charge = Some(e.take.total());
                expected.write_off = Some(0);
            }
            EntryKind::WriteOff => expected.write_off = Some(e.pots.paid),
            EntryKind::Refund => expected.refunded = Some(e.pots.total()),
            _ => {}
        }
    }
}

impl Auditor {
    /// How far the chain of an account has been followed.
    pub fn followed(&self, account: AccountId) -> i64 {
        self.accounts.get(&account).map_or(0, |running| running.end.number)
    }

    pub fn begin_online(&mut self) {
        self.touched = Some(Touched::default());
    }

    /// What the new entries concern. Rows of accounts, keys, trial credit and calls come next.
    pub fn touched(&mut self) -> Touched {
        let touched = self.touched.take().unwrap_or_default();
        for account in &touched.accounts {
            self.accounts.entry(*account).or_default().seen = false;
        }
        touched
    }

    /// The usage row of a call that new entries are about; `None` when there is none.
    pub fn touched_call(&mut self, call: CallId, expected: &Expected, row: Option<&ChargeRow>) {
        let Some(row) = row else {
            return self.breach("I11", format!("{call} of {}: no usage row", expected.account));
        };
        let differs = |wanted: Option<i64>, found: i64| wanted.is_some_and(|wanted| wanted != found);
        if differs(expected.charge, row.charge) || differs(expected.write_off, row.write_off) {
            let found = format!("charge {}, write-off {}", row.charge, row.write_off);
            self.breach("I11", format!("{call}: usage row says {found}; the ledger {expected:?}"));
        }
        if differs(expected.refunded, row.refunded) {
            self.breach("I12", format!("{call}: usage row says refunded {}; the ledger {expected:?}", row.refunded));
        }
        self.charge(row);
    }

    /// The result for what was touched.
    pub fn finish_online(&mut self, touched: &Touched) -> AuditReport {
        self.prove();
        for account in &touched.accounts {
            let running = self.accounts.entry(*account).or_default();
            running.sums = super::Sums::default();
            let (seen, available, held) = (std::mem::replace(&mut running.seen, true), running.available, running.held);
            if !seen {
                self.breach("I1", format!("{account}: entries without an account"));
            }
            if !self.terms.lots_within(*account, available, held) {
                self.breach("I3", format!("{account}: more expires than there is trial credit"));
            }
        }
        let given = self.terms.lots_given_to(&touched.accounts);
        if std::mem::take(&mut self.lots_seen) != given {
            self.breach("I1", format!("{given} credits that expire were given, not as many are known"));
        }
        self.platform.forget_customers();
        self.report.accounts = touched.accounts.len() as u64;
        self.report.usage_rows = touched.calls.len() as u64;
        self.report.checked = looked_at(Looked::EveryMinute);
        std::mem::take(&mut self.report)
    }
}
