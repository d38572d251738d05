//! The audit of everything. Where somebody waits for it, it has two threads: one reads the entries,
//! the other the usage log and its sums. Each has a snapshot of its own, in which the ledger ends
//! with the same entry; what is written without an entry is read by the second alone.

use std::path::PathBuf;

use rusqlite::{Connection, Transaction, params};

use super::audit::{
    REFERENCE, account, blob, charge, key, open_tasks, price_of, stored, stored_sum, sum_key, unproved_charge,
};
use super::connect;
use super::give_way::GiveWay;
use crate::call::counters::COUNTERS;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::report::AuditReport;
use crate::sqlite::fold::folded;
use crate::sqlite::sums::summed_until;
use crate::sqlite::unmerged::each_unmerged;
use crate::sums::folded::{PACKED_DAYS, SumSource};
use crate::sums::{SUM_KEY, SUMS};
use crate::verify::{ACCOUNT, Auditor, CHARGE, ENTRY, KEY, QUESTIONS, show};

/// So often two snapshots are taken in the hope that nothing was committed in between.
const TRIES: u32 = 100;

/// An audit of everything that is about to begin.
pub(in crate::sqlite) struct WholeAudit {
    pub auditor: Auditor,
    /// By the clock that the holds were made with, which does not jump.
    pub now: i64,
    pub strict: bool,
    pub way: GiveWay,
    /// The database, where a second thread may read it.
    pub beside: Option<PathBuf>,
}

impl WholeAudit {
    pub fn run(self, conn: &Connection) -> Result<(AuditReport, Auditor), StoreError> {
        let Self { mut auditor, now, strict, way, beside } = self;
        let beside = beside.map(|path| connect(&path)).transpose()?;
        let (snapshot, beside) = begin(conn, beside)?;
        let beside = match beside {
            None => {
                ledger(&snapshot, &mut auditor, way.clone())?;
                log(&snapshot, &mut auditor, way)?;
                None
            }
            Some(beside) => Some(both(&snapshot, beside, &mut auditor, &way)?),
        };
        compare(beside.as_ref().unwrap_or(&snapshot), &mut auditor)?;
        open_tasks(&snapshot, &mut auditor)?;
        auditor.late_holds(now);
        Ok((auditor.finish(strict), auditor))
    }
}

/// A snapshot, and where there is another connection one there too. Transactions that only read:
/// their end releases the snapshots.
fn begin(conn: &Connection, beside: Option<Connection>) -> Result<(Transaction<'_>, Option<Connection>), StoreError> {
    let last = "SELECT coalesce(max(seq), 0) FROM entry";
    let last = |c: &Connection| c.query_row(last, [], |r| r.get::<_, i64>(0));
    let Some(beside) = beside else { return Ok((conn.unchecked_transaction()?, None)) };
    for _ in 0..TRIES {
        let snapshot = conn.unchecked_transaction()?;
        // The first look takes the snapshot.
        let ends_with = last(&snapshot)?;
        beside.execute_batch("BEGIN")?;
        if last(&beside)? == ends_with {
            return Ok((snapshot, Some(beside)));
        }
        beside.execute_batch("ROLLBACK")?;
    }
    Ok((conn.unchecked_transaction()?, None))
}

/// Both halves at the same time.
fn both(
    snapshot: &Connection,
    beside: Connection,
    auditor: &mut Auditor,
    way: &GiveWay,
) -> Result<Connection, StoreError> {
    let (mut half, their_way) = (auditor.other_half(), way.clone());
    let (beside, half) = std::thread::scope(|scope| {
        let second = std::thread::Builder::new().name("audit".to_owned()).spawn_scoped(scope, move || {
            log(&beside, &mut half, their_way)?;
            Ok::<_, StoreError>((beside, half))
        })?;
        let first = ledger(snapshot, auditor, way.clone());
        let second = second.join().map_err(|_| StoreError::away("the second thread of the audit panicked"))?;
        first?;
        second
    })?;
    auditor.join(half);
    Ok(beside)
}

