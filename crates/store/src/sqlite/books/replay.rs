//! Holds that a crash left in the journal only: made again in the books, in the order of the
//! records, as they were decided. The money is there, for a record rests on nothing but what is
//! before it in the journal and in the database. Where it is not after all (records were lost that
//! nobody had been promised), less is held, and no pot goes below zero.

use crate::account::limits::Used;
use crate::account::lots::Parts;
use crate::journal::record::HoldRecord;
use crate::ledger::Pots;
use crate::sqlite::books::{AccountBalance, Books, IdemKeys, IdemState};
use crate::sqlite::writer::ops::{HoldOp, Op, Spent, UnsettledHold};

impl Books {
    /// The time of an entry that should have been made at `at`: not before what the ledger has, nor
    /// after now.
    pub fn replay_time(&self, at: i64, now: i64) -> i64 {
        if self.last_at <= now { at.clamp(self.last_at, now) } else { now }
    }

    /// Makes the hold again. `false`: there is no such account or key.
    pub fn replay(&mut self, record: HoldRecord, now: i64) -> bool {
        let at = self.replay_time(record.at, now);
        let at = self.time_of(record.account, at);
        let HoldRecord { call, account: account_id, key: key_id, expires_at, paid_only, idem, price_id, .. } = record;
        let (Some(account), Some(key)) = (self.accounts.get_mut(&account_id), self.keys.get_mut(&key_id)) else {
            return false;
        };
        let (pots, lots) = account.take_again(record.pots, record.lots, paid_only);
        if pots != record.pots {
            tracing::error!(%call, wanted = ?record.pots, held = ?pots, "a hold of the journal finds less money than it took");
        }
        let goes_back = at < account.last_at;
        let total = pots.total();
        account.used.add(at, total);
        key.held += total;
        key.used.add(at, total);
        let spent = Spent { account: account.used, key: key.used };
        let mut counted = Used::default();
        counted.add(at, total);
        self.open.insert(
            call,
            UnsettledHold {
                account: account_id,
                key: key_id,
                held: pots,
                lots: lots.clone(),
                counted,
                extended: None,
                paid_only,
                at,
                expires_at,
                price_id,
                model: record.model.clone(),
                endpoint: record.endpoint.clone().into(),
                idem: idem.map(|idem| idem.key_hash),
            },
        );
        let op = self.push(Op::Hold(Box::new(HoldOp {
            call,
            account: account_id,
            key: key_id,
            pots,
            lots,
            spent,
            price_id,
            price: record.price,
            model: record.model,
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
            self.idem.insert((account_id, idem.key_hash), known);
        }
        true
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
