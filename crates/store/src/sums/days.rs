//! The quarters of one day as bytes: of one account, key, model, endpoint, ending and route. A
//! question by hour about all accounts reads a row for each of these a day instead of one for each
//! quarter, and adds them up itself. Of a sum only those columns are written that are not zero, as
//! numbers of as many bytes as they need. Columns keep their places: counters are added at the end
//! of their list only.

use std::collections::HashMap;

use super::folded::DAY;
use super::{SUM_COLUMNS, SumColumn, SumGroup, SumQuery, UsageSum};
use crate::error::StoreError;
use crate::store::sums::too_many_groups;
use crate::sums::MOST_GROUPS;

/// What reading and adding up such a row takes, in sums of other tables.
pub(crate) const PACKED_WEIGHT: usize = 3;

/// One bit for each column.
const _: () = assert!(SUM_COLUMNS <= u32::BITS as usize);

/// Adds a quarter to those of its day.
pub(crate) fn pack_quarter(packed: &mut Vec<u8>, quarter: i64, sum: &UsageSum) {
    packed.push(u8::try_from(quarter.rem_euclid(DAY)).unwrap_or(u8::MAX));
    let there = (0..).zip(&sum.0).filter(|(_, value)| **value != 0);
    let columns = there.clone().fold(0u64, |all, (column, _)| all | 1 << column);
    number(packed, columns);
    for (_, value) in there {
        // The sign at the low end, so that small numbers are short.
        number(packed, (value << 1 ^ value >> 63).cast_unsigned());
    }
}

fn number(packed: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        packed.push(number as u8 | 0x80);
        number >>= 7;
    }
    packed.push(number as u8);
}

/// What was packed, one quarter after the other, counted from the first of the day; `None`: these
/// are not bytes of ours.
pub(crate) struct DayQuarters<'a>(pub &'a [u8]);

impl DayQuarters<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut all = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            all |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(all);
            }
        }
        None
    }

    fn one(&mut self) -> Option<(i64, UsageSum)> {
        let (place, rest) = self.0.split_first()?;
        self.0 = rest;
        let mut columns = self.number()?;
        if i64::from(*place) >= DAY || columns >> SUM_COLUMNS != 0 {
            return None;
        }
        let mut sum = UsageSum::default();
        while columns != 0 {
            let value = self.number()?;
            sum.0[columns.trailing_zeros() as usize] = (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
            columns &= columns - 1;
        }
        Some((i64::from(*place), sum))
    }
}

impl Iterator for DayQuarters<'_> {
    type Item = Option<(i64, UsageSum)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let one = self.one();
        if one.is_none() {
            self.0 = &[];
        }
        Some(one)
    }
}

/// Groups of an answer while they are added up: by the raw values of the columns that are asked
/// for, each with its length, and the number of a span of time.
#[derive(Default)]
pub(crate) struct SumGroups {
    of: HashMap<Vec<u8>, u32>,
    sums: HashMap<(u32, u32), UsageSum>,
}

/// Adds a value to those that a group is of.
pub(crate) fn add_value(of: &mut Vec<u8>, raw: &[u8]) {
    of.extend((raw.len() as u64).to_be_bytes());
    of.extend(raw);
}

impl SumGroups {
    fn number(&mut self, of: &[u8]) -> u32 {
        let next = u32::try_from(self.of.len()).unwrap_or(u32::MAX);
        self.of.get(of).copied().unwrap_or_else(|| *self.of.entry(of.to_vec()).or_insert(next))
    }

    fn at(&mut self, group: u32, span: usize) -> Result<&mut UsageSum, StoreError> {
        let place = (group, u32::try_from(span).unwrap_or(u32::MAX));
        if self.sums.len() >= MOST_GROUPS && !self.sums.contains_key(&place) {
            return Err(too_many_groups());
        }
        Ok(self.sums.entry(place).or_default())
    }

    /// Adds a sum of a span.
    pub fn add(&mut self, of: &[u8], span: usize, sum: &UsageSum) -> Result<(), StoreError> {
        let group = self.number(of);
        self.at(group, span)?.add(sum);
        Ok(())
    }

