//! Reads what is new for those who watch (`live/`): once a second, once for all of them, and not at
//! all while nobody does.

use crate::app::App;
use crate::watching::{look_at_accounts, look_at_house};
use std::sync::Arc;
use std::time::Duration;

/// So late something is seen, wherever it happened.
const LOOK: Duration = Duration::from_secs(1);

/// Looks until the stop.
pub async fn run(app: Arc<App>) {
    loop {
        tokio::select! {
            () = app.live.somebody() => {}
            () = app.shutdown.stopping.cancelled() => return,
        }
        let outcome = tokio::join!(look_at_accounts(&app), look_at_house(&app));
        for error in [outcome.0.err(), outcome.1.err()].into_iter().flatten() {
            app.live.meter.failed.inc();
            tracing::warn!(%error, "live events could not be read; the next look does");
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = app.shutdown.stopping.cancelled() => return,
        }
    }
}
