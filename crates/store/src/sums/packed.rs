//! Sums of one group of calls as bytes, for as long as they are not merged into the table of sums
//! (`sqlite/unmerged.rs`). Of the columns of a sum only those are written that are not zero, each
//! with its number: counters are added at the end of their list only, so numbers stay.

use super::pending::PendingSums;
use super::{SUM_COLUMNS, SumKeyRef, UsageSum};
use crate::ids::KeyId;

const ID: usize = 16;
/// What columns take, their bits with them, where all are there.
const MOST_COLUMNS: usize = 4 + SUM_COLUMNS * 8;

/// One bit for each column.
const _: () = assert!(SUM_COLUMNS <= u32::BITS as usize);

/// What a sum is of.
pub(crate) fn pack_key(packed: &mut Vec<u8>, of: &SumKeyRef<'_>) {
    let names = [of.model, of.endpoint, of.provider, of.upstream_model];
    packed.reserve(2 * ID + 2 * 8 + names.iter().map(|name| 4 + name.len()).sum::<usize>());
    packed.extend_from_slice(of.account);
    packed.extend_from_slice(of.key);
    packed.extend_from_slice(&of.quarter.to_le_bytes());
    packed.extend_from_slice(&of.ending.to_le_bytes());
    for name in names {
        packed.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
        packed.extend_from_slice(name.as_bytes());
    }
}

/// The key of the caller in what [`pack_key`] wrote.
pub(super) fn key_of(packed: &[u8]) -> KeyId {
    packed.get(ID..2 * ID).and_then(KeyId::from_slice).unwrap_or(KeyId([0; ID]))
}

pub(crate) fn pack(sums: &PendingSums) -> Vec<u8> {
    let keys: usize = sums.all().map(|(of, _)| of.len()).sum();
    let mut packed = Vec::with_capacity(keys + sums.len() * MOST_COLUMNS);
    for (of, sum) in sums.all() {
        packed.extend_from_slice(of);
        let mut columns = [0; MOST_COLUMNS];
        let (mut there, mut end) = (0u32, 4);
        for (column, value) in sum.0.iter().enumerate() {
            if *value != 0 {
                there |= 1 << column;
                columns[end..end + 8].copy_from_slice(&value.to_le_bytes());
                end += 8;
            }
        }
        columns[..4].copy_from_slice(&there.to_le_bytes());
        packed.extend_from_slice(&columns[..end]);
    }
    packed
}

/// One sum as it lies in packed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedSum<'a> {
    /// What [`pack_key`] wrote.
    pub of: &'a [u8],
    columns: u32,
    /// Of each column that is there.
    values: &'a [u8],
}

impl<'a> PackedSum<'a> {
    pub fn add_to(&self, sum: &mut UsageSum) {
        let mut columns = self.columns;
        for value in self.values.chunks_exact(8) {
            let column = columns.trailing_zeros() as usize;
            columns &= columns.wrapping_sub(1);
            if let (Some(own), Ok(value)) = (sum.0.get_mut(column), value.try_into()) {
                *own = own.saturating_add(i64::from_le_bytes(value));
            }
        }
    }

    pub fn sum(&self) -> UsageSum {
        let mut sum = UsageSum::default();
        self.add_to(&mut sum);
        sum
    }

    /// What it is of; `None`: a name is no text.
    pub fn key(&self) -> Option<SumKeyRef<'a>> {
        read_key(self.of)
    }
}

/// Reads what [`pack_key`] wrote.
pub(crate) fn read_key(packed: &[u8]) -> Option<SumKeyRef<'_>> {
    let mut rest = Unpacked(packed);
    let (account, key) = (rest.bytes(ID)?, rest.bytes(ID)?);
    let (quarter, ending) = (rest.number()?, rest.number()?);
    let mut text = || std::str::from_utf8(rest.name()?).ok();
    let (model, endpoint, provider, upstream_model) = (text()?, text()?, text()?, text()?);
    Some(SumKeyRef { account, quarter, key, model, endpoint, ending, provider, upstream_model })
}

/// What was packed, one sum after the other; `None`: these are not bytes that [`pack`] wrote.
pub(crate) struct Unpacked<'a>(pub &'a [u8]);

