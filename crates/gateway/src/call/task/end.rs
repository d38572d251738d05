//! The ends of a task: what each costs, what the usage row says, and that it happens once.

use super::Begun;
use super::look::Watched;
use crate::app::App;
use crate::call::meter::fitted;
use crate::refusal::Refusal;
use crate::video::{KeptPlan, KeptResult, most};
use std::sync::Arc;
use tollgate_catalog::{Money, Price};
use tollgate_media::video::Bound;
use tollgate_store::{Close, Counters, Ending, Leased, StoreError, Task, TaskEnd, TaskFailure, TaskState, UsageFacts};
use tollgate_upstream::Provider;
use tollgate_upstream::video::Used;
use tollgate_wire::error::Code;

/// What a finished video costs.
struct Bill {
    counters: Counters,
    charge: Money,
    estimated: bool,
    /// The charge goes by what the provider counts.
    by_report: bool,
}

/// The last frames of a file, which nobody asked for: of a length they count for nothing.
const FRAMES_MS: u64 = 100;
/// So much beyond what was held for is no other length than was asked for.
const BEYOND_MS: u64 = 500;

/// Whole seconds of a told length: a second that was begun counts, but for its first frames.
fn whole_seconds(millis: u64, most: u64) -> u64 {
    let seconds = millis.saturating_sub(FRAMES_MS).div_ceil(1_000).max(1);
    if millis <= most.saturating_mul(1_000).saturating_add(BEYOND_MS) { seconds.min(most) } else { seconds }
}

/// Where the provider tells no tokens: those of what was asked for, and of the length that it tells.
fn usual_tokens(least: Bound, millis: Option<u64>) -> Option<u64> {
    let (tokens, asked) = (least.tokens?, u64::from(least.seconds.max(1)) * 1_000);
    Some(millis.map_or(tokens, |millis| tokens.saturating_mul(millis).div_ceil(asked)))
}

/// What the provider counted; what it does not say is what was asked for, and the least of what was left to it. Of what it counts
/// beyond the most that was held for the customer pays nothing: the close takes the hold and writes the rest off, where the operator
/// sees it.
fn bill(kept: &KeptPlan, used: &Used, price: &Price) -> Bill {
    let (bound, least) = (kept.bound(), kept.least());
    let most = most(&bound);
    let reported = used.millis.map(|millis| whole_seconds(millis, most.seconds));
    let seconds = reported.unwrap_or(u64::from(least.seconds));
    let usual = || usual_tokens(least, used.millis).map(|tokens| tokens.min(most.output));
    let tokens = used.tokens.or_else(usual).unwrap_or(0);
    let counters = fitted(Counters { output: tokens, ..Counters::video(seconds) }, price);
    if counters.seconds > most.seconds || counters.output > most.output {
        tracing::error!(
            seconds,
            tokens,
            "a provider counted more than its video can have; the operator pays what is beyond the hold"
        );
    }
    let by_tokens = bound.tokens.is_some() && counters.seconds == 0 && counters.calls == 0;
    let by_report = by_tokens || counters.seconds > 0;
    let estimated = by_report && if by_tokens { used.tokens.is_none() } else { reported.is_none() };
    let (counters, charge) = charged(counters, most, price);
    Bill { counters, charge, estimated, by_report }
}

/// The sum; where it cannot be made, that of the bound, which could be held for.
fn charged(counters: Counters, most: Counters, price: &Price) -> (Counters, Money) {
    match counters.charge(price) {
        Ok(charge) => (counters, charge),
        Err(why) => {
            tracing::error!(%why, "the use of a video cannot be charged; the most it can be is");
            let most = fitted(most, price);
            (most, most.charge(price).unwrap_or(Money::ZERO))
        }
    }
}

