//! Holds that a crash left in the journal only: made again in the books, in the order of the
//! records, as they were decided. The money is there, for a record rests on nothing but what is
//! before it in the journal and in the database. Where it is not after all (records were lost that
//! nobody had been promised), less is held, and no pot goes below zero.

use crate::account::limits::{Used, day_of};
use crate::account::lots::Parts;
use crate::clock::ledger_time;
use crate::journal::record::HoldRecord;
use crate::ledger::Pots;
use crate::sqlite::books::{AccountBalance, Books, IdemKeys, IdemState};
use crate::sqlite::writer::ops::{HoldOp, Op, Spent, UnsettledHold};

/// A hold that was made again: the record with what was taken now, and when.
pub(in crate::sqlite) struct HoldAgain {
    record: Box<HoldRecord>,
    goes_back: bool,
}

impl Books {
    /// The time of an entry that should have been made at `at`: not before what the ledger has, nor
    /// after now.
    pub fn replay_time(&self, at: i64, now: i64) -> i64 {
        if self.last_at <= now { at.clamp(self.last_at, now) } else { now }
    }

    /// Makes the hold again, in the books only: the money is taken, and nothing is queued or
    /// counted yet. `None`: there is no such account or key.
    pub fn replay(&mut self, mut record: Box<HoldRecord>, now: i64) -> Option<HoldAgain> {
        let at = self.replay_time(record.at, now);
        record.at = self.time_of(record.account, at);
        let (Some(account), Some(key)) = (self.accounts.get_mut(&record.account), self.keys.get_mut(&record.key))
        else {
            return None;
        };
        let (pots, lots) = account.take_again(record.pots, std::mem::take(&mut record.lots), record.paid_only);
        if pots != record.pots {
            tracing::error!(call = %record.call, wanted = ?record.pots, held = ?pots, "a hold of the journal finds less money than it took");
        }
        key.held += pots.total();
        let goes_back = record.at < account.last_at;
        (record.pots, record.lots) = (pots, lots);
        self.open.insert(
            record.call,
            UnsettledHold {
                account: record.account,
                key: record.key,
                held: pots,
                lots: record.lots.clone(),
                counted: Used::default(),
                extended: None,
                paid_only: record.paid_only,
                at: record.at,
                expires_at: record.expires_at,
                price_id: record.price_id,
                model: record.model.clone(),
                endpoint: record.endpoint.clone().into(),
                idem: record.idem.map(|idem| idem.key_hash),
            },
        );
        Some(HoldAgain { record, goes_back })
    }

    /// Whether this hold may be queued as late as its end, if that comes now: so that both are one
    /// entry. Nothing else of its account may depend on it: neither the order of time, nor a day
    /// that counts it, nor credit that expires.
    pub fn may_wait(&self, again: &HoldAgain, now: i64) -> bool {
        let HoldAgain { record, goes_back } = again;
        let last_at = self.accounts.get(&record.account).map_or(self.last_at, |account| account.last_at);
        let end = ledger_time(last_at, ledger_time(self.last_at, now));
        !goes_back && record.lots.is_empty() && day_of(record.at) == day_of(end)
    }

    /// Queues a hold that was made again. From here on it counts in its day and month: what is
    /// committed of a recovery counts only what has an entry, so that another crash counts nothing
    /// twice.
    pub fn queue_again(&mut self, again: HoldAgain) {
        let HoldAgain { record, goes_back } = again;
        let (Some(account), Some(key)) = (self.accounts.get_mut(&record.account), self.keys.get_mut(&record.key))
        else {
            return;
        };
        let at = if goes_back { record.at } else { record.at.max(account.last_at) };
        let total = record.pots.total();
        account.used.add(at, total);
        key.used.add(at, total);
        let spent = Spent { account: account.used, key: key.used };
        if let Some(open) = self.open.get_mut(&record.call) {
            open.counted.add(at, total);
        }
        let HoldRecord { call, account, key, pots, lots, price_id, price, model, paid_only, .. } = *record;
        let (expires_at, idem) = (record.expires_at, record.idem);
        let op = self.push(Op::Hold(Box::new(HoldOp {
            call,
            account,
            key,
            pots,
            lots,
            spent,
            price_id,
            price,
            model,
            endpoint: record.endpoint.into(),
            paid_only,
            expires_at,
            at,
            goes_back,
            idem,
            task: None,
        })));
        if let Some(idem) = idem {
            let known = IdemKeys { fingerprint: idem.fingerprint, call, state: IdemState::Running, op };
            self.idem.insert((account, idem.key_hash), known);
        }
    }
}

