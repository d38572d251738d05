//! Feeds the audit from SQLite, from one snapshot of the database: its rows, and what has happened
//! since the last one. All of it is read by `whole`.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::borrow::Cow;

use crate::call::counters::{COUNTERS, Counter, Counters};
use crate::call::row_hash::{Decided, RowFacts, RowSeal, seal};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::Pots;
use crate::ledger::chain::{ChainLink, Content};
use crate::ledger::entries::{Entry, EntryPage};
use crate::report::AuditReport;
use crate::sums::{SUM_KEY, SumKeyRef, UsageSum};
use crate::verify::{
    ACCOUNT, AccountRow, Auditor, CHARGE, CHARGE_COLUMNS, ChargeRow, ENTRY, KEY, KeyRow, SealProofs, StoredEntry,
};

/// New entries are looked for from this many before the last one seen.
const OVERLAP: i64 = 1_000;
/// The reference of the entry that ended the call of a usage row `u`.
pub(super) const REFERENCE: &str = "(SELECT e.reference FROM entry e WHERE e.op_id = CAST(u.call_id || x'01' AS BLOB))";

/// By the columns of [`SUM_KEY`].
pub(super) fn sum_key<'a>(r: &'a Row<'_>) -> Result<SumKeyRef<'a>, StoreError> {
    let words = |i| Ok::<_, rusqlite::Error>(text(r, i)?.unwrap_or_default());
    Ok(SumKeyRef {
        account: blob(r, 0)?.unwrap_or_default(),
        quarter: r.get(1)?,
        key: blob(r, 2)?.unwrap_or_default(),
        model: words(3)?,
        endpoint: words(4)?,
        ending: r.get(5)?,
        provider: words(6)?,
        upstream_model: words(7)?,
    })
}

/// By the columns of [`SUM_KEY`], and the sums.
pub(super) fn stored_sum<'a>(r: &'a Row<'_>) -> Result<(SumKeyRef<'a>, UsageSum), StoreError> {
    let of = sum_key(r)?;
    let mut sum = UsageSum::default();
    for (place, value) in (SUM_KEY.len()..).zip(&mut sum.0) {
        *value = r.get(place)?;
    }
    Ok((of, sum))
}

pub(super) fn open_tasks(snapshot: &Connection, auditor: &mut Auditor) -> Result<(), StoreError> {
    let mut open = snapshot.prepare_cached("SELECT call_id, account_id FROM task WHERE state < 5")?;
    let mut rows = open.query([])?;
    while let Some(r) = rows.next()? {
        auditor.open_task(CallId(r.get(0)?), AccountId(r.get(1)?));
    }
    Ok(())
}

/// What has happened since entry `after`.
pub(in crate::sqlite) fn audit_changed(
    conn: &Connection,
    mut auditor: Auditor,
    after: i64,
    now: i64,
) -> Result<(AuditReport, Auditor), StoreError> {
    let snapshot = conn.unchecked_transaction()?;
    auditor.begin_online();
    // One writer: what is new has larger numbers, and the entries of an account come in the order
    // of its chain.
    let mut entries = snapshot.prepare_cached(&format!("SELECT {ENTRY} FROM entry WHERE seq > ?1 ORDER BY seq"))?;
    let mut rows = entries.query(params![after.saturating_sub(OVERLAP)])?;
    while let Some(r) = rows.next()? {
        let stored = stored(r)?;
        let followed = AccountId::from_slice(stored.content.account).map_or(0, |account| auditor.followed(account));
        if stored.link.is_some_and(|link| link > followed) {
            auditor.entry(&stored);
        }
    }
    let touched = auditor.touched();
    for id in &touched.accounts {
        let sql = format!("SELECT {ACCOUNT} FROM account WHERE id = ?1");
        let row = snapshot.prepare_cached(&sql)?.query_row(params![id.0], |r| Ok(account(r))).optional()?;
        row.transpose()?.into_iter().for_each(|row| auditor.account(&row));
    }
    for id in &touched.accounts {
        let sql = "SELECT credit, free, held FROM trial_lot WHERE account_id = ?1";
        let mut lots = snapshot.prepare_cached(sql)?;
        let mut rows = lots.query(params![id.0])?;
        while let Some(r) = rows.next()? {
            auditor.lot(*id, &r.get(0)?, r.get(1)?, r.get(2)?);
        }
    }
    for id in &touched.keys {
        let sql = format!("SELECT {KEY} FROM key WHERE id = ?1");
        let row = snapshot.prepare_cached(&sql)?.query_row(params![id.0], |r| Ok(key(r))).optional()?;
        row.transpose()?.into_iter().for_each(|row| auditor.key(&row));
    }
    for (call, expected) in &touched.calls {
        let sql =
            format!("SELECT {CHARGE}{COUNTERS}, {REFERENCE} FROM usage u WHERE u.account_id = ?1 AND u.call_id = ?2");
        let mut found = snapshot.prepare_cached(&sql)?;
        let row = found.query_row(params![expected.account.0, call.0], |r| Ok(charge(r))).optional()?.transpose()?;
        if let Some(row) = &row {
            price_of(&snapshot, &mut auditor, row)?;
        }
        auditor.touched_call(*call, expected, row.as_ref());
    }
    open_tasks(&snapshot, &mut auditor)?;
    auditor.late_holds(now);
    Ok((auditor.finish_online(&touched), auditor))
}

