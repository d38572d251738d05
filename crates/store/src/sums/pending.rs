//! What the rows of one group add to their sums, until it is written. What a sum is of stands in
//! one buffer, in the form it is written in (`packed.rs`): a row finds its sum by its key, whose
//! last bytes are their own hash, and by comparing these bytes with those of the few sums of that
//! key. So nothing is allocated for a sum, and what waits to be merged is added as it lies there.

use super::packed::{PackedSum, key_of, pack_key};
use super::{SumKeyRef, UsageSum};
use crate::ids::{IdMap, KeyId};

#[derive(Default)]
pub(crate) struct PendingSums {
    all: Vec<PendingSum>,
    /// What they are of, one after the other.
    of: Vec<u8>,
    /// The last sum of each key.
    last: IdMap<KeyId, usize>,
}

struct PendingSum {
    /// Where in the buffer it stands what it is of.
    begins: usize,
    ends: usize,
    sum: UsageSum,
    /// The one before it of the same key.
    before: Option<usize>,
}

impl PendingSums {
    /// The sum of these things; nothing yet where it is new.
    pub fn of(&mut self, of: &SumKeyRef<'_>) -> &mut UsageSum {
        let begins = self.of.len();
        pack_key(&mut self.of, of);
        self.find(begins)
    }

    /// Adds a sum that was packed.
    pub fn add(&mut self, packed: &PackedSum<'_>) {
        let begins = self.of.len();
        self.of.extend_from_slice(packed.of);
        packed.add_to(self.find(begins));
    }

    /// The sum of what stands at the end of the buffer, from this place on. It is taken away again
    /// where there is such a sum.
    fn find(&mut self, begins: usize) -> &mut UsageSum {
        let ends = self.of.len();
        let key = key_of(&self.of[begins..]);
        let last = self.last.get(&key).copied();
        let mut at = last;
        while let Some((place, known)) = at.and_then(|place| Some((place, self.all.get(place)?))) {
            if self.of[known.begins..known.ends] == self.of[begins..] {
                self.of.truncate(begins);
                return &mut self.all[place].sum;
            }
            at = known.before;
        }
        let place = self.all.len();
        self.last.insert(key, place);
        self.all.push(PendingSum { begins, ends, sum: UsageSum::default(), before: last });
        &mut self.all[place].sum
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// In the order they came in: the bytes of what they are of, and the sums.
    pub fn all(&self) -> impl Iterator<Item = (&[u8], &UsageSum)> {
        self.all.iter().map(|one| (&self.of[one.begins..one.ends], &one.sum))
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.of.clear();
        self.last.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::row_hash::RowFacts;
    use crate::sums::packed::{Unpacked, pack};

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
            // The same letters, divided otherwise.
            (RowFacts { model: "me", endpoint: "", ..plain.clone() }, a),
            (plain.clone(), b),
        ];
        let mut pending = PendingSums::default();
        for round in 1..=3i64 {
            for (facts, key) in &rows {
                let sum = pending.of(&SumKeyRef::of(facts, key));
                sum.add(&UsageSum::refund(1));
                assert_eq!(sum.refunded(), round, "{facts:?}");
            }
        }
        // What was packed and comes back is added to the same.
        let packed = pack(&pending);
        for one in Unpacked(&packed) {
            pending.add(&one.expect("our own bytes"));
        }
        assert_eq!(pending.len(), rows.len());
        for ((of, sum), (facts, key)) in pending.all().zip(&rows) {
            let mut expected = Vec::new();
            pack_key(&mut expected, &SumKeyRef::of(facts, key));
            assert_eq!((of, sum.refunded()), (expected.as_slice(), 6), "{facts:?}");
        }
        pending.clear();
        assert_eq!(pending.all().count(), 0);
        assert_eq!(pending.of(&SumKeyRef::of(&plain, &a)).refunded(), 0, "what is cleared is gone");
    }
}