/// Entries, and the rows they make.
fn ledger(snapshot: &Connection, auditor: &mut Auditor, mut way: GiveWay) -> Result<(), StoreError> {
    let mut all = snapshot.prepare(&format!("SELECT {ENTRY} FROM entry ORDER BY seq"))?;
    let mut rows = all.query([])?;
    while let Some(r) = rows.next()? {
        auditor.entry(&stored(r)?);
        way.row();
    }
    let mut accounts = snapshot.prepare(&format!("SELECT {ACCOUNT} FROM account"))?;
    let mut rows = accounts.query([])?;
    while let Some(r) = rows.next()? {
        auditor.account(&account(r)?);
    }
    let mut keys = snapshot.prepare(&format!("SELECT {KEY} FROM key"))?;
    let mut rows = keys.query([])?;
    while let Some(r) = rows.next()? {
        auditor.key(&key(r)?);
    }
    let mut lots = snapshot.prepare("SELECT account_id, credit, free, held FROM trial_lot")?;
    let mut rows = lots.query([])?;
    while let Some(r) = rows.next()? {
        auditor.lot(AccountId(r.get(0)?), &r.get(1)?, r.get(2)?, r.get(3)?);
    }
    Ok(())
}

/// The usage log, and the sums of it.
fn log(snapshot: &Connection, auditor: &mut Auditor, mut way: GiveWay) -> Result<(), StoreError> {
    auditor.summed_until = summed_until(snapshot)?;
    let mut usage = snapshot.prepare(&format!("SELECT {CHARGE}{COUNTERS}, NULL FROM usage u"))?;
    let mut rows = usage.query([])?;
    while let Some(r) = rows.next()? {
        let row = unproved_charge(r, &mut auditor.seals)?;
        price_of(snapshot, auditor, &row)?;
        auditor.usage(&row);
        way.row();
    }
    auditor.folded = folded(snapshot)?;
    sums(snapshot, auditor)?;
    for source in SumSource::FOLDED {
        folded_sums(snapshot, auditor, source)?;
    }
    packed_days(snapshot, auditor)
}

/// What needs the entries and the log: rows of accounts where the two differ, and questions.
fn compare(snapshot: &Connection, auditor: &mut Auditor) -> Result<(), StoreError> {
    let mut of_account =
        snapshot.prepare(&format!("SELECT {CHARGE}{COUNTERS}, {REFERENCE} FROM usage u WHERE u.account_id = ?1"))?;
    for account in auditor.doubtful() {
        let mut rows = of_account.query(params![account.0])?;
        while let Some(r) = rows.next()? {
            auditor.compared(&charge(r)?);
        }
    }
    for (invariant, question) in QUESTIONS {
        let mut asked = snapshot.prepare(question)?;
        let mut rows = asked.query([])?;
        while let Some(r) = rows.next()? {
            let id: Option<Vec<u8>> = r.get(0)?;
            auditor.breach(invariant, show(id.as_deref(), &r.get::<_, String>(1)?));
        }
    }
    Ok(())
}

/// All sums there are.
fn sums(snapshot: &Connection, auditor: &mut Auditor) -> Result<(), StoreError> {
    let columns: Vec<&str> = SUM_KEY.iter().chain(SUMS.iter()).copied().collect();
    let mut all = snapshot.prepare(&format!("SELECT {} FROM usage_quarter", columns.join(", ")))?;
    let mut rows = all.query([])?;
    while let Some(r) = rows.next()? {
        let (of, sum) = stored_sum(r)?;
        auditor.sum(&of, &sum);
    }
    let lost = each_unmerged(snapshot, |of, sum| {
        auditor.unmerged_sum(of, &sum);
        Ok::<(), StoreError>(())
    })?;
    if lost > 0 {
        auditor.breach("I21", format!("{lost} groups of sums that are not merged yet cannot be read"));
    }
    Ok(())
}

/// All sums of days.
fn folded_sums(snapshot: &Connection, auditor: &mut Auditor, source: SumSource) -> Result<(), StoreError> {
    let mut all = snapshot.prepare(&source.all())?;
    let mut rows = all.query([])?;
    while let Some(r) = rows.next()? {
        let (of, sum) = stored_sum(r)?;
        auditor.folded_sum(source, &of, &sum);
    }
    Ok(())
}

fn packed_days(snapshot: &Connection, auditor: &mut Auditor) -> Result<(), StoreError> {
    let mut all = snapshot.prepare(PACKED_DAYS)?;
    let mut rows = all.query([])?;
    while let Some(r) = rows.next()? {
        auditor.packed_day(&sum_key(r)?, blob(r, SUM_KEY.len())?.unwrap_or_default());
    }
    Ok(())
}
