//! How a task begins: like every call, with the task written down beside its hold.

use super::made::{Made, StartedTask, task_reply};
use super::watched::millis;
use super::{TaskWork, submit};
use crate::call::ask::CallRequest;
use crate::call::begin::{self, Beginning, Begins, begin};
use crate::call::bought::Bought;
use crate::call::{Needed, Priced, Till, why_refused};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tollgate_store::{BegunTask, CallId, HoldRefused, NewTask, TaskId, TaskState};
use tollgate_wire::error::Code;

/// Longer than any task can stay open: what is left of a hold by then is a mistake that the audit
/// finds.
pub(crate) const HOLD_LIFE: Duration = Duration::from_secs(5 * 24 * 3_600);

/// What a caller asks for, read and with the rules of its family applied.
pub struct TaskAsk<W> {
    pub ask: CallRequest<W>,
    pub webhook_url: Option<String>,
}

/// Begins a task, or finds the one that was begun with the same Idempotency-Key.
pub async fn create_task<W: TaskWork>(till: &Arc<Till>, caller: Arc<Caller>, ask: TaskAsk<W>) -> Result<Made, Refusal> {
    let serving = till.serving.load_full();
    let (bought, task) = match begin(till, &serving, caller, &ask).await? {
        Beginning::Held(bought, task) => (bought, task),
        Beginning::Refused(bought, HoldRefused::IdemDone { call: first, .. }) => {
            return same(till, &bought.caller, first).await?.ok_or_else(|| without_task(first));
        }
        Beginning::Refused(bought, HoldRefused::IdemRunning(first)) => {
            // Where the ledger is late, its task is not written down yet.
            let running = || why_refused(&HoldRefused::IdemRunning(first), Needed::NOTHING, till.world.now_ms());
            return same(till, &bought.caller, first).await?.ok_or_else(running);
        }
        Beginning::Refused(bought, refused) => return Err(bought.refuse(till, &ask.ask, &refused)),
    };
    till.running.fetch_add(1, Ordering::Relaxed);
    let id = task.id;
    let begun = StartedTask { till: till.clone(), serving, bought, ask: ask.ask, task };
    // A caller who leaves must not leave a question behind: the provider's answer is waited for in
    // any case.
    till.tracker.spawn(submit::submit(begun)).await.unwrap_or_else(|error| {
        tracing::error!(task = %id, %error, "a creation ended unexpectedly; what became of it is found out separately");
        Err(submit::charge_unknown::<W>(id))
    })
}

impl<W: TaskWork> Begins for TaskAsk<W> {
    type Open = Bought;
    type Held = BegunTask;

    fn priced(&self) -> &dyn Priced {
        self.ask.work.priced()
    }

    async fn hold(&self, till: &Arc<Till>, bought: Bought) -> (Bought, Result<BegunTask, HoldRefused>) {
        let hold = begin::hold(till, &self.ask, &bought.caller, &bought.model, &bought.quote, HOLD_LIFE);
        // A request without a plan was refused when it was priced.
        let Ok(plan) = self.ask.work.plan(TaskId::of(self.ask.id)) else {
            return (bought, Err(HoldRefused::Unavailable));
        };
        let webhook_url = self.webhook_url.clone();
        let new = NewTask { plan, webhook_url, lease_ms: millis(till.tasks.settings.lease()) };
        let begun = till.store.begin_task(hold, new).await;
        (bought, begun)
    }

    fn undo(bought: Bought) -> Bought {
        bought
    }
}

/// The task an Idempotency-Key was used for before, if it is there.
async fn same(till: &Till, caller: &Caller, first: CallId) -> Result<Option<Made>, Refusal> {
    let found = till.store.task(caller.account.id, TaskId::of(first)).await?;
    match found {
        Some(task) if task.state > TaskState::Submitting => task_reply(task, true, till.world.now_ms()).map(Some),
        Some(_) => Err(why_refused(&HoldRefused::IdemRunning(first), Needed::NOTHING, till.world.now_ms())),
        None => Ok(None),
    }
}

fn without_task(first: CallId) -> Refusal {
    let text = format!("The call {first} with this Idempotency-Key left no task to be shown; use a new key.");
    Refusal::about(Code::IdempotencyConflict, "Idempotency-Key", text)
}
