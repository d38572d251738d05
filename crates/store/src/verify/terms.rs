//! The audit of spending by day and month and of trial credit that expires: both are followed entry
//! by entry and compared with what the database says in the end.

use std::collections::{BTreeSet, HashMap};

use super::rows::EntryRow;
use crate::account::limits::Used;
use crate::account::lots::{self, CreditKey, Lot, Lots, Parts};
use crate::ids::{AccountId, KeyId};
use crate::ledger::Pots;

/// What stands in a row of an account or key, or in one of trial credit, and should.
#[derive(Default)]
pub(crate) struct SpendingAudit {
    lots: HashMap<AccountId, Lots>,
    accounts: HashMap<AccountId, Used>,
    keys: HashMap<KeyId, Used>,
}

/// What an open hold has to remember.
#[derive(Default)]
pub(crate) struct CallTerms {
    parts: Parts,
    counted: Used,
    held: i64,
}

impl SpendingAudit {
    /// A hold or an extension. `false`: it takes trial credit that is not there.
    pub fn hold(&mut self, call: &mut CallTerms, e: &EntryRow<'_>) -> bool {
        let parts = lots::from_text(e.lots);
        let within = parts.iter().map(|part| part.1).sum::<i64>() <= e.pots.trial;
        let taken = self.shift(e.account, parts.iter().map(|&(credit, part)| (credit, -part, part)));
        call.parts.extend(parts);
        // What a settlement holds in addition is counted when it is taken, in the same moment.
        if !e.settling {
            call.held += e.pots.total();
            self.count(call, e);
        }
        within && taken
    }

    fn count(&mut self, call: &mut CallTerms, e: &EntryRow<'_>) {
        call.counted.add(e.at, e.pots.total());
        self.accounts.entry(e.account).or_default().add(e.at, e.pots.total());
        if let Some(key) = e.key {
            self.keys.entry(key).or_default().add(e.at, e.pots.total());
        }
    }

    /// The end of a hold.
    pub fn close(&mut self, call: &CallTerms, e: &EntryRow<'_>) {
        if let Some(lots) = self.lots.get_mut(&e.account) {
            lots.close(&call.parts, e.take.trial);
        }
        if let Some(used) = self.accounts.get_mut(&e.account) {
            used.close(&call.counted, call.held, e.take.total());
        }
        if let Some(used) = e.key.and_then(|key| self.keys.get_mut(&key)) {
            used.close(&call.counted, call.held, e.take.total());
        }
    }

    /// A credit, or a correction that takes something away.
    pub fn credit(&mut self, e: &EntryRow<'_>) -> bool {
        if let (Some(expires_at), Some(credit)) = (e.expires_at, e.credit) {
            let lot = Lot { credit, reference: "".into(), expires_at, free: e.pots.trial, held: 0, lapses: 0 };
            self.lots.entry(e.account).or_default().add(lot);
        }
        let parts = lots::from_text(e.lots);
        self.shift(e.account, parts.into_iter().map(|(credit, part)| (credit, -part, 0)))
    }

    /// Trial credit that expired, not before its time.
    pub fn lapse(&mut self, e: &EntryRow<'_>) -> bool {
        let Some(credit) = e.credit else { return false };
        let due = self
            .lots
            .get(&e.account)
            .is_some_and(|lots| lots.iter().any(|lot| lot.credit == credit && lot.expires_at <= e.at));
        due && self.shift(e.account, [(credit, -e.pots.trial, 0)])
    }

    fn shift(&mut self, account: AccountId, moves: impl IntoIterator<Item = (CreditKey, i64, i64)>) -> bool {
        let mut moves = moves.into_iter().peekable();
        if moves.peek().is_none() {
            return true;
        }
        let Some(lots) = self.lots.get_mut(&account) else { return false };
        moves.all(|(credit, free, held)| lots.shift(credit, free, held))
    }

    /// What a row of trial credit should say: free and held.
    pub fn lot(&mut self, account: AccountId, credit: &CreditKey) -> Option<(i64, i64)> {
        let lot = self.lots.get(&account)?.iter().find(|lot| lot.credit == *credit)?;
        Some((lot.free, lot.held))
    }

    /// Trial credit that expires cannot be more than all trial credit.
    pub fn lots_within(&self, account: AccountId, available: Pots, held: Pots) -> bool {
        let Some(lots) = self.lots.get(&account) else { return true };
        let (free, in_holds) = lots.iter().fold((0, 0), |sum, lot| (sum.0 + lot.free, sum.1 + lot.held));
        free <= available.trial && in_holds <= held.trial
    }

    pub fn account_used(&self, account: AccountId) -> Used {
        self.accounts.get(&account).copied().unwrap_or_default()
    }

    pub fn key_used(&self, key: KeyId) -> Used {
        self.keys.get(&key).copied().unwrap_or_default()
    }

    /// Lots that were given, by entries; the database must have a row for each.
    pub fn lots_given(&self) -> usize {
        self.lots.values().map(|lots| lots.iter().count()).sum()
    }

    /// Those of some accounts.
    pub fn lots_given_to(&self, accounts: &BTreeSet<AccountId>) -> usize {
        accounts.iter().filter_map(|account| self.lots.get(account)).map(|lots| lots.iter().count()).sum()
    }
}
