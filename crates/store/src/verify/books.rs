//! What the entries must agree with: the rows of accounts, keys and trial credit, the usage log,
//! the platform's own books.

use std::collections::{BTreeMap, HashMap};

use tollgate_catalog::{Money, Price};

use crate::account::lots::CreditKey;
use crate::call::row_hash::RowSeal;
use crate::ids::{AccountId, CallId};
use crate::ledger::EntryKind;

use super::Auditor;
use super::rows::{AccountRow, ChargeRow, EntryRow, KeyRow};

const DAY_MS: i64 = 86_400_000;

/// Prices by id; `None`: there is none that makes this id.
pub(super) type Prices = HashMap<[u8; 16], Option<Price>>;

/// The other side of every entry: revenue, cash, promotion, losses, corrections, as one sum, and
/// all customers' money as their rows have it.
#[derive(Default)]
pub(super) struct PlatformBooks {
    books: i128,
    customers: i128,
    /// Captured and written off, by day.
    days: BTreeMap<i64, (i128, i128)>,
}

impl PlatformBooks {
    pub fn entry(&mut self, e: &EntryRow<'_>) {
        // What goes to the platform; what comes from it is below zero. A write-off moves between
        // its own books.
        self.books += i128::from(match e.kind {
            EntryKind::Settle => e.take.total(),
            EntryKind::Lapse => e.pots.total(),
            EntryKind::TopUp | EntryKind::Adjust | EntryKind::Refund => -e.pots.total(),
            EntryKind::Hold
            | EntryKind::Extend
            | EntryKind::Void
            | EntryKind::Expire
            | EntryKind::WriteOff
            | EntryKind::Reopen => 0,
        });
        match e.kind {
            EntryKind::Settle => self.days.entry(e.at.div_euclid(DAY_MS)).or_default().0 += i128::from(e.take.total()),
            EntryKind::WriteOff => self.days.entry(e.at.div_euclid(DAY_MS)).or_default().1 += i128::from(e.pots.paid),
            _ => {}
        }
    }

    pub fn difference(&mut self) -> Option<i128> {
        let difference = self.books + std::mem::take(&mut self.customers);
        (difference != 0).then_some(difference)
    }

    pub fn forget_customers(&mut self) {
        self.customers = 0;
    }

    /// Days on which more than a ten-thousandth of what was captured had to be written off.
    pub fn days_of_loss(&self) -> Vec<String> {
        let bad = self.days.iter().filter(|(_, (took, lost))| *lost * 10_000 >= (*took).max(1));
        bad.map(|(day, (took, lost))| {
            let shown = |sum: i128| Money::from_nano(i64::try_from(sum).unwrap_or(i64::MAX));
            let (took, lost) = (shown(*took), shown(*lost));
            format!("day {day} since 1970: {lost} written off, {took} captured")
        })
        .collect()
    }
}

pub(super) fn changed(call: CallId) -> String {
    format!("{call}: its usage row is not the one that was written")
}

impl Auditor {
    pub fn account(&mut self, row: &AccountRow) {
        self.platform.customers += i128::from(row.available.total()) + i128::from(row.held.total());
        let running = self.accounts.entry(row.id).or_default();
        running.seen = true;
        let (available, held, end, topped_up) = (running.available, running.held, running.end, running.topped_up);
        if (row.available, row.held) != (available, held) {
            let found = format!("available {:?}, held {:?}", row.available, row.held);
            let wanted = format!("available {available:?}, held {held:?}");
            self.breach("I1", format!("{}: balance differs from the ledger: {found} / {wanted}", row.id));
        }
        if row.end.number != end.number {
            let (wanted, found) = (row.end.number, end.number);
            self.breach("I19", format!("{}: its chain had {wanted} links and has {found}", row.id));
        } else if row.end != end {
            self.breach("I19", format!("{}: its chain ends with another hash", row.id));
        }
        if row.topped_up != topped_up {
            let (found, wanted) = (row.topped_up, topped_up);
            self.breach("I1", format!("{}: topped up: {found}; by the ledger {wanted}", row.id));
        }
        let expected = self.terms.account_used(row.id);
        if expected != row.used {
            self.breach("I1", format!("{}: counts {:?}; by the ledger {expected:?}", row.id, row.used));
        }
    }

