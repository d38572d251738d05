//! A long ledger in a short time, for measuring: the operations of the writer, without its waits
//! and without a sync. What comes out is what the same calls would have left behind, had each taken
//! longer than a group of the writer: a hold and its end are two entries, as with most models.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, params};
use tollgate_catalog::{Money, Price};

use crate::account::limits::Used;
use crate::call::price::KnownPrices;
use crate::call::{Ending, UsageFacts};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, IdMap, KeyId};
use crate::ledger::{self, Pots};
use crate::sqlite::writer::apply::Apply;
use crate::sqlite::writer::ops::{CloseOp, HoldOp, Op, Spent};

/// Calls per transaction.
const GROUP: u64 = 20_000;
/// Whether no hold is open, as far as that shows without reading the whole ledger.
const NOTHING_OPEN: &str = "SELECT NOT EXISTS (SELECT 1 FROM old_hold) AND NOT EXISTS (SELECT 1 FROM entry \
     WHERE kind = 0 AND seq >= coalesce((SELECT value FROM meta WHERE name = 'oldest_open_seq'), 0))";

/// One of the calls to write: who pays, what was held, and what it cost.
pub(crate) struct Calls<'a> {
    pub owners: &'a [(AccountId, KeyId)],
    pub price: Arc<Price>,
    pub hold: Money,
    pub charge: Money,
    /// The usage row of each, but for the key.
    pub row: UsageFacts,
}

/// Writes `count` calls, in turn for each owner, into the database of a store that is shut.
pub(crate) fn fill(dir: &Path, calls: &Calls<'_>, count: u64) -> Result<(), StoreError> {
    let mut conn = Connection::open(dir.join(crate::sqlite::open::FILE))?;
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;")?;
    let known = KnownPrices::default();
    let mut ends = IdMap::default();
    let mut next_seq: i64 = conn.query_row("SELECT coalesce(max(seq), 0) + 1 FROM entry", [], |r| r.get(0))?;
    let nothing_open: bool = conn.query_row(NOTHING_OPEN, [], |r| r.get(0))?;
    let mut used: Vec<Used> = vec![Used::default(); calls.owners.len()];
    let mut done = 0u64;
    while done < count {
        let tx = conn.transaction()?;
        let mut apply = Apply::new(&tx, &known, &ends, next_seq, (u64::MAX, 0))?;
        for n in done..count.min(done + GROUP) {
            let place = usize::try_from(n % calls.owners.len() as u64).map_err(StoreError::broken)?;
            for op in one_call(calls, n, place, &mut used[place]) {
                apply.write(&op)?;
            }
        }
        apply.flush()?;
        next_seq = apply.next_seq();
        let moved = std::mem::take(&mut apply.ends);
        drop(apply);
        tx.commit()?;
        ends.extend(moved);
        done = count.min(done + GROUP);
    }
    // All of these have ended: the next start need not read them. The writer would have said so.
    if nothing_open {
        let sql = "INSERT OR REPLACE INTO meta (name, value) VALUES ('oldest_open_seq', ?1)";
        conn.execute(sql, params![next_seq])?;
    }
    Ok(())
}

/// Hold and close.
fn one_call(calls: &Calls<'_>, n: u64, place: usize, used: &mut Used) -> [Op; 2] {
    let (account, key) = calls.owners[place];
    let (hold, charge, at) = (calls.hold.nano(), calls.charge.nano(), calls.row.at);
    let mut call = [0u8; 16];
    call[..6].copy_from_slice(&at.to_be_bytes()[2..]);
    call[8..].copy_from_slice(&n.to_be_bytes());
    let held = Pots { trial: 0, paid: hold };
    used.add(at, hold);
    let mut counted = Used::default();
    counted.add(at, hold);
    let spent = Spent { account: *used, key: *used };
    let first = HoldOp {
        call: CallId(call),
        account,
        key,
        pots: held,
        lots: Vec::new(),
        spent,
        price_id: calls.price.id(),
        price: Some(calls.price.clone()),
        model: calls.row.model.clone(),
        endpoint: "/v1/chat/completions".into(),
        paid_only: false,
        expires_at: at + 600_000,
        at,
        goes_back: false,
        idem: None,
        task: None,
    };
    used.close(&counted, hold, charge);
    let last = CloseOp {
        call: CallId(call),
        account,
        key,
        at,
        ending: Ending::Answered,
        reason: String::new(),
        held,
        counted,
        settlement: ledger::settle(held, Pots::default(), charge, None, false),
        extend_lots: Vec::new(),
        lot_moves: Vec::new(),
        spent: Spent { account: *used, key: *used },
        price_id: calls.price.id(),
        row: UsageFacts { key, ..calls.row.clone() },
        idem: None,
        task: None,
    };
    [Op::Hold(Box::new(first)), Op::Close(Box::new(last))]
}
