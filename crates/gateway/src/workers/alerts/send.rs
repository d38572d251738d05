//! Sends what waits: to places of operators, and to webhooks of accounts, each with room of its
//! own. Whoever takes news has them for a while; what fails is tried again, for about five hours.

use crate::alerts::{PlaceAnswer, form};
use crate::app::App;
use crate::people::letter::Letter;
use crate::work::video::webhooks;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tollgate_store::{AccountId, AlertNews, AlertPlaceId, AlertPlaceKind, DueAlert, StoreError};

const LOOK: Duration = Duration::from_secs(5);
const AT_ONCE: usize = 8;
/// Seconds from one try to the next; after the last one it is given up.
const AGAIN: [i64; 7] = [5, 30, 120, 600, 1_800, 3_600, 3 * 3_600];
/// What a try takes beside the patience for an answer.
const MORE_MS: i64 = 60_000;

pub async fn run(app: &Arc<App>) {
    // A customer's slow receiver does not keep operators waiting.
    tokio::join!(sends(app, false), sends(app, true));
}

/// Sends as there are places for it: one that does not answer keeps its own, and no other.
async fn sends(app: &Arc<App>, of_accounts: bool) {
    // Tasks of their own: one that waits for the database goes on while the next are taken.
    let (mut sending, mut in_hand) = (JoinSet::new(), Vec::new());
    loop {
        let free = AT_ONCE.saturating_sub(sending.len());
        let taken = take(app, of_accounts, free, &in_hand).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "alerts wait for the database");
            Vec::new()
        });
        for due in taken {
            in_hand.push(due.whose());
            let app = app.clone();
            sending.spawn(async move { sent(&app, due).await });
        }
        tokio::select! {
            Some(done) = sending.join_next() => match done {
                Ok(whose) => in_hand.retain(|one| *one != whose),
                // Its lease ends.
                Err(_) => in_hand.clear(),
            },
            () = tokio::time::sleep(LOOK) => {}
            () = app.alerts.rung(of_accounts) => {}
            // What is on its way is sent again by the next process, with the same id.
            () = app.shutdown.stopping.cancelled() => return,
        }
    }
}

async fn take(app: &App, of_accounts: bool, free: usize, in_hand: &[[u8; 16]]) -> Result<Vec<DueAlert>, StoreError> {
    if free == 0 {
        return Ok(Vec::new());
    }
    let patience = i64::try_from(app.settings.video.webhooks.patience.as_millis()).unwrap_or(MORE_MS);
    app.store.take_alerts(of_accounts, free, patience.saturating_mul(2).saturating_add(MORE_MS), in_hand).await
}

/// Whose it was.
async fn sent(app: &App, due: DueAlert) -> [u8; 16] {
    if let Err(error) = one(app, &due).await {
        // It is sent once more, with the same id.
        tracing::warn!(%error, "what became of an alert could not be written down");
    }
    due.whose()
}

/// Sends what is due now, and waits for it; how much that was.
pub async fn send_due(app: &App) -> Result<usize, StoreError> {
    let mut due = take(app, false, AT_ONCE, &[]).await?;
    due.extend(take(app, true, AT_ONCE, &[]).await?);
    Ok(join_all(due.into_iter().map(|due| sent(app, due))).await.len())
}

async fn one(app: &App, due: &DueAlert) -> Result<(), StoreError> {
    let answer = match (due.place, due.account) {
        (Some(place), _) => to_place(app, due, place).await?,
        (None, Some(account)) => to_account(app, due, account).await?,
        (None, None) => None,
    };
    let Some(answer) = answer else { return Ok(()) };
    let again = match answer {
        PlaceAnswer::Delivered(_) | PlaceAnswer::Gone => None,
        _ => usize::try_from(due.tries - 1).ok().and_then(|tries| AGAIN.get(tries)).map(|seconds| seconds * 1_000),
    };
    let delivered = matches!(answer, PlaceAnswer::Delivered(_));
    let outcome = if delivered || again.is_some() { answer.outcome() } else { "given_up" };
    app.metrics.alerts.delivery(outcome);
    if !delivered {
        let (tries, status) = (due.tries, answer.status());
        tracing::warn!(alert = %due.event, tries, status, again_in_ms = again, outcome, "an alert was not delivered");
    }
    app.store.alert_tried(due, (outcome, answer.status()), again, None).await
}

/// Nothing: it is over already.
async fn to_place(app: &App, due: &DueAlert, id: AlertPlaceId) -> Result<Option<PlaceAnswer>, StoreError> {
    let Some(found) = app.store.alert_place(id).await? else {
        return app.store.drop_alert(due).await.map(|()| None);
    };
    let (Some(address), Ok(news)) = (app.alerts.open(&found.sealed), serde_json::from_str::<AlertNews>(&due.news))
    else {
        // Another replica may have them.
        tracing::error!(place = %id, "a place of alerts was sealed with secrets that are not here any more");
        return Ok(Some(PlaceAnswer::NotReached));
    };
    let kind = found.place.kind;
    if kind != AlertPlaceKind::Mail {
        return Ok(Some(app.alerts.tell((kind, id), &address, due.event, &news).await));
    }
    let letter = Letter::of_alert(form::text(&news), address.to);
    let Some(sealed) = app.people.sealed(&letter, |bytes| app.world.fill(bytes)) else {
        tracing::error!(place = %id, "an alert cannot be mailed: there is no [people.mail]");
        return Ok(Some(PlaceAnswer::NotReached));
    };
    // From here on it is the outbox's: both are one write.
    app.store.alert_tried(due, ("delivered", None), None, Some(sealed)).await?;
    app.metrics.alerts.delivery("delivered");
    app.people.ring();
    Ok(None)
}

async fn to_account(app: &App, due: &DueAlert, id: AccountId) -> Result<Option<PlaceAnswer>, StoreError> {
    let account = app.store.account(id).await?;
    let Some(url) = account.and_then(|account| webhooks::of_account(&app.video, &account)) else {
        return app.store.drop_alert(due).await.map(|()| None);
    };
    let event = due.event.to_string().replacen("alert_", "evt_", 1);
    let data: Value = serde_json::from_str(&due.news).unwrap_or_default();
    let body = json!({
        "object": "event", "id": event, "type": "balance.low",
        "created_at": due.created_at.div_euclid(1000), "data": data,
    });
    let of = (webhooks::PURPOSE, &*id.to_string());
    Ok(Some(app.alerts.tell_signed(&url, &event, body.to_string(), of).await))
}
