//! Sums that were added up once more against the quarters they are of (I21), with memory for days.
//! As in `quarters`, what both sides say is taken off each other, and nothing may be left. Days
//! that were touched since are read by quarters, and not compared.

use super::Auditor;
use super::quarters::Quarters;
use crate::sums::days::DayQuarters;
use crate::sums::folded::{DAY, SumSource};
use crate::sums::{SumKeyRef, UsageSum};

/// What is left of one day, in each of its forms.
#[derive(Default)]
pub(super) struct DayFolds(Vec<(SumSource, Quarters)>);

impl DayFolds {
    fn of(&mut self, source: SumSource) -> &mut Quarters {
        let place = self.0.iter().position(|(known, _)| *known == source).unwrap_or_else(|| {
            self.0.push((source, Quarters::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }
}

/// What is made of the sums of a source, but for days of zones.
fn made_of(source: SumSource) -> &'static [SumSource] {
    match source {
        SumSource::Quarters => &[SumSource::Blocks, SumSource::HouseQuarters, SumSource::Packed],
        SumSource::Blocks => &[SumSource::Days(0)],
        SumSource::HouseQuarters => &[SumSource::HouseHours],
        SumSource::HouseHours => &[SumSource::HouseDays],
        SumSource::HouseDays | SumSource::Days(_) | SumSource::Packed => &[],
    }
}

fn shown(source: SumSource) -> String {
    match source {
        SumSource::Days(0) => "of accounts".to_owned(),
        SumSource::Days(shift) => format!("of accounts, beginning {shift} quarters earlier,"),
        SumSource::Blocks => "of accounts by six hours".to_owned(),
        SumSource::Packed => "of accounts by quarter of an hour".to_owned(),
        SumSource::HouseQuarters => "of the house by quarter of an hour".to_owned(),
        SumSource::HouseHours => "of the house by hour".to_owned(),
        SumSource::HouseDays | SumSource::Quarters => "of the house".to_owned(),
    }
}

impl Auditor {
    /// A sum of an account by quarter, as a part of wider ones.
    pub(super) fn quarter_of_a_day(&mut self, of: &SumKeyRef<'_>, sum: &UsageSum) {
        self.part_of_wider(SumSource::Quarters, of, sum);
        for place in 0..self.folded.zones.len() {
            let source = SumSource::Days(self.folded.zones[place].shift);
            self.part_of(source, of, sum);
        }
    }

    fn part_of_wider(&mut self, source: SumSource, of: &SumKeyRef<'_>, sum: &UsageSum) {
        for wider in made_of(source) {
            self.part_of(*wider, of, sum);
        }
    }

    fn part_of(&mut self, source: SumSource, of: &SumKeyRef<'_>, sum: &UsageSum) {
        let shift = if let SumSource::Days(shift) = source { shift } else { 0 };
        let begins = (of.quarter + shift).div_euclid(source.width()) * source.width() - shift;
        if !self.folded.has_sums(source, begins) {
            return;
        }
        let mut key = SumKeyRef { quarter: begins, ..*of };
        if source.of_the_house() {
            (key.account, key.key) = (&[], &[]);
        }
        let print = sum.print(key.digest(), self.weight());
        self.folds.entry(begins.div_euclid(DAY)).or_default().of(source).plus(sum, print);
    }

    /// A sum as it is stored: against those it is made of, and as a part of wider ones.
    pub fn folded_sum(&mut self, source: SumSource, of: &SumKeyRef<'_>, sum: &UsageSum) {
        // What nobody reads is not compared. A sum that begins at a wrong quarter is.
        let begins = of.quarter;
        let read = match source {
            SumSource::Days(0) | SumSource::HouseDays => self.folded.has((begins.div_euclid(DAY) + 1) * DAY - 1),
            SumSource::Days(shift) => {
                let within = self.folded.zones.iter().filter(|zone| zone.shift == shift);
                let within = within.into_iter().any(|zone| (zone.since..zone.until).contains(&begins));
                within && self.folded.has(begins) && self.folded.has(begins + DAY - 1)
            }
            SumSource::Packed => self.folded.packed.has(begins),
            _ => self.folded.has(begins),
        };
        if !read {
            return;
        }
        let print = sum.print(of.digest(), self.weight());
        self.folds.entry(begins.div_euclid(DAY)).or_default().of(source).minus(sum, print);
        self.part_of_wider(source, of, sum);
    }

    /// A row of packed quarters. Its place is that of its day.
    pub fn packed_day(&mut self, of: &SumKeyRef<'_>, packed: &[u8]) {
        let day = of.quarter;
        for one in DayQuarters(packed) {
            match one {
                Some((place, sum)) => {
                    let of = SumKeyRef { quarter: day.saturating_mul(DAY) + place, ..*of };
                    self.folded_sum(SumSource::Packed, &of, &sum);
                }
                None if self.folded.packed.touched.binary_search(&day).is_err() => {
                    self.breach("I21", format!("day {day} since 1970: packed sums of accounts cannot be read"));
                }
                None => {}
            }
        }
    }

    /// Reports days of whose sums something is left.
    pub(super) fn folds_left(&mut self) {
        for (day, folds) in std::mem::take(&mut self.folds) {
            for (source, left) in folds.0 {
                if let Some(by) = left.difference() {
                    let what = shown(source);
                    let text = format!("day {day} since 1970: its sums {what} and those they are of differ: {by}");
                    self.breach("I21", text);
                }
            }
        }
    }
}