/// The video is there.
pub(super) async fn completed(watched: &Watched<'_>, file: &KeptResult, used: &Used) -> Result<(), StoreError> {
    let (app, leased) = (watched.app, watched.leased);
    let Bill { counters, charge, estimated, by_report } = bill(&watched.kept, used, &leased.price);
    let mut row = row(app, &leased.task, &leased.price, 200);
    (row.counters, row.estimated, row.raw_usage) = (counters, estimated, used.raw.clone());
    let end = TaskEnd {
        fence: leased.fence,
        state: TaskState::Completed,
        result: Some(file.text()),
        failure: None,
        forgiven: false,
        webhook_url: leased.task.webhook_url.clone(),
        close: close(&leased.task, Ending::Answered, "", charge, row),
    };
    if finish(app, &leased.task, end, "").await? {
        let model = leased.task.upstream_model.as_deref().unwrap_or_default();
        if by_report && watched.habits().reports {
            app.pauses.note(&watched.provider, model, estimated, app.world.steady_ms(), &app.metrics);
        }
        tell_other_tier(watched, model, used);
    }
    Ok(())
}

/// The provider made, and bills us for, another resolution than the customer asked for and pays.
fn tell_other_tier(watched: &Watched<'_>, model: &str, used: &Used) {
    let Some(asked) = watched.kept.fact("resolution").filter(|asked| used.is_other_than(asked)) else { return };
    watched.app.metrics.other_tier(&watched.provider.name, model);
    tracing::error!(task = %watched.leased.task.id, provider = watched.provider.name, model, asked, made = used.resolution,
        "a provider made another resolution than was asked for; the customer pays what was asked for");
}

/// There will be no video: the customer gets everything back.
pub(super) async fn failed(app: &App, leased: &Leased, failure: TaskFailure, used: &Used) -> Result<(), StoreError> {
    let mut row = row(app, &leased.task, &leased.price, 200);
    row.raw_usage.clone_from(&used.raw);
    let reason = failure.code.clone();
    let end = TaskEnd {
        fence: leased.fence,
        state: TaskState::Failed,
        result: None,
        failure: Some(failure),
        forgiven: false,
        webhook_url: leased.task.webhook_url.clone(),
        close: close(&leased.task, Ending::UpstreamFault, &reason, Money::ZERO, row),
    };
    finish(app, &leased.task, end, "failed").await?;
    Ok(())
}

/// Nobody will ever know. The customer gets everything back; what it may have cost is the operator's loss.
pub(super) async fn given_up(app: &App, leased: &Leased, kept: &KeptPlan) -> Result<(), StoreError> {
    let most = most(&kept.bound());
    let (counters, charge) = charged(fitted(most, &leased.price), most, &leased.price);
    let mut row = row(app, &leased.task, &leased.price, 200);
    (row.counters, row.estimated) = (counters, true);
    let failure = TaskFailure {
        code: "task_unknown".into(),
        message: "The provider never said what became of the task. Nothing was charged.".into(),
    };
    tracing::error!(task = %leased.task.id, provider = leased.task.provider, upstream_id = leased.task.upstream_id,
        "the fate of a task stays unknown; the customer does not pay");
    let end = TaskEnd {
        fence: leased.fence,
        state: TaskState::Failed,
        result: None,
        failure: Some(failure),
        forgiven: true,
        webhook_url: leased.task.webhook_url.clone(),
        close: close(&leased.task, Ending::Expired, "task_unknown", charge, row),
    };
    finish(app, &leased.task, end, "unknown").await?;
    Ok(())
}

/// Its creator died before anything was sent.
pub(super) async fn never_sent(app: &App, leased: &Leased) -> Result<(), StoreError> {
    let row = row(app, &leased.task, &leased.price, 0);
    let end = TaskEnd {
        fence: leased.fence,
        state: TaskState::Refused,
        result: None,
        failure: None,
        forgiven: false,
        webhook_url: None,
        close: close(&leased.task, Ending::Expired, "aborted", Money::ZERO, row),
    };
    finish(app, &leased.task, end, "aborted").await?;
    Ok(())
}

