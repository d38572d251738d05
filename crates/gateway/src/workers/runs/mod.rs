//! Works on runs of workflows. Whatever is due is taken from the store, a lease each, and driven
//! until it rests or waits. Any number of replicas do this at once; what one of them had in its
//! hands when it died is due again when its lease ends.

mod attempt;
mod drive;
mod fixture;
mod gather;
mod verify;

use crate::app::App;
use axum::Router;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tollgate_store::StoreError;

/// Nobody else has a run for so long; whoever works on it says so again in time.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// After a round that failed.
const TROUBLE: Duration = Duration::from_secs(2);

pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Runs until the stop: what is being worked on then goes on to the end of its step, and nothing
/// new is taken. Steps are asked of the router, as everybody else asks.
pub async fn run(app: Arc<App>, router: Router) {
    let settings = &app.settings.runs;
    let places = Arc::new(Semaphore::new(settings.parallel));
    loop {
        let pause = match round(&app, &router, &places).await {
            Ok(true) => continue,
            Ok(false) => settings.look_every,
            Err(error) => {
                tracing::warn!(%error, "due runs could not be taken");
                TROUBLE
            }
        };
        tokio::select! {
            biased;
            () = app.shutdown.stopping.cancelled() => return,
            () = app.run_bell.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Takes as many runs as there are places for. `true`: there may be more.
async fn round(app: &Arc<App>, router: &Router, places: &Arc<Semaphore>) -> Result<bool, StoreError> {
    let free = u32::try_from(places.available_permits()).unwrap_or(u32::MAX);
    if app.shutdown.stopping.is_cancelled() || free == 0 {
        return Ok(false);
    }
    let taken = app.store.take_runs(free, millis(LEASE)).await?;
    let more = taken.len() >= free as usize;
    for run in taken {
        let Ok(place) = places.clone().try_acquire_owned() else { break };
        let (worker, router) = (app.clone(), router.clone());
        app.tracker.spawn(async move {
            let id = run.id;
            if let Err(error) = drive::drive(&worker, &router, run).await {
                // Its lease ends by itself.
                tracing::warn!(run = %id, %error, "work on a run came to nothing");
            }
            drop(place);
            worker.run_bell.notify_one();
        });
    }
    Ok(more)
}
