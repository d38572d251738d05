//! What managing an account needs on PostgreSQL; the same as on the embedded engine.

use tokio_postgres::Row;

use super::PostgresEngine;
use super::records::SqlParam;
use super::rows::{self, USAGE, id};
use super::sums::{Owned, conditions};
use crate::account::{Account, Key};
use crate::call::UsageRow;
use crate::call::counters::COUNTERS;
use crate::call::wish::end_of_entries;
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId, TaskId};
use crate::manage::{
    AccountSearch, CallReach, ChangeClaim, ChangeKey, FORMER_REMEMBERED_MS, MOST_DELIVERIES, MOST_FORMER, MOST_REPLIES,
    REPLY_REMEMBERED_MS, UsageSearch, WebhookTry,
};
use crate::margin::first_id;
use crate::operator::Attribution;
use crate::sqlite::manage::{claim_of, not_rotated};
use crate::task::Webhook;

impl PostgresEngine {
    pub async fn rotate_key(
        &self,
        key: KeyId,
        hash: [u8; 32],
        prefix: String,
        grace: i64,
        done: Attribution,
    ) -> Result<Option<Key>, StoreError> {
        let Some(before) = self.key(key).await?.filter(|key| key.revoked_at.is_none()) else { return Ok(None) };
        let now = self.now();
        let until = now.saturating_add(grace);
        let detail = format!("prefix: {} -> {prefix}; former_until_ms: {until}", before.prefix);
        // The row of the key is locked first: of two who change it at once, the second finds what
        // the first made.
        let sql = "WITH own AS (SELECT id, account_id, hash, prefix FROM key WHERE id = $1 AND revoked_at IS NULL FOR UPDATE), \
             room AS (SELECT count(*) < $5 AS free FROM key_former f WHERE f.key_id = $1 AND f.until > $4), \
             taken AS (SELECT 1 FROM key WHERE hash = $2 UNION ALL SELECT 1 FROM key_former WHERE hash = $2), \
             former AS (INSERT INTO key_former (hash, key_id, prefix, until) SELECT own.hash, own.id, own.prefix, $6::bigint \
               FROM own, room WHERE room.free AND NOT EXISTS (SELECT 1 FROM taken) ON CONFLICT DO NOTHING RETURNING key_id), \
             changed AS (UPDATE key SET hash = $2, prefix = $3, changed_at = greatest(tollgate_now(), changed_at + 1) \
               FROM former WHERE key.id = former.key_id RETURNING key.account_id), \
             noted AS (INSERT INTO operator_event (at, actor, action, subject, reason, detail, account_id, request_id) \
               SELECT $4, $7, 'key.rotate', $8, $9, $10, changed.account_id, $11 FROM changed WHERE $7 <> '') \
             SELECT (SELECT count(*) FROM changed), (SELECT free FROM room)";
        let params: [SqlParam<'_>; 11] = [
            &key.0.as_slice(),
            &hash.as_slice(),
            &prefix,
            &now,
            &i64::from(MOST_FORMER),
            &until,
            &done.actor,
            &key.to_string(),
            &done.reason,
            &detail,
            &done.request,
        ];
        let rows = self.change(sql, &params).await?;
        let row = rows.first().ok_or_else(|| StoreError::broken("no answer"))?;
        match (row.try_get::<_, i64>(0)?, row.try_get::<_, bool>(1)?) {
            (1, _) => self.key(key).await,
            (_, false) => Err(not_rotated(3)),
            _ => Err(not_rotated(2)),
        }
    }

