//! Keeping an answer: one write, waited for before the client learns that the answer is complete.
//!
//! An answer that could not be kept is still the client's, who pays for it; it cannot be continued, and the operator is told.

use super::LIFE;
use crate::app::App;
use crate::call::Keeper;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tollgate_store::{AccountId, CallId, Item, NewResponse, StoredResponse};
use tollgate_wire::responses::{self, Answer, Named};

/// A database that does not answer holds back no answer for longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps the answer to one request in the store.
pub struct Keep {
    pub app: Arc<App>,
    pub account: AccountId,
    pub call: CallId,
    pub named: Named,
    /// The request's own input items.
    pub own: Vec<String>,
    /// The public name of the model, whatever the provider calls it.
    pub model: String,
}

impl Keep {
    fn record(&self, answer: &Bytes) -> Option<NewResponse> {
        let read = Answer::read(answer)?;
        let now = self.app.world.now_ms();
        let said = match self.named.conversation {
            Some(_) => self.said(&read),
            None => Vec::new(),
        };
        Some(NewResponse {
            account: self.account,
            response: StoredResponse {
                id: read.id,
                previous: self.named.previous.clone(),
                conversation: self.named.conversation.clone(),
                created_at: now,
                expires_at: now + LIFE.as_millis() as i64,
                input: format!("[{}]", self.own.join(",")),
                object: responses::as_kept(answer, &self.model, self.named.previous.as_deref())?,
            },
            items: read.items.into_iter().map(|(id, _)| id).filter(|id| !id.is_empty()).collect(),
            said,
        })
    }

    /// What the call adds to its conversation; an item without an id gets one.
    fn said(&self, answer: &Answer) -> Vec<Item> {
        let own = self.own.iter().map(|json| (responses::item_id(json).unwrap_or_default(), json.clone()));
        let all = own.chain(answer.items.iter().cloned()).enumerate();
        all.map(|(at, (id, json))| {
            let id = if id.is_empty() { made_id(&self.call.to_string(), at) } else { id };
            Item { id, json }
        })
        .collect()
    }
}

/// The id of an input item that has none of its own: always the same for the same place, and never that of an output item.
pub fn made_id(of: &str, at: usize) -> String {
    let own = of.rsplit_once('_').map_or(of, |(_, own)| own);
    format!("msg_{own}_in{at}")
}

impl Keeper for Keep {
    fn keep(&self, answer: Bytes) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (record, app, call) = (self.record(&answer), self.app.clone(), self.call);
        Box::pin(async move {
            let Some(record) = record else { return };
            let kept = tokio::time::timeout(PATIENCE, app.store.keep_response(record)).await;
            match kept {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%call, %error, "a response could not be kept"),
                Err(_) => tracing::error!(%call, "a response could not be kept in time"),
            }
        })
    }
}
