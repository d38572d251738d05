//! The regular rounds: key book, heart beat, sweep, audit. A round that fails is logged and tried
//! again at its next turn.

use crate::app::App;
use crate::who::person::LONGEST_SESSION_MS;
use crate::work::files::SweptFiles;
use crate::workers::alerts::measure;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tollgate_store::{AuditReport, CLOSE_GRACE_MS, FILL_STEP, StoreError};

/// A revoked key must stop working within five seconds on every replica.
const KEYS: Duration = Duration::from_secs(1);
const BEAT: Duration = Duration::from_secs(5);
const SWEEP: Duration = Duration::from_secs(10);
/// A cell paused by an operator or another replica.
const SOCIAL: Duration = Duration::from_secs(1);
/// A workflow that was locked or unlocked on another replica.
const WORKFLOWS: Duration = Duration::from_secs(5);
/// The whole ledger is recomputed; what it finds is the metric `ledger_drift`.
const AUDIT: Duration = Duration::from_secs(3_600);
/// A very large ledger is audited less often: between two audits there are so many times as long
/// as one took.
const AUDIT_REST: u32 = 20;

/// And every minute what has changed since.
const AUDIT_CHANGED: Duration = Duration::from_secs(60);

/// Copies of videos that have been retained long enough are taken away.
const FILES: Duration = Duration::from_secs(600);
/// Responses and conversations past their time are erased.
const FORGET: Duration = Duration::from_secs(60);

/// Whoever has not verified an e-mail for so long, and belongs to nothing, is forgotten.
const UNVERIFIED_MS: i64 = 7 * 24 * 3_600_000;

/// What was counted of routes is added to what other replicas counted, and theirs is read.
const HEALTH_FLUSH: Duration = Duration::from_secs(30);
const HEALTH_READ: Duration = Duration::from_secs(60);

/// Rows of the usage log that are older than its sums are added to them, once.
const SUMS: Duration = Duration::from_secs(60);
/// Between two steps of it, for those who wait.
const SUMS_PAUSE: Duration = Duration::from_millis(50);

/// Trial credit that was granted by a process that died before it was credited.
const TRIALS: Duration = Duration::from_secs(10);
/// Jobs of processes that are gone, and files of exports past their time.
const JOBS: Duration = Duration::from_secs(30);

/// Starts all rounds on the app's tracker.
pub fn upkeep(app: &Arc<App>) {
    start(app, KEYS, Round::Keys);
    start(app, BEAT, Round::Beat);
    start(app, SWEEP, Round::Sweep);
    start(app, AUDIT, Round::Audit);
    start(app, SOCIAL, Round::Social);
    start(app, WORKFLOWS, Round::Workflows);
    start(app, AUDIT_CHANGED, Round::AuditChanged);
    if app.video.copies.is_some() || app.images.has_links() || app.run_files.is_some() {
        start(app, FILES, Round::Files);
    }
    start(app, FORGET, Round::Forget);
    start(app, HEALTH_FLUSH, Round::HealthFlush);
    start(app, HEALTH_READ, Round::HealthRead);
    start(app, SUMS, Round::Sums);
    if app.settings.people.enabled {
        start(app, TRIALS, Round::Trials);
    }
    start(app, JOBS, Round::Jobs);
}

#[derive(Clone, Copy, Debug)]
enum Round {
    Keys,
    Beat,
    Sweep,
    Audit,
    Social,
    Workflows,
    AuditChanged,
    Files,
    Forget,
    HealthFlush,
    HealthRead,
    Sums,
    Trials,
    Jobs,
}

fn start(app: &Arc<App>, pause: Duration, round: Round) {
    let worker = app.clone();
    app.tracker.spawn(async move {
        // The audit of what has changed goes on from the first full one.
        let wait = if matches!(round, Round::AuditChanged) { pause } else { Duration::ZERO };
        let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + wait, pause);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = worker.shutdown.ended.cancelled() => return,
            }
            let begun = tokio::time::Instant::now();
            if let Err(error) = run(&worker, round).await {
                tracing::warn!(?round, %error, "a round failed");
            }
            if matches!(round, Round::Audit) {
                tick.reset_after(pause.max(begun.elapsed() * AUDIT_REST));
            }
        }
    });
}

