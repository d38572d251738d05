//! Days that were added up once more against the quarters they are of (I21), with memory for days.
//! As in `quarters`, what both sides say is taken off each other, and nothing may be left. Days
//! that were touched since are read by quarters, and not compared.

use super::Auditor;
use super::quarters::Quarters;
use crate::sums::folded::{DAY, SumSource};
use crate::sums::{SumKeyRef, UsageSum};

/// What is left of one day, in each of its three forms.
#[derive(Default)]
pub(super) struct DayFolds {
    accounts: Quarters,
    house_quarters: Quarters,
    house_day: Quarters,
}

impl DayFolds {
    fn of(&mut self, source: SumSource) -> Option<&mut Quarters> {
        match source {
            SumSource::Days => Some(&mut self.accounts),
            SumSource::HouseQuarters => Some(&mut self.house_quarters),
            SumSource::HouseDays => Some(&mut self.house_day),
            SumSource::Quarters => None,
        }
    }
}

impl Auditor {
    /// A sum of an account by quarter, as a part of the sums of its day.
    pub(super) fn quarter_of_a_day(&mut self, of: &SumKeyRef<'_>, sum: &UsageSum) {
        let day = of.quarter.div_euclid(DAY);
        if !self.folded.has(day) {
            return;
        }
        let house = SumKeyRef { account: &[], key: &[], ..*of };
        let keys = [
            (SumSource::Days, SumKeyRef { quarter: day, ..*of }),
            (SumSource::HouseQuarters, house),
            (SumSource::HouseDays, SumKeyRef { quarter: day * DAY, ..house }),
        ];
        let weight = self.weight();
        let folds = self.folds.entry(day).or_default();
        for (source, key) in keys {
            folds.of(source).into_iter().for_each(|left| left.plus(sum, sum.print(key.digest(), weight)));
        }
    }

    /// A sum of a day as it is stored; its time is that of the source's column.
    pub fn folded_sum(&mut self, source: SumSource, of: &SumKeyRef<'_>, sum: &UsageSum) {
        let day = if source == SumSource::Days { of.quarter } else { of.quarter.div_euclid(DAY) };
        if !self.folded.has(day) {
            return;
        }
        let print = sum.print(of.digest(), self.weight());
        self.folds.entry(day).or_default().of(source).into_iter().for_each(|left| left.minus(sum, print));
    }

    /// Reports days of whose sums something is left.
    pub(super) fn folds_left(&mut self) {
        for (day, folds) in std::mem::take(&mut self.folds) {
            for (what, left) in [
                ("of accounts", folds.accounts),
                ("of the house by quarter of an hour", folds.house_quarters),
                ("of the house", folds.house_day),
            ] {
                if let Some(by) = left.difference() {
                    let text = format!("day {day} since 1970: its sums {what} and those by quarter differ: {by}");
                    self.breach("I21", text);
                }
            }
        }
    }
}
