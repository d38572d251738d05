//! Tells customers that their tasks have ended. The outbox is written with the end of a task;
//! whoever takes an entry has it for a while, so several replicas share the work and none is lost
//! with one of them.
//!
//! An entry is taken when there is a place to tell it, and one account has a quarter of the places
//! at most: a receiver that does not answer keeps a place for as long as there is patience, and
//! those of one customer must not keep all of them.

use crate::app::App;
use crate::work::video::webhooks;
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tollgate_store::{AccountId, StoreError, Task, Webhook, WebhookOutcome, WebhookWish};

/// How often the outbox is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The part of all places that one account may have.
const SHARE: usize = 4;

/// What is being sent.
#[derive(Default)]
struct Desk {
    in_hand: Mutex<HashMap<AccountId, usize>>,
    /// A place is free again.
    bell: Notify,
}

impl Desk {
    fn begin(&self, account: AccountId) {
        *self.in_hand.lock().unwrap_or_else(PoisonError::into_inner).entry(account).or_default() += 1;
    }

    fn end(&self, account: AccountId) {
        let mut in_hand = self.in_hand.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = in_hand.get_mut(&account) {
            *count -= 1;
            if *count == 0 {
                in_hand.remove(&account);
            }
        }
        drop(in_hand);
        self.bell.notify_one();
    }

    /// What there is room for, with so many places in all: so few of an account at once that it
    /// never has more than its share.
    fn wish(&self, places: usize) -> Option<WebhookWish> {
        let in_hand = self.in_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let free = places.saturating_sub(in_hand.values().sum());
        let share = (places / SHARE).max(1);
        let each = (share / 2).max(1);
        let enough = in_hand.iter().filter(|(_, count)| **count + each > share).map(|(account, _)| *account);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (free > 0).then(|| WebhookWish { limit: number(free), each: number(each), except: enough.collect() })
    }
}

/// Runs until the stop; what is being sent then is sent.
pub async fn run(app: Arc<App>) {
    let desk = Desk::default();
    let (app, desk) = (&app, &desk);
    let deliver = |webhook: Webhook| async move {
        let account = webhook.account;
        one(app, webhook).await;
        desk.end(account);
    };
    due(app, desk).for_each_concurrent(app.settings.video.webhooks.at_once, deliver).await;
}

/// What is due, as there are places for it.
fn due<'a>(app: &'a App, desk: &'a Desk) -> impl Stream<Item = Webhook> + 'a {
    stream::unfold(Vec::new(), move |mut taken: Vec<Webhook>| async move {
        loop {
            if let Some(next) = taken.pop() {
                return Some((next, taken));
            }
            taken = take(app, desk).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "the outbox of webhooks cannot be read");
                Vec::new()
            });
            if !taken.is_empty() {
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = desk.bell.notified() => {}
                () = app.shutdown.ended.cancelled() => return None,
            }
        }
    })
}

async fn take(app: &App, desk: &Desk) -> Result<Vec<Webhook>, StoreError> {
    let settings = &app.settings.video.webhooks;
    let Some(wish) = desk.wish(settings.at_once).filter(|_| !app.shutdown.ended.is_cancelled()) else {
        return Ok(Vec::new());
    };
    let lease = i64::try_from(webhooks::longest(settings).as_millis()).unwrap_or(i64::MAX);
    let taken = app.store.take_webhooks(wish, lease).await?;
    taken.iter().for_each(|webhook| desk.begin(webhook.account));
    Ok(taken)
}

async fn news(app: &App, webhook: &Webhook) -> Result<Option<Task>, StoreError> {
    let account = app.store.account(webhook.account).await?;
    if account.is_none_or(|account| account.closed_at.is_some()) {
        return Ok(None);
    }
    app.store.webhook_task(webhook.task).await
}

async fn one(app: &App, webhook: Webhook) {
    // One that was deleted meanwhile has ended all the same. Of a closed account nobody hears.
    let outcome = match news(app, &webhook).await {
        Ok(Some(task)) => webhooks::deliver(&app.video, &webhook, &task).await,
        Ok(None) => WebhookOutcome::Over,
        // Taken again when the lease ends.
        Err(error) => return tracing::warn!(%error, "a task cannot be read"),
    };
    if let Err(error) = app.store.webhook_tried(&webhook, outcome).await {
        // It is sent once more: at least once is what was promised.
        tracing::warn!(%error, "what became of a webhook could not be written down");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However fast its news come, one account has a quarter of the places, and one where there are
    /// few.
    #[test]
    fn an_account_has_its_share_and_no_more() {
        for (places, share) in [(1, 1), (3, 1), (16, 4), (20, 5), (64, 16)] {
            let (desk, loud) = (Desk::default(), AccountId([7; 16]));
            let mut has = 0;
            while let Some(wish) = desk.wish(places).filter(|wish| !wish.except.contains(&loud)) {
                for _ in 0..wish.each.min(wish.limit) {
                    desk.begin(loud);
                    has += 1;
                }
            }
            assert!(has <= share && has > share / 2, "{has} of {places}");
            if places > 1 {
                assert!(desk.wish(places).is_some_and(|wish| wish.limit as usize == places - has), "others have room");
            }
            for _ in 0..has {
                desk.end(loud);
            }
            assert_eq!(desk.wish(places).map(|wish| wish.except), Some(vec![]));
        }
    }
}
