//! A call that makes a video: it is begun here, and ended minutes later by whichever replica finds out how it went. The hold and
//! the task are durable before a byte leaves, the provider's id before the caller is answered, and the end of the task is the
//! end of the hold. Nothing is ever sent twice that may have been taken.

mod alike;
mod away;
mod copying;
mod end;
mod look;
mod lost;
mod submit;

pub use look::{look, refresh};

use super::admit;
use super::quote::{Quote, Terms, quote};
use super::refused::{Needed, why_refused};
use crate::app::App;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::who::caller::Caller;
use crate::work::video::{KeptPlan, VideoAsk};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tollgate_catalog::Model;
use tollgate_store::{
    BegunTask, CallId, Counters, Hold, HoldRefused, Idem, NewTask, Task, TaskId, TaskState, UsageFacts,
};
use tollgate_wire::error::Code;

/// Longer than any task can stay open: what is left of a hold by then is a mistake that the audit finds.
const HOLD_LIFE: Duration = Duration::from_secs(5 * 24 * 3_600);

/// What a caller asks for, read and with the rules of its family applied.
pub struct TaskAsk {
    pub id: CallId,
    pub endpoint: &'static str,
    pub ask: VideoAsk,
    pub webhook_url: Option<String>,
    pub idem: Option<Idem>,
}

/// A task to be shown.
pub struct Made {
    pub task: Task,
    /// It was made by an earlier request with the same Idempotency-Key.
    pub replayed: bool,
}

/// A task between its hold and the provider's answer.
struct Begun {
    app: Arc<App>,
    serving: Arc<Serving>,
    caller: Arc<Caller>,
    model: Arc<Model>,
    quote: Quote,
    ask: TaskAsk,
    task: BegunTask,
}

/// Begins a task, or finds the one that was begun with the same Idempotency-Key.
pub async fn create_task(app: &Arc<App>, caller: Arc<Caller>, ask: TaskAsk) -> Result<Made, Refusal> {
    let serving = app.serving.load_full();
    let mut priced = price(app, &serving, caller, &ask).await?;
    let mut begun = begin(app, &priced, &ask).await;
    if matches!(begun, Err(HoldRefused::ToppedUp)) {
        // The account topped up a moment ago, and this replica did not know.
        let caller = app.keys.read_again(&app.store, &priced.0).await?;
        priced = price(app, &serving, caller, &ask).await?;
        begun = begin(app, &priced, &ask).await;
    }
    let (caller, model, quote) = priced;
    let task = match begun {
        Ok(task) => task,
        Err(HoldRefused::IdemRunning(first) | HoldRefused::IdemDone { call: first, .. }) => {
            return same(app, &caller, first).await;
        }
        Err(refused) => return Err(refuse(app, &caller, &model, &quote, &ask, &refused)),
    };
    app.running.fetch_add(1, Ordering::Relaxed);
    let id = task.id;
    let begun = Begun { app: app.clone(), serving, caller, model, quote, ask, task };
    // A caller who leaves must not leave a question behind: the provider's answer is waited for in any case.
    app.tracker.spawn(submit::submit(begun)).await.unwrap_or_else(|error| {
        tracing::error!(task = %id, %error, "a creation ended unexpectedly; what became of it is found out separately");
        Err(submit::charge_unknown(id))
    })
}

type Priced = (Arc<Caller>, Arc<Model>, Quote);

async fn price(app: &Arc<App>, serving: &Serving, mut caller: Arc<Caller>, ask: &TaskAsk) -> Result<Priced, Refusal> {
    if matches!(admit::admit(app, serving, &caller, &ask.ask), Err(Refusal { code: Code::ModelRequiresTopup, .. })) {
        // It may have topped up since its key was last read.
        caller = app.keys.read_again(&app.store, &caller).await?;
    }
    let (model, group) = admit::admit(app, serving, &caller, &ask.ask)?;
    let stream_hold = app.settings.limits.stream_hold;
    let terms = Terms { at: app.world.now_ms(), group, topped_up: caller.account.topped_up, stream_hold };
    let quote = quote(terms, &model, &ask.ask)?;
    Ok((caller, model, quote))
}

async fn begin(app: &App, (caller, model, quote): &Priced, ask: &TaskAsk) -> Result<BegunTask, HoldRefused> {
    let hold = Hold {
        call: ask.id,
        account: caller.account.id,
        key: caller.key.id,
        amount: quote.amount,
        least: quote.amount,
        price: quote.price.clone(),
        model: model.name.clone(),
        endpoint: ask.endpoint,
        paid_only: model.requires_topup,
        topped_up: quote.topped_up,
        expires_at: app.world.steady_ms().saturating_add(millis(HOLD_LIFE)),
        at: quote.at,
        idem: ask.idem,
    };
    // A request without a plan was refused when it was priced.
    let plan = ask.ask.plan().map_err(|_| HoldRefused::Unavailable)?;
    let new = NewTask {
        plan: KeptPlan::of(plan, TaskId::of(ask.id), &app.secrets).text(),
        webhook_url: ask.webhook_url.clone(),
        lease_ms: millis(app.settings.tasks.lease()),
    };
    app.store.begin_task(hold, new).await
}

/// The task an Idempotency-Key was used for before.
async fn same(app: &App, caller: &Caller, first: CallId) -> Result<Made, Refusal> {
    let found = app.store.task(caller.account.id, TaskId::of(first)).await?;
    match found {
        Some(task) if task.state > TaskState::Submitting => told(task, true, app.world.now_ms()),
        Some(_) => Err(why_refused(&HoldRefused::IdemRunning(first), Needed::NOTHING, app.world.now_ms())),
        None => Err(Refusal::about(
            Code::IdempotencyConflict,
            "Idempotency-Key",
            format!("The call {first} with this Idempotency-Key left no task to be shown; use a new key."),
        )),
    }
}

/// A task as its caller is told of it. One that was given up before it was sent is none: whoever began it was too slow, and may send
/// it again.
fn told(task: Task, replayed: bool, now: i64) -> Result<Made, Refusal> {
    match task.state {
        TaskState::Refused => Err(why_refused(&HoldRefused::Unavailable, Needed::NOTHING, now)),
        _ => Ok(Made { task, replayed }),
    }
}

fn refuse(app: &App, caller: &Caller, model: &Model, quote: &Quote, ask: &TaskAsk, refused: &HoldRefused) -> Refusal {
    let refusal = why_refused(refused, Needed::of(quote, model), app.world.now_ms());
    app.metrics.ended(ask.endpoint, tollgate_store::Ending::Refused, refusal.code.code());
    if matches!(refused, HoldRefused::Insufficient { .. } | HoldRefused::Limit(_)) {
        let row = UsageFacts {
            key: caller.key.id,
            at: quote.at,
            ended_at: app.world.now_ms(),
            endpoint: ask.endpoint.into(),
            model: model.name.clone(),
            provider: None,
            upstream_model: None,
            status: refusal.code.status(),
            counters: Counters::default(),
            estimated: false,
            raw_usage: None,
            attempts: 0,
            first_byte_ms: None,
            tier: quote.price.tier.clone(),
            dropped: None,
            price: None,
        };
        app.store.note_refusal(ask.id, caller.account.id, refusal.code.code().to_owned(), row);
    }
    refusal
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_was_never_sent_is_none() {
        for state in TaskState::ALL {
            let shown = told(crate::testing::bare_task(state), false, 0).map(|made| made.task.state);
            match state {
                TaskState::Refused => assert_eq!(shown.expect_err("none").code.status(), 503),
                _ => assert_eq!(shown.ok(), Some(state)),
            }
        }
    }
}
