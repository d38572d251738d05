//! A call that waits for a provider's verdict: it is begun here, and ended minutes later by whichever replica finds out how it went.
//! The hold and the task are durable before a byte leaves, the provider's id before the caller is answered, and the end of the task
//! is the end of the hold. Nothing is ever sent twice that may have been taken.
//!
//! What is made is the affair of whoever implements [`TaskWork`] and [`TaskDesk`].

mod away;
mod board;
mod desk;
mod end;
mod home;
mod look;
mod lost;
mod submit;
mod watched;

pub use board::Board;
pub use desk::{Found, TaskDesk, TaskHabits, TaskReport, TaskStanding, TaskUse, TaskWork, Which};
pub use home::{Home, home};
pub use look::{look, refresh};
pub use watched::Watched;
#[cfg(test)]
pub(crate) use watched::decided_at;
pub(crate) use watched::put_back;

use super::begin::{self, Beginning, Begins, Bought, begin};
use super::refused::{Needed, why_refused};
use super::{Ask, Priced, Till};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::who::caller::Caller;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tollgate_store::{BegunTask, CallId, HoldRefused, NewTask, Task, TaskId, TaskState};
use tollgate_wire::error::Code;

/// Longer than any task can stay open: what is left of a hold by then is a mistake that the audit finds.
pub(crate) const HOLD_LIFE: Duration = Duration::from_secs(5 * 24 * 3_600);

/// What a caller asks for, read and with the rules of its family applied.
pub struct TaskAsk<W> {
    pub ask: Ask<W>,
    pub webhook_url: Option<String>,
}

/// A task to be shown.
pub struct Made {
    pub task: Task,
    /// It was made by an earlier request with the same Idempotency-Key.
    pub replayed: bool,
}

/// A task between its hold and the provider's answer.
struct Begun<W> {
    till: Arc<Till>,
    serving: Arc<Serving>,
    bought: Bought,
    ask: Ask<W>,
    task: BegunTask,
}

/// Begins a task, or finds the one that was begun with the same Idempotency-Key.
pub async fn create_task<W: TaskWork>(till: &Arc<Till>, caller: Arc<Caller>, ask: TaskAsk<W>) -> Result<Made, Refusal> {
    let serving = till.serving.load_full();
    let (bought, task) = match begin(till, &serving, caller, &ask).await? {
        Beginning::Held(bought, task) => (bought, task),
        Beginning::Refused(bought, HoldRefused::IdemRunning(first) | HoldRefused::IdemDone { call: first, .. }) => {
            return same(till, &bought.caller, first).await;
        }
        Beginning::Refused(bought, refused) => return Err(bought.refuse(till, &ask.ask, &refused)),
    };
    till.running.fetch_add(1, Ordering::Relaxed);
    let id = task.id;
    let begun = Begun { till: till.clone(), serving, bought, ask: ask.ask, task };
    // A caller who leaves must not leave a question behind: the provider's answer is waited for in any case.
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

/// The task an Idempotency-Key was used for before.
async fn same(till: &Till, caller: &Caller, first: CallId) -> Result<Made, Refusal> {
    let found = till.store.task(caller.account.id, TaskId::of(first)).await?;
    match found {
        Some(task) if task.state > TaskState::Submitting => told(task, true, till.world.now_ms()),
        Some(_) => Err(why_refused(&HoldRefused::IdemRunning(first), Needed::NOTHING, till.world.now_ms())),
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

pub(crate) fn millis(time: Duration) -> i64 {
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
