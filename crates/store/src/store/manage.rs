//! The verbs of whoever manages an account.

use super::{Engine, Store};
use crate::account::{Account, Key, hash_secret};
use crate::call::UsageRow;
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId, TaskId};
use crate::manage::{AccountSearch, CallReach, ChangeClaim, ChangeKey, UsageSearch, WebhookTry};
use crate::operator::{Attribution, AuditPage, AuditRow, OperatorEvent};
use crate::task::Webhook;

impl Store {
    /// A new secret of a key; the one before works so many milliseconds longer. `None`: there is no
    /// such key, or it is revoked.
    pub async fn rotate_key(
        &self,
        id: KeyId,
        secret: &str,
        grace_ms: i64,
        done: Attribution,
    ) -> Result<Option<Key>, StoreError> {
        let (hash, prefix) = (hash_secret(secret), secret.chars().take(7).collect());
        on_engine!(self, e => e.rotate_key(id, hash, prefix, grace_ms, done).await)
    }

    pub async fn key(&self, id: KeyId) -> Result<Option<Key>, StoreError> {
        on_engine!(self, e => e.key(id).await)
    }

    /// Says that a change is under way, unless it was before.
    pub async fn claim_change(&self, key: &ChangeKey) -> Result<ChangeClaim, StoreError> {
        on_engine!(self, e => e.claim_change(key).await)
    }

    /// What became of a change that was claimed: an answer to be given again, or nothing, and it
    /// may be tried anew.
    pub async fn end_change(&self, key: &ChangeKey, reply: Option<(u16, String)>) -> Result<(), StoreError> {
        on_engine!(self, e => e.end_change(key, reply).await)
    }

    /// What became of a try to deliver, for its account to see.
    pub async fn note_delivery(
        &self,
        webhook: Webhook,
        status: Option<u16>,
        outcome: &'static str,
    ) -> Result<(), StoreError> {
        on_engine!(self, e => e.note_delivery(webhook, status, outcome).await)
    }

    /// Tries to deliver webhooks of an account, newest first.
    pub async fn deliveries(
        &self,
        of: impl Into<CallReach>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<WebhookTry>, StoreError> {
        let of = of.into();
        on_engine!(self, e => e.deliveries(of, before, limit).await)
    }

    /// The news of a task are due again, at this address.
    pub async fn resend_webhook(&self, account: AccountId, task: TaskId, url: String) -> Result<bool, StoreError> {
        on_engine!(self, e => e.resend_webhook(account, task, url).await)
    }

    /// Whether calls of a key are among those that may be read.
    pub async fn reaches(&self, of: CallReach, key: KeyId) -> Result<bool, StoreError> {
        let Some(person) = of.person else { return Ok(true) };
        Ok(self.key(key).await?.is_some_and(|key| key.account == of.account && key.person == Some(person)))
    }

    /// Rows of the usage log by what they are about, newest first.
    pub async fn usage_search(&self, page: UsageSearch) -> Result<Vec<UsageRow>, StoreError> {
        on_engine!(self, e => e.usage_search(page).await)
    }

    /// Accounts by what an operator knows of them.
    pub async fn find_accounts(&self, search: AccountSearch, limit: u32) -> Result<Vec<Account>, StoreError> {
        on_engine!(self, e => e.find_accounts(search, limit).await)
    }

    /// The log of who changed what, newest first.
    pub async fn audit_page(&self, page: AuditPage) -> Result<Vec<OperatorEvent>, StoreError> {
        on_engine!(self, e => e.audit_page(page).await)
    }

    /// How many of the newest rows of the log about an account, at most so many, are of this time
    /// or later. Only those are looked at: the log of an account only grows.
    pub async fn changes_since(&self, account: AccountId, since: i64, most: u32) -> Result<u32, StoreError> {
        on_engine!(self, e => e.changes_since(account, since, most).await)
    }

    /// Adds a row to the log about something whose record has none of its own.
    pub async fn note_audit(
        &self,
        done: &Attribution,
        action: &str,
        subject: &str,
        account: Option<AccountId>,
        detail: &str,
    ) -> Result<(), StoreError> {
        let now = on_engine!(self, e => e.now());
        match AuditRow::new(now, done, action, subject, account) {
            Some(row) => on_engine!(self, e => e.note_audit(row.detail(detail)).await),
            None => Ok(()),
        }
    }
}