/// No provider took it, and the caller is told so.
pub(super) async fn refused(
    begun: &Begun,
    route: Option<(&Provider, &str)>,
    attempts: u32,
    refusal: &Refusal,
) -> Result<(), StoreError> {
    let (app, quote, ask) = (&begun.app, &begun.quote, &begun.ask);
    // What was offered to nobody is no fault of a provider's.
    let ours = attempts == 0 && refusal.code != Code::NoRouteAvailable;
    let ending = if ours { Ending::Refused } else { Ending::UpstreamFault };
    let row = UsageFacts {
        key: begun.caller.key.id,
        at: quote.at,
        ended_at: app.world.now_ms(),
        endpoint: ask.endpoint.into(),
        model: begun.model.name.clone(),
        provider: route.map(|(provider, _)| provider.name.clone()),
        upstream_model: route.map(|(_, model)| model.to_owned()),
        status: refusal.code.status(),
        counters: Counters::default(),
        estimated: false,
        raw_usage: None,
        attempts,
        first_byte_ms: None,
        tier: quote.price.tier.clone(),
        dropped: None,
        price: None,
    };
    let close = Close {
        call: ask.id,
        account: begun.caller.account.id,
        ending,
        reason: refusal.code.code().to_owned(),
        charge: Money::ZERO,
        most: None,
        row,
        reply: None,
    };
    app.metrics.ended(ask.endpoint, ending, refusal.code.code());
    let end = TaskEnd {
        fence: begun.task.fence,
        state: TaskState::Refused,
        result: None,
        failure: None,
        forgiven: false,
        webhook_url: None,
        close,
    };
    // Taken by somebody else by now: that one finds that it was refused as well, later.
    app.store.finish_task(end).await?;
    Ok(())
}

/// Whether the end is ours.
async fn finish(app: &App, task: &Task, end: TaskEnd, how: &'static str) -> Result<bool, StoreError> {
    let (state, charge) = (end.state, end.close.charge);
    match app.store.finish_task(end).await? {
        Some(closed) => {
            app.metrics.task_ended(state, how);
            tracing::info!(task = %task.id, state = state.name(), how, captured = %closed.captured, "task ended");
            Ok(true)
        }
        None => {
            app.metrics.stale_task();
            tracing::info!(task = %task.id, state = state.name(), %charge, "somebody else has this task; nothing was done");
            if state == TaskState::Completed {
                late_success(app, task).await?;
            }
            Ok(false)
        }
    }
}

/// The provider has made what the customer was given the money back for. An end is an end, but the operator may have to pay.
async fn late_success(app: &App, task: &Task) -> Result<(), StoreError> {
    let now = app.store.task(task.account, task.id).await?;
    if now.is_some_and(|now| now.state.is_final() && now.state != TaskState::Completed) {
        app.metrics.late_success();
        tracing::warn!(task = %task.id, provider = task.provider, upstream_id = task.upstream_id,
            "a provider finished a task that had ended without a charge; it stays without one");
    }
    Ok(())
}

fn close(task: &Task, ending: Ending, reason: &str, charge: Money, row: UsageFacts) -> Close {
    let (call, account, reason) = (task.id.call(), task.account, reason.to_owned());
    // A task pays no more than its hold, whatever it is charged: the ledger sees to that.
    Close { call, account, ending, reason, charge, most: None, row, reply: None }
}

fn row(app: &App, task: &Task, price: &Price, status: u16) -> UsageFacts {
    UsageFacts {
        key: task.key,
        at: task.created_at,
        ended_at: app.world.now_ms().max(task.created_at),
        endpoint: task.endpoint.clone().into(),
        model: task.model.clone(),
        provider: task.provider.clone(),
        upstream_model: task.upstream_model.clone(),
        status,
        counters: Counters::default(),
        estimated: false,
        raw_usage: None,
        attempts: u32::from(task.provider.is_some()),
        first_byte_ms: None,
        tier: price.tier.clone(),
        dropped: None,
        price: None::<Arc<Price>>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_that_was_begun_counts_but_for_its_first_frames() {
        for (millis, most, seconds) in [
            (5_000, 5, 5),
            (5_040, 5, 5),
            (5_040, 15, 5),
            (5_100, 15, 5),
            (5_101, 15, 6),
            (13_240, 20, 14),
            (10_400, 10, 10),
            (10_501, 10, 11),
            (12_000, 10, 12),
            (40, 5, 1),
        ] {
            assert_eq!(whole_seconds(millis, most), seconds, "{millis} ms of {most} s");
        }
    }

    #[test]
    fn tokens_of_a_told_length() {
        let five = Bound { seconds: 5, tokens: Some(108_000) };
        assert_eq!(usual_tokens(five, None), Some(108_000));
        assert_eq!(usual_tokens(five, Some(8_000)), Some(172_800));
        assert_eq!(usual_tokens(Bound { tokens: None, ..five }, Some(8_000)), None);
    }
}
