//! News of payments, and orders of which nothing was heard: each is taken by one replica for a
//! while, so that none is lost with it.

use crate::app::App;
use futures_util::StreamExt as _;
use futures_util::stream;
use std::sync::Arc;
use std::time::Duration;
use tollgate_store::StoreError;

const LOOK: Duration = Duration::from_secs(1);
/// Long enough for a few questions to a payment provider that answers slowly.
const LEASE_MS: i64 = 120_000;
const AT_ONCE: usize = 8;
const STEP: u32 = 32;
/// News that were dealt with are remembered for so long.
const REMEMBERED_MS: i64 = 90 * 86_400_000;
/// Rounds between two looks for what can be forgotten.
const FORGET_EVERY: u32 = 3_600;

/// Runs until the stop. Without payments there is nothing to do.
pub async fn run(app: Arc<App>) {
    if app.payments.settings.stripe.is_none() {
        return;
    }
    let mut rounds = 0u32;
    loop {
        let busy = round(&app).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "news of payments cannot be read");
            false
        });
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(FORGET_EVERY)
            && let Err(error) = app.store.forget_pay_events(app.world.sure_ms() - REMEMBERED_MS).await
        {
            tracing::warn!(%error, "old news of payments cannot be erased");
        }
        if busy && !app.shutdown.stopping.is_cancelled() {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = app.payments.bell.notified() => {}
            () = app.shutdown.stopping.cancelled() => return,
        }
    }
}

/// Deals with what is due. `true`: there may be more.
pub async fn round(app: &Arc<App>) -> Result<bool, StoreError> {
    let events = app.store.take_pay_events(LEASE_MS, STEP).await?;
    let orders = app.store.take_orders(LEASE_MS, STEP).await?;
    let busy = !events.is_empty() || !orders.is_empty();
    stream::iter(events)
        .for_each_concurrent(AT_ONCE, |event| async move {
            if let Err(error) = app.payments.deal_with(&event).await {
                tracing::warn!(%error, event = event.id, "news of a payment are looked at again");
            }
        })
        .await;
    stream::iter(orders)
        .for_each_concurrent(AT_ONCE, |order| async move {
            if let Err(error) = app.payments.look_again(&order).await {
                tracing::warn!(%error, order = %order.id, "an order is looked at again");
            }
        })
        .await;
    Ok(busy)
}