async fn run(app: &App, round: Round) -> Result<(), StoreError> {
    match round {
        Round::Keys => {
            app.keys.refresh(&app.store, &app.world).await?;
            app.published.refresh(&app.store).await.map(drop)
        }
        Round::Social => app.social.refresh().await,
        Round::Workflows => app.look_at_workflows().await,
        Round::Beat => app.store.beat().await,
        Round::Sweep => {
            app.client.tidy();
            app.video.outside.tidy();
            let swept = app.store.sweep(app.world.steady_ms()).await?;
            if swept.expired + swept.orphaned > 0 {
                tracing::warn!(expired = swept.expired, orphaned = swept.orphaned, "holds resolved by the sweeper");
            }
            Ok(())
        }
        Round::Forget => {
            // Some at a time, so that nobody waits for them.
            while app.store.forget_responses(app.world.sure_ms()).await? > 0 && !app.shutdown.ended.is_cancelled() {}
            let sure = app.world.sure_ms();
            while app.store.erase_closed(sure - CLOSE_GRACE_MS).await? > 0 && !app.shutdown.ended.is_cancelled() {}
            if app.settings.people.enabled {
                app.store.forget_people(sure, sure - LONGEST_SESSION_MS, sure - UNVERIFIED_MS).await?;
                app.metrics.people.sessions.set(app.store.sessions_open().await?);
                app.metrics.people.letters_waiting.set(app.store.mail_waiting().await?);
            }
            Ok(())
        }
        Round::HealthFlush => {
            app.routes.traffic.forget(|model| app.serving.load().catalog.model(model).is_some());
            app.flush_health().await
        }
        Round::HealthRead => app.read_health().await,
        Round::Sums => {
            while app.store.fill_sums(FILL_STEP).await? && !app.shutdown.ended.is_cancelled() {
                tokio::time::sleep(SUMS_PAUSE).await;
            }
            while app.store.fold_sums().await? && !app.shutdown.ended.is_cancelled() {
                tokio::time::sleep(SUMS_PAUSE).await;
            }
            Ok(())
        }
        Round::Trials => app.store.credit_trials().await.map(drop),
        Round::Jobs => {
            app.jobs.sweep(app.world.sure_ms()).await;
            app.store.interrupt_jobs(None).await?;
            if app.store.has_replicas() {
                app.store.sweep_exports().await?;
            }
            Ok(())
        }
        Round::Audit => audited(app, app.store.verify_quietly().await, true).await,
        Round::Files => {
            if let Some(copies) = &app.video.copies {
                swept("copies of videos", copies.sweep(app.world.sure_ms()).await);
            }
            if let Some(store) = &app.images.store {
                swept("pictures", store.sweep(app.world.sure_ms()).await);
            }
            swept("files of runs", app.sweep_run_files().await);
            Ok(())
        }
        Round::AuditChanged => audited(app, app.store.verify_changed().await, false).await,
    }
}

fn swept(what: &str, swept: SweptFiles) {
    if swept.gone > 0 {
        tracing::info!(what, gone = swept.gone, "files taken away after their time");
    }
    if let Some(error) = swept.why {
        tracing::warn!(what, failed = swept.failed, %error, "files could not be looked through or taken away");
    }
}

async fn audited(app: &App, outcome: Result<AuditReport, StoreError>, whole: bool) -> Result<(), StoreError> {
    match &outcome {
        Ok(report) => {
            log_report(report);
            app.metrics.audited(app.world.steady_ms());
            // What a look at the changes found stands until all of it was looked at.
            if whole || !report.breaches.is_empty() {
                let found = i64::try_from(report.breaches.len()).unwrap_or(i64::MAX);
                app.store.put_alert_fact(measure::DRIFT, measure::LEDGER, found).await?;
            }
        }
        Err(_) => app.metrics.audit_failed(),
    }
    outcome.map(drop)
}

fn log_report(report: &AuditReport) {
    for breach in &report.breaches {
        tracing::error!(invariant = breach.invariant, rows = ?breach.rows, "the ledger does not add up");
    }
}
