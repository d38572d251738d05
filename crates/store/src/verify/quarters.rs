//! Sums by quarter of an hour against the rows of the usage log they are of (I21), with memory for
//! accounts and not for quarters. What each sum says is added up, what each row adds to its sum is
//! taken off, and nothing may be left: neither of the amounts nor of a print in which every column
//! of every sum has a weight of its own, drawn for this audit.

use super::Auditor;
use super::rows::ChargeRow;
use crate::ids::AccountId;
use crate::sums::{SumKeyRef, UsageSum};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quarters {
    requests: i64,
    charge: i64,
    refunded: i64,
    print: u64,
}

impl Quarters {
    /// By how much both sides differ; nothing where they do not.
    pub fn difference(&self) -> Option<String> {
        let elsewhere =
            if (self.requests, self.charge, self.refunded) == (0, 0, 0) { ", only in how it is divided" } else { "" };
        let by = format!("requests by {}, charged by {}, refunded by {}", self.requests, self.charge, self.refunded);
        (*self != Self::default()).then(|| format!("{by}{elsewhere}"))
    }

    pub fn plus(&mut self, sum: &UsageSum, print: u64) {
        self.requests = self.requests.wrapping_add(sum.requests());
        self.charge = self.charge.wrapping_add(sum.charge());
        self.refunded = self.refunded.wrapping_add(sum.refunded());
        self.print = self.print.wrapping_add(print);
    }

    /// What another half of the audit has added up and taken off.
    pub fn join(&mut self, other: &Self) {
        self.requests = self.requests.wrapping_add(other.requests);
        self.charge = self.charge.wrapping_add(other.charge);
        self.refunded = self.refunded.wrapping_add(other.refunded);
        self.print = self.print.wrapping_add(other.print);
    }

    pub fn minus(&mut self, sum: &UsageSum, print: u64) {
        self.requests = self.requests.wrapping_sub(sum.requests());
        self.charge = self.charge.wrapping_sub(sum.charge());
        self.refunded = self.refunded.wrapping_sub(sum.refunded());
        self.print = self.print.wrapping_sub(print);
    }
}

impl Auditor {
    pub(super) fn weight(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.key;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// A sum as it is stored.
    pub fn sum(&mut self, of: &SumKeyRef<'_>, sum: &UsageSum) {
        self.unmerged_sum(of, sum);
        self.quarter_of_a_day(of, sum);
    }

    /// A part of a sum that is stored beside it, and in nothing that was folded.
    pub fn unmerged_sum(&mut self, of: &SumKeyRef<'_>, sum: &UsageSum) {
        // What is left of rows that were taken away again.
        if *sum == UsageSum::default() {
            return;
        }
        let Some(account) = AccountId::from_slice(of.account) else {
            return self.breach("I21", "a sum of no account".to_owned());
        };
        let print = sum.print(of.digest(), self.weight());
        self.accounts.entry(account).or_default().quarters.plus(sum, print);
    }

    /// What a row of the log has added to its sum, if it was its turn.
    pub(super) fn summed_row(&mut self, row: &ChargeRow) {
        if self.summed_until.is_none_or(|until| until.covers(row.account, row.call)) {
            let (of, sum) = &row.summed;
            let print = sum.print(*of, self.weight());
            self.accounts.entry(row.account).or_default().quarters.minus(sum, print);
        }
    }

    /// Reports accounts of whose sums something is left.
    pub(super) fn quarters_left(&mut self) {
        let left = self.accounts.iter_mut().map(|(id, running)| (*id, std::mem::take(&mut running.quarters)));
        let left: Vec<_> = left.filter_map(|(id, quarters)| Some((id, quarters.difference()?))).collect();
        for (id, by) in left {
            self.breach("I21", format!("{id}: sums and usage log differ: {by}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::row_hash::{RowFacts, RowSeal};
    use crate::ids::CallId;
    use crate::sums::SummedUntil;

    const ACCOUNT: [u8; 16] = [7; 16];
    const KEY: [u8; 16] = [8; 16];

    fn facts<'a>(call: &'a [u8; 16], model: &'a str, input: i64) -> RowFacts<'a> {
        let mut facts = RowFacts { account: &ACCOUNT, call, model, ..RowFacts::default() };
        facts.counters[0] = input;
        facts
    }

    fn row(call: u8, model: &str, charge: i64, input: i64) -> ChargeRow {
        let id = [call; 16];
        let facts = facts(&id, model, input);
        ChargeRow {
            account: AccountId(ACCOUNT),
            call: CallId(id),
            price_id: None,
            charge,
            write_off: 0,
            refunded: 0,
            counters: Default::default(),
            summed: (SumKeyRef::of(&facts, &KEY).digest(), UsageSum::of(&facts, charge, 0, 0)),
            ended_at: 0,
            hash: None,
            seal: RowSeal::Whole,
        }
    }

    /// Sums of one model each, as charge and input, against rows.
    fn found(sums: &[(&str, i64, i64)], rows: &[ChargeRow], until: Option<SummedUntil>) -> bool {
        let mut auditor = Auditor::new(&(std::sync::Arc::new(|bytes: &mut [u8]| bytes.fill(3)) as _));
        auditor.summed_until = until;
        rows.iter().for_each(|row| auditor.summed_row(row));
        for (model, charge, input) in sums {
            // All of one quarter: that of ids that are ones.
            let facts = facts(&[1; 16], model, *input);
            auditor.sum(&SumKeyRef::of(&facts, &KEY), &UsageSum::of(&facts, *charge, 0, 0));
        }
        auditor.quarters_left();
        auditor.report.breaches.iter().any(|breach| breach.invariant == "I21")
    }

    #[test]
    fn whatever_differs_is_found() {
        let rows = || [row(1, "a", 5, 10), row(1, "b", 7, 20)];
        assert!(!found(&[("a", 5, 10), ("b", 7, 20)], &rows(), None));
        assert!(found(&[("a", 5, 10)], &rows(), None), "one is missing");
        assert!(found(&[("a", 6, 10), ("b", 7, 20)], &rows(), None), "another charge");
        assert!(found(&[("a", 7, 10), ("b", 5, 20)], &rows(), None), "charges were exchanged");
        assert!(found(&[("a", 5, 20), ("b", 7, 10)], &rows(), None), "counters were exchanged");
        assert!(found(&[("a", 5, 10), ("c", 7, 20)], &rows(), None), "of another model");
        assert!(found(&[("a", 5, 10), ("b", 7, 20)], &[row(1, "a", 5, 10), row(9, "b", 7, 20)], None), "another time");
    }

    #[test]
    fn rows_whose_turn_has_not_come_are_in_no_sum() {
        let until = |call: u8| Some(SummedUntil::read(&ACCOUNT, &[call; 16]));
        let rows = [row(1, "a", 5, 10), row(2, "b", 7, 20)];
        assert!(!found(&[("a", 5, 10)], &rows, until(1)));
        assert!(found(&[("a", 5, 10)], &rows, until(2)));
        assert!(!found(&[], &rows, Some(SummedUntil::read(&[], &[]))));
    }
}
