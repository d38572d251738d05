//! A task between its hold and the provider's answer, and as its caller sees it then.

use crate::call::ask::CallRequest;
use crate::call::bought::Bought;
use crate::call::{Needed, Till, why_refused};
use crate::refusal::Refusal;
use crate::sale::Serving;
use std::sync::Arc;
use tollgate_store::{BegunTask, HoldRefused, Task, TaskState};

/// A task to be shown.
pub struct Made {
    pub task: Task,
    /// It was made by an earlier request with the same Idempotency-Key.
    pub replayed: bool,
}

/// A task between its hold and the provider's answer.
pub(super) struct StartedTask<W> {
    pub till: Arc<Till>,
    pub serving: Arc<Serving>,
    pub bought: Bought,
    pub ask: CallRequest<W>,
    pub task: BegunTask,
}

/// A task as its caller sees it. One that was given up before it was sent is none: whoever
/// began it was too slow, and may send it again.
pub(super) fn task_reply(task: Task, replayed: bool, now: i64) -> Result<Made, Refusal> {
    match task.state {
        TaskState::Refused => Err(why_refused(&HoldRefused::Unavailable, Needed::NOTHING, now)),
        _ => Ok(Made { task, replayed }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_was_never_sent_is_none() {
        for state in TaskState::ALL {
            let shown = task_reply(crate::testing::bare_task(state), false, 0).map(|made| made.task.state);
            match state {
                TaskState::Refused => assert_eq!(shown.expect_err("none").code.status(), 503),
                _ => assert_eq!(shown.ok(), Some(state)),
            }
        }
    }
}