/// Whether a usage row is the one that was written.
pub(in crate::sqlite) fn seal_of(conn: &Connection, account: AccountId, call: CallId) -> Result<RowSeal, StoreError> {
    let sql = format!("SELECT {CHARGE}{COUNTERS}, {REFERENCE} FROM usage u WHERE u.account_id = ?1 AND u.call_id = ?2");
    let mut found = conn.prepare_cached(&sql)?;
    let row = found.query_row(params![account.0, call.0], |r| Ok(charge(r))).optional()?.transpose()?;
    Ok(row.map_or(RowSeal::Missing, |row| row.seal))
}

/// A page of entries. The filter is looked at in the order of the table, so that all pages together
/// read it once.
pub(in crate::sqlite) fn entries(conn: &Connection, page: EntryPage) -> Result<Vec<Entry>, StoreError> {
    let sql = format!(
        "SELECT {ENTRY} FROM entry NOT INDEXED WHERE seq > ?1 AND (?2 IS NULL OR account_id = ?2) AND at >= ?3 AND at < ?4 \
         AND seq <= ?6 ORDER BY seq LIMIT ?5"
    );
    let (from, to) = (page.from.unwrap_or(i64::MIN), page.to.unwrap_or(i64::MAX));
    let mut wanted = conn.prepare_cached(&sql)?;
    let until = page.until.unwrap_or(i64::MAX);
    let mut rows = wanted.query(params![page.after, page.account.map(|a| a.0), from, to, page.limit, until])?;
    let mut entries = Vec::new();
    while let Some(r) = rows.next()? {
        entries.push(Entry::of(&stored(r)?));
    }
    Ok(entries)
}

pub(super) fn price_of(conn: &Connection, auditor: &mut Auditor, row: &ChargeRow) -> Result<(), StoreError> {
    let Some(id) = row.price_id.filter(|id| auditor.needs_price(id)) else { return Ok(()) };
    let mut found = conn.prepare_cached("SELECT json FROM price WHERE id = ?1")?;
    let json: Option<String> = found.query_row(params![id], |r| r.get(0)).optional()?;
    auditor.price(id, json.as_deref());
    Ok(())
}

pub(super) fn stored<'a>(r: &'a Row<'_>) -> Result<StoredEntry<'a>, StoreError> {
    let (blob, text) = (|i| blob(r, i), |i| text(r, i));
    Ok(StoredEntry {
        seq: r.get(0)?,
        content: Content {
            op_id: blob(1)?.unwrap_or_default(),
            kind: r.get(2)?,
            account: blob(3)?.unwrap_or_default(),
            key: blob(4)?,
            trial: r.get(5)?,
            paid: r.get(6)?,
            take_trial: r.get(7)?,
            take_paid: r.get(8)?,
            at: r.get(9)?,
            price_id: blob(10)?,
            model: text(11)?,
            endpoint: text(12)?,
            expires_at: r.get(13)?,
            paid_only: r.get(14)?,
            replica: None,
            reference: text(15)?,
            actor: text(16)?,
            reason: text(17)?,
            lots: text(18)?,
        },
        link: r.get(19)?,
        hash: blob(20)?,
    })
}

