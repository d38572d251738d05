//! Keeping an answer: one write, waited for before the client learns that the answer is complete.
//!
//! An answer that could not be stored is still the client's, who pays for it; it says that it is
//! not stored, and the operator is warned. One that belongs to a conversation has failed instead:
//! the conversation would go on as if it had never been said.

use super::{Keeper, LIFE, StoreOutcome};
use crate::work::conversation::ConversationDesk;
use bytes::Bytes;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tollgate_dialects::responses::{self, NamedItems, ResponseOutline};
use tollgate_store::{AccountId, AddedItem, CallId, Item, NewResponse, NoRoom, Quota, StoreError, StoredResponse};

/// A database that does not answer holds back no answer for longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Nor does one hold up the stop of the server.
const ERASING: Duration = Duration::from_secs(20);

/// Longest id by which an item is found.
const LONGEST_ID: usize = 256;

/// Keeps the answer to one request in the store.
pub struct ResponseKeeper {
    pub desk: Arc<ConversationDesk>,
    pub account: AccountId,
    pub quota: Quota,
    pub call: CallId,
    pub named: NamedItems,
    /// The request's own input items.
    pub own: Vec<String>,
    /// Ids that items of the conversation have.
    pub taken: HashSet<String>,
}

impl ResponseKeeper {
    fn record(&self, answer: &Bytes) -> Option<NewResponse> {
        let read = ResponseOutline::read(answer)?;
        let now = self.desk.till.world.now_ms();
        let said = match self.named.conversation {
            Some(_) => self.said(&read),
            None => Vec::new(),
        };
        let heard = self.own.iter().filter_map(|json| responses::item_id(json));
        let mut items: Vec<String> =
            read.items.into_iter().map(|(id, _)| id).chain(heard).filter(|id| fits(id)).collect();
        let mut seen = HashSet::new();
        items.retain(|id| seen.insert(id.clone()));
        Some(NewResponse {
            account: self.account,
            response: StoredResponse {
                id: read.id,
                previous: self.named.previous.clone(),
                conversation: self.named.conversation.clone(),
                created_at: now,
                expires_at: now + LIFE.as_millis() as i64,
                input: format!("[{}]", self.own.join(",")),
                object: std::str::from_utf8(answer).ok()?.to_owned(),
            },
            items,
            said,
        })
    }

    /// What the call adds to its conversation. An item without an id gets one, and so does one
    /// whose id another has: a provider may count anew with every answer.
    fn said(&self, answer: &ResponseOutline) -> Vec<AddedItem> {
        let own = self.own.iter().map(|json| (responses::item_id(json).unwrap_or_default(), json.clone()));
        let mut taken = self.taken.clone();
        let all = own.chain(answer.items.iter().cloned()).enumerate();
        all.map(|(at, (id, json))| {
            let free = fits(&id) && taken.insert(id.clone());
            let spare = made_id(&self.call.to_string(), at);
            AddedItem { item: Item { id: if free { id } else { spare.clone() }, json }, spare }
        })
        .collect()
    }
}

/// Whether an item can be found by this id: not every database has a place for every character.
pub fn fits(id: &str) -> bool {
    (1..=LONGEST_ID).contains(&id.len()) && !id.contains('\0')
}

/// The id of an input item that has none of its own: always the same for the same place, and never
/// that of an output item.
pub fn made_id(of: &str, at: usize) -> String {
    let own = of.rsplit_once('_').map_or(of, |(_, own)| own);
    format!("msg_{own}_in{at}")
}

/// What may still be written although nobody waited for it: its client learned that it is not
/// there.
struct Late {
    account: AccountId,
    id: String,
    conversation: Option<String>,
    said: Vec<AddedItem>,
}

impl Late {
    fn of(new: &NewResponse) -> Late {
        let (id, conversation) = (new.response.id.clone(), new.response.conversation.clone());
        Late { account: new.account, id, conversation, said: new.said.clone() }
    }

    async fn erase(self, desk: Arc<ConversationDesk>) {
        let work = async {
            desk.till.store.delete_response(self.account, &self.id).await?;
            for said in self.said {
                desk.till
                    .store
                    .remove_said(self.account, self.conversation.as_deref().unwrap_or_default(), said)
                    .await?;
            }
            Ok::<(), StoreError>(())
        };
        // A database that stays away has not written it either.
        let _ = tokio::time::timeout(ERASING, work).await;
    }
}

impl Keeper for ResponseKeeper {
    fn keep(&self, answer: Bytes) -> Pin<Box<dyn Future<Output = StoreOutcome> + Send>> {
        let (record, desk, call, quota) = (self.record(&answer), self.desk.clone(), self.call, self.quota);
        let otherwise = if self.named.conversation.is_some() { StoreOutcome::Failed } else { StoreOutcome::No };
        Box::pin(async move {
            let Some(record) = record else {
                tracing::error!(%call, "an answer that is no response could not be stored");
                return otherwise;
            };
            let late = Late::of(&record);
            match tokio::time::timeout(PATIENCE, desk.till.store.store_response(record, quota)).await {
                Ok(Ok(Ok(true))) => return StoreOutcome::Yes,
                Ok(Ok(Err(NoRoom::Account(_)))) => {
                    tracing::debug!(%call, "an answer is not stored: its account stores as much as it may");
                    return otherwise;
                }
                Ok(Ok(Err(NoRoom::All))) => {
                    tracing::warn!(%call, "an answer is not stored: there is no room for anything more");
                    return otherwise;
                }
                Ok(Ok(Ok(false))) => {
                    tracing::error!(%call, "a response of this id is stored already");
                    return otherwise;
                }
                Ok(Err(error)) => tracing::error!(%call, %error, "a response could not be stored"),
                Err(_) => tracing::error!(%call, "a response could not be stored in time"),
            }
            desk.till.tracker.spawn(late.erase(desk.clone()));
            otherwise
        })
    }
}
