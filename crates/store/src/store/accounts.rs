//! The verbs of accounts, their credit and their limits.

use super::{Engine, Store};
use crate::account::change::AccountChange;
use crate::account::{Account, BalanceEvent, Credit, Credited, EventPage, Expiring, NewAccount};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::ledger::bounds;
use crate::operator::Attribution;

impl Store {
    /// An account that nobody in particular makes: the log has no row of it.
    pub async fn create_account(&self, new: NewAccount) -> Result<Account, StoreError> {
        self.create_account_as(new, Attribution::default()).await
    }

    pub async fn create_account_as(&self, new: NewAccount, done: Attribution) -> Result<Account, StoreError> {
        bounds::limits(&new.limits)?;
        on_engine!(self, e => e.create_account(new, done).await)
    }

    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        on_engine!(self, e => e.account(id).await)
    }

    /// Accounts in order of creation.
    pub async fn accounts(&self, after: Option<AccountId>, limit: u32) -> Result<Vec<Account>, StoreError> {
        on_engine!(self, e => e.accounts(after, limit).await)
    }

    pub async fn credit(&self, credit: Credit) -> Result<Credited, StoreError> {
        self.credit_as(credit, None).await
    }

    /// The same, with the request it came with.
    pub async fn credit_as(&self, credit: Credit, request: Option<String>) -> Result<Credited, StoreError> {
        on_engine!(self, e => e.credit(credit, request).await)
    }

    /// The same of an account.
    pub async fn change_account(
        &self,
        id: AccountId,
        change: AccountChange,
        done: Attribution,
    ) -> Result<Option<Account>, StoreError> {
        self.change_account_if(id, change, done, None).await
    }

    /// The same, unless it is another version than was seen.
    pub async fn change_account_if(
        &self,
        id: AccountId,
        change: AccountChange,
        done: Attribution,
        seen: Option<String>,
    ) -> Result<Option<Account>, StoreError> {
        change.check()?;
        let _turn = self.changing.lock().await;
        let Some(before) = self.account(id).await? else { return Ok(None) };
        if seen.as_ref().is_some_and(|seen| *seen != before.version()) {
            return Err(StoreError::Stale(id.to_string()));
        }
        if before.closed_at.is_some() && change.suspended == Some(false) {
            return Err(StoreError::Conflict("it is closed, which is more than suspended: reopen it as that".into()));
        }
        let seen = seen.map(|_| before.changed_at);
        if change == AccountChange::default() {
            return Ok(Some(before));
        }
        let logged = change.logged(&before, done);
        on_engine!(self, e => e.change_account(id, change, logged, seen).await)
    }

    /// How many accounts are in which groups, for every set of groups there is.
    pub async fn groups_in_use(&self) -> Result<Vec<(Vec<String>, u64)>, StoreError> {
        on_engine!(self, e => e.groups_in_use().await)
    }

    /// Where an account hears of all its tasks from now on; `None`: nowhere. The answer is `None`
    /// where there is no such account.
    pub async fn set_webhook(
        &self,
        id: AccountId,
        url: Option<String>,
        done: Attribution,
    ) -> Result<Option<Account>, StoreError> {
        let _turn = self.changing.lock().await;
        on_engine!(self, e => e.set_webhook(id, url, done).await)
    }

    /// Trial credit of an account that will expire, the earliest first.
    pub async fn expiring(&self, account: AccountId) -> Result<Vec<Expiring>, StoreError> {
        on_engine!(self, e => e.expiring(account).await)
    }

    /// Top-ups, adjustments, refunds and expired credit of an account, newest first.
    pub async fn events(&self, account: AccountId, page: EventPage) -> Result<Vec<BalanceEvent>, StoreError> {
        on_engine!(self, e => e.events(account, page).await)
    }
}
