//! Sums of one group of calls as bytes, for as long as they are not merged into the table of sums
//! (`sqlite/unmerged.rs`). Of the columns of a sum only those are written that are not zero, each
//! with its number: counters are added at the end of their list only, so numbers stay.

use super::{SUM_COLUMNS, SumKeyRef, UsageSum};
use crate::sums::pending::PendingSum;

const ID: usize = 16;
/// What a sum takes for its ids, numbers, lengths and a dozen columns.
const USUAL: usize = 2 * ID + 2 * 8 + 4 * 4 + 4 + 12 * 8 + 64;

/// One bit for each column.
const _: () = assert!(SUM_COLUMNS <= u32::BITS as usize);

pub(crate) fn pack(sums: &[PendingSum]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(sums.len() * USUAL);
    for PendingSum { of, sum, .. } in sums {
        packed.extend_from_slice(&of.account.0);
        packed.extend_from_slice(&of.key.0);
        packed.extend_from_slice(&of.quarter.to_le_bytes());
        packed.extend_from_slice(&of.ending.to_le_bytes());
        for text in [&of.model, &of.endpoint, &of.provider, &of.upstream_model] {
            packed.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
            packed.extend_from_slice(text.as_bytes());
        }
        let there = (0..).zip(&sum.0).filter(|(_, value)| **value != 0);
        let columns = there.clone().fold(0u32, |all, (column, _)| all | 1 << column);
        packed.extend_from_slice(&columns.to_le_bytes());
        for (_, value) in there {
            packed.extend_from_slice(&value.to_le_bytes());
        }
    }
    packed
}

/// What was packed, one sum after the other; `None`: these are not bytes that [`pack`] wrote.
pub(crate) struct Unpacked<'a>(pub &'a [u8]);

impl<'a> Iterator for Unpacked<'a> {
    type Item = Option<(SumKeyRef<'a>, UsageSum)>;

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
    fn one(&mut self) -> Option<(SumKeyRef<'a>, UsageSum)> {
        let (account, key) = (self.bytes(ID)?, self.bytes(ID)?);
        let (quarter, ending) = (self.number()?, self.number()?);
        let (model, endpoint, provider, upstream_model) = (self.text()?, self.text()?, self.text()?, self.text()?);
        let of = SumKeyRef { account, quarter, key, model, endpoint, ending, provider, upstream_model };
        let columns = self.short()?;
        if columns.checked_shr(SUM_COLUMNS as u32).is_some_and(|beyond| beyond != 0) {
            return None;
        }
        let mut sum = UsageSum::default();
        for (column, value) in sum.0.iter_mut().enumerate() {
            if columns >> column & 1 == 1 {
                *value = self.number()?;
            }
        }
        Some((of, sum))
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

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.short()?).ok()?;
        std::str::from_utf8(self.bytes(length)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AccountId, KeyId};
    use crate::sums::pending::PendingSums;

    fn sums() -> Vec<PendingSum> {
        let mut pending = PendingSums::default();
        for n in 0..3u8 {
            let (account, key) = ([n; ID], [n + 100; ID]);
            let names = ["", "m", "a model with a name of some length"];
            let name = names[usize::from(n)];
            let of = SumKeyRef {
                account: &account,
                quarter: i64::from(n) - 1,
                key: &key,
                model: name,
                endpoint: "/v1/é",
                ending: i64::from(n),
                provider: "",
                upstream_model: name,
            };
            let sum = pending.of(&of, AccountId(account), KeyId(key));
            for (column, value) in sum.0.iter_mut().enumerate() {
                *value = [0, i64::MAX, -1][(column + usize::from(n)) % 3];
            }
        }
        pending.take()
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let all = sums();
        let packed = pack(&all);
        let unpacked: Vec<_> = Unpacked(&packed).map(|one| one.expect("our own bytes")).collect();
        assert_eq!(unpacked.len(), all.len());
        for ((of, sum), one) in unpacked.iter().zip(&all) {
            assert_eq!((of.owned(one.of.account, one.of.key), *sum), (one.of.clone(), one.sum));
            assert_eq!((of.account, of.key), (one.of.account.0.as_slice(), one.of.key.0.as_slice()));
        }
        assert!(pack(&[]).is_empty() && Unpacked(&[]).next().is_none());
    }

    /// Whatever is cut off or does not belong there is noticed, and nothing is read beyond it.
    #[test]
    fn other_bytes_are_noticed() {
        let packed = pack(&sums()[1..2]);
        for length in 1..packed.len() {
            assert_eq!(Unpacked(&packed[..length]).collect::<Vec<_>>(), [None], "{length}");
        }
        let columns = packed.len() - 8 * sums()[1].sum.0.iter().filter(|value| **value != 0).count() - 4;
        let mut unknown = packed.clone();
        unknown[columns + 3] |= 0x80;
        assert_eq!(Unpacked(&unknown).next(), Some(None), "a column that there is not");
        let mut text = packed.clone();
        text[2 * ID + 16 + 4] = 0xff;
        assert_eq!(Unpacked(&text).next(), Some(None), "no text");
        let more = [packed.as_slice(), &[0]].concat();
        let found: Vec<bool> = Unpacked(&more).map(|one| one.is_some()).collect();
        assert_eq!(found, [true, false]);
    }
}
