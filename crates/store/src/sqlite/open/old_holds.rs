//! What keeps a start short. The ledger is read from the oldest open hold on, and a video may be
//! open for days, so that a start would read days of other calls. Once a second the writer
//! therefore lists the holds that so many entries have followed in a table of their own, and moves
//! the mark from which the ledger is read beyond them. Most calls end long before that and never
//! come near the table.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::StoreError;
use crate::ids::{CallId, IdMap};

/// No more are listed at once: a group of the writer must not wait for long.
const AT_ONCE: usize = 10_000;

/// The holds in the table.
pub(in crate::sqlite) struct OldHolds {
    /// How many entries make a hold an old one.
    after: i64,
    listed: IdMap<CallId, ()>,
}

/// What is to be written: the mark, whom to list, and who has ended.
pub(in crate::sqlite) struct Moved {
    mark: i64,
    listed: Vec<CallId>,
    ended: Vec<CallId>,
}

impl OldHolds {
    pub fn new(after: u64, listed: Vec<CallId>) -> Self {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        Self { after, listed: listed.into_iter().map(|call| (call, ())).collect() }
    }

    /// `open` has the entry of each open hold; entries of the running group begin with `next`.
    pub fn look(&self, open: &IdMap<CallId, i64>, next: i64) -> Moved {
        let bound = next.saturating_sub(self.after);
        let mut mark = next;
        let mut old: Vec<(i64, CallId)> = Vec::new();
        for (call, seq) in open {
            if *seq >= bound {
                mark = mark.min(*seq);
            } else if !self.listed.contains_key(call) {
                old.push((*seq, *call));
            }
        }
        old.sort_unstable();
        if let Some((seq, _)) = old.get(AT_ONCE) {
            mark = mark.min(*seq);
        }
        old.truncate(AT_ONCE);
        let listed = old.into_iter().map(|(_, call)| call).collect();
        let ended = self.listed.keys().filter(|call| !open.contains_key(call)).copied().collect();
        Moved { mark, listed, ended }
    }

    /// It was committed.
    pub fn moved(&mut self, moved: Moved) {
        self.listed.extend(moved.listed.into_iter().map(|call| (call, ())));
        for call in moved.ended {
            self.listed.remove(&call);
        }
    }
}

impl Moved {
    /// In one transaction: an open hold is always listed or behind the mark.
    pub fn write(&self, tx: &Connection) -> rusqlite::Result<()> {
        let mut list = tx.prepare_cached("INSERT OR IGNORE INTO old_hold (call_id) VALUES (?1)")?;
        for call in &self.listed {
            list.execute(params![call.0])?;
        }
        let mut forget = tx.prepare_cached("DELETE FROM old_hold WHERE call_id = ?1")?;
        for call in &self.ended {
            forget.execute(params![call.0])?;
        }
        let sql = "INSERT OR REPLACE INTO meta (name, value) VALUES ('oldest_open_seq', ?1)";
        tx.prepare_cached(sql)?.execute(params![self.mark])?;
        Ok(())
    }
}

/// The entry from which the ledger is to be read, and the holds before it that may be open.
pub(in crate::sqlite) fn read(conn: &Connection) -> Result<(i64, Vec<CallId>), StoreError> {
    let mark: Option<i64> =
        conn.query_row("SELECT value FROM meta WHERE name = 'oldest_open_seq'", [], |r| r.get(0)).optional()?;
    let mut listed = conn.prepare("SELECT call_id FROM old_hold ORDER BY call_id")?;
    let listed = listed.query_map([], |r| r.get(0).map(CallId))?.collect::<Result<_, _>>()?;
    Ok((mark.unwrap_or(0), listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(n: usize) -> CallId {
        let mut id = [0; 16];
        id[8..].copy_from_slice(&n.to_be_bytes());
        CallId(id)
    }

    fn calls(of: &[usize]) -> Vec<CallId> {
        of.iter().map(|n| call(*n)).collect()
    }

    /// Open holds as (call, entry), those in the table, and the next entry; then the mark, who is
    /// listed, and who has ended.
    #[test]
    fn holds_that_many_entries_have_followed_are_listed() {
        type Case<'a> = (&'a [(usize, i64)], &'a [usize], i64, i64, &'a [usize], &'a [usize]);
        let table: [Case<'_>; 7] = [
            (&[], &[], 1, 1, &[], &[]),
            (&[(1, 5), (2, 9)], &[], 10, 5, &[], &[]),
            (&[(1, 5), (2, 99)], &[], 105, 5, &[], &[]),
            (&[(1, 5), (2, 99)], &[], 106, 99, &[1], &[]),
            (&[(1, 5), (2, 99)], &[1], 106, 99, &[], &[]),
            (&[(2, 99)], &[1], 106, 99, &[], &[1]),
            (&[(1, 5)], &[1, 3], 106, 106, &[], &[3]),
        ];
        for (open, listed, next, mark, add, ended) in table {
            let open = open.iter().map(|(n, seq)| (call(*n), *seq)).collect();
            let moved = OldHolds::new(100, calls(listed)).look(&open, next);
            assert_eq!((moved.mark, moved.listed, moved.ended), (mark, calls(add), calls(ended)), "at {next}");
        }
    }

    /// The oldest first, and the mark stays before the first that has to wait.
    #[test]
    fn not_all_of_them_are_listed_at_once() {
        let count = AT_ONCE + 2;
        let open: IdMap<CallId, i64> = (0..count).map(|n| (call(n), n as i64)).collect();
        let mut old = OldHolds::new(100, Vec::new());
        let first = old.look(&open, 1_000_000);
        assert_eq!((first.mark, first.listed.len()), (AT_ONCE as i64, AT_ONCE));
        old.moved(first);
        let second = old.look(&open, 1_000_000);
        assert_eq!((second.mark, second.listed), (1_000_000, calls(&[AT_ONCE, AT_ONCE + 1])));
    }
}
