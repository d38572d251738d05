//! Reading: a few connections of their own, on blocking threads, so that reports never hold up the
//! ledger.

pub(super) mod audit;
mod changed_keys;
pub(super) mod events;
pub(super) mod give_way;
pub(super) mod whole;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use tokio::sync::Semaphore;
use tollgate_catalog::Money;

use super::books::AccountBalance;
use super::lock;
use crate::account::limits::{Limits, Used};
use crate::account::lots::{Lot, Lots};
use crate::account::{Account, Key, KeyAndAccount, KeyOrigin, KeyScope, in_groups};
use crate::call::counters::{COUNTERS, Columns, Counter, Counters};
use crate::call::wish::{CallEntry, end_of_entries};
use crate::call::{Ending, StoredReply, UsagePage, UsageRow};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId, PersonId};
use crate::ledger::{EntryKind, Pots};
use crate::margin::{MarginRow, first_id};

/// So many reads at a time; more wait.
const READERS: usize = 4;

pub(super) struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
    /// Readings so far.
    asked: AtomicU64,
    /// Read on the thread that asks: in a simulation there is no other.
    here: bool,
}

/// A row of `idem`.
pub(super) struct StoredIdem {
    pub fingerprint: [u8; 32],
    pub call: CallId,
    pub done: bool,
    pub reply: Option<StoredReply>,
}

