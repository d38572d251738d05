//! Sends a task to a provider, once. Routes are tried in order as long as it is certain that nobody
//! has taken it; from the first doubt on its fate is found out, never tried again. Whatever fails
//! here after a provider may have it gets 504 with the task's name and "do not send it
//! again": a 500 or 503 would be repeated by SDKs on their own, and be made, and paid, twice.

use super::made::{Made, StartedTask, task_reply};
use super::watched::{millis, next_look, warn_other_account};
use super::{TaskHabits, TaskWork};
use crate::call::{Needed, Till, dispatch, why_refused};
use crate::refusal::Refusal;
use crate::routes::order::ordered;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tollgate_catalog::Route;
use tollgate_store::{HoldRefused, SentTo, TaskId, TaskNaming, TaskState, TaskStep, Word};
use tollgate_upstream::{Fault, Provider};
use tollgate_wire::error::Code;

/// One task is offered to at most this many routes.
const TRIES: u32 = 3;
/// A creation that takes longer than the provider's own limits allow is looked after by others.
const GRACE_MS: i64 = 60_000;

/// How one route took it.
enum Sent {
    /// Under this name.
    Taken(String),
    /// Surely not.
    Refused(Fault),
    /// Nobody knows.
    Unknown(Fault),
    /// Others look after it by now; it was not sent.
    Lost,
}

pub(super) async fn submit<W: TaskWork>(begun: StartedTask<W>) -> Result<Made, Refusal> {
    let running = Running(begun.till.clone());
    let outcome = offer(&begun).await;
    drop(running);
    outcome
}

async fn offer<W: TaskWork>(begun: &StartedTask<W>) -> Result<Made, Refusal> {
    let (till, model) = (&begun.till, &begun.bought.model);
    let mut last = None;
    let mut tries = 0;
    for at in ordered(&till.world, model) {
        let route = &model.routes[at];
        let Some(provider) = begun.serving.providers.get(&route.provider) else { continue };
        let work = &begun.ask.work;
        if !work.goes_to(&begun.serving, provider) || !till.routes.take(provider, route, till.world.steady_ms()) {
            continue;
        }
        tries += 1;
        match send(begun, provider, route).await? {
            Sent::Taken(upstream_id) => return taken(begun, provider, upstream_id).await,
            Sent::Unknown(fault) => return unknown(begun, provider, &fault).await,
            Sent::Lost => return lost(begun).await,
            Sent::Refused(fault) => {
                dispatch::note(till, begun.ask.id, provider, &fault);
                let account = begun.bought.caller.account.id;
                dispatch::note_attempt(till, account, &model.name, (&provider.name, route), &fault);
                if fault.code == Code::NotFound && !work.is_sure(&begun.serving) {
                    warn_other_account(till, &provider.name, "other_account");
                }
                let go_on = tries < TRIES && fault.try_other;
                last = Some((provider.clone(), route.upstream_model.clone(), fault));
                if !go_on {
                    break;
                }
            }
        }
    }
    let refusal = last.as_ref().map_or_else(
        || Refusal::new(Code::NoRouteAvailable, "No route to this model is available at the moment.").after(5),
        |(_, _, fault)| refusal(fault),
    );
    if let Some((_, _, fault)) = &last {
        dispatch::note_untaken(till, begun.bought.caller.account.id, &model.name, fault);
    }
    let route = last.as_ref().map(|(provider, model, _)| (provider.as_ref(), model.as_str()));
    if let Err(error) = super::end::refused(begun, route, tries, &refusal).await {
        // No provider has it, so the refusal holds; whoever looks at the task next finds the same
        // and releases the hold.
        tracing::error!(task = %begun.task.id, %error, "the end of a refused task could not be stored");
    }
    Err(refusal)
}

async fn send<W: TaskWork>(begun: &StartedTask<W>, provider: &Arc<Provider>, route: &Route) -> Result<Sent, Refusal> {
    let till = &begun.till;
    if begun.ask.work.habits(provider).is_none() {
        return Ok(Sent::Refused(Fault::unreachable()));
    }
    let lease = millis(provider.settings.first_byte + provider.settings.idle) + GRACE_MS;
    let to = SentTo {
        provider: provider.name.clone(),
        upstream_model: route.upstream_model.clone(),
        host: provider.base_url.place(),
        key: provider.key_print().to_owned(),
    };
    match till.store.task_sending(begun.task, to, lease).await {
        Ok(true) => {}
        Ok(false) => return Ok(Sent::Lost),
        // Nothing has left, and nothing ever does: it ends here, whenever that can be written.
        Err(error) => {
            let refusal = Refusal::from(error);
            super::end::refused(begun, None, 0, &refusal).await?;
            return Err(refusal);
        }
    }
    Ok(match begun.ask.work.create(till, provider, route, begun.task.id).await {
        Ok(upstream_id) => Sent::Taken(upstream_id),
        Err(fault) if fault.maybe_charged => Sent::Unknown(fault),
        Err(fault) => Sent::Refused(fault),
    })
}

