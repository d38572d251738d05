//! Feeds the audit from SQLite, from one snapshot of the database.

use rusqlite::{Connection, OptionalExtension, params};

use crate::call::Counters;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::Pots;
use crate::report::Report;
use crate::verify::{Auditor, ChargeRow, ENTRY, EntryRow, QUESTIONS, UsedRow, show};

pub(super) fn audit(conn: &Connection, now: i64) -> Result<Report, StoreError> {
    // Reads only; ending the transaction releases the snapshot.
    let snapshot = conn.unchecked_transaction()?;
    let mut auditor = Auditor::default();
    let from = snapshot.query_row("SELECT value FROM meta WHERE name = 'limits_from'", [], |r| r.get(0)).optional()?;
    auditor.terms.limits_from = from.unwrap_or(0);
    entries(&snapshot, &mut auditor)?;
    terms(&snapshot, &mut auditor)?;
    charges(&snapshot, &mut auditor)?;
    for (invariant, question) in QUESTIONS {
        let mut asked = snapshot.prepare(question)?;
        let mut rows = asked.query([])?;
        while let Some(r) = rows.next()? {
            let id: Option<Vec<u8>> = r.get(0)?;
            auditor.breach(invariant, show(id.as_deref(), &r.get::<_, String>(1)?));
        }
    }
    let count = |table: &str| -> rusqlite::Result<u64> {
        snapshot.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get::<_, i64>(0).map(i64::unsigned_abs))
    };
    Ok(auditor.finish(count("account")?, count("usage")?, now))
}

fn entries(conn: &Connection, auditor: &mut Auditor) -> Result<(), StoreError> {
    let mut all = conn.prepare(&format!("SELECT {ENTRY} FROM entry ORDER BY seq"))?;
    let mut rows = all.query([])?;
    while let Some(r) = rows.next()? {
        let row = EntryRow {
            seq: r.get(0)?,
            kind: r.get(1)?,
            account: AccountId(r.get(2)?),
            call: r.get::<_, Option<[u8; 16]>>(3)?.map(CallId),
            pots: Pots { trial: r.get(4)?, paid: r.get(5)? },
            take: Pots { trial: r.get(6)?, paid: r.get(7)? },
            at: r.get(8)?,
            expires_at: r.get(9)?,
            key: r.get::<_, Option<[u8; 16]>>(10)?.map(KeyId),
            paid_only: r.get::<_, Option<bool>>(11)?.unwrap_or(false),
            lots: r.get(12)?,
            credit: None,
            settling: false,
        };
        auditor.entry(&row.identified(r.get_ref(13)?.as_blob().unwrap_or_default()));
    }
    Ok(())
}

/// Trial credit that expires, and what accounts and keys have used in their day and month.
fn terms(conn: &Connection, auditor: &mut Auditor) -> Result<(), StoreError> {
    let mut lots = conn.prepare("SELECT account_id, credit, free, held FROM trial_lot")?;
    let mut rows = lots.query([])?;
    while let Some(r) = rows.next()? {
        auditor.lot(AccountId(r.get(0)?), &r.get(1)?, r.get(2)?, r.get(3)?);
    }
    for table in ["account", "key"] {
        let mut used = conn.prepare(&format!("SELECT id, day, day_used, month, month_used FROM {table}"))?;
        let mut rows = used.query([])?;
        while let Some(r) = rows.next()? {
            let whose = if table == "key" { Ok(KeyId(r.get(0)?)) } else { Err(AccountId(r.get(0)?)) };
            auditor.used(&UsedRow { whose, used: super::read::used(r, 1)? });
        }
    }
    Ok(())
}

fn charges(conn: &Connection, auditor: &mut Auditor) -> Result<(), StoreError> {
    let mut charged = conn.prepare(
        "SELECT call_id, price_id, charge + write_off, input, cache_read, cache_write_5m, cache_write_1h, image_input, \
         audio_input, output, reasoning, image_output, audio_output, calls, seconds FROM usage \
         WHERE charge + write_off > 0",
    )?;
    let mut rows = charged.query([])?;
    while let Some(r) = rows.next()? {
        let mut counters = [0i64; 12];
        for (i, n) in counters.iter_mut().enumerate() {
            *n = r.get(3 + i)?;
        }
        let price_id: [u8; 16] = r.get::<_, Option<[u8; 16]>>(1)?.unwrap_or_default();
        if auditor.needs_price(&price_id) {
            let json: Option<String> = conn
                .prepare_cached("SELECT json FROM price WHERE id = ?1")?
                .query_row(params![price_id], |r| r.get(0))
                .optional()?;
            auditor.price(price_id, json.as_deref());
        }
        auditor.charge(&ChargeRow {
            call: CallId(r.get(0)?),
            counters: Counters::from_columns(counters),
            cost: r.get(2)?,
            price_id,
        });
    }
    Ok(())
}
