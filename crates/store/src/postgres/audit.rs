//! Feeds the audit from PostgreSQL, from one snapshot, row by row.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row, Transaction};

use super::PostgresEngine;
use super::fold::{FOLDED, read_folded};
use super::rows::{counters, id, used};
use crate::call::counters::{COUNTERS, Counter, Counters};
use crate::call::row_hash::{Decided, RowFacts, RowSeal, seal};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::Pots;
use crate::ledger::chain::{ChainLink, Content};
use crate::ledger::entries::{Entry, EntryPage};
use crate::report::AuditReport;
use crate::sums::folded::{PACKED_DAYS, SumSource};
use crate::sums::{SUM_KEY, SUMS, SumKeyRef, SummedUntil, UsageSum};
use crate::verify::{
    ACCOUNT, AccountRow, Audited, AuditedFor, Auditor, CHARGE, CHARGE_COLUMNS, ChargeRow, ENTRY, KEY, KeyRow,
    QUESTIONS, StoredEntry, show,
};

/// New entries are looked for from this many before the last one seen: numbers are given out before
/// they are committed.
const OVERLAP: i64 = 100_000;
/// Holds past their time, by the clock that replicas share: a replica has this long to resolve its
/// own or to be found dead.
const LATE: &str = "SELECT call_id, 'open since before ' || due_at FROM open_hold WHERE due_at + $1 < $2 LIMIT 20";
const LOTS: &str = "SELECT account_id, credit, free, held FROM trial_lot";
const SWEEPS_MS: i64 = 120_000;
/// The reference of the entry that ended the call of a usage row: the second one where a call was
/// opened again.
const REFERENCE: &str = "CASE WHEN again.op_id IS NULL THEN once.reference ELSE again.reference END FROM usage u \
     LEFT JOIN entry once ON once.op_id = u.call_id || '\\x01'::bytea LEFT JOIN entry again ON again.op_id = u.call_id || '\\x04'::bytea";

/// Transactions that may have inserted entries and have not ended.
const WRITERS: &str = "FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
     AND relation = 'entry'::regclass AND mode = 'RowExclusiveLock' AND granted";
const LAST_WRITERS: Duration = Duration::from_secs(10);

type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

impl PostgresEngine {
    /// One thread for whomever: the database has its own.
    pub async fn verify(&self, strict: bool, _: AuditedFor) -> Result<AuditReport, StoreError> {
        let mut audited = self.shared.audited.lock().await;
        self.verify_all(&mut audited, strict).await
    }