    /// Adds those quarters of a day that the question reads from there.
    pub fn add_day(&mut self, query: &SumQuery, day: &ReadDay<'_>, of: &[u8]) -> Result<(), StoreError> {
        let group = self.number(of);
        // Quarters come in order, and several of them are of one span.
        let (mut span, mut all) = (usize::MAX, UsageSum::default());
        for one in DayQuarters(day.packed) {
            let (place, sum) = one.ok_or_else(|| StoreError::broken("sums of a day are damaged"))?;
            let quarter = day.day * DAY + place;
            let within = day.ranges.partition_point(|(from, _)| *from <= quarter);
            if within == 0 || quarter >= day.ranges[within - 1].1 {
                continue;
            }
            let its = query.span_of(quarter);
            if its != span {
                if span != usize::MAX {
                    self.at(group, span)?.add(&all);
                }
                (span, all) = (its, UsageSum::default());
            }
            all.add(&sum);
        }
        if span != usize::MAX {
            self.at(group, span)?.add(&all);
        }
        Ok(())
    }

    pub fn groups(self, by: &[SumColumn]) -> Vec<SumGroup> {
        let mut named: Vec<Vec<String>> = vec![Vec::new(); self.of.len()];
        for (raw, number) in &self.of {
            named[*number as usize] = shown(by, raw);
        }
        let sums = self.sums.into_iter();
        sums.map(|((group, span), sum)| SumGroup { span: span as usize, of: named[group as usize].clone(), sum })
            .collect()
    }
}

/// Reads back what a group is of.
fn shown(by: &[SumColumn], raw: &[u8]) -> Vec<String> {
    let number = |bytes: &[u8]| bytes.iter().fold(0usize, |all, byte| all << 8 | usize::from(*byte));
    let mut rest = raw;
    let values = by.iter().map(|column| {
        let (length, left) = rest.split_at_checked(8).unwrap_or_default();
        let (raw, left) = left.split_at(number(length).min(left.len()));
        rest = left;
        column.shown(raw)
    });
    values.collect()
}

/// A row of packed quarters, and which of them are wanted.
pub(crate) struct ReadDay<'a> {
    pub day: i64,
    pub packed: &'a [u8],
    /// In order.
    pub ranges: &'a [(i64, i64)],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums() -> Vec<(i64, UsageSum)> {
        let made = (0..DAY).step_by(5).map(|quarter| {
            let mut sum = UsageSum::default();
            for (column, value) in (0..).zip(&mut sum.0) {
                *value = [0, i64::MAX, -1, i64::MIN, 127, 1 << 40][(column + quarter as usize) % 6];
            }
            (quarter, sum)
        });
        made.collect()
    }

    fn packed() -> Vec<u8> {
        let mut packed = Vec::new();
        for (quarter, sum) in sums() {
            pack_quarter(&mut packed, 7 * DAY + quarter, &sum);
        }
        packed
    }

    #[test]
    fn quarters_are_read_back() {
        let packed = packed();
        assert_eq!(DayQuarters(&packed).collect::<Option<Vec<_>>>(), Some(sums()));
        let mut small = Vec::new();
        pack_quarter(&mut small, 3, &UsageSum::refund(63));
        assert_eq!(small.len(), 1 + 1 + 1, "a place, its columns and one number");
        assert_eq!(DayQuarters(&[]).next(), None);
    }

    #[test]
    fn other_bytes_are_noticed() {
        let packed = packed();
        let whole: Vec<usize> = {
            let mut rest = DayQuarters(&packed);
            std::iter::from_fn(|| rest.next().map(|_| packed.len() - rest.0.len())).collect()
        };
        for length in (1..packed.len()).filter(|length| !whole.contains(length)) {
            assert_eq!(DayQuarters(&packed[..length]).last(), Some(None), "{length}");
        }
        let bytes: [&[u8]; 3] = [&[96, 1, 2], &[0, 0xff, 0xff, 0xff, 0x7f, 1], &[0, 1, 0xff]];
        for wrong in bytes {
            assert_eq!(DayQuarters(wrong).next(), Some(None), "{wrong:?}");
        }
    }
}
