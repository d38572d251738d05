//! Hashes of the usage rows of a group, many at a time. What a row says is known before the first
//! of them is written, and a processor that has no instructions for SHA-256 hashes eight texts
//! beside each other in a third of the time.

use std::collections::VecDeque;

use crate::ids::CallId;
use crate::ledger::chain::Hash;
use crate::ledger::hash_batch::HashBatch;
use crate::sqlite::writer::apply::UsageInsert;
use crate::sqlite::writer::ops::{CloseOp, Op};

/// So many are computed at a time.
const TOGETHER: usize = 256;

/// The hashes of rows that ends of calls write, in the order of these ends.
#[derive(Default)]
pub(in crate::sqlite) struct RowHashes(VecDeque<(CallId, Hash)>);

impl RowHashes {
    pub fn of(ops: &[Op]) -> RowHashes {
        let ends = ops.iter().filter_map(|op| if let Op::Close(end) = op { Some(&**end) } else { None });
        let ends: Vec<&CloseOp> = ends.collect();
        let mut batch = HashBatch::default();
        RowHashes(ends.chunks(TOGETHER).flat_map(|some| hashed(some, &mut batch)).collect())
    }

    /// The hash for the next end; an end that is not the next one gets none.
    pub fn take(&mut self, call: CallId) -> Option<Hash> {
        self.0.pop_front_if(|(next, _)| *next == call).map(|(_, hash)| hash)
    }
}

fn hashed(ends: &[&CloseOp], batch: &mut HashBatch) -> Vec<(CallId, Hash)> {
    let rows = || ends.iter().map(|end| UsageInsert::of(end));
    rows().for_each(|row| batch.add(|text| row.facts().pack(text)));
    let facts = batch.take();
    for (row, facts) in rows().zip(&facts) {
        batch.add(|text| {
            text.extend_from_slice(facts);
            row.decided().pack(text);
        });
    }
    ends.iter().map(|end| end.call).zip(batch.take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::limits::Used;
    use crate::call::{Ending, UsageFacts};
    use crate::ids::{AccountId, KeyId};
    use crate::ledger::{Pots, Settlement};
    use crate::sqlite::writer::ops::Spent;

    /// One of several ends, no two of which have rows of the same length.
    fn end(number: u8) -> Op {
        let (account, key) = (AccountId([number; 16]), KeyId([number; 16]));
        let model = "m".repeat(usize::from(number) * 9);
        Op::Close(Box::new(CloseOp {
            call: CallId([number; 16]),
            account,
            key,
            at: 7,
            ending: Ending::Answered,
            reason: String::new(),
            held: Pots { trial: 0, paid: 9 },
            counted: Used::default(),
            settlement: Settlement { take: Pots { trial: 0, paid: number.into() }, ..Settlement::default() },
            extend_lots: Vec::new(),
            lot_moves: Vec::new(),
            spent: Spent::default(),
            price_id: [3; 16],
            row: UsageFacts::unanswered(key, 5, 6, "/v1".into(), model),
            idem: None,
            task: None,
        }))
    }

    /// Beside each other or one after the other, whichever this processor does: eleven fill its
    /// registers once, and then in part.
    #[test]
    fn hashes_that_are_computed_together_are_those_of_the_rows() {
        let ops: Vec<Op> = (1..=11).map(end).collect();
        let mut hashes = RowHashes::of(&ops);
        for op in &ops {
            let Op::Close(end) = op else { continue };
            assert_eq!(hashes.take(end.call), Some(UsageInsert::of(end).hash()), "{:?}", end.call);
        }
        assert!(hashes.0.is_empty());
    }

    #[test]
    fn only_the_next_end_gets_the_hash_that_is_next() {
        let [first, second] = [CallId([1; 16]), CallId([2; 16])];
        let mut hashes = RowHashes(VecDeque::from([(first, [1; 32]), (second, [2; 32])]));
        assert_eq!(hashes.take(second), None);
        assert_eq!(hashes.take(first), Some([1; 32]));
        assert_eq!(hashes.take(first), None);
        assert_eq!(hashes.take(second), Some([2; 32]));
        assert_eq!(RowHashes::of(&[]).take(first), None);
    }
}
