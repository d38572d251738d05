//! Accounts, keys, credit and usage on PostgreSQL: plain statements, each its own transaction.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use tollgate_catalog::Money;

use super::PostgresEngine;
use super::rows::{self, ACCOUNT, FORMER, KEY, USAGE};
use crate::account::limits::Used;
use crate::account::{
    Account, Credit, CreditKind, Credited, Key, KeyAndAccount, KeyOrigin, NewAccount, NewKey, Pot, hash_secret,
    in_groups,
};
use crate::call::counters::COUNTERS;
use crate::call::wish::{CallEntry, end_of_entries};
use crate::call::{UsagePage, UsageRow};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::bounds;
use crate::ledger::{self, EntryKind, Pots, op_id};
use crate::margin::{MarginRow, first_id};
use crate::operator::{Attribution, AuditRow};

/// The longest a statement of its own may take; what sweeps a large table needs some of it.
pub(super) const READ_TIME: Duration = Duration::from_secs(30);

pub(super) type SqlParam<'a> = &'a (dyn ToSql + Sync);

impl PostgresEngine {
    pub(super) async fn rows(&self, sql: &str, params: &[SqlParam<'_>]) -> Result<Vec<Row>, StoreError> {
        self.rows_within(READ_TIME, sql, params).await
    }

    /// A server that stands still keeps its connections and says nothing: nobody waits for it for
    /// ever.
    pub(super) async fn rows_within(
        &self,
        time: Duration,
        sql: &str,
        params: &[SqlParam<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.shared.queries.fetch_add(1, Ordering::Relaxed);
        let asked = async {
            let link = self.connector.reader().await?;
            Ok(link.client.query(sql, params).await?)
        };
        tokio::time::timeout(time, asked).await.map_err(|_| StoreError::away("the database does not answer"))?
    }

    /// A statement that may have to wait for a row in other hands.
    pub(super) async fn change(&self, sql: &str, params: &[SqlParam<'_>]) -> Result<Vec<Row>, StoreError> {
        self.shared.queries.fetch_add(1, Ordering::Relaxed);
        let asked = async {
            let link = self.connector.changer().await?;
            Ok(link.client.query(sql, params).await?)
        };
        tokio::time::timeout(READ_TIME, asked).await.map_err(|_| StoreError::away("the database does not answer"))?
    }

    /// Waits until everything queued so far is applied: a caller reads what it wrote.
    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        let until = tokio::time::Instant::now() + self.options.hold_deadline;
        let queued = self.shared.queue.pushed();
        while self.shared.queue.durable() < queued {
            if tokio::time::Instant::now() > until {
                return Err(StoreError::away("the commit takes too long"));
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// The same, for whoever only reads; not while the database takes nothing, for what it has
    /// stays readable.
    pub(super) async fn catch_up(&self) {
        if !self.shared.down.load(Ordering::Acquire)
            && let Err(error) = self.flush().await
        {
            tracing::warn!(%error, "reading without what is still to be written");
        }
    }

    pub async fn create_account(&self, new: NewAccount, done: Attribution) -> Result<Account, StoreError> {
        let id = new.id.unwrap_or_else(|| self.ids.account());
        let groups = in_groups(new.groups);
        let now = self.now();
        let row = AuditRow::new(now, &done, "account.create", &id.to_string(), Some(id));
        let row = row.map(|row| row.detail(&format!("name: {}; groups: {}", new.name, groups.join(","))));
        let groups = serde_json::to_string(&groups).map_err(StoreError::broken)?;
        let sql = "INSERT INTO account (id, name, created_at, changed_at, groups, day_limit, month_limit) \
                   VALUES ($1, $2, $3, tollgate_now(), $4, $5, $6) ON CONFLICT DO NOTHING RETURNING id";
        let (day, month) = (new.limits.day.map(Money::nano), new.limits.month.map(Money::nano));
        self.noted(sql, &[&id.0.as_slice(), &new.name, &now, &groups, &day, &month], row).await?;
        self.account(id).await?.ok_or_else(|| StoreError::broken("a new account is gone"))
    }

    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        let sql = format!("SELECT {ACCOUNT} FROM account a WHERE a.id = $1");
        let rows = self.rows(&sql, &[&id.0.as_slice()]).await?;
        rows.first().map(|r| rows::account(r, 0, self.now())).transpose()
    }

    pub async fn accounts(&self, after: Option<AccountId>, limit: u32) -> Result<Vec<Account>, StoreError> {
        let after = after.map_or([0; 16], |a| a.0);
        let sql = format!("SELECT {ACCOUNT} FROM account a WHERE a.id > $1 ORDER BY a.id LIMIT $2");
        let rows = self.rows(&sql, &[&after.as_slice(), &i64::from(limit)]).await?;
        rows.iter().map(|r| rows::account(r, 0, self.now())).collect()
    }

    pub async fn groups_in_use(&self) -> Result<Vec<(Vec<String>, u64)>, StoreError> {
        let rows = self.rows("SELECT groups, count(*) FROM account GROUP BY groups", &[]).await?;
        let read = |r: &Row| {
            let groups = serde_json::from_str(r.try_get(0)?).unwrap_or_default();
            Ok((in_groups(groups), r.try_get::<_, i64>(1)?.unsigned_abs()))
        };
        rows.iter().map(read).collect()
    }

    pub async fn credit(&self, credit: Credit, request: Option<String>) -> Result<Credited, StoreError> {
        let now = self.now();
        credit.check(now)?;
        let amount = credit.amount.nano();
        let (kind, call, id) = match credit.kind {
            CreditKind::TopUp => (EntryKind::TopUp, None, ledger::credit_op_id(&credit.id)),
            CreditKind::Adjust => (EntryKind::Adjust, None, ledger::credit_op_id(&credit.id)),
            CreditKind::Refund { call } => (EntryKind::Refund, Some(call), op_id(&call.0, ledger::CLASS_REFUND)),
        };
        let sql = "SELECT tollgate_credit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let params: [SqlParam<'_>; 13] = [
            &id.as_slice(),
            &(kind as i16),
            &credit.account.0.as_slice(),
            &call.as_ref().map(|c| c.0.as_slice()),
            &(credit.pot == Pot::Trial),
            &amount,
            &now,
            &credit.id,
            &credit.actor,
            &credit.reason,
            &credit.expires_at,
            &bounds::MOST_IN_ACCOUNT.nano(),
            &self.clock.sure(),
        ];
        let row = credit.audit_row(now, request);
        let sql = format!("SELECT verdict AS id FROM ({sql} AS verdict) done");
        let rows = self.noted_if(&sql, "id = 'applied'", &params, row).await?;
        let verdict: &str = rows.first().map_or(Ok(""), |r| r.try_get(0))?;
        let applied = match verdict {
            "applied" => true,
            "before" => false,
            "no_account" => return Err(StoreError::NotFound(credit.account.to_string())),
            "no_charge" => return Err(StoreError::NotFound("no charge for this call".into())),
            "above_charge" => {
                return Err(StoreError::Conflict("a refund must be above zero and within the charge".into()));
            }
            "above_most" => return Err(bounds::account_full()),
            "below_zero" => {
                return Err(StoreError::Conflict("the adjustment is above the available balance".into()));
            }
            _ => return Err(StoreError::Conflict("this id was used for another credit".into())),
        };
        let account = self.account(credit.account).await?;
        let account = account.ok_or_else(|| StoreError::broken("an account is gone"))?;
        Ok(Credited { applied, account })
    }

    pub async fn create_key(
        &self,
        new: NewKey,
        secret: &str,
        origin: KeyOrigin,
        done: Attribution,
    ) -> Result<Key, StoreError> {
        let now = self.now();
        let mut key = Key {
            id: self.ids.key(),
            account: new.account,
            hash: hash_secret(secret),
            prefix: secret.chars().take(7).collect(),
            name: new.name,
            created_at: now,
            changed_at: now,
            expires_at: new.expires_at,
            revoked_at: None,
            models: new.models,
            cidrs: new.cidrs,
            limits: new.limits,
            spent: Money::ZERO,
            held: Money::ZERO,
            used: Used::default().at(now),
            scope: new.scope,
            former_until: None,
            person: done.person,
            origin,
        };
        if self.account(key.account).await?.is_none() {
            return Err(StoreError::NotFound(key.account.to_string()));
        }
        let list = |l: &Option<Vec<String>>| l.as_ref().and_then(|l| serde_json::to_string(l).ok());
        let sql = "INSERT INTO key (id, account_id, hash, prefix, name, created_at, changed_at, expires_at, models, \
                   cidrs, cap, day_limit, month_limit, scope, person_id, origin) VALUES ($1, $2, $3, $4, $5, $6, tollgate_now(), $7, $8, $9, $10, $11, \
                   $12, $13, $14, $15) ON CONFLICT DO NOTHING RETURNING changed_at AS id";
        let maker = key.person.map(|person| person.0.to_vec());
        let params: [SqlParam<'_>; 15] = [
            &key.id.0.as_slice(),
            &key.account.0.as_slice(),
            &key.hash.as_slice(),
            &key.prefix,
            &key.name,
            &key.created_at,
            &key.expires_at,
            &list(&key.models),
            &list(&key.cidrs),
            &key.limits.total.map(Money::nano),
            &key.limits.day.map(Money::nano),
            &key.limits.month.map(Money::nano),
            &key.scope.word(),
            &maker,
            &key.origin.word(),
        ];
        let row = AuditRow::new(now, &done, "key.create", &key.id.to_string(), Some(key.account));
        let made = self.noted(sql, &params, row.map(|row| row.detail(&key.summary()))).await?;
        let Some(row) = made.first() else {
            return Err(StoreError::Conflict("this secret is in use already".into()));
        };
        key.changed_at = row.try_get(0)?;
        Ok(key)
    }

    pub async fn key_by_hash(&self, hash: [u8; 32]) -> Result<Option<KeyAndAccount>, StoreError> {
        let sql = format!("SELECT {KEY}, {ACCOUNT} FROM key k JOIN account a ON a.id = k.account_id WHERE k.hash = $1");
        // A client waits for this one.
        let rows = self.rows_within(self.options.hold_deadline, &sql, &[&hash.as_slice()]).await?;
        if let Some(found) = rows.first() {
            return rows::key_and_account(found, self.now()).map(Some);
        }
        let sql = format!("SELECT {KEY}, {ACCOUNT}, {FORMER} WHERE f.hash = $1");
        let rows = self.rows_within(self.options.hold_deadline, &sql, &[&hash.as_slice()]).await?;
        rows.first().map(|r| rows::former(r, self.now())).transpose()
    }

    pub async fn keys(&self, account: AccountId) -> Result<Vec<Key>, StoreError> {
        let sql = format!("SELECT {KEY} FROM key k WHERE k.account_id = $1 ORDER BY k.id");
        self.rows(&sql, &[&account.0.as_slice()]).await?.iter().map(|r| rows::key(r, self.now())).collect()
    }

    pub async fn revoke_key(&self, id: KeyId, done: Attribution) -> Result<Option<Key>, StoreError> {
        let Some(before) = self.key(id).await? else { return Ok(None) };
        let sql = "UPDATE key SET revoked_at = $2, changed_at = tollgate_now() WHERE id = $1 AND revoked_at IS NULL \
                   RETURNING id";
        let now = self.now();
        let row = AuditRow::new(now, &done, "key.revoke", &id.to_string(), Some(before.account));
        let row = row.map(|row| row.detail(&format!("name: {}", before.name)));
        self.noted(sql, &[&id.0.as_slice(), &now], row).await?;
        self.key(id).await
    }

    pub async fn key(&self, id: KeyId) -> Result<Option<Key>, StoreError> {
        let sql = format!("SELECT {KEY} FROM key k WHERE k.id = $1");
        self.rows(&sql, &[&id.0.as_slice()]).await?.first().map(|r| rows::key(r, self.now())).transpose()
    }

    pub async fn usage(&self, account: Option<AccountId>, page: UsagePage) -> Result<Vec<UsageRow>, StoreError> {
        self.catch_up().await;
        let before = page.before.map_or([0xff; 16], |c| c.0);
        let limit = i64::from(page.limit);
        let select = format!("SELECT {USAGE}{COUNTERS}, NULL::text FROM usage u WHERE u.call_id < $1");
        let rows = match account {
            Some(account) => {
                let sql = format!("{select} AND u.account_id = $3 ORDER BY u.call_id DESC LIMIT $2");
                self.rows(&sql, &[&before.as_slice(), &limit, &account.0.as_slice()]).await?
            }
            None => {
                let sql = format!("{select} ORDER BY u.call_id DESC LIMIT $2");
                self.rows(&sql, &[&before.as_slice(), &limit]).await?
            }
        };
        rows.iter().map(rows::usage).collect()
    }

    pub async fn margins(&self, from_ms: i64, to_ms: i64) -> Result<Vec<MarginRow>, StoreError> {
        self.catch_up().await;
        let sql = "SELECT at / 86400000 AS day, model, provider, upstream_model, count(*)::bigint, sum(charge - refunded)::bigint, \
                   sum(CASE WHEN cost IS NULL THEN 1 ELSE 0 END)::bigint, \
                   sum(CASE WHEN cost IS NULL THEN charge - refunded ELSE 0 END)::bigint, coalesce(sum(cost), 0)::bigint \
                   FROM usage WHERE call_id >= $1 AND call_id < $2 AND (charge > 0 OR cost > 0) \
                   GROUP BY at / 86400000, model, provider, upstream_model ORDER BY 1, 2, 3, 4";
        let (from, to) = (first_id(from_ms), first_id(to_ms));
        self.rows(sql, &[&from.as_slice(), &to.as_slice()]).await?.iter().map(rows::margin).collect()
    }

    pub async fn entries_of(&self, account: AccountId, call: CallId) -> Result<Vec<CallEntry>, StoreError> {
        self.catch_up().await;
        let sql = "SELECT kind, at, trial, paid, take_trial, take_paid FROM entry \
                   WHERE op_id >= $1 AND op_id < $2 AND account_id = $3 ORDER BY seq";
        let (from, to) = (call.0.as_slice(), end_of_entries(&call.0));
        let rows = self.rows(sql, &[&from, &to, &account.0.as_slice()]).await?;
        let entry = |r: &tokio_postgres::Row| {
            let pots = |at| Ok::<_, StoreError>(Pots { trial: r.try_get(at)?, paid: r.try_get(at + 1)? });
            Ok(CallEntry::new(i64::from(r.try_get::<_, i16>(0)?), r.try_get(1)?, pots(2)?, pots(4)?))
        };
        rows.iter().map(entry).filter_map(Result::transpose).collect()
    }

    pub async fn usage_of(&self, account: AccountId, call: CallId) -> Result<Option<UsageRow>, StoreError> {
        self.catch_up().await;
        let sql = format!(
            "SELECT {USAGE}{COUNTERS}, p.json FROM usage u LEFT JOIN price p ON p.id = u.price_id \
             WHERE u.account_id = $1 AND u.call_id = $2"
        );
        let rows = self.rows(&sql, &[&account.0.as_slice(), &call.0.as_slice()]).await?;
        rows.first().map(rows::usage).transpose()
    }
}
