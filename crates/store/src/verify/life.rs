//! The life of each hold: taken once, extended while open, ended once with all that was held.

use crate::ids::{AccountId, CallId};
use crate::ledger::{EntryKind, Pots};

use super::rows::EntryRow;
use super::terms::CallTerms;
use super::{Auditor, KeySums, Running};

/// How long past its time an open hold may be seen: two sweeps.
const SWEEPS_MS: i64 = 120_000;

pub(super) struct OpenHold {
    account: AccountId,
    held: Pots,
    expires_at: i64,
    paid_only: bool,
    terms: CallTerms,
}

impl Running {
    pub fn moves(&mut self, e: &EntryRow<'_>) {
        if e.whole {
            self.available = self.available.minus(e.pots);
            self.held = self.held.plus(e.pots);
        }
        match e.kind {
            EntryKind::Hold | EntryKind::Extend => {
                self.available = self.available.minus(e.pots);
                self.held = self.held.plus(e.pots);
            }
            EntryKind::Settle | EntryKind::Void | EntryKind::Expire => {
                self.held = self.held.minus(e.pots);
                self.available = self.available.plus(e.pots.minus(e.take));
            }
            EntryKind::TopUp | EntryKind::Adjust | EntryKind::Refund => self.available = self.available.plus(e.pots),
            EntryKind::Lapse => self.available = self.available.minus(e.pots),
            EntryKind::WriteOff | EntryKind::Reopen => {}
        }
    }
}

impl KeySums {
    pub fn entry(&mut self, e: &EntryRow<'_>) {
        if e.whole {
            self.held += e.pots.total();
        }
        match e.kind {
            EntryKind::Hold | EntryKind::Extend => self.held += e.pots.total(),
            EntryKind::Settle | EntryKind::Void | EntryKind::Expire => {
                self.held -= e.pots.total();
                self.spent += e.take.total();
            }
            EntryKind::Refund => self.spent -= e.pots.total(),
            EntryKind::WriteOff | EntryKind::TopUp | EntryKind::Adjust | EntryKind::Lapse | EntryKind::Reopen => {}
        }
    }
}

impl Auditor {
    pub(super) fn hold_life(&mut self, e: &EntryRow<'_>) {
        let Some(call) = e.call else { return };
        if e.whole {
            self.held(call, e);
        }
        match e.kind {
            EntryKind::Hold => self.held(call, e),
            EntryKind::Reopen => {
                let terms = CallTerms::default();
                let hold = OpenHold { account: e.account, held: e.pots, expires_at: i64::MAX, paid_only: false, terms };
                if self.open.insert(call, hold).is_some() {
                    self.breach("I4", format!("{call}: opened again while it was open"));
                }
            }
            EntryKind::Extend => match self.open.get_mut(&call) {
                Some(open) => {
                    open.held = open.held.plus(e.pots);
                    let (sound, paid_only) = (self.terms.hold(&mut open.terms, e), open.paid_only);
                    self.taken(call, e, sound, paid_only);
                }
                None => self.breach("I4", format!("{call}: extended without a hold")),
            },
            EntryKind::Settle | EntryKind::Void | EntryKind::Expire => self.ended(call, e),
            EntryKind::WriteOff | EntryKind::TopUp | EntryKind::Adjust | EntryKind::Refund | EntryKind::Lapse => {}
        }
    }

    fn held(&mut self, call: CallId, e: &EntryRow<'_>) {
        let mut terms = CallTerms::default();
        let sound = self.terms.hold(&mut terms, e);
        let expires_at = e.expires_at.unwrap_or(i64::MAX);
        let hold = OpenHold { account: e.account, held: e.pots, expires_at, paid_only: e.paid_only, terms };
        if self.open.insert(call, hold).is_some() {
            self.breach("I4", format!("{call}: held twice"));
        }
        self.taken(call, e, sound, e.paid_only);
    }

    fn ended(&mut self, call: CallId, e: &EntryRow<'_>) {
        let Some(open) = self.open.remove(&call) else {
            return self.breach("I5", format!("{call}: closed without an open hold"));
        };
        self.terms.close(&open.terms, e);
        if open.held != e.pots || open.account != e.account {
            self.breach("I6", format!("{call}: held {:?}, released {:?}", open.held, e.pots));
        }
        if e.take.trial > e.pots.trial || e.take.paid > e.pots.paid {
            self.breach("I6", format!("{call}: held {:?}, captured {:?}", e.pots, e.take));
        }
    }

    fn taken(&mut self, call: CallId, e: &EntryRow<'_>, sound: bool, paid_only: bool) {
        if !sound {
            self.breach("I3", format!("{call} at entry {}: holds trial credit that is not there", e.seq));
        }
        if paid_only && e.pots.trial > 0 {
            self.breach("I16", format!("{call} at entry {}: trial money where only paid money may be", e.seq));
        }
    }

    /// Holds open for longer than two sweeps past their time, where one clock made and judges them.
    pub fn late_holds(&mut self, now: i64) {
        let late = self.open.iter().filter(|(_, o)| o.expires_at.saturating_add(SWEEPS_MS) < now);
        let late: Vec<String> =
            late.map(|(call, o)| format!("{call} of {}: open since before {}", o.account, o.expires_at)).collect();
        for row in late {
            self.breach("I7", row);
        }
    }

    /// An open task has an open hold of its account.
    pub fn open_task(&mut self, call: CallId, account: AccountId) {
        if self.open.get(&call).is_none_or(|open| open.account != account) {
            self.breach("I14", format!("{call}: its task is open, its hold is not"));
        }
    }

    /// The open holds as a table of them says, where there is one.
    pub fn open_holds(&mut self, rows: &[(CallId, Pots)]) {
        for (call, held) in rows {
            if self.open.get(call).is_none_or(|open| open.held != *held) {
                self.breach("I5", format!("{call}: is listed as open with {held:?}, and is not in the ledger"));
            }
        }
        if rows.len() != self.open.len() {
            let open = self.open.len();
            self.breach("I5", format!("{open} holds are open in the ledger, {} are listed", rows.len()));
        }
    }
}