    async fn verify_all(&self, audited: &mut Option<Audited>, strict: bool) -> Result<AuditReport, StoreError> {
        let mut link = self.connector.connect().await?;
        let snapshot = snapshot(&mut link.client).await?;
        // What the audit before has learnt is not needed any more, and is not to be gone on from if
        // this one fails.
        *audited = None;
        let mut auditor = Auditor::new(&self.world.random);
        let all = format!("SELECT {ENTRY}, replica FROM entry ORDER BY seq");
        each(&snapshot, &all, &[], |r| stored(&r).map(|row| auditor.entry(&row))).await?;
        each(&snapshot, &format!("SELECT {ACCOUNT} FROM account"), &[], |r| {
            account(&r).map(|row| auditor.account(&row))
        })
        .await?;
        each(&snapshot, &format!("SELECT {KEY} FROM key"), &[], |r| key(&r).map(|row| auditor.key(&row))).await?;
        each(&snapshot, LOTS, &[], |r| lot(&r, &mut auditor)).await?;
        prices(&snapshot, &mut auditor).await?;
        each(&snapshot, "SELECT account_id, call_id FROM usage_backfill", &[], |r| {
            auditor.summed_until = Some(SummedUntil::read(r.try_get(0)?, r.try_get(1)?));
            Ok(())
        })
        .await?;
        let all = format!("SELECT {CHARGE}{COUNTERS}, NULL::text FROM usage u");
        each(&snapshot, &all, &[], |r| charge(&r).map(|row| auditor.usage(&row))).await?;
        let columns: Vec<&str> = SUM_KEY.iter().chain(SUMS.iter()).copied().collect();
        let all = format!("SELECT {} FROM usage_quarter", columns.join(", "));
        let state = snapshot.query_one(&format!("SELECT {FOLDED}"), &[&i64::MIN, &i64::MAX]).await?;
        auditor.folded = read_folded(&state)?;
        each(&snapshot, &all, &[], |r| stored_sum(&r, |of, sum| auditor.sum(of, sum))).await?;
        let zones: Vec<SumSource> = auditor.folded.zones.iter().map(|zone| SumSource::Days(zone.shift)).collect();
        for source in SumSource::FOLDED.into_iter().chain(zones) {
            let folded = |r: Row| stored_sum(&r, |of, sum| auditor.folded_sum(source, of, sum));
            each(&snapshot, &source.all(), &[], folded).await?;
        }
        each(&snapshot, PACKED_DAYS, &[], |r| packed_day(&r, &mut auditor)).await?;
        let of_account = format!("SELECT {CHARGE}{COUNTERS}, {REFERENCE} WHERE u.account_id = $1");
        for account in auditor.doubtful() {
            each(&snapshot, &of_account, &[&account.0.as_slice()], |r| charge(&r).map(|row| auditor.compared(&row)))
                .await?;
        }
        let mut open = Vec::new();
        each(&snapshot, "SELECT call_id, trial, paid FROM open_hold", &[], |r| {
            open.push((CallId(id(&r, 0)?), Pots { trial: r.try_get(1)?, paid: r.try_get(2)? }));
            Ok(())
        })
        .await?;
        auditor.open_holds(&open);
        for (invariant, question) in QUESTIONS {
            ask(&snapshot, &mut auditor, invariant, question, &[]).await?;
        }
        open_tasks(&snapshot, &mut auditor).await?;
        self.late_holds(&snapshot, &mut auditor).await?;
        let report = auditor.finish(strict);
        self.shared.breaches.store(report.breaches.len() as u64, Ordering::Relaxed);
        *audited = Some((auditor, report.last_seq));
        Ok(report)
    }

    pub async fn verify_changed(&self) -> Result<AuditReport, StoreError> {
        let mut audited = self.shared.audited.lock().await;
        if audited.is_none() {
            return self.verify_all(&mut audited, false).await;
        }
        // While the database cannot be reached nothing is looked at, and what the audit knows stays
        // for the next round.
        let mut link = self.connector.connect().await?;
        let snapshot = snapshot(&mut link.client).await?;
        // A round that fails on the way leaves nothing behind, and the next one looks at
        // everything.
        let (mut auditor, after) = audited.take().unwrap_or_default();
        auditor.begin_online();
        let changed = "SELECT DISTINCT account_id FROM entry WHERE seq > $1";
        let entries = format!("SELECT {ENTRY}, replica FROM entry WHERE account_id = $1 AND link > $2 ORDER BY link");
        for row in snapshot.query(changed, &[&after.saturating_sub(OVERLAP)]).await? {
            let account: [u8; 16] = id(&row, 0)?;
            let followed = auditor.followed(AccountId(account));
            let of_account: Params<'_> = &[&account.as_slice(), &followed];
            each(&snapshot, &entries, of_account, |r| stored(&r).map(|row| auditor.entry(&row))).await?;
        }
        let touched = auditor.touched();
        let accounts: Vec<&[u8]> = touched.accounts.iter().map(|a| a.0.as_slice()).collect();
        let sql = format!("SELECT {ACCOUNT} FROM account WHERE id = ANY($1)");
        each(&snapshot, &sql, &[&accounts], |r| account(&r).map(|row| auditor.account(&row))).await?;
        let of_accounts = format!("{LOTS} WHERE account_id = ANY($1)");
        each(&snapshot, &of_accounts, &[&accounts], |r| lot(&r, &mut auditor)).await?;
        let keys: Vec<&[u8]> = touched.keys.iter().map(|k| k.0.as_slice()).collect();
        let sql = format!("SELECT {KEY} FROM key WHERE id = ANY($1)");
        each(&snapshot, &sql, &[&keys], |r| key(&r).map(|row| auditor.key(&row))).await?;
        prices(&snapshot, &mut auditor).await?;
        let mut missing = touched.calls.clone();
        let calls: Vec<&[u8]> = touched.calls.keys().map(|c| c.0.as_slice()).collect();
        let sql = format!("SELECT {CHARGE}{COUNTERS}, {REFERENCE} WHERE u.call_id = ANY($1)");
        each(&snapshot, &sql, &[&calls], |r| {
            let row = charge(&r)?;
            if let Some(expected) = missing.remove(&row.call) {
                auditor.touched_call(row.call, &expected, Some(&row));
            }
            Ok(())
        })
        .await?;
        for (call, expected) in &missing {
            auditor.touched_call(*call, expected, None);
        }
        open_tasks(&snapshot, &mut auditor).await?;
        self.late_holds(&snapshot, &mut auditor).await?;
        let report = auditor.finish_online(&touched);
        // What was found broken stays so until a full audit says otherwise.
        self.shared.breaches.fetch_max(report.breaches.len() as u64, Ordering::Relaxed);
        *audited = Some((auditor, report.last_seq.max(after)));
        Ok(report)
    }

