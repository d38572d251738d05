//! Feeds the audit from PostgreSQL, from one snapshot, a page of rows at a time.

use std::sync::atomic::Ordering;

use tokio_postgres::{IsolationLevel, Row, Transaction};

use super::Engine;
use super::rows::{counters, id, used};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::Pots;
use crate::report::Report;
use crate::verify::{Auditor, ChargeRow, ENTRY, EntryRow, QUESTIONS, UsedRow, show};

const PAGE: i64 = 5_000;

impl Engine {
    pub async fn verify(&self) -> Result<Report, StoreError> {
        let now = self.now();
        let mut link = self.connector.connect().await?;
        let snapshot = link
            .client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()
            .await?;
        let mut auditor = Auditor::default();
        let from = snapshot.query_opt("SELECT value FROM meta WHERE name = 'limits_from'", &[]).await?;
        auditor.terms.limits_from = from.map_or(Ok(0), |r| r.try_get(0))?;
        entries(&snapshot, &mut auditor).await?;
        terms(&snapshot, &mut auditor).await?;
        charges(&snapshot, &mut auditor).await?;
        for (invariant, question) in QUESTIONS {
            for row in snapshot.query(question, &[]).await? {
                // A question about the whole ledger has no id.
                let id: Option<Vec<u8>> = row.try_get(0).ok().flatten();
                auditor.breach(invariant, show(id.as_deref(), row.try_get(1)?));
            }
        }
        let counts = "SELECT (SELECT count(*) FROM account), (SELECT count(*) FROM usage)";
        let counts = snapshot.query_one(counts, &[]).await?;
        let count = |i| counts.try_get::<_, i64>(i).map(i64::unsigned_abs);
        let report = auditor.finish(count(0)?, count(1)?, now);
        self.shared.breaches.store(report.breaches.len() as u64, Ordering::Relaxed);
        Ok(report)
    }
}

async fn entries(snapshot: &Transaction<'_>, auditor: &mut Auditor) -> Result<(), StoreError> {
    let sql = format!("SELECT {ENTRY} FROM entry WHERE seq > $1 ORDER BY seq LIMIT $2");
    let statement = snapshot.prepare(&sql).await?;
    let mut after = 0i64;
    loop {
        let rows = snapshot.query(&statement, &[&after, &PAGE]).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.try_get(0)?;
        for r in &rows {
            let call: Option<&[u8]> = r.try_get(3)?;
            let key: Option<&[u8]> = r.try_get(10)?;
            let row = EntryRow {
                seq: r.try_get(0)?,
                kind: r.try_get::<_, i16>(1)?.into(),
                account: AccountId(id(r, 2)?),
                call: call.and_then(CallId::from_slice),
                pots: Pots { trial: r.try_get(4)?, paid: r.try_get(5)? },
                take: Pots { trial: r.try_get(6)?, paid: r.try_get(7)? },
                at: r.try_get(8)?,
                expires_at: r.try_get(9)?,
                key: key.and_then(KeyId::from_slice),
                paid_only: r.try_get::<_, Option<bool>>(11)?.unwrap_or(false),
                lots: r.try_get(12)?,
                credit: None,
                settling: false,
            };
            auditor.entry(&row.identified(r.try_get(13)?));
        }
    }
}

/// Trial credit that expires, and what accounts and keys have used in their day and month.
async fn terms(snapshot: &Transaction<'_>, auditor: &mut Auditor) -> Result<(), StoreError> {
    for r in &snapshot.query("SELECT account_id, credit, free, held FROM trial_lot", &[]).await? {
        auditor.lot(AccountId(id(r, 0)?), &id(r, 1)?, r.try_get(2)?, r.try_get(3)?);
    }
    for table in ["account", "key"] {
        let sql =
            format!("SELECT id, day, day_used, month, month_used FROM {table} WHERE id > $1 ORDER BY id LIMIT $2");
        let statement = snapshot.prepare(&sql).await?;
        let mut after: Vec<u8> = Vec::new();
        loop {
            let rows = snapshot.query(&statement, &[&after, &PAGE]).await?;
            let Some(last) = rows.last() else { break };
            after = last.try_get(0)?;
            for r in &rows {
                let whose = if table == "key" { Ok(KeyId(id(r, 0)?)) } else { Err(AccountId(id(r, 0)?)) };
                auditor.used(&UsedRow { whose, used: used(r, 1)? });
            }
        }
    }
    Ok(())
}

async fn charges(snapshot: &Transaction<'_>, auditor: &mut Auditor) -> Result<(), StoreError> {
    let sql = "SELECT call_id, price_id, charge + write_off, input, cache_read, cache_write_5m, cache_write_1h, \
               image_input, audio_input, output, reasoning, image_output, audio_output, calls, seconds FROM usage \
               WHERE charge + write_off > 0 AND call_id > $1 ORDER BY call_id LIMIT $2";
    let statement = snapshot.prepare(sql).await?;
    let mut after: Vec<u8> = Vec::new();
    loop {
        let rows = snapshot.query(&statement, &[&after, &PAGE]).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.try_get(0)?;
        for r in &rows {
            charge(snapshot, auditor, r).await?;
        }
    }
}

async fn charge(snapshot: &Transaction<'_>, auditor: &mut Auditor, r: &Row) -> Result<(), StoreError> {
    let price_id: Option<&[u8]> = r.try_get(1)?;
    let price_id: [u8; 16] = price_id.and_then(|p| p.try_into().ok()).unwrap_or_default();
    if auditor.needs_price(&price_id) {
        let json = snapshot.query_opt("SELECT json FROM price WHERE id = $1", &[&price_id.as_slice()]).await?;
        auditor.price(price_id, json.as_ref().map(|j| j.try_get(0)).transpose()?);
    }
    auditor.charge(&ChargeRow { call: CallId(id(r, 0)?), counters: counters(r, 3)?, cost: r.try_get(2)?, price_id });
    Ok(())
}
