//! What managing an account needs on the embedded engine: secrets of keys that were changed,
//! replies to changes, tries of webhooks, rows of the usage log by what they are about.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};

use super::read::{self, USAGE};
use super::sums::conditions;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use super::{SqliteEngine, lock};
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
use crate::operator::{Attribution, AuditRow};
use crate::task::Webhook;

/// What the writer is asked to write.
pub(super) enum ManageOp {
    Rotate {
        key: KeyId,
        hash: [u8; 32],
        prefix: String,
        until: i64,
        at: i64,
        done: Attribution,
    },
    Claim(ChangeKey, i64),
    Reply(ChangeKey, u16, String),
    Release(ChangeKey),
    Tried {
        webhook: Webhook,
        at: i64,
        status: Option<u16>,
        outcome: &'static str,
    },
    Resend {
        account: AccountId,
        task: TaskId,
        url: String,
        at: i64,
        due_at: i64,
    },
    /// What nobody asks for any more at this time.
    Forget(i64),
}

impl SqliteEngine {
    async fn manage(&self, op: ManageOp) -> Result<u64, StoreError> {
        self.ask(|reply| Op::Manage(Box::new(op), reply)).await
    }

    pub async fn rotate_key(
        &self,
        key: KeyId,
        hash: [u8; 32],
        prefix: String,
        grace: i64,
        done: Attribution,
    ) -> Result<Option<Key>, StoreError> {
        let at = self.now();
        let until = at.saturating_add(grace);
        match self.manage(ManageOp::Rotate { key, hash, prefix, until, at, done }).await? {
            0 => Ok(None),
            1 => self.key(key).await,
            number => Err(not_rotated(number)),
        }
    }