    /// Whether a usage row is the one that was written.
    pub async fn seal_of(&self, account: AccountId, call: CallId) -> Result<RowSeal, StoreError> {
        let sql = format!("SELECT {CHARGE}{COUNTERS}, {REFERENCE} WHERE u.account_id = $1 AND u.call_id = $2");
        let rows = self.rows(&sql, &[&account.0.as_slice(), &call.0.as_slice()]).await?;
        rows.first().map_or(Ok(RowSeal::Missing), |row| charge(row).map(|row| row.seal))
    }

    /// A page of entries.
    pub async fn entries(&self, page: EntryPage) -> Result<Vec<Entry>, StoreError> {
        self.catch_up().await;
        let sql = format!(
            "SELECT {ENTRY}, replica FROM entry WHERE seq > $1 AND ($2::bytea IS NULL OR account_id = $2) AND at >= $3 AND at < $4 \
             AND seq <= $6 ORDER BY seq LIMIT $5"
        );
        let account = page.account.map(|a| a.0);
        let (from, to) = (page.from.unwrap_or(i64::MIN), page.to.unwrap_or(i64::MAX));
        let account = account.as_ref().map(<[u8; 16]>::as_slice);
        let until = page.until.unwrap_or(i64::MAX);
        let rows = self.rows(&sql, &[&page.after, &account, &from, &to, &i64::from(page.limit), &until]).await?;
        rows.iter().map(|r| stored(r).map(|row| Entry::of(&row))).collect()
    }

