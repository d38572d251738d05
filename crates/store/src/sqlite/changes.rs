//! Changes of accounts and keys on the embedded engine: what decides about holds counts in memory
//! from here on, and the database follows.

use rusqlite::params;
use tokio::sync::oneshot;
use tollgate_catalog::Money;

use super::books::Books;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use super::{SqliteEngine, lock};
use crate::account::change::{AccountChange, KeyChange, Logged};
use crate::account::limits::Limits;
use crate::account::{Account, Key};
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId};
use crate::operator::{Attribution, AuditRow};

/// What the writer is asked to write, with the row that says who and why.
pub(super) struct ChangeOp {
    pub what: Changed,
    /// As they are after the change.
    pub limits: Limits,
    pub at: i64,
    pub logged: Logged,
}

pub(super) enum Changed {
    Account(AccountId, AccountChange),
    Key(KeyId, KeyChange),
}

impl SqliteEngine {
    pub async fn change_key(
        &self,
        id: KeyId,
        change: KeyChange,
        logged: Logged,
        _seen: Option<i64>,
    ) -> Result<Option<Key>, StoreError> {
        if !self.load_key(id).await? {
            return Ok(None);
        }
        self.put_change(Changed::Key(id, change), logged).await?;
        self.key(id).await
    }

    pub async fn change_account(
        &self,
        id: AccountId,
        change: AccountChange,
        logged: Logged,
        // One process has the file, and changes take turns in it.
        _seen: Option<i64>,
    ) -> Result<Option<Account>, StoreError> {
        if !self.load_account(id).await? {
            return Ok(None);
        }
        self.put_change(Changed::Account(id, change), logged).await?;
        self.account(id).await
    }

    pub async fn key(&self, id: KeyId) -> Result<Option<Key>, StoreError> {
        Ok(self.readers.key(id).await?.map(|key| self.with_live_spending(key)))
    }

    pub async fn set_webhook(
        &self,
        id: AccountId,
        url: Option<String>,
        done: Attribution,
    ) -> Result<Option<Account>, StoreError> {
        let now = self.now();
        match self.ask(|reply| Op::Webhook(Box::new((id, url, now, done)), reply)).await {
            Ok(()) => self.account(id).await,
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// In the books and in the queue under one lock, so that both see changes in one order.
    async fn put_change(&self, what: Changed, logged: Logged) -> Result<(), StoreError> {
        let at = self.now();
        let (send, receive) = oneshot::channel();
        {
            let mut books = lock(&self.shared.books);
            if books.stop {
                return Err(StoreError::away("the store is shut"));
            }
            let limits = books.change(&what).ok_or_else(|| StoreError::broken("a loaded record is gone"))?;
            books.push(Op::Change(Box::new(ChangeOp { what, limits, at, logged }), Some(send)));
            self.shared.ring(books);
        }
        receive.await.map_err(|_| StoreError::away("the store was shut"))?
    }
}

impl Books {
    /// The limits as they are then.
    fn change(&mut self, what: &Changed) -> Option<Limits> {
        match what {
            Changed::Account(id, change) => {
                let account = self.accounts.get_mut(id)?;
                change.limits.apply(&mut account.limits);
                account.suspended = change.suspended.unwrap_or(account.suspended);
                Some(account.limits)
            }
            Changed::Key(id, change) => {
                let key = self.keys.get_mut(id)?;
                change.limits.apply(&mut key.limits);
                Some(key.limits)
            }
        }
    }
}

impl Apply<'_> {
    pub(super) fn change(&mut self, op: &ChangeOp) -> rusqlite::Result<Result<(), StoreError>> {
        let limit = |limit: Option<Money>| limit.map(Money::nano);
        let (total, day, month) = (limit(op.limits.total), limit(op.limits.day), limit(op.limits.month));
        let json = |list: &Vec<String>| serde_json::to_string(list).unwrap_or_default();
        let (changed, subject) = match &op.what {
            Changed::Account(id, c) => {
                // Suspended twice keeps the first time.
                let sql = "UPDATE account SET name = coalesce(?2, name), groups = coalesce(?3, groups), \
                           closed_at = CASE ?4 WHEN 1 THEN coalesce(closed_at, ?5) WHEN 0 THEN NULL ELSE closed_at END, \
                           day_limit = ?6, month_limit = ?7, changed_at = ?5, \
                           members_see_all = coalesce(?8, members_see_all) WHERE id = ?1";
                let groups = c.groups.as_ref().map(json);
                let row = params![id.0, c.name, groups, c.suspended, op.at, day, month, c.members_see_all_usage];
                (self.statement(sql)?.execute(row)?, id.to_string())
            }
            Changed::Key(id, c) => {
                let sql = "UPDATE key SET name = coalesce(?2, name), models = CASE WHEN ?3 THEN ?4 ELSE models END, \
                           cidrs = CASE WHEN ?5 THEN ?6 ELSE cidrs END, \
                           expires_at = CASE WHEN ?7 THEN ?8 ELSE expires_at END, \
                           cap = ?9, day_limit = ?10, month_limit = ?11, changed_at = ?12 WHERE id = ?1";
                let (models, cidrs) = (c.models.after(), c.cidrs.after());
                let expires = c.expires_at.after();
                let row = params![
                    id.0,
                    c.name,
                    models.is_some(),
                    models.flatten().map(json),
                    cidrs.is_some(),
                    cidrs.flatten().map(json),
                    expires.is_some(),
                    expires.flatten(),
                    total,
                    day,
                    month,
                    op.at
                ];
                (self.statement(sql)?.execute(row)?, id.to_string())
            }
        };
        if changed == 0 {
            return Ok(Err(StoreError::NotFound(subject)));
        }
        let Logged { action, detail, done, account } = &op.logged;
        let row = AuditRow::new(op.at, done, action, &subject, Some(*account));
        self.note(row.map(|row| row.detail(detail)))?;
        Ok(Ok(()))
    }
}
