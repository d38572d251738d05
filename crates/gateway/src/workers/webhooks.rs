//! Tells customers that their tasks have ended. The outbox is written with the end of a task; whoever takes an entry has it for a
//! while, so several replicas share the work and none is lost with one of them.

use crate::app::App;
use crate::webhooks;
use futures_util::StreamExt as _;
use futures_util::stream;
use std::sync::Arc;
use std::time::Duration;
use tollgate_store::{StoreError, Told, Webhook};

/// How often the outbox is looked at.
const LOOK: Duration = Duration::from_secs(1);
const AT_MOST: u32 = 100;

/// Runs until the stop.
pub async fn run(app: Arc<App>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = app.ended.cancelled() => return,
        }
        loop {
            match round(&app).await {
                // A full hand means that there may be more.
                Ok(told) if told == AT_MOST as usize && !app.ended.is_cancelled() => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%error, "the outbox of webhooks cannot be read");
                    break;
                }
            }
        }
    }
}

async fn round(app: &App) -> Result<usize, StoreError> {
    let settings = &app.settings.video.webhooks;
    // Those taken together wait for each other: the lease covers all of them.
    let waves = u32::try_from((AT_MOST as usize).div_ceil(settings.at_once)).unwrap_or(u32::MAX);
    let lease = webhooks::longest(settings).saturating_mul(waves);
    let due = app.store.take_webhooks(AT_MOST, i64::try_from(lease.as_millis()).unwrap_or(i64::MAX)).await?;
    let count = due.len();
    stream::iter(due).for_each_concurrent(settings.at_once, |webhook| one(app, webhook)).await;
    Ok(count)
}

async fn one(app: &App, webhook: Webhook) {
    // One that was deleted meanwhile has ended all the same.
    let told = match app.store.told_task(webhook.task).await {
        Ok(Some(task)) => webhooks::tell(app, &webhook, &task).await,
        Ok(None) => Told::Over,
        // Taken again when the lease ends.
        Err(error) => return tracing::warn!(%error, "a task cannot be read"),
    };
    if let Err(error) = app.store.told(&webhook, told).await {
        // It is told once more: at least once is what was promised.
        tracing::warn!(%error, "what became of a webhook could not be written down");
    }
}