    /// Numbers are given out before they are committed. Whoever inserts has a lock on the table
    /// from before it has its number until it has ended, so once all who had one after the last
    /// entry was seen are gone, no smaller number can come any more. Nobody waits for this.
    pub async fn last_entry(&self) -> Result<i64, StoreError> {
        self.catch_up().await;
        let rows = self.rows("SELECT coalesce(max(seq), 0) FROM entry", &[]).await?;
        let last = rows.first().ok_or_else(|| StoreError::broken("no answer"))?.try_get(0)?;
        let rows = self.rows(&format!("SELECT DISTINCT virtualtransaction {WRITERS}"), &[]).await?;
        let writers = rows.iter().map(|r| r.try_get(0)).collect::<Result<Vec<String>, _>>()?;
        let left = format!("SELECT 1 {WRITERS} AND virtualtransaction = ANY ($1) LIMIT 1");
        let until = tokio::time::Instant::now() + LAST_WRITERS;
        while !self.rows(&left, &[&writers]).await?.is_empty() {
            if tokio::time::Instant::now() > until {
                return Err(StoreError::away("somebody writes to the ledger and does not come to an end"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(last)
    }

    async fn late_holds(&self, snapshot: &Transaction<'_>, auditor: &mut Auditor) -> Result<(), StoreError> {
        let silence = i64::try_from(self.options.replica_silence.as_millis()).unwrap_or(i64::MAX);
        ask(snapshot, auditor, "I7", LATE, &[&silence.saturating_mul(2).saturating_add(SWEEPS_MS), &self.clock.sure()])
            .await
    }
}

async fn snapshot(client: &mut tokio_postgres::Client) -> Result<Transaction<'_>, StoreError> {
    let build = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    Ok(build.start().await?)
}

/// Every row of a statement, one after another.
async fn each(
    snapshot: &Transaction<'_>,
    sql: &str,
    params: Params<'_>,
    mut work: impl FnMut(Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut rows = pin!(snapshot.query_raw(sql, params.iter().copied()).await?);
    while let Some(row) = rows.try_next().await? {
        work(row)?;
    }
    Ok(())
}

async fn ask(
    snapshot: &Transaction<'_>,
    auditor: &mut Auditor,
    invariant: &'static str,
    question: &str,
    params: Params<'_>,
) -> Result<(), StoreError> {
    each(snapshot, question, params, |row| {
        let id: Option<Vec<u8>> = row.try_get(0)?;
        auditor.breach(invariant, show(id.as_deref(), row.try_get(1)?));
        Ok(())
    })
    .await
}

async fn open_tasks(snapshot: &Transaction<'_>, auditor: &mut Auditor) -> Result<(), StoreError> {
    each(snapshot, "SELECT call_id, account_id FROM task WHERE state < 5", &[], |r| {
        auditor.open_task(CallId(id(&r, 0)?), AccountId(id(&r, 1)?));
        Ok(())
    })
    .await
}

/// All prices the audit does not know yet.
async fn prices(snapshot: &Transaction<'_>, auditor: &mut Auditor) -> Result<(), StoreError> {
    each(snapshot, "SELECT id, json FROM price", &[], |r| {
        let price: [u8; 16] = id(&r, 0)?;
        if auditor.needs_price(&price) {
            auditor.price(price, Some(r.try_get(1)?));
        }
        Ok(())
    })
    .await
}

fn stored(r: &Row) -> Result<StoredEntry<'_>, StoreError> {
    Ok(StoredEntry {
        seq: r.try_get(0)?,
        content: Content {
            op_id: r.try_get(1)?,
            kind: r.try_get::<_, i16>(2)?.into(),
            account: r.try_get(3)?,
            key: r.try_get(4)?,
            trial: r.try_get(5)?,
            paid: r.try_get(6)?,
            take_trial: r.try_get(7)?,
            take_paid: r.try_get(8)?,
            at: r.try_get(9)?,
            price_id: r.try_get(10)?,
            model: r.try_get(11)?,
            endpoint: r.try_get(12)?,
            expires_at: r.try_get(13)?,
            paid_only: r.try_get(14)?,
            reference: r.try_get(15)?,
            actor: r.try_get(16)?,
            reason: r.try_get(17)?,
            lots: r.try_get(18)?,
            replica: r.try_get(21)?,
        },
        link: r.try_get(19)?,
        hash: r.try_get(20)?,
    })
}

fn account(r: &Row) -> Result<AccountRow, StoreError> {
    let head: Option<&[u8]> = r.try_get(6)?;
    Ok(AccountRow {
        id: AccountId(id(r, 0)?),
        available: Pots { trial: r.try_get(1)?, paid: r.try_get(2)? },
        held: Pots { trial: r.try_get(3)?, paid: r.try_get(4)? },
        end: ChainLink { number: r.try_get(5)?, hash: head.and_then(|h| h.try_into().ok()).unwrap_or_default() },
        used: used(r, 7)?,
        topped_up: r.try_get(11)?,
    })
}

fn key(r: &Row) -> Result<KeyRow, StoreError> {
    Ok(KeyRow { id: KeyId(id(r, 0)?), spent: r.try_get(1)?, held: r.try_get(2)?, used: used(r, 3)? })
}

fn lot(r: &Row, auditor: &mut Auditor) -> Result<(), StoreError> {
    auditor.lot(AccountId(id(r, 0)?), &id(r, 1)?, r.try_get(2)?, r.try_get(3)?);
    Ok(())
}

/// By the columns of [`SUM_KEY`], and the sums.
fn stored_sum(r: &Row, then: impl FnOnce(&SumKeyRef<'_>, &UsageSum)) -> Result<(), StoreError> {
    let id = |place| r.try_get::<_, Option<&[u8]>>(place).map(Option::unwrap_or_default);
    let of = SumKeyRef {
        account: id(0)?,
        quarter: r.try_get(1)?,
        key: id(2)?,
        model: r.try_get(3)?,
        endpoint: r.try_get(4)?,
        ending: r.try_get::<_, i16>(5)?.into(),
        provider: r.try_get(6)?,
        upstream_model: r.try_get(7)?,
    };
    let mut sum = UsageSum::default();
    for (place, value) in (SUM_KEY.len()..).zip(&mut sum.0) {
        *value = r.try_get(place)?;
    }
    then(&of, &sum);
    Ok(())
}

fn packed_day(r: &Row, auditor: &mut Auditor) -> Result<(), StoreError> {
    let of = SumKeyRef {
        account: r.try_get(0)?,
        quarter: r.try_get(1)?,
        key: r.try_get(2)?,
        model: r.try_get(3)?,
        endpoint: r.try_get(4)?,
        ending: r.try_get::<_, i16>(5)?.into(),
        provider: r.try_get(6)?,
        upstream_model: r.try_get(7)?,
    };
    auditor.packed_day(&of, r.try_get(8)?);
    Ok(())
}

fn charge(r: &Row) -> Result<ChargeRow, StoreError> {
    let price: Option<&[u8]> = r.try_get(2)?;
    let counters = counters(r, CHARGE_COLUMNS)?;
    let (charge, write_off, ended_at) = (r.try_get(3)?, r.try_get(4)?, r.try_get(8)?);
    let facts = RowFacts {
        account: r.try_get(0)?,
        call: r.try_get(1)?,
        at: r.try_get(7)?,
        ended_at,
        endpoint: r.try_get(9)?,
        model: r.try_get(10)?,
        provider: r.try_get(11)?,
        upstream_model: r.try_get(12)?,
        ending: r.try_get::<_, i16>(13)?.into(),
        reason: r.try_get(14)?,
        status: r.try_get::<_, i32>(15)?.into(),
        counters,
        estimated: r.try_get(16)?,
        raw_usage: r.try_get(18)?,
        attempts: r.try_get(19)?,
        first_byte_ms: r.try_get(20)?,
        tier: r.try_get(21)?,
        dropped: r.try_get(22)?,
        tools: r.try_get::<_, Option<&str>>(24)?.map(Cow::Borrowed),
        cost: r.try_get(25)?,
    };
    let decided = Decided { key: r.try_get(6)?, price_id: price, hold: r.try_get(17)?, charge, write_off };
    let own: Option<&[u8]> = r.try_get(23)?;
    Ok(ChargeRow {
        account: AccountId(id(r, 0)?),
        call: CallId(id(r, 1)?),
        price_id: price.and_then(|p| p.try_into().ok()),
        charge,
        write_off,
        refunded: r.try_get(5)?,
        counters: Counters::from_columns(counters).with_tools(facts.tools.as_deref()),
        ended_at,
        summed: (SumKeyRef::of(&facts, decided.key).digest(), UsageSum::of(&facts, charge, r.try_get(5)?, write_off)),
        hash: own.and_then(|hash| hash.try_into().ok()),
        seal: seal(&facts, &decided, r.try_get(CHARGE_COLUMNS + Counter::COUNT)?, own),
    })
}
