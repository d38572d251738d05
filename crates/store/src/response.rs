//! Responses and conversations that outlive their call: what a later request of the same account
//! may name.
//!
//! The store does not know what is in them: items and objects are text. A response is written once
//! and erased by its owner or by time; one that is continued lives as long as what continues it.
//! Everything belongs to one account, and another's is not found.

pub(crate) mod quota;

use crate::ids::AccountId;
use crate::response::quota::StorageUsed;

/// Longest chain of responses that a request may continue, and all of its text together.
pub const CHAIN_LENGTH: u32 = 1_000;
pub const CHAIN_BYTES: u64 = 64 << 20;

/// A response to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewResponse {
    pub account: AccountId,
    pub response: StoredResponse,
    /// The ids of its output items, by which they can be found.
    pub items: Vec<String>,
    /// What it adds to its conversation.
    pub said: Vec<AddedItem>,
}

impl NewResponse {
    /// The room it takes at most.
    pub(crate) fn needs(&self) -> StorageUsed {
        let (r, conversation) = (&self.response, self.response.conversation.as_deref().unwrap_or_default());
        let named = self.items.iter().map(|id| StorageUsed::item(&[id, &r.id]));
        let said = self.said.iter().map(|said| {
            let id = if said.spare.len() > said.item.id.len() { &said.spare } else { &said.item.id };
            StorageUsed::item(&[conversation, id, &said.item.json])
        });
        named.chain(said).fold(StorageUsed::object(&[&r.id, &r.input, &r.object]), StorageUsed::plus)
    }
}

/// An item that a call adds to a conversation. Another call may have come to its id in the
/// meantime, as a provider may count anew with every answer: then it has the other one, which is
/// nobody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedItem {
    pub item: Item,
    pub spare: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredResponse {
    pub id: String,
    /// The response that it continues.
    pub previous: Option<String>,
    /// The conversation that it is part of.
    pub conversation: Option<String>,
    pub created_at: i64,
    pub expires_at: i64,
    /// Its own input items, a JSON list.
    pub input: String,
    /// The response object as the client got it.
    pub object: String,
}

impl StoredResponse {
    /// Bytes of text, which is what limits are about.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.input.len() + self.object.len()).unwrap_or(u64::MAX)
    }
}

/// One item of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub id: String,
    pub json: String,
}

impl Item {
    /// The room that items of a conversation take.
    pub(crate) fn need(conversation: &str, items: &[Item]) -> StorageUsed {
        let all = items.iter().map(|item| StorageUsed::item(&[conversation, &item.id, &item.json]));
        all.fold(StorageUsed::default(), StorageUsed::plus)
    }
}

/// A response with all that it continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Oldest first.
    Whole(Vec<StoredResponse>),
    /// This one is not there: never was, another account's, deleted or expired.
    Missing(String),
    /// More than [`CHAIN_LENGTH`] or [`CHAIN_BYTES`].
    TooLong,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredConversation {
    pub id: String,
    pub created_at: i64,
    pub expires_at: i64,
    /// A JSON object.
    pub metadata: String,
}

impl StoredConversation {
    /// The room it takes with its items.
    pub(crate) fn needs(&self, items: &[Item]) -> StorageUsed {
        StorageUsed::object(&[&self.id, &self.metadata]).plus(Item::need(&self.id, items))
    }
}

/// Which items of a conversation.
#[derive(Clone, Debug)]
pub struct ItemPage {
    /// Begin after this item.
    pub after: Option<String>,
    pub limit: u32,
    /// Where items beyond so many bytes are left off, but for the first two: that there is more is
    /// seen by the second.
    pub most_bytes: u64,
    pub newest_first: bool,
}

impl Chain {
    /// Puts rows in order that a query found going back from a response. `exists`: whether the one
    /// that the last of them names is there.
    pub(crate) fn of(asked: &str, mut back: Vec<StoredResponse>, exists: bool) -> Chain {
        let Some(last) = back.last() else { return Chain::Missing(asked.to_owned()) };
        match &last.previous {
            Some(_) if exists => Chain::TooLong,
            Some(previous) => Chain::Missing(previous.clone()),
            None => {
                back.reverse();
                Chain::Whole(back)
            }
        }
    }
}