    pub fn key(&mut self, row: &KeyRow) {
        let (spent, held) = self.keys.get(&row.id).map_or((0, 0), |k| (k.spent, k.held));
        if (row.spent, row.held) != (spent, held) {
            let found = format!("spent {}, held {}", row.spent, row.held);
            self.breach("I1", format!("{}: {found}; by the ledger spent {spent}, held {held}", row.id));
        }
        let expected = self.terms.key_used(row.id);
        if expected != row.used {
            self.breach("I1", format!("{}: counts {:?}; by the ledger {expected:?}", row.id, row.used));
        }
    }

    /// A row of trial credit that expires.
    pub fn lot(&mut self, account: AccountId, credit: &CreditKey, free: i64, held: i64) {
        self.lots_seen += 1;
        let expected = self.terms.lot(account, credit);
        if expected != Some((free, held)) {
            let found = format!("trial credit is free {free}, held {held}");
            self.breach("I1", format!("{account}: {found}; by the ledger {expected:?}"));
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

    /// A row of the usage log, in a full audit.
    pub fn usage(&mut self, row: &ChargeRow) {
        self.report.usage_rows += 1;
        // Those without a price had no hold, and no entry.
        let print = row.price_id.and(row.hash.as_ref()).map_or(0, |hash| self.print(hash));
        let running = self.accounts.entry(row.account).or_default();
        running.hashes = running.hashes.wrapping_sub(print);
        running.sums.usage(row);
        self.summed_row(row);
        self.charge(row);
        self.prove_some_seals();
    }

    /// Accounts whose entries carry other hashes of usage rows than their rows have: their rows are
    /// to be compared one by one. A call that was opened again is one of the reasons.
    pub fn doubtful(&mut self) -> Vec<AccountId> {
        // What is reported already is not reported once more.
        self.prove();
        let differs = |running: &mut super::Running| std::mem::take(&mut running.hashes) != 0;
        self.accounts.iter_mut().filter_map(|(id, running)| differs(running).then_some(*id)).collect()
    }

    /// A row of such an account, compared with the entry that ended its call.
    pub fn compared(&mut self, row: &ChargeRow) {
        let text = changed(row.call);
        let reported = self.report.breaches.iter().any(|b| b.invariant == "I19" && b.rows.contains(&text));
        if row.seal == RowSeal::Changed && !reported {
            self.breach("I19", text);
        }
    }

    /// A usage row by itself: is it the one that was written, its refund, and its charge computed
    /// again.
    pub fn charge(&mut self, row: &ChargeRow) {
        match row.seal {
            RowSeal::Whole | RowSeal::Unproved => {}
            RowSeal::Changed => self.breach("I19", changed(row.call)),
            RowSeal::Missing => {
                self.report.unhashed_rows += 1;
                self.report.unhashed_until_ms = self.report.unhashed_until_ms.max(Some(row.ended_at));
            }
        }
        if row.refunded > row.charge {
            self.breach("I12", format!("{}: refunded {} of {}", row.call, row.refunded, row.charge));
        }
        let cost = row.charge.saturating_add(row.write_off);
        let price = row.price_id.and_then(|id| self.prices.get(&id)).and_then(Option::as_ref);
        if cost <= 0 {
            // Its receipt names the price all the same.
            if row.price_id.is_some() && price.is_none() {
                self.breach("I18", format!("{}: its price is not there, or is another", row.call));
            }
            return;
        }
        let expected = price.and_then(|price| row.counters.charge(price).ok());
        if expected != Some(Money::from_nano(cost)) {
            let expected = expected.map_or("nothing (no such price)".to_owned(), |m| m.to_string());
            self.breach("I18", format!("{}: cost {}, recomputed {expected}", row.call, Money::from_nano(cost)));
        }
    }
}