    pub async fn claim_change(&self, key: &ChangeKey) -> Result<ChangeClaim, StoreError> {
        let now = self.now();
        let (hash, fingerprint) = (key.key_hash.as_slice(), key.fingerprint.as_slice());
        let old = "DELETE FROM change_reply WHERE owner = $1 AND key_hash = $2 AND at < $3";
        self.change(old, &[&key.owner, &hash, &(now - REPLY_REMEMBERED_MS)]).await?;
        let made = "INSERT INTO change_reply (owner, key_hash, fingerprint, at) SELECT $1, $2, $3, $4 \
                    WHERE (SELECT count(*) FROM change_reply WHERE owner = $1) < $5 ON CONFLICT DO NOTHING RETURNING 1";
        let values: [SqlParam<'_>; 5] = [&key.owner, &hash, &fingerprint, &now, &i64::from(MOST_REPLIES)];
        if !self.change(made, &values).await?.is_empty() {
            return Ok(ChangeClaim::Begun);
        }
        let sql = "SELECT fingerprint, status, body FROM change_reply WHERE owner = $1 AND key_hash = $2";
        let rows = self.rows(sql, &[&key.owner, &hash]).await?;
        let Some(row) = rows.first() else { return Ok(ChangeClaim::Full) };
        let fingerprint =
            row.try_get::<_, &[u8]>(0)?.try_into().map_err(|_| StoreError::broken("not a fingerprint"))?;
        let status = row.try_get::<_, Option<i32>>(1)?.and_then(|status| u16::try_from(status).ok());
        Ok(claim_of(Some((fingerprint, status, row.try_get(2)?)), key))
    }

    pub async fn end_change(&self, key: &ChangeKey, reply: Option<(u16, String)>) -> Result<(), StoreError> {
        let hash = key.key_hash.as_slice();
        match reply {
            Some((status, body)) => {
                let sql = "UPDATE change_reply SET status = $3, body = $4 WHERE owner = $1 AND key_hash = $2";
                self.change(sql, &[&key.owner, &hash, &i32::from(status), &body]).await?;
            }
            None => {
                let sql = "DELETE FROM change_reply WHERE owner = $1 AND key_hash = $2 AND status IS NULL";
                self.change(sql, &[&key.owner, &hash]).await?;
            }
        }
        Ok(())
    }

    pub async fn note_delivery(
        &self,
        webhook: Webhook,
        status: Option<u16>,
        outcome: &'static str,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO webhook_delivery (account_id, call_id, at, url, attempt, status, outcome) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let (account, task) = (webhook.account.0, webhook.task.0);
        let attempt = i32::try_from(webhook.attempts.saturating_add(1)).unwrap_or(i32::MAX);
        let status = status.map(i32::from);
        let now = self.now();
        let values: [SqlParam<'_>; 7] =
            [&account.as_slice(), &task.as_slice(), &now, &webhook.url, &attempt, &status, &outcome];
        self.change(sql, &values).await?;
        let sql = "DELETE FROM webhook_delivery WHERE account_id = $1 AND seq <= (SELECT seq FROM webhook_delivery \
                   WHERE account_id = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)";
        self.change(sql, &[&account.as_slice(), &i64::from(MOST_DELIVERIES)]).await?;
        Ok(())
    }

    pub async fn deliveries(
        &self,
        of: CallReach,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<WebhookTry>, StoreError> {
        let sql = "SELECT seq, call_id, at, url, attempt, status, outcome FROM webhook_delivery \
                   WHERE account_id = $1 AND seq < $2 AND ($4::bytea IS NULL OR call_id IN (SELECT t.call_id FROM task t \
                   JOIN key k ON k.id = t.key_id WHERE t.call_id = webhook_delivery.call_id AND k.person_id = $4)) \
                   ORDER BY seq DESC LIMIT $3";
        let one = |r: &Row| {
            Ok(WebhookTry {
                seq: r.try_get(0)?,
                task_id: TaskId(id(r, 1)?),
                at_ms: r.try_get(2)?,
                url: r.try_get(3)?,
                attempt: r.try_get::<_, i32>(4)?.unsigned_abs(),
                status: r.try_get::<_, Option<i32>>(5)?.and_then(|status| u16::try_from(status).ok()),
                outcome: r.try_get(6)?,
            })
        };
        let before = before.unwrap_or(i64::MAX);
        let person = of.person.as_ref().map(|id| id.0.as_slice());
        let values: [SqlParam<'_>; 4] = [&of.account.0.as_slice(), &before, &i64::from(limit), &person];
        self.rows(sql, &values).await?.iter().map(one).collect()
    }

    pub async fn resend_webhook(&self, account: AccountId, task: TaskId, url: String) -> Result<bool, StoreError> {
        let sql = "INSERT INTO webhook (call_id, account_id, url, attempts, created_at, due_at) \
                   VALUES ($1, $2, $3, 0, $4, tollgate_now()) \
                   ON CONFLICT (call_id) DO UPDATE SET due_at = least(webhook.due_at, tollgate_now()), url = $3 RETURNING 1";
        let values: [SqlParam<'_>; 4] = [&task.0.as_slice(), &account.0.as_slice(), &url, &self.now()];
        Ok(!self.change(sql, &values).await?.is_empty())
    }

    pub async fn usage_search(&self, page: UsageSearch) -> Result<Vec<UsageRow>, StoreError> {
        self.catch_up().await;
        let before = page.before.map_or([0xff; 16], |call| call.0);
        let mut values: Vec<Owned> = Vec::new();
        for id in [first_id(page.from_ms), first_id(page.to_ms), before] {
            values.push(Box::new(id.to_vec()));
        }
        values.push(Box::new(i64::from(page.limit)));
        let of = conditions("u", &page.filter, &mut values);
        let sql = format!(
            "SELECT {USAGE}{COUNTERS}, NULL::text FROM usage u WHERE {of} u.call_id >= $1 AND u.call_id < $2 \
             AND u.call_id < $3 ORDER BY u.call_id DESC LIMIT $4"
        );
        let values: Vec<SqlParam<'_>> = values.iter().map(|value| value.as_ref() as SqlParam<'_>).collect();
        self.rows(&sql, &values).await?.iter().map(rows::usage).collect()
    }

    pub async fn find_accounts(&self, search: AccountSearch, limit: u32) -> Result<Vec<Account>, StoreError> {
        let limit = i64::from(limit);
        let found = match search {
            AccountSearch::Id(account) => return Ok(self.account(account).await?.into_iter().collect()),
            AccountSearch::Call(call) => {
                let sql = "SELECT account_id FROM entry WHERE op_id >= $1 AND op_id < $2 LIMIT 1";
                self.rows(sql, &[&call.0.as_slice(), &end_of_entries(&call.0)]).await?
            }
            AccountSearch::KeyPrefix(prefix) => {
                let sql = "SELECT DISTINCT account_id FROM key WHERE prefix = $1 ORDER BY account_id LIMIT $2";
                self.rows(sql, &[&prefix, &limit]).await?
            }
            AccountSearch::Name(part) => {
                let sql = "SELECT id FROM account WHERE strpos(lower(name), lower($1)) > 0 ORDER BY id LIMIT $2";
                self.rows(sql, &[&part, &limit]).await?
            }
        };
        let mut accounts = Vec::new();
        for row in &found {
            accounts.extend(self.account(AccountId(id(row, 0)?)).await?);
        }
        Ok(accounts)
    }

    pub(super) async fn forget_managed(&self, now: i64) -> Result<(), StoreError> {
        self.change("DELETE FROM change_reply WHERE at < $1", &[&(now - REPLY_REMEMBERED_MS)]).await?;
        self.change("DELETE FROM key_former WHERE until < $1", &[&(now - FORMER_REMEMBERED_MS)]).await?;
        Ok(())
    }
}