pub(super) fn account(r: &Row<'_>) -> Result<AccountRow, StoreError> {
    Ok(AccountRow {
        id: AccountId(r.get(0)?),
        available: Pots { trial: r.get(1)?, paid: r.get(2)? },
        held: Pots { trial: r.get(3)?, paid: r.get(4)? },
        end: ChainLink { number: r.get(5)?, hash: r.get::<_, Option<[u8; 32]>>(6)?.unwrap_or_default() },
        used: crate::sqlite::read::used(r, 7)?,
        topped_up: r.get(11)?,
    })
}

pub(super) fn key(r: &Row<'_>) -> Result<KeyRow, StoreError> {
    Ok(KeyRow { id: KeyId(r.get(0)?), spent: r.get(1)?, held: r.get(2)?, used: crate::sqlite::read::used(r, 3)? })
}

/// A usage row, and whether it is the one that was written.
pub(super) fn charge(r: &Row<'_>) -> Result<ChargeRow, StoreError> {
    let entry = text(r, CHARGE_COLUMNS + Counter::COUNT)?;
    sealed_charge(r, |facts, decided, own| Ok(seal(facts, decided, entry, own)))
}

/// A usage row of which that is found out later, by its own hash and with many others.
pub(super) fn unproved_charge(r: &Row<'_>, proofs: &mut SealProofs) -> Result<ChargeRow, StoreError> {
    sealed_charge(r, |facts, decided, own| {
        let Some(own) = own else { return Ok(RowSeal::Missing) };
        let Ok(hash) = own.try_into() else { return Ok(RowSeal::Changed) };
        proofs.add(CallId(r.get(1)?), facts, decided, hash);
        Ok(RowSeal::Unproved)
    })
}

fn sealed_charge(
    r: &Row<'_>,
    seal: impl FnOnce(&RowFacts<'_>, &Decided<'_>, Option<&[u8]>) -> Result<RowSeal, StoreError>,
) -> Result<ChargeRow, StoreError> {
    let counters = crate::sqlite::read::counters(r, CHARGE_COLUMNS)?;
    let (charge, write_off, ended_at) = (r.get(3)?, r.get(4)?, r.get(8)?);
    let facts = RowFacts {
        account: blob(r, 0)?.unwrap_or_default(),
        call: blob(r, 1)?.unwrap_or_default(),
        at: r.get(7)?,
        ended_at,
        endpoint: text(r, 9)?.unwrap_or_default(),
        model: text(r, 10)?.unwrap_or_default(),
        provider: text(r, 11)?,
        upstream_model: text(r, 12)?,
        ending: r.get(13)?,
        reason: text(r, 14)?.unwrap_or_default(),
        status: r.get(15)?,
        counters,
        estimated: r.get(16)?,
        raw_usage: text(r, 18)?,
        attempts: r.get(19)?,
        first_byte_ms: r.get(20)?,
        tier: text(r, 21)?,
        dropped: text(r, 22)?,
        tools: text(r, 24)?.map(Cow::Borrowed),
        cost: r.get(25)?,
    };
    let key = blob(r, 6)?.unwrap_or_default();
    let decided = Decided { key, price_id: blob(r, 2)?, hold: r.get(17)?, charge, write_off };
    Ok(ChargeRow {
        account: AccountId(r.get(0)?),
        call: CallId(r.get(1)?),
        price_id: r.get(2)?,
        charge,
        write_off,
        refunded: r.get(5)?,
        counters: Counters::from_columns(counters).with_tools(facts.tools.as_deref()),
        ended_at,
        summed: (SumKeyRef::of(&facts, key).digest(), UsageSum::of(&facts, charge, r.get(5)?, write_off)),
        hash: blob(r, 23)?.and_then(|hash| hash.try_into().ok()),
        seal: seal(&facts, &decided, blob(r, 23)?)?,
    })
}

pub(super) fn blob<'a>(r: &'a Row<'_>, i: usize) -> rusqlite::Result<Option<&'a [u8]>> {
    Ok(r.get_ref(i)?.as_blob().ok())
}

fn text<'a>(r: &'a Row<'_>, i: usize) -> rusqlite::Result<Option<&'a str>> {
    Ok(match r.get_ref(i)? {
        // Text that is not UTF-8 is not ours: its hash will not fit.
        ValueRef::Text(bytes) => Some(std::str::from_utf8(bytes).unwrap_or("\u{fffd}")),
        _ => None,
    })
}