async fn taken<W: TaskWork>(begun: &StartedTask<W>, provider: &Provider, upstream_id: String) -> Result<Made, Refusal> {
    let (till, id) = (&begun.till, begun.task.id);
    let after = habits(begun, provider).map_or(0, |habits| next_look(till, provider, &habits));
    match till.store.task_accepted(id, upstream_id.clone(), after).await {
        Ok(TaskNaming::Done) => shown(begun).await,
        Ok(TaskNaming::Taken) => {
            super::lost::log_taken(till, id, &provider.name, &upstream_id);
            shown(begun).await
        }
        Ok(TaskNaming::Stale) => {
            tracing::error!(task = %id, provider = provider.name, upstream_id, "the provider took a task that had ended here");
            till.metrics.late_task();
            shown(begun).await
        }
        Err(error) => {
            tracing::error!(task = %id, provider = provider.name, upstream_id, %error, "the provider's id of a task could not be stored");
            Err(charge_unknown::<W>(id))
        }
    }
}

/// What is known of the provider's ways with what was sent.
fn habits<W: TaskWork>(begun: &StartedTask<W>, provider: &Provider) -> Option<TaskHabits> {
    begun.ask.work.habits(provider).map(|habits| habits.at(provider))
}

/// A creation that may have begun is not to be sent again by the caller's SDK either.
fn refusal(fault: &Fault) -> Refusal {
    let refusal = Refusal::from(fault.clone());
    if fault.may_have_begun() { refusal.once() } else { refusal }
}

/// The hold stays; whoever looks at the task next finds out what became of it.
async fn unknown<W: TaskWork>(begun: &StartedTask<W>, provider: &Provider, fault: &Fault) -> Result<Made, Refusal> {
    let (till, id) = (&begun.till, begun.task.id);
    dispatch::note(till, begun.ask.id, provider, fault);
    tracing::warn!(task = %id, provider = provider.name, "nobody knows whether the provider took this task");
    let step = TaskStep::new(id, begun.task.fence, TaskState::Unknown, Word::Unclear, 0);
    if let Err(error) = till.store.put_back_task(step).await {
        // Its lease ends by itself, and it is looked for then.
        tracing::error!(task = %id, %error, "that nobody knows the fate of a task could not be stored");
        return Err(charge_unknown::<W>(id));
    }
    if habits(begun, provider).is_some_and(|habits| habits.finds) {
        shown(begun).await
    } else {
        Err(charge_unknown::<W>(id))
    }
}

/// It was sent, or may have been, and cannot be shown.
pub(super) fn charge_unknown<W: TaskWork>(id: TaskId) -> Refusal {
    let text = format!(
        "It is not known yet whether the provider took the task {id}. Its fate is being found out: poll it; do not send it again. It costs nothing unless a {} is made.",
        W::PRODUCT
    );
    Refusal::new(Code::ChargeStateUnknown, text)
}

async fn shown<W: TaskWork>(begun: &StartedTask<W>) -> Result<Made, Refusal> {
    let id = begun.task.id;
    match begun.till.store.task(begun.bought.caller.account.id, id).await {
        Ok(Some(task)) => task_reply(task, false, begun.till.world.now_ms()),
        // Nobody but its caller, who does not know its name yet, could have hidden it.
        Ok(None) => Err(charge_unknown::<W>(id)),
        Err(error) => {
            tracing::error!(task = %id, %error, "a task that was sent could not be read");
            Err(charge_unknown::<W>(id))
        }
    }
}

/// Others have taken the task from us. One that was never sent they end without a word, so its
/// caller must not be given its name.
async fn lost<W: TaskWork>(begun: &StartedTask<W>) -> Result<Made, Refusal> {
    let known = begun.till.store.any_task(begun.task.id).await?;
    if known.is_some_and(|task| task.state == TaskState::Held) {
        return Err(why_refused(&HoldRefused::Unavailable, Needed::NOTHING, begun.till.world.now_ms()));
    }
    shown(begun).await
}

/// Counts the creation among the running calls, so that a stop waits for it.
struct Running(Arc<Till>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
