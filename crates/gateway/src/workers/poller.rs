//! Looks after open tasks. Whatever is due is taken from the store, a lease each, and looked at
//! side by side; a provider that answers slowly holds up nobody else's tasks. Any number of
//! replicas do this at once, and what one of them had in its hands when it died is due again when
//! its lease ends.

use crate::app::App;
use crate::call::task::look;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tollgate_store::StoreError;

/// No more are begun at a provider when it has this part of all places; a round takes half as many.
const SHARE: usize = 4;
/// How often open tasks are counted, over all replicas.
const COUNTED: Duration = Duration::from_secs(5);
/// After a round that failed.
const TROUBLE: Duration = Duration::from_secs(2);

/// Runs until the stop: what is being looked at then is put back or ended, and nothing new is
/// taken.
pub async fn run(app: Arc<App>) {
    let settings = &app.tasks.settings;
    let places = Arc::new(Semaphore::new(settings.parallel));
    let mut count_at = Instant::now();
    loop {
        if Instant::now() >= count_at {
            count_at = Instant::now() + COUNTED;
            match app.store.open_tasks().await {
                Ok(open) => app.tasks.counted(open),
                Err(error) => tracing::warn!(%error, "open tasks could not be counted"),
            }
        }
        let pause = match round(&app, &places).await {
            Ok(true) => continue,
            Ok(false) => settings.look_every,
            Err(error) => {
                tracing::warn!(%error, "due tasks could not be taken");
                TROUBLE
            }
        };
        tokio::select! {
            () = app.shutdown.stopping.cancelled() => return,
            () = app.tasks.bell.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Takes as many tasks as there are places for. `true`: there may be more.
async fn round(app: &Arc<App>, places: &Arc<Semaphore>) -> Result<bool, StoreError> {
    let free = u32::try_from(places.available_permits()).unwrap_or(u32::MAX);
    if app.shutdown.stopping.is_cancelled() || free == 0 {
        return Ok(false);
    }
    let share = (app.tasks.settings.parallel / SHARE).max(1);
    let wanted = free.min(u32::try_from(share.div_ceil(2)).unwrap_or(u32::MAX));
    let lease = i64::try_from(app.tasks.settings.lease().as_millis()).unwrap_or(i64::MAX);
    let taken = app.store.take_tasks(wanted, lease, &app.tasks.busy(share)).await?;
    let more = taken.len() >= wanted as usize;
    for leased in taken {
        let Ok(place) = places.clone().try_acquire_owned() else { break };
        let (worker, places) = (app.clone(), places.clone());
        let provider = leased.task.provider.clone().unwrap_or_default();
        app.tasks.begin(&provider);
        app.tracker.spawn(async move {
            if let Err(error) = look(&worker.till, &worker.video, &leased).await {
                // Its lease ends by itself.
                tracing::warn!(task = %leased.task.id, %error, "a look at a task came to nothing");
            }
            let full = worker.tasks.end(&provider, share) || places.available_permits() == 0;
            drop(place);
            if full {
                worker.tasks.bell.notify_one();
            }
        });
    }
    Ok(more)
}