impl<'a> Iterator for Unpacked<'a> {
    type Item = Option<PackedSum<'a>>;

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

impl<'a> Unpacked<'a> {
    fn one(&mut self) -> Option<PackedSum<'a>> {
        let all = self.0;
        self.bytes(2 * ID + 2 * 8)?;
        for _ in 0..4 {
            self.name()?;
        }
        let of = all.get(..all.len() - self.0.len())?;
        let columns = self.short()?;
        if columns.checked_shr(SUM_COLUMNS as u32).is_some_and(|beyond| beyond != 0) {
            return None;
        }
        Some(PackedSum { of, columns, values: self.bytes(columns.count_ones() as usize * 8)? })
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn short(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn number(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn name(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.short()?).ok()?;
        self.bytes(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["", "m", "a model with a name of some length"];
    const IDS: [([u8; ID], [u8; ID]); 3] = [([0; ID], [100; ID]), ([1; ID], [101; ID]), ([2; ID], [102; ID])];

    fn sums() -> Vec<(SumKeyRef<'static>, UsageSum)> {
        let made = NAMES.iter().zip(&IDS).zip(0i64..).map(|((name, (account, key)), n)| {
            let of = SumKeyRef {
                account,
                quarter: n - 1,
                key,
                model: name,
                endpoint: "/v1/é",
                ending: n,
                provider: "",
                upstream_model: name,
            };
            let mut sum = UsageSum::default();
            for (column, value) in (0..).zip(&mut sum.0) {
                *value = [0, i64::MAX, -1][(column + n as usize) % 3];
            }
            (of, sum)
        });
        made.collect()
    }

    fn packed(sums: &[(SumKeyRef<'_>, UsageSum)]) -> Vec<u8> {
        let mut pending = PendingSums::default();
        for (of, sum) in sums {
            pending.of(of).add(sum);
        }
        pack(&pending)
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let all = sums();
        let packed_sums = packed(&all);
        let unpacked = Unpacked(&packed_sums).map(|one| one.map(|one| (one.key().expect("texts"), one.sum())));
        assert_eq!(unpacked.collect::<Option<Vec<_>>>(), Some(all));
        assert!(packed(&[]).is_empty() && Unpacked(&[]).next().is_none());
    }

    /// Groups of an earlier version lie in the same form: ids, numbers and names, then the columns.
    #[test]
    fn the_form_stays() {
        let mut sum = UsageSum::default();
        (sum.0[0], sum.0[3]) = (2, -1);
        let of = SumKeyRef { quarter: 7, ending: 1, model: "m", endpoint: "", ..sums()[1].0 };
        let names = [1, 0, 0, 0, b'm', 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, b'm'];
        let columns = [0b1001, 0, 0, 0];
        let expected = [
            [1; ID].as_slice(),
            &[101; ID],
            &7i64.to_le_bytes(),
            &1i64.to_le_bytes(),
            &names,
            &columns,
            &2i64.to_le_bytes(),
            &(-1i64).to_le_bytes(),
        ];
        assert_eq!(packed(&[(of, sum)]), expected.concat());
    }

    /// Whatever is cut off or does not belong there is noticed, and nothing is read beyond it.
    #[test]
    fn other_bytes_are_noticed() {
        let one = &sums()[1..2];
        let packed = packed(one);
        for length in 1..packed.len() {
            assert_eq!(Unpacked(&packed[..length]).collect::<Vec<_>>(), [None], "{length}");
        }
        let columns = packed.len() - 8 * one[0].1.0.iter().filter(|value| **value != 0).count() - 4;
        let mut unknown = packed.clone();
        unknown[columns + 3] |= 0x80;
        assert_eq!(Unpacked(&unknown).next(), Some(None), "a column that there is not");
        let mut text = packed.clone();
        text[2 * ID + 16 + 4] = 0xff;
        let read = Unpacked(&text).next().flatten().expect("bytes");
        assert_eq!(read.key(), None, "no text");
        let more = [packed.as_slice(), &[0]].concat();
        let found: Vec<bool> = Unpacked(&more).map(|one| one.is_some()).collect();
        assert_eq!(found, [true, false]);
    }
}