impl AccountBalance {
    /// Takes from the pots and lots what was taken from them before; what one does not have from
    /// the other, and no more than there is.
    fn take_again(&mut self, wanted: Pots, parts: Parts, paid_only: bool) -> (Pots, Parts) {
        let has = Pots { trial: self.available.trial.max(0), paid: self.available.paid.max(0) };
        let mut pots = Pots { trial: wanted.trial.min(has.trial), paid: wanted.paid.min(has.paid) };
        let missing = wanted.total() - pots.total();
        if missing > 0 {
            let paid = missing.min(has.paid - pots.paid);
            let trial = if paid_only { 0 } else { (missing - paid).min(has.trial - pots.trial) };
            pots = pots.plus(Pots { trial, paid });
        }
        // What is in no lot never expires.
        let lotless = has.trial - self.lots.iter().map(|lot| lot.free).sum::<i64>();
        let in_lots: i64 = parts.iter().map(|(_, part)| part).sum();
        let same = pots.trial == wanted.trial && pots.trial - in_lots <= lotless && self.lots.have(&parts);
        let lots = if same {
            for &(credit, part) in &parts {
                self.lots.shift(credit, -part, part);
            }
            parts
        } else {
            self.lots.hold(pots.trial)
        };
        self.available = self.available.minus(pots);
        self.held = self.held.plus(pots);
        (pots, lots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::limits::Limits;
    use crate::account::lots::{Lot, Lots};

    fn account(trial: i64, paid: i64, lots: &[(u8, i64)]) -> AccountBalance {
        let lot = |&(name, free): &(u8, i64)| Lot {
            credit: [name; 16],
            reference: name.to_string().into(),
            expires_at: i64::from(name),
            free,
            held: 0,
            lapses: 0,
        };
        AccountBalance {
            available: Pots { trial, paid },
            held: Pots::default(),
            suspended: false,
            topped_up: false,
            last_at: 0,
            released: 0,
            limits: Limits::default(),
            used: Used::default(),
            lots: Lots::new(lots.iter().map(lot)),
        }
    }

    /// What is there, in pots and in lots; what a record took; whether only paid money may be; and
    /// what is taken now.
    #[test]
    fn as_much_is_held_again_as_there_is() {
        type Case<'a> = ((i64, i64), &'a [(u8, i64)], (i64, i64), &'a [(u8, i64)], bool, (i64, i64), &'a [(u8, i64)]);
        let table: [Case<'_>; 8] = [
            ((10, 90), &[], (10, 20), &[], false, (10, 20), &[]),
            ((10, 90), &[(1, 4), (2, 6)], (5, 0), &[(2, 5)], false, (5, 0), &[(2, 5)]),
            ((10, 90), &[(1, 4)], (8, 0), &[(1, 4)], false, (8, 0), &[(1, 4)]),
            // The lot does not have it any more, or what never expires is not enough.
            ((10, 90), &[(1, 4), (2, 6)], (7, 0), &[(2, 7)], false, (7, 0), &[(1, 4), (2, 3)]),
            ((10, 90), &[(1, 4), (2, 6)], (8, 0), &[(2, 6)], false, (8, 0), &[(1, 4), (2, 4)]),
            // One pot for the other, and no more than there is.
            ((10, 90), &[(1, 10)], (20, 5), &[(1, 20)], false, (10, 15), &[(1, 10)]),
            ((10, 5), &[], (0, 30), &[], false, (10, 5), &[]),
            ((10, 5), &[], (0, 30), &[], true, (0, 5), &[]),
        ];
        let parts = |of: &[(u8, i64)]| of.iter().map(|&(name, part)| ([name; 16], part)).collect::<Parts>();
        let pots = |(trial, paid)| Pots { trial, paid };
        for (has, lots, wanted, took, paid_only, taken, from) in table {
            let mut account = account(has.0, has.1, lots);
            let again = account.take_again(pots(wanted), parts(took), paid_only);
            assert_eq!(again, (pots(taken), parts(from)), "{wanted:?} of {has:?}");
            assert_eq!(account.available, pots(has).minus(pots(taken)));
            assert_eq!(account.held, pots(taken));
            assert!(account.lots.iter().all(|lot| lot.free >= 0));
        }
    }

    #[test]
    fn a_replay_is_neither_before_the_ledger_nor_after_now() {
        let books = Books::new(100);
        assert_eq!([90, 100, 150, 300].map(|at| books.replay_time(at, 200)), [100, 100, 150, 200]);
        assert_eq!(books.replay_time(90, 50), 50, "the ledger is ahead of the clock");
    }
}