    pub async fn claim_change(&self, key: &ChangeKey) -> Result<ChangeClaim, StoreError> {
        match self.manage(ManageOp::Claim(key.clone(), self.now())).await? {
            0 => return Ok(ChangeClaim::Begun),
            2 => return Ok(ChangeClaim::Full),
            _ => {}
        }
        let asked = key.clone();
        let sql = "SELECT fingerprint, status, body FROM change_reply WHERE owner = ?1 AND key_hash = ?2";
        let found = self
            .readers
            .read(move |c| {
                let one = |r: &Row<'_>| {
                    Ok((r.get::<_, [u8; 32]>(0)?, r.get::<_, Option<u16>>(1)?, r.get::<_, Option<String>>(2)?))
                };
                Ok(c.prepare_cached(sql)?.query_row(params![asked.owner, asked.key_hash], one).optional()?)
            })
            .await?;
        Ok(claim_of(found, key))
    }

    pub async fn end_change(&self, key: &ChangeKey, reply: Option<(u16, String)>) -> Result<(), StoreError> {
        let op = match reply {
            Some((status, body)) => ManageOp::Reply(key.clone(), status, body),
            None => ManageOp::Release(key.clone()),
        };
        self.manage(op).await.map(drop)
    }

    pub async fn note_delivery(
        &self,
        webhook: Webhook,
        status: Option<u16>,
        outcome: &'static str,
    ) -> Result<(), StoreError> {
        let at = self.now();
        self.manage(ManageOp::Tried { webhook, at, status, outcome }).await.map(drop)
    }

    pub async fn deliveries(
        &self,
        of: CallReach,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<WebhookTry>, StoreError> {
        let sql = "SELECT seq, call_id, at, url, attempt, status, outcome FROM webhook_delivery \
                   WHERE account_id = ?1 AND seq < ?2 AND (?4 IS NULL OR call_id IN (SELECT t.call_id FROM task t \
                   JOIN key k ON k.id = t.key_id WHERE t.call_id = webhook_delivery.call_id AND k.person_id = ?4)) \
                   ORDER BY seq DESC LIMIT ?3";
        let one = |r: &Row<'_>| {
            Ok(WebhookTry {
                seq: r.get(0)?,
                task_id: TaskId(r.get(1)?),
                at_ms: r.get(2)?,
                url: r.get(3)?,
                attempt: r.get(4)?,
                status: r.get(5)?,
                outcome: r.get(6)?,
            })
        };
        let before = before.unwrap_or(i64::MAX);
        self.readers
            .read(move |c| {
                let mut statement = c.prepare_cached(sql)?;
                Ok(statement
                    .query_map(params![of.account.0, before, limit, of.person.map(|id| id.0)], one)?
                    .collect::<Result<_, _>>()?)
            })
            .await
    }

    pub async fn resend_webhook(&self, account: AccountId, task: TaskId, url: String) -> Result<bool, StoreError> {
        let op = ManageOp::Resend { account, task, url, at: self.now(), due_at: self.steady() };
        self.manage(op).await.map(|sent| sent > 0)
    }

    pub async fn usage_search(&self, page: UsageSearch) -> Result<Vec<UsageRow>, StoreError> {
        self.catch_up().await;
        self.readers
            .read(move |c| {
                let (of, mut values) = conditions("u", &page.filter);
                let sql = format!(
                    "SELECT {USAGE}{COUNTERS}, NULL FROM usage u WHERE {of} u.call_id >= ? AND u.call_id < ? \
                     AND u.call_id < ? ORDER BY u.call_id DESC LIMIT ?"
                );
                let before = page.before.map_or([0xff; 16], |call| call.0);
                let bytes = |id: [u8; 16]| Value::Blob(id.to_vec());
                values.extend([first_id(page.from_ms), first_id(page.to_ms), before].map(bytes));
                values.push(Value::Integer(page.limit.into()));
                let mut statement = c.prepare_cached(&sql)?;
                let rows = statement.query_map(params_from_iter(values), read::read_usage)?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    pub async fn find_accounts(&self, search: AccountSearch, limit: u32) -> Result<Vec<Account>, StoreError> {
        let ids = self
            .readers
            .read(move |c| {
                let id = |r: &Row<'_>| r.get(0).map(AccountId);
                Ok(match search {
                    AccountSearch::Id(account) => vec![account],
                    AccountSearch::Call(call) => {
                        let sql = "SELECT account_id FROM entry WHERE op_id >= ?1 AND op_id < ?2 LIMIT 1";
                        let mut found = c.prepare_cached(sql)?;
                        found.query_map(params![call.0, end_of_entries(&call.0)], id)?.collect::<Result<_, _>>()?
                    }
                    AccountSearch::KeyPrefix(prefix) => {
                        let sql = "SELECT DISTINCT account_id FROM key WHERE prefix = ?1 ORDER BY account_id LIMIT ?2";
                        c.prepare_cached(sql)?.query_map(params![prefix, limit], id)?.collect::<Result<_, _>>()?
                    }
                    AccountSearch::Name(part) => {
                        let sql = "SELECT id FROM account WHERE instr(lower(name), lower(?1)) > 0 ORDER BY id LIMIT ?2";
                        c.prepare_cached(sql)?.query_map(params![part, limit], id)?.collect::<Result<_, _>>()?
                    }
                })
            })
            .await?;
        let mut found = Vec::new();
        for id in ids {
            found.extend(self.account(id).await?);
        }
        Ok(found)
    }

    pub(super) fn forget_managed(&self, now: i64) {
        let mut books = lock(&self.shared.books);
        books.push(Op::Manage(Box::new(ManageOp::Forget(now)), None));
        self.shared.ring(books);
    }
}

/// Why a key has the secret it had.
pub(crate) fn not_rotated(number: u64) -> StoreError {
    StoreError::Conflict(match number {
        2 => "this secret is in use already".to_owned(),
        _ => format!("{MOST_FORMER} secrets of this key work beside its own; wait until one of them has ended"),
    })
}

/// What a row about a change means for who comes with it.
pub(crate) fn claim_of(found: Option<([u8; 32], Option<u16>, Option<String>)>, key: &ChangeKey) -> ChangeClaim {
    match found {
        Some((fingerprint, ..)) if fingerprint != key.fingerprint => ChangeClaim::Another,
        Some((_, Some(status), body)) => ChangeClaim::Before(status, body.unwrap_or_default()),
        _ => ChangeClaim::UnderWay,
    }
}

impl Apply<'_> {
    /// A number whose meaning is that of the operation.
    pub(super) fn manage(&mut self, op: &ManageOp) -> rusqlite::Result<u64> {
        match op {
            ManageOp::Rotate { key, hash, prefix, until, at, done } => {
                return self.rotate(*key, *hash, prefix, (*until, *at), done);
            }
            ManageOp::Claim(key, at) => return self.claim_change(key, *at),
            ManageOp::Reply(key, status, body) => {
                let sql = "UPDATE change_reply SET status = ?3, body = ?4 WHERE owner = ?1 AND key_hash = ?2";
                self.statement(sql)?.execute(params![key.owner, key.key_hash, status, body])?;
            }
            ManageOp::Release(key) => {
                let sql = "DELETE FROM change_reply WHERE owner = ?1 AND key_hash = ?2 AND status IS NULL";
                self.statement(sql)?.execute(params![key.owner, key.key_hash])?;
            }
            ManageOp::Tried { webhook: w, at, status, outcome } => {
                let sql = "INSERT INTO webhook_delivery (account_id, call_id, at, url, attempt, status, outcome) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
                let attempt = w.attempts.saturating_add(1);
                self.statement(sql)?.execute(params![w.account.0, w.task.0, at, w.url, attempt, status, outcome])?;
                let sql = "DELETE FROM webhook_delivery WHERE account_id = ?1 AND seq <= (SELECT seq FROM \
                           webhook_delivery WHERE account_id = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)";
                self.statement(sql)?.execute(params![w.account.0, MOST_DELIVERIES])?;
            }
            ManageOp::Resend { account, task, url, at, due_at } => {
                let sql = "INSERT INTO webhook (call_id, account_id, url, attempts, created_at, due_at) \
                           VALUES (?1, ?2, ?3, 0, ?4, ?5) \
                           ON CONFLICT (call_id) DO UPDATE SET due_at = min(due_at, ?5), url = ?3";
                return Ok(self.statement(sql)?.execute(params![task.0, account.0, url, at, due_at])? as u64);
            }
            ManageOp::Forget(now) => {
                let sql = "DELETE FROM change_reply WHERE at < ?1";
                self.statement(sql)?.execute(params![now - REPLY_REMEMBERED_MS])?;
                let sql = "DELETE FROM key_former WHERE until < ?1";
                self.statement(sql)?.execute(params![now - FORMER_REMEMBERED_MS])?;
            }
        }
        Ok(0)
    }

    fn claim_change(&mut self, key: &ChangeKey, at: i64) -> rusqlite::Result<u64> {
        let sql = "DELETE FROM change_reply WHERE owner = ?1 AND key_hash = ?2 AND at < ?3";
        self.statement(sql)?.execute(params![key.owner, key.key_hash, at - REPLY_REMEMBERED_MS])?;
        let sql = "SELECT EXISTS (SELECT 1 FROM change_reply WHERE owner = ?1 AND key_hash = ?2)";
        if self.statement(sql)?.query_row(params![key.owner, key.key_hash], |r| r.get(0))? {
            return Ok(1);
        }
        let count = "SELECT count(*) FROM change_reply WHERE owner = ?1";
        if self.statement(count)?.query_row(params![key.owner], |r| r.get::<_, u32>(0))? >= MOST_REPLIES {
            return Ok(2);
        }
        let sql = "INSERT INTO change_reply (owner, key_hash, fingerprint, at) VALUES (?1, ?2, ?3, ?4)";
        self.statement(sql)?.execute(params![key.owner, key.key_hash, key.fingerprint, at])?;
        Ok(0)
    }

    fn rotate(
        &mut self,
        key: KeyId,
        hash: [u8; 32],
        prefix: &str,
        (until, at): (i64, i64),
        done: &Attribution,
    ) -> rusqlite::Result<u64> {
        let sql = "SELECT account_id, prefix FROM key WHERE id = ?1 AND revoked_at IS NULL";
        let one = |r: &Row<'_>| Ok((AccountId(r.get(0)?), r.get::<_, String>(1)?));
        let Some((account, before)) = self.statement(sql)?.query_row(params![key.0], one).optional()? else {
            return Ok(0);
        };
        let taken =
            "SELECT EXISTS (SELECT 1 FROM key WHERE hash = ?1 UNION ALL SELECT 1 FROM key_former WHERE hash = ?1)";
        if self.statement(taken)?.query_row(params![hash], |r| r.get(0))? {
            return Ok(2);
        }
        let count = "SELECT count(*) FROM key_former WHERE key_id = ?1 AND until > ?2";
        if self.statement(count)?.query_row(params![key.0, at], |r| r.get::<_, u32>(0))? >= MOST_FORMER {
            return Ok(3);
        }
        let sql =
            "INSERT INTO key_former (hash, key_id, prefix, until) SELECT hash, id, prefix, ?2 FROM key WHERE id = ?1";
        self.statement(sql)?.execute(params![key.0, until])?;
        let sql = "UPDATE key SET hash = ?2, prefix = ?3, changed_at = ?4 WHERE id = ?1";
        self.statement(sql)?.execute(params![key.0, hash, prefix, at])?;
        let row = AuditRow::new(at, done, "key.rotate", &key.to_string(), Some(account));
        self.note(row.map(|row| row.detail(&format!("prefix: {before} -> {prefix}; former_until_ms: {until}"))))?;
        Ok(1)
    }
}
