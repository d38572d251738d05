//! What those who watch are shown (`live/`), read from the store and from this process: how it is
//! when somebody begins, and what is new at each look.

use crate::app::App;
use crate::live::{AccountFeed, HouseFeed, HouseNow, HouseWatched, LiveEvent, LiveMark, PausedPair, WatchedAccount};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tollgate_store::{AccountId, LivePlace, LiveTraffic, StoreError};

/// Looks at an account for the first time, unless somebody has. What happens from then on is seen.
pub async fn begin_account(app: &App, feed: &AccountFeed, account: AccountId) -> Result<LiveMark, StoreError> {
    let mut seen = feed.seen.lock().await;
    if let Some(seen) = seen.as_ref() {
        return Ok(seen.mark);
    }
    // The place first: what ends while the rest is read is said twice rather than never.
    let entry = end_of(app, account).await?;
    let state = app.store.live_states(&[account]).await?.remove(&account).unwrap_or_default();
    Ok(seen.insert(WatchedAccount::new(entry, state, app.world.now_ms())).mark)
}

async fn end_of(app: &App, account: AccountId) -> Result<i64, StoreError> {
    Ok(app.store.live_places(&[account]).await?.first().map_or(0, |place| place.entry))
}

/// What a reader that was gone since a mark has missed, and where it is then. `None`: it has to
/// read again.
pub async fn missed(
    app: &App,
    account: AccountId,
    from: LiveMark,
) -> Result<Option<(Vec<LiveEvent>, i64)>, StoreError> {
    // A mark that is not of this ledger.
    if end_of(app, account).await? < from.entry {
        return Ok(None);
    }
    let calls = app.store.live_calls(&[LivePlace { account, entry: from.entry }]).await?;
    let state = app.store.live_states(&[account]).await?.remove(&account).unwrap_or_default();
    let Some(calls) = calls.first() else { return Ok(None) };
    let events = WatchedAccount::missed(from, calls, &state, app.world.now_ms());
    Ok(events.map(|events| (events, calls.entry)))
}

/// The same for the house.
pub async fn begin_house(app: &App, feed: &HouseFeed) -> Result<(), StoreError> {
    let mut seen = feed.seen.lock().await;
    if seen.is_none() {
        *seen = Some(HouseWatched::new(house_now(app).await?));
    }
    Ok(())
}

async fn house_now(app: &App) -> Result<HouseNow, StoreError> {
    let serving = app.serving.load();
    let pairs = app.routes.pauses.shut_pairs().into_iter();
    Ok(HouseNow {
        end: app.store.live_end().await?,
        rows: app.store.live_house().await?,
        catalog: (serving.text.hash.clone(), serving.text.version, serving.catalog.models.len()),
        health: app.routes.figures.now(),
        health_hours: app.settings.price_list.health_hours,
        pairs: pairs.map(|(provider, model)| PausedPair { provider, model }).collect(),
        replica: app.store.replica_name(),
        running: app.running.load(Ordering::Relaxed),
        at_ms: app.world.now_ms(),
    })
}

/// Looks at all accounts that are watched, and says what is new.
pub async fn look_at_accounts(app: &App) -> Result<(), StoreError> {
    let mut feeds: Vec<(Arc<AccountFeed>, LivePlace)> = Vec::new();
    for (account, feed) in app.live.watched() {
        // One that has not begun begins with whoever opens it.
        let entry = feed.seen.lock().await.as_ref().map(|seen| seen.mark.entry);
        feeds.extend(entry.map(|entry| (feed, LivePlace { account, entry })));
    }
    if feeds.is_empty() {
        return Ok(());
    }
    let places: Vec<LivePlace> = feeds.iter().map(|(_, place)| *place).collect();
    let accounts: Vec<AccountId> = places.iter().map(|place| place.account).collect();
    let calls = app.store.live_calls(&places).await?;
    let mut states = app.store.live_states(&accounts).await?;
    let now = app.world.now_ms();
    for (feed, place) in feeds {
        let Some(calls) = calls.iter().find(|calls| calls.account == place.account) else { continue };
        let state = states.remove(&place.account).unwrap_or_default();
        let mut seen = feed.seen.lock().await;
        let Some(seen) = seen.as_mut() else { continue };
        if seen.is_late(now) {
            app.live.meter.reset("gap");
        }
        seen.news(calls, state, now).into_iter().for_each(|event| feed.publish(event));
    }
    Ok(())
}

/// The same for the house.
pub async fn look_at_house(app: &App) -> Result<(), StoreError> {
    let Some(feed) = app.live.watched_house() else { return Ok(()) };
    let mut seen = feed.seen.lock().await;
    let Some(before) = seen.as_mut() else { return Ok(()) };
    let (after, to) = before.span();
    let traffic = if to > after { app.store.live_traffic(after, to).await? } else { LiveTraffic::default() };
    let now = house_now(app).await?;
    match before.news(now, traffic) {
        Some(events) => events.into_iter().for_each(|event| feed.publish(event)),
        None => {
            app.live.meter.reset("gap");
            feed.publish(LiveEvent::new("reset", None, json!({ "reason": "gap" })));
        }
    }
    Ok(())
}
