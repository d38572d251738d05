//! New terms of accounts and keys on the embedded engine: spending limits, and where an account hears of its tasks.

use tokio::sync::oneshot;

use super::books::Books;
use super::ops::Op;
use super::{Engine, lock};
use crate::account::{Account, Key};
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId};
use crate::limits::{Limits, NewLimits};

impl Engine {
    pub async fn limit_key(&self, id: KeyId, change: NewLimits) -> Result<Option<Key>, StoreError> {
        if !self.load_key(id).await? {
            return Ok(None);
        }
        self.limit(Ok(id), |books| Some(&mut books.keys.get_mut(&id)?.limits), change).await?;
        Ok(self.readers.key(id).await?.map(|k| self.with_live_spending(k)))
    }

    pub async fn limit_account(&self, id: AccountId, change: NewLimits) -> Result<Option<Account>, StoreError> {
        if !self.load_account(id).await? {
            return Ok(None);
        }
        self.limit(Err(id), |books| Some(&mut books.accounts.get_mut(&id)?.limits), change).await?;
        self.account(id).await
    }

    pub async fn set_webhook(&self, id: AccountId, url: Option<String>) -> Result<Option<Account>, StoreError> {
        let now = self.now();
        match self.ask(|reply| Op::Webhook(id, url, now, reply)).await {
            Ok(()) => self.account(id).await,
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// New limits count from here on; the database follows.
    async fn limit(
        &self,
        whose: Result<KeyId, AccountId>,
        find: impl FnOnce(&mut Books) -> Option<&mut Limits>,
        change: NewLimits,
    ) -> Result<(), StoreError> {
        let now = self.now();
        let (send, receive) = oneshot::channel();
        {
            let mut books = lock(&self.shared.books);
            if books.stop {
                return Err(StoreError::away("the store is shut"));
            }
            let limits = find(&mut books).ok_or_else(|| StoreError::broken("a loaded record is gone"))?;
            change.apply(limits);
            let limits = *limits;
            books.push(Op::Limits(whose, limits, now, Some(send)));
            self.shared.ring(books);
        }
        receive.await.map_err(|_| StoreError::away("the store was shut"))?
    }
}
