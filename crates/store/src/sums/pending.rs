//! What the rows of one group add to their sums, until it is written. A row looks for its sum by
//! its key alone, whose last bytes are their own hash, and compares the names of the few sums of
//! that key. Names are copied once for each sum, not for each row.

use super::{SumKey, SumKeyRef, UsageSum};
use crate::ids::{AccountId, IdMap, KeyId};

#[derive(Default)]
pub(crate) struct PendingSums {
    all: Vec<PendingSum>,
    /// The last sum of each key.
    last: IdMap<KeyId, usize>,
}

pub(crate) struct PendingSum {
    pub of: SumKey,
    pub sum: UsageSum,
    /// The one before it of the same key.
    before: Option<usize>,
}

impl PendingSums {
    /// The sum of these things; nothing yet where it is new.
    pub fn of(&mut self, of: &SumKeyRef<'_>, account: AccountId, key: KeyId) -> &mut UsageSum {
        let last = self.last.get(&key).copied();
        let mut at = last;
        while let Some((place, known)) = at.and_then(|place| Some((place, self.all.get(place)?))) {
            if known.of.is(of) {
                return &mut self.all[place].sum;
            }
            at = known.before;
        }
        self.last.insert(key, self.all.len());
        self.all.push(PendingSum { of: of.owned(account, key), sum: UsageSum::default(), before: last });
        let new = self.all.len() - 1;
        &mut self.all[new].sum
    }

    /// In the order they came in.
    pub fn all(&self) -> &[PendingSum] {
        &self.all
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.last.clear();
    }

    /// All of them, in the order they came in.
    pub fn take(&mut self) -> Vec<PendingSum> {
        self.last.clear();
        std::mem::take(&mut self.all)
    }
}

impl SumKey {
    fn is(&self, other: &SumKeyRef<'_>) -> bool {
        self.quarter == other.quarter
            && self.ending == other.ending
            && self.model == other.model
            && self.endpoint == other.endpoint
            && self.provider == other.provider
            && self.upstream_model == other.upstream_model
            && self.account.0 == other.account
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::row_hash::RowFacts;

    /// Whatever tells two sums apart does so here.
    #[test]
    fn rows_find_the_sum_they_are_of() {
        let (a, b) = ([1; 16], [2; 16]);
        let plain = RowFacts { account: &a, call: &a, model: "m", endpoint: "e", ..RowFacts::default() };
        let rows = [
            (plain.clone(), a),
            (RowFacts { account: &b, ..plain.clone() }, a),
            (RowFacts { call: &b, ..plain.clone() }, a),
            (RowFacts { model: "e", ..plain.clone() }, a),
            (RowFacts { endpoint: "m", ..plain.clone() }, a),
            (RowFacts { ending: 1, ..plain.clone() }, a),
            (RowFacts { provider: Some("m"), ..plain.clone() }, a),
            (RowFacts { upstream_model: Some("m"), ..plain.clone() }, a),
            (plain.clone(), b),
        ];
        let mut pending = PendingSums::default();
        for round in 1..=3i64 {
            for (facts, key) in &rows {
                let of = SumKeyRef::of(facts, key);
                let sum = pending.of(&of, AccountId::from_slice(of.account).expect("an id"), KeyId(*key));
                sum.add(&UsageSum::refund(1));
                assert_eq!(sum.refunded(), round, "{facts:?}");
            }
        }
        let all = pending.take();
        assert_eq!(all.len(), rows.len());
        for (one, (facts, key)) in all.iter().zip(&rows) {
            assert!(one.of.is(&SumKeyRef::of(facts, key)) && one.of.key.0 == *key);
        }
        assert!(pending.all().is_empty());
        assert_eq!(pending.of(&SumKeyRef::of(&plain, &a), AccountId(a), KeyId(a)).refunded(), 0, "taken is taken");
    }
}
