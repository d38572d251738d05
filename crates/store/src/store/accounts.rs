//! The verbs of accounts, their credit and their limits.

use super::{Engine, Store};
use crate::account::change::AccountChange;
use crate::account::{Account, BalanceEvent, Credit, Credited, EventPage, Expiring, NewAccount};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::ledger::bounds;
use crate::operator::Attribution;

impl Store {
    pub async fn create_account(&self, new: NewAccount) -> Result<Account, StoreError> {
        bounds::limits(&new.limits)?;
        on_engine!(self, e => e.create_account(new).await)
    }

    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        on_engine!(self, e => e.account(id).await)
    }

    /// Accounts in order of creation.
    pub async fn accounts(&self, after: Option<AccountId>, limit: u32) -> Result<Vec<Account>, StoreError> {
        on_engine!(self, e => e.accounts(after, limit).await)
    }

    pub async fn credit(&self, credit: Credit) -> Result<Credited, StoreError> {
        on_engine!(self, e => e.credit(credit).await)
    }

    /// The same of an account.
    pub async fn change_account(
        &self,
        id: AccountId,
        change: AccountChange,
        done: Attribution,
    ) -> Result<Option<Account>, StoreError> {
        change.check()?;
        let Some(before) = self.account(id).await? else { return Ok(None) };
        if change == AccountChange::default() {
            return Ok(Some(before));
        }
        let logged = change.logged(&before, done);
        on_engine!(self, e => e.change_account(id, change, logged).await)
    }

    /// How many accounts are in which groups, for every set of groups there is.
    pub async fn groups_in_use(&self) -> Result<Vec<(Vec<String>, u64)>, StoreError> {
        on_engine!(self, e => e.groups_in_use().await)
    }

    /// Where an account hears of all its tasks from now on; `None`: nowhere. The answer is `None`
    /// where there is no such account.
    pub async fn set_webhook(&self, id: AccountId, url: Option<String>) -> Result<Option<Account>, StoreError> {
        on_engine!(self, e => e.set_webhook(id, url).await)
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
