//! The ends of a task: what each costs, what the usage row says, and that it happens once.

use super::made::StartedTask;
use super::{TaskDesk, TaskUse, Watched};
use crate::call::Till;
use crate::call::cost::{cost_of, note_cost};
use crate::call::meter::fitted;
use crate::refusal::Refusal;
use crate::routes::traffic::SeenCall;
use std::sync::Arc;
use tollgate_catalog::{Money, Price};
use tollgate_store::{Close, Counters, Ending, Leased, StoreError, Task, TaskEnd, TaskFailure, TaskState, UsageFacts};
use tollgate_upstream::Provider;
use tollgate_wire::error::Code;

/// The sum; where it cannot be made, that of the bound, which could be held for.
fn charged(counters: Counters, most: Counters, price: &Price) -> (Counters, Money) {
    match counters.charge(price) {
        Ok(charge) => (counters, charge),
        Err(why) => {
            tracing::error!(%why, "the use of a task cannot be charged; the most it can be is");
            let most = fitted(most, price);
            (most, most.charge(price).unwrap_or(Money::ZERO))
        }
    }
}

impl<D: TaskDesk> Watched<'_, D> {
    /// What was asked for is there.
    pub async fn complete(&self, made: &D::Made) -> Result<(), StoreError> {
        let (till, leased) = (self.till, self.leased);
        let TaskUse { counters, most, estimated, by_report, raw_usage } =
            self.desk.used(&self.plan, made, &leased.price);
        let (counters, charge) = charged(counters, most, &leased.price);
        let mut row = row(till, &leased.task, &leased.price, 200);
        (row.counters, row.estimated, row.raw_usage) = (counters, estimated, raw_usage);
        let serving = till.serving.load();
        row.cost =
            serving.catalog.model(&row.model).and_then(|model| cost_of(model, &row, None, leased.task.created_at));
        let sold = row.clone();
        let end = TaskEnd {
            fence: leased.fence,
            state: TaskState::Completed,
            result: Some(self.desk.result(made)),
            failure: None,
            forgiven: false,
            webhook_url: leased.task.webhook_url.clone(),
            close: close(&leased.task, Ending::Answered, "", charge, row),
        };
        if finish(till, &leased.task, end, "").await? {
            note_cost(&till.metrics, &sold, charge);
            let model = leased.task.upstream_model.as_deref().unwrap_or_default();
            if by_report && self.habits.reports {
                let now = till.world.steady_ms();
                till.routes.pauses.note(&self.provider, model, estimated, now, &till.metrics);
            }
            self.desk.completed(self, made);
        }
        Ok(())
    }
}

/// There will be nothing: the customer gets everything back.
pub(super) async fn failed(
    till: &Till,
    leased: &Leased,
    failure: TaskFailure,
    raw_usage: Option<String>,
) -> Result<(), StoreError> {
    let mut row = row(till, &leased.task, &leased.price, 200);
    row.raw_usage = raw_usage;
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
    finish(till, &leased.task, end, "failed").await?;
    Ok(())
}

/// Nobody will ever know. The customer gets everything back; what it may have cost is the
/// operator's loss.
pub(super) async fn given_up<D: TaskDesk>(
    till: &Till,
    desk: &D,
    leased: &Leased,
    plan: &D::Plan,
) -> Result<(), StoreError> {
    let most = desk.most(plan);
    let (counters, charge) = charged(fitted(most, &leased.price), most, &leased.price);
    let mut row = row(till, &leased.task, &leased.price, 200);
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
    finish(till, &leased.task, end, "unknown").await?;
    Ok(())
}

/// Its creator died before anything was sent.
pub(super) async fn never_sent(till: &Till, leased: &Leased) -> Result<(), StoreError> {
    let row = row(till, &leased.task, &leased.price, 0);
    let end = TaskEnd {
        fence: leased.fence,
        state: TaskState::Refused,
        result: None,
        failure: None,
        forgiven: false,
        webhook_url: None,
        close: close(&leased.task, Ending::Expired, "aborted", Money::ZERO, row),
    };
    finish(till, &leased.task, end, "aborted").await?;
    Ok(())
}

/// No provider took it, and the caller gets that error.
pub(super) async fn refused<W>(
    begun: &StartedTask<W>,
    route: Option<(&Provider, &str)>,
    attempts: u32,
    refusal: &Refusal,
) -> Result<(), StoreError> {
    let (till, ask) = (&begun.till, &begun.ask);
    // What was offered to nobody is no fault of a provider's.
    let ours = attempts == 0 && refusal.code != Code::NoRouteAvailable;
    let ending = if ours { Ending::Refused } else { Ending::UpstreamFault };
    let row = UsageFacts {
        provider: route.map(|(provider, _)| provider.name.clone()),
        upstream_model: route.map(|(_, model)| model.to_owned()),
        attempts,
        ..begun.bought.facts_of_refusal(till, ask.endpoint, refusal.code.status())
    };
    let close = Close {
        call: ask.id,
        account: begun.bought.caller.account.id,
        ending,
        reason: refusal.code.code().to_owned(),
        charge: Money::ZERO,
        most: None,
        row,
        reply: None,
    };
    till.metrics.ended(ask.endpoint, ending, refusal.code.code());
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
    till.store.finish_task(end).await?;
    Ok(())
}

/// Whether the end is ours.
async fn finish(till: &Till, task: &Task, end: TaskEnd, how: &'static str) -> Result<bool, StoreError> {
    let (state, charge, reason) = (end.state, end.close.charge, end.close.reason.clone());
    match till.store.finish_task(end).await? {
        Some(closed) => {
            till.metrics.task_ended(state, how);
            note_health(till, task, state, &reason);
            tracing::info!(task = %task.id, state = state.name(), how, captured = %closed.captured, "task ended");
            Ok(true)
        }
        None => {
            till.metrics.stale_task();
            tracing::info!(task = %task.id, state = state.name(), %charge, "somebody else has this task; nothing was done");
            if state == TaskState::Completed {
                late_success(till, task).await?;
            }
            Ok(false)
        }
    }
}

/// Counts what became of a task that a provider had, unless its request was to blame.
fn note_health(till: &Till, task: &Task, state: TaskState, reason: &str) {
    let good = match state {
        TaskState::Completed => true,
        TaskState::Failed if !is_callers(reason) => false,
        _ => return,
    };
    let (Some(provider), Some(upstream_model)) = (&task.provider, &task.upstream_model) else { return };
    let seen = SeenCall { account: task.account, good, first_byte_ms: 0, at: till.world.now_ms() };
    till.routes.traffic.call(&task.model, seen);
    till.routes.traffic.attempt(&task.model, provider, upstream_model, seen);
}

/// Providers end a task that they will not make in words of their own.
fn is_callers(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    ["moderat", "sensitive", "policy", "safety", "inappropriate", "invalid", "datainspection", "rai_"]
        .iter()
        .any(|word| reason.contains(word))
}

/// The provider has made what the customer was given the money back for. An end is an end, but the
/// operator may have to pay.
async fn late_success(till: &Till, task: &Task) -> Result<(), StoreError> {
    let now = till.store.task(task.account, task.id).await?;
    if now.is_some_and(|now| now.state.is_final() && now.state != TaskState::Completed) {
        till.metrics.late_success();
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

fn row(till: &Till, task: &Task, price: &Price, status: u16) -> UsageFacts {
    UsageFacts {
        key: task.key,
        at: task.created_at,
        ended_at: till.world.now_ms().max(task.created_at),
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
        cost: None,
        price: None::<Arc<Price>>,
    }
}
