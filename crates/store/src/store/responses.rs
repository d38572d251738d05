//! The verbs of stored responses and conversations.

use super::{Engine, Store};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::response::quota::{NoRoom, Quota, StorageUsed};
use crate::response::{AddedItem, Chain, Item, ItemPage, NewResponse, StoredConversation, StoredResponse};

/// Whether anything can have this id: PostgreSQL has no place for this character, so nothing has it
/// anywhere.
fn may_be(id: &str) -> bool {
    !id.contains('\0')
}

impl Store {
    /// How much an account has stored of responses and conversations.
    pub async fn stored(&self, account: AccountId) -> Result<StorageUsed, StoreError> {
        on_engine!(self, e => e.stored(account).await)
    }

    /// Keeps a response; durable when this returns. Everything it continues lives at least as long.
    /// `false`: there is one of this id, and it stays as it is.
    pub async fn store_response(&self, new: NewResponse, quota: Quota) -> Result<Result<bool, NoRoom>, StoreError> {
        on_engine!(self, e => e.store_response(new, quota).await)
    }

    pub async fn response(&self, account: AccountId, id: &str) -> Result<Option<StoredResponse>, StoreError> {
        if !may_be(id) {
            return Ok(None);
        }
        on_engine!(self, e => e.response(account, id).await)
    }

    /// A response and all that it continues.
    pub async fn response_chain(&self, account: AccountId, id: &str) -> Result<Chain, StoreError> {
        if !may_be(id) {
            return Ok(Chain::Missing(id.to_owned()));
        }
        let back = on_engine!(self, e => e.response_chain(account, id).await)?;
        let exists = match back.last().and_then(|last| last.previous.clone()) {
            Some(previous) => self.response(account, &previous).await?.is_some(),
            None => false,
        };
        Ok(Chain::of(id, back, exists))
    }

    /// The responses in which these items are, as far as they are known.
    pub async fn responses_with_items(
        &self,
        account: AccountId,
        mut items: Vec<String>,
    ) -> Result<Vec<StoredResponse>, StoreError> {
        items.retain(|id| may_be(id));
        on_engine!(self, e => e.responses_with_items(account, items).await)
    }

    /// Items of any conversation by their ids, as far as they are known; of several with one id the
    /// newest.
    pub async fn items_named(&self, account: AccountId, mut ids: Vec<String>) -> Result<Vec<Item>, StoreError> {
        ids.retain(|id| may_be(id));
        on_engine!(self, e => e.items_named(account, ids).await)
    }

    /// Erases a response. `false`: it was not there.
    pub async fn delete_response(&self, account: AccountId, id: &str) -> Result<bool, StoreError> {
        if !may_be(id) {
            return Ok(false);
        }
        on_engine!(self, e => e.delete_response(account, id).await)
    }

    pub async fn create_conversation(
        &self,
        account: AccountId,
        new: StoredConversation,
        items: Vec<Item>,
        quota: Quota,
    ) -> Result<Result<(), NoRoom>, StoreError> {
        on_engine!(self, e => e.create_conversation(account, new, items, quota).await)
    }

    pub async fn conversation(&self, account: AccountId, id: &str) -> Result<Option<StoredConversation>, StoreError> {
        if !may_be(id) {
            return Ok(None);
        }
        on_engine!(self, e => e.conversation(account, id).await)
    }

    /// New metadata. `false`: no such conversation.
    pub async fn change_conversation(
        &self,
        account: AccountId,
        new: StoredConversation,
        quota: Quota,
    ) -> Result<Result<bool, NoRoom>, StoreError> {
        on_engine!(self, e => e.change_conversation(account, new, quota).await)
    }

    /// Erases a conversation with its items. `false`: it was not there.
    pub async fn delete_conversation(&self, account: AccountId, id: &str) -> Result<bool, StoreError> {
        if !may_be(id) {
            return Ok(false);
        }
        on_engine!(self, e => e.delete_conversation(account, id).await)
    }

    /// Adds items at the end of a conversation, which lives until then at least. `false`: no such
    /// conversation.
    pub async fn add_items(
        &self,
        account: AccountId,
        conversation: &str,
        items: Vec<Item>,
        expires_at: i64,
        quota: Quota,
    ) -> Result<Result<bool, NoRoom>, StoreError> {
        if !may_be(conversation) {
            return Ok(Ok(false));
        }
        on_engine!(self, e => e.add_items(account, conversation, items, expires_at, quota).await)
    }

    pub async fn items(&self, account: AccountId, conversation: &str, page: ItemPage) -> Result<Vec<Item>, StoreError> {
        if !may_be(conversation) {
            return Ok(Vec::new());
        }
        on_engine!(self, e => e.items(account, conversation, page).await)
    }

    pub async fn item(&self, account: AccountId, conversation: &str, id: &str) -> Result<Option<Item>, StoreError> {
        if !(may_be(conversation) && may_be(id)) {
            return Ok(None);
        }
        on_engine!(self, e => e.item(account, conversation, id).await)
    }

    /// Erases one item of a conversation. `false`: it was not there.
    pub async fn delete_item(&self, account: AccountId, conversation: &str, id: &str) -> Result<bool, StoreError> {
        if !(may_be(conversation) && may_be(id)) {
            return Ok(false);
        }
        on_engine!(self, e => e.delete_item(account, conversation, id).await)
    }

    /// Takes back what a call said, under whichever of its ids it is there; what another said
    /// stays. `false`: it was not there.
    pub async fn remove_said(
        &self,
        account: AccountId,
        conversation: &str,
        said: AddedItem,
    ) -> Result<bool, StoreError> {
        on_engine!(self, e => e.remove_said(account, conversation, said).await)
    }

    /// How many bytes of items a conversation has.
    pub async fn conversation_bytes(&self, account: AccountId, conversation: &str) -> Result<u64, StoreError> {
        on_engine!(self, e => e.conversation_bytes(account, conversation).await)
    }

    /// Erases responses and conversations past their time, some at a time; how many.
    pub async fn forget_responses(&self, now: i64) -> Result<u64, StoreError> {
        on_engine!(self, e => e.forget_responses(now).await)
    }
}