impl Readers {
    pub fn new(path: PathBuf, here: bool) -> Self {
        Self { path, idle: Arc::default(), permits: Arc::new(Semaphore::new(READERS)), asked: AtomicU64::new(0), here }
    }

    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let permit = self.permits.clone().acquire_owned().await.map_err(StoreError::away)?;
        let (idle, path) = (self.idle.clone(), self.path.clone());
        let reading = move || {
            let _permit = permit;
            let free = lock(&idle).pop();
            let conn = match free {
                Some(conn) => conn,
                None => connect(&path)?,
            };
            let result = work(&conn);
            lock(&idle).push(conn);
            result
        };
        if self.here {
            tokio::task::yield_now().await;
            return reading();
        }
        tokio::task::spawn_blocking(reading).await.map_err(StoreError::away)?
    }

    /// Where another thread may read; none where there is no other.
    pub fn beside(&self) -> Option<PathBuf> {
        (!self.here).then(|| self.path.clone())
    }

    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        self.read(move |c| Ok(account(c, id)?)).await
    }

    pub async fn accounts(&self, after: Option<AccountId>, limit: u32) -> Result<Vec<Account>, StoreError> {
        let after = after.map_or([0; 16], |a| a.0);
        self.read(move |c| {
            let sql = format!("SELECT {ACCOUNT} FROM account a WHERE a.id > ?1 ORDER BY a.id LIMIT ?2");
            let mut s = c.prepare_cached(&sql)?;
            let rows = s.query_map(params![after, limit], |r| read_account(r, 0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub async fn key(&self, id: KeyId) -> Result<Option<Key>, StoreError> {
        self.read(move |c| Ok(key(c, id)?)).await
    }

    pub async fn keys(&self, account: AccountId) -> Result<Vec<Key>, StoreError> {
        self.read(move |c| {
            let sql = format!("SELECT {KEY} FROM key k WHERE k.account_id = ?1 ORDER BY k.id");
            let mut s = c.prepare_cached(&sql)?;
            let rows = s.query_map(params![account.0], |r| read_key(r, 0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub async fn key_by_hash(&self, hash: [u8; 32]) -> Result<Option<KeyAndAccount>, StoreError> {
        self.read(move |c| {
            let sql =
                format!("SELECT {KEY}, {ACCOUNT} FROM key k JOIN account a ON a.id = k.account_id WHERE k.hash = ?1");
            if let Some(found) = c.prepare_cached(&sql)?.query_row(params![hash], read_key_and_account).optional()? {
                return Ok(Some(found));
            }
            let sql = format!("SELECT {KEY}, {ACCOUNT}, {FORMER} WHERE f.hash = ?1");
            Ok(c.prepare_cached(&sql)?.query_row(params![hash], read_former).optional()?)
        })
        .await
    }

    /// Which of these calls have no usage row.
    pub async fn without_usage(&self, calls: Vec<(AccountId, CallId)>) -> Result<HashSet<CallId>, StoreError> {
        self.read(move |c| {
            // Without a transaction each look would be one.
            let snapshot = c.unchecked_transaction()?;
            let mut row = snapshot.prepare("SELECT 1 FROM usage WHERE account_id = ?1 AND call_id = ?2")?;
            let mut without = HashSet::new();
            for (account, call) in calls {
                if !row.exists(params![account.0, call.0])? {
                    without.insert(call);
                }
            }
            Ok(without)
        })
        .await
    }

    pub async fn usage(&self, account: Option<AccountId>, page: UsagePage) -> Result<Vec<UsageRow>, StoreError> {
        let before = page.before.map_or([0xff; 16], |c| c.0);
        self.read(move |c| {
            let accounts = match account {
                Some(account) => vec![account.0],
                None => {
                    let mut ids = c.prepare_cached("SELECT id FROM account")?;
                    ids.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?
                }
            };
            let sql = format!(
                "SELECT {USAGE}{COUNTERS}, NULL FROM usage u WHERE u.account_id = ?3 AND u.call_id < ?1 \
                 ORDER BY u.call_id DESC LIMIT ?2"
            );
            // All accounts at once is for operators and rare; an index for it would cost every
            // call.
            let mut newest = c.prepare_cached(&sql)?;
            let mut rows: Vec<UsageRow> = Vec::new();
            for account in accounts {
                for row in newest.query_map(params![before, page.limit, account], read_usage)? {
                    rows.push(row?);
                }
                rows.sort_unstable_by_key(|row| std::cmp::Reverse(row.call));
                rows.truncate(page.limit as usize);
            }
            Ok(rows)
        })
        .await
    }

    pub async fn usage_of(&self, account: AccountId, call: CallId) -> Result<Option<UsageRow>, StoreError> {
        self.read(move |c| {
            let sql = format!(
                "SELECT {USAGE}{COUNTERS}, p.json FROM usage u LEFT JOIN price p ON p.id = u.price_id \
                 WHERE u.account_id = ?1 AND u.call_id = ?2"
            );
            Ok(c.prepare_cached(&sql)?.query_row(params![account.0, call.0], read_usage).optional()?)
        })
        .await
    }

    pub async fn margins(&self, from_ms: i64, to_ms: i64) -> Result<Vec<MarginRow>, StoreError> {
        let sql = "SELECT at / 86400000 AS day, model, provider, upstream_model, count(*), sum(charge - refunded), \
                   sum(CASE WHEN cost IS NULL THEN 1 ELSE 0 END), \
                   sum(CASE WHEN cost IS NULL THEN charge - refunded ELSE 0 END), coalesce(sum(cost), 0) \
                   FROM usage WHERE call_id >= ?1 AND call_id < ?2 AND (charge > 0 OR cost > 0) \
                   GROUP BY at / 86400000, model, provider, upstream_model ORDER BY 1, 2, 3, 4";
        let one = |r: &Row<'_>| {
            Ok(MarginRow {
                day: r.get(0)?,
                model: r.get(1)?,
                provider: r.get(2)?,
                upstream_model: r.get(3)?,
                calls: r.get(4)?,
                sold: money(r, 5)?,
                cost_unknown: r.get(6)?,
                sold_unknown: money(r, 7)?,
                cost: money(r, 8)?,
            })
        };
        self.read(move |c| {
            let mut statement = c.prepare_cached(sql)?;
            let rows = statement.query_map(params![first_id(from_ms), first_id(to_ms)], one)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    pub async fn entries_of(&self, account: AccountId, call: CallId) -> Result<Vec<CallEntry>, StoreError> {
        self.read(move |c| {
            let sql = "SELECT kind, at, trial, paid, take_trial, take_paid, CASE WHEN kind IN (1, 2, 3) AND expires_at IS NOT NULL \
                       THEN (SELECT at FROM usage WHERE account_id = ?3 AND call_id = ?1) END \
                       FROM entry WHERE op_id >= ?1 AND op_id < ?2 AND account_id = ?3 ORDER BY seq";
            let mut s = c.prepare_cached(sql)?;
            let mut rows = s.query(params![call.0, end_of_entries(&call.0), account.0])?;
            let mut entries = Vec::new();
            while let Some(r) = rows.next()? {
                let pots = |at| Ok::<_, rusqlite::Error>(Pots { trial: r.get(at)?, paid: r.get(at + 1)? });
                // A call that is one entry was held when it came.
                if let Some(held_at) = r.get(6)? {
                    entries.extend(CallEntry::new(EntryKind::Hold as i64, held_at, pots(2)?, Pots::default()));
                }
                entries.extend(CallEntry::new(r.get(0)?, r.get(1)?, pots(2)?, pots(4)?));
            }
            Ok(entries)
        })
        .await
    }

    pub async fn idem(&self, account: AccountId, hash: [u8; 32]) -> Result<Option<StoredIdem>, StoreError> {
        self.read(move |c| {
            let sql = "SELECT fingerprint, call_id, done, status, content_type, reply FROM idem \
                       WHERE account_id = ?1 AND key_hash = ?2";
            let found = c.prepare_cached(sql)?.query_row(params![account.0, hash], |r| {
                let reply = match r.get::<_, Option<Vec<u8>>>(5)? {
                    Some(body) => Some(StoredReply { status: r.get(3)?, content_type: r.get(4)?, body: body.into() }),
                    None => None,
                };
                Ok(StoredIdem { fingerprint: r.get(0)?, call: CallId(r.get(1)?), done: r.get(2)?, reply })
            });
            Ok(found.optional()?)
        })
        .await
    }
}

fn connect(path: &std::path::Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.execute_batch("PRAGMA busy_timeout = 1000; PRAGMA query_only = ON; PRAGMA temp_store = MEMORY;")?;
    Ok(conn)
}

pub(super) fn account(c: &Connection, id: AccountId) -> rusqlite::Result<Option<Account>> {
    let sql = format!("SELECT {ACCOUNT} FROM account a WHERE a.id = ?1");
    c.prepare_cached(&sql)?.query_row(params![id.0], |r| read_account(r, 0)).optional()
}

/// An account as the books have it.
pub(super) fn account_balance(c: &Connection, id: AccountId) -> rusqlite::Result<Option<AccountBalance>> {
    let Some(found) = account(c, id)? else { return Ok(None) };
    let mut last = c.prepare_cached("SELECT last_at FROM account WHERE id = ?1")?;
    let last_at = last.query_row(params![id.0], |r| r.get(0))?;
    Ok(Some(AccountBalance::of(&found, lots(c, id)?, last_at)))
}

pub(super) fn lots(c: &Connection, id: AccountId) -> rusqlite::Result<Lots> {
    let sql = "SELECT credit, reference, expires_at, free, held, lapses FROM trial_lot \
               WHERE account_id = ?1 AND free + held > 0";
    let mut statement = c.prepare_cached(sql)?;
    let rows = statement.query_map(params![id.0], |r| {
        Ok(Lot {
            credit: r.get(0)?,
            reference: r.get::<_, String>(1)?.into(),
            expires_at: r.get(2)?,
            free: r.get(3)?,
            held: r.get(4)?,
            lapses: r.get(5)?,
        })
    })?;
    Ok(Lots::new(rows.collect::<Result<Vec<_>, _>>()?))
}

pub(super) fn key(c: &Connection, id: KeyId) -> rusqlite::Result<Option<Key>> {
    let sql = format!("SELECT {KEY} FROM key k WHERE k.id = ?1");
    c.prepare_cached(&sql)?.query_row(params![id.0], |r| read_key(r, 0)).optional()
}

const ACCOUNT: &str = "a.id, a.name, a.created_at, a.changed_at, a.trial_available, a.paid_available, a.trial_held, \
     a.paid_held, a.topped_up, a.groups, a.closed_at, a.day_limit, a.month_limit, a.day, a.day_used, a.month, a.month_used, \
     a.webhook_url, a.members_see_all, a.ended_at, a.erased_at";
const KEY: &str = "k.id, k.account_id, k.hash, k.prefix, k.name, k.created_at, k.changed_at, k.expires_at, k.revoked_at, \
     k.models, k.cidrs, k.cap, k.spent, k.held, k.day_limit, k.month_limit, k.day, k.day_used, k.month, k.month_used, \
     k.scope, (SELECT max(f.until) FROM key_former f WHERE f.key_id = k.id), k.person_id, k.origin";
const KEY_COLUMNS: usize = 24;
const ACCOUNT_COLUMNS: usize = 21;
pub(super) const USAGE: &str = "u.call_id, u.account_id, u.key_id, u.at, u.ended_at, u.endpoint, u.model, u.provider, \
     u.upstream_model, u.ending, u.reason, u.status, u.estimated, u.hold, u.charge, u.refunded, u.write_off, \
     u.raw_usage, u.attempts, u.first_byte_ms, u.tier, u.dropped, u.tools, u.cost";
const USAGE_COLUMNS: usize = 24;

fn money(r: &Row<'_>, i: usize) -> rusqlite::Result<Money> {
    r.get(i).map(Money::from_nano)
}

fn limit(r: &Row<'_>, i: usize) -> rusqlite::Result<Option<Money>> {
    Ok(r.get::<_, Option<i64>>(i)?.map(Money::from_nano))
}

pub(super) fn used(r: &Row<'_>, at: usize) -> rusqlite::Result<Used> {
    Ok(Used { day_number: r.get(at)?, day: money(r, at + 1)?, month_number: r.get(at + 2)?, month: money(r, at + 3)? })
}

fn list(r: &Row<'_>, i: usize) -> rusqlite::Result<Option<Vec<String>>> {
    let text: Option<String> = r.get(i)?;
    Ok(text.and_then(|t| serde_json::from_str(&t).ok()))
}

fn read_account(r: &Row<'_>, at: usize) -> rusqlite::Result<Account> {
    Ok(Account {
        id: AccountId(r.get(at)?),
        name: r.get(at + 1)?,
        created_at: r.get(at + 2)?,
        changed_at: r.get(at + 3)?,
        trial_available: money(r, at + 4)?,
        paid_available: money(r, at + 5)?,
        trial_held: money(r, at + 6)?,
        paid_held: money(r, at + 7)?,
        topped_up: r.get(at + 8)?,
        groups: in_groups(list(r, at + 9)?.unwrap_or_default()),
        suspended_at: r.get(at + 10)?,
        limits: Limits { total: None, day: limit(r, at + 11)?, month: limit(r, at + 12)? },
        used: used(r, at + 13)?,
        webhook_url: r.get(at + 17)?,
        members_see_all: r.get::<_, Option<bool>>(at + 18)?.unwrap_or(false),
        closed_at: r.get(at + 19)?,
        erased_at: r.get(at + 20)?,
    })
}

fn read_key(r: &Row<'_>, at: usize) -> rusqlite::Result<Key> {
    Ok(Key {
        id: KeyId(r.get(at)?),
        account: AccountId(r.get(at + 1)?),
        hash: r.get(at + 2)?,
        prefix: r.get(at + 3)?,
        name: r.get(at + 4)?,
        created_at: r.get(at + 5)?,
        changed_at: r.get(at + 6)?,
        expires_at: r.get(at + 7)?,
        revoked_at: r.get(at + 8)?,
        models: list(r, at + 9)?,
        cidrs: list(r, at + 10)?,
        limits: Limits { total: limit(r, at + 11)?, day: limit(r, at + 14)?, month: limit(r, at + 15)? },
        spent: money(r, at + 12)?,
        held: money(r, at + 13)?,
        used: used(r, at + 16)?,
        scope: KeyScope::of(r.get::<_, Option<String>>(at + 20)?.as_deref()),
        former_until: r.get(at + 21)?,
        person: r.get::<_, Option<[u8; 16]>>(at + 22)?.map(PersonId),
        origin: KeyOrigin::of(r.get::<_, Option<String>>(at + 23)?.as_deref()),
    })
}

fn read_key_and_account(r: &Row<'_>) -> rusqlite::Result<KeyAndAccount> {
    Ok(KeyAndAccount { key: read_key(r, 0)?, account: read_account(r, KEY_COLUMNS)? })
}

/// Secrets that were changed for others, beside their keys and accounts.
const FORMER: &str =
    "f.hash, f.until FROM key_former f JOIN key k ON k.id = f.key_id JOIN account a ON a.id = k.account_id";

/// A key as it is for who shows the secret of before: it ends when that ends.
fn read_former(r: &Row<'_>) -> rusqlite::Result<KeyAndAccount> {
    let found = read_key_and_account(r)?;
    let at = KEY_COLUMNS + ACCOUNT_COLUMNS;
    Ok(found.by_former(r.get(at)?, r.get(at + 1)?))
}

/// As they are selected by [`COUNTERS`]. NULL: the row is older than the counter.
pub(super) fn counters(r: &Row<'_>, at: usize) -> rusqlite::Result<Columns> {
    let mut columns = [0; Counter::COUNT];
    for (i, column) in columns.iter_mut().enumerate() {
        *column = r.get::<_, Option<i64>>(at + i)?.unwrap_or_default();
    }
    Ok(columns)
}

pub(super) fn read_usage(r: &Row<'_>) -> rusqlite::Result<UsageRow> {
    let counters = Counters::from_columns(counters(r, USAGE_COLUMNS)?);
    let price: Option<String> = r.get(USAGE_COLUMNS + Counter::COUNT)?;
    Ok(UsageRow {
        call: CallId(r.get(0)?),
        account: AccountId(r.get(1)?),
        key: KeyId(r.get(2)?),
        at: r.get(3)?,
        ended_at: r.get(4)?,
        endpoint: r.get(5)?,
        model: r.get(6)?,
        provider: r.get(7)?,
        upstream_model: r.get(8)?,
        ending: Ending::from_code(r.get(9)?),
        reason: r.get(10)?,
        status: r.get(11)?,
        counters: counters.with_tools(r.get::<_, Option<String>>(22)?.as_deref()),
        estimated: r.get(12)?,
        hold: money(r, 13)?,
        charge: money(r, 14)?,
        refunded: money(r, 15)?,
        write_off: money(r, 16)?,
        raw_usage: r.get(17)?,
        attempts: r.get(18)?,
        first_byte_ms: r.get(19)?,
        tier: r.get(20)?,
        dropped: r.get(21)?,
        cost: limit(r, 23)?,
        price: price.and_then(|p| serde_json::from_str(&p).ok()),
    })
}
