//! A task that was sent, and nobody knows under which name the provider has it, or whether it has
//! it at all. It is looked for by our id where the provider keeps one, else among what its list
//! has; there it is taken only when it can be no other.

use super::look::no_answer;
use super::watched::{put_back, warn_other_account};
use super::{TaskDesk, TaskSearch, Watched, Which, end};
use crate::call::Till;
use tollgate_store::{StoreError, Task, TaskFailure, TaskId, TaskNaming, TaskState, TaskStep, Word};

const NAME_TAKEN: &str = "name_taken";

pub(super) async fn find<D: TaskDesk>(watched: &Watched<'_, D>) -> Result<(), StoreError> {
    let (till, task) = (watched.till, &watched.leased.task);
    if !watched.habits.finds || !watched.turn().await? {
        return wait_on(watched, Word::Nothing).await;
    }
    let asked = watched.desk.find(watched);
    let found = tokio::time::timeout(till.tasks.settings.look_time, asked).await;
    match found {
        Ok(Ok(Some(TaskSearch::Exactly(upstream_id)))) => taken(watched, upstream_id, Word::Queued).await,
        Ok(Ok(Some(_))) if was_taken(task) => {
            till.metrics.polled(&watched.provider.name, "unsure");
            wait_on(watched, Word::Unclear).await
        }
        Ok(Ok(Some(TaskSearch::Nothing))) => absent(watched).await,
        Ok(Ok(Some(TaskSearch::Perhaps(entries)))) => match watched.desk.which(watched, entries).await? {
            Which::This(upstream_id) => taken(watched, upstream_id, Word::Unclear).await,
            Which::None => absent(watched).await,
            Which::Unsure => {
                till.metrics.polled(&watched.provider.name, "unsure");
                wait_on(watched, Word::Unclear).await
            }
        },
        Ok(Ok(None)) => wait_on(watched, Word::Nothing).await,
        Ok(Err(fault)) => {
            till.metrics.polled(&watched.provider.name, fault.code.code());
            wait_on(watched, no_answer(&fault)).await
        }
        Err(_) => {
            till.metrics.polled(&watched.provider.name, "timeout");
            wait_on(watched, Word::Unclear).await
        }
    }
}

/// Whether the provider has said that it has this task, under a name that is another's. Then no
/// list can say that it was never made, and none of its entries is it: that would be a second one
/// for one creation.
fn was_taken(task: &Task) -> bool {
    task.heard.is_some()
}

/// The provider has it, under this name. `otherwise` is what its answer says should the name be
/// another task's: that it has ours all the same, or nothing.
async fn taken<D: TaskDesk>(watched: &Watched<'_, D>, upstream_id: String, otherwise: Word) -> Result<(), StoreError> {
    let (till, task, provider) = (watched.till, &watched.leased.task, &watched.provider.name);
    let id = task.id;
    let step = TaskStep::new(id, watched.leased.fence, TaskState::Queued, Word::Queued, 0);
    match till.store.task_found(step, upstream_id.clone()).await? {
        TaskNaming::Done => {
            till.metrics.polled(provider, "found");
            tracing::info!(task = %id, provider, "found a task whose creation was not answered");
            Ok(())
        }
        TaskNaming::Stale => {
            till.metrics.stale_task();
            Ok(())
        }
        TaskNaming::Taken => {
            if was_taken(task) {
                // Reported before.
                till.metrics.polled(provider, NAME_TAKEN);
            } else {
                log_taken(till, id, provider, &upstream_id);
            }
            wait_on(watched, otherwise).await
        }
    }
}

/// The provider names two tasks alike, or one of them was mistaken for the other. Whose it is
/// nobody can say any more, so the second has none.
pub(super) fn log_taken(till: &Till, id: TaskId, provider: &str, upstream_id: &str) {
    till.metrics.polled(provider, NAME_TAKEN);
    tracing::error!(task = %id, provider, upstream_id, "the provider's name of a task is another task's; its fate stays unknown");
}

/// The provider does not have it. That it is another account's word counts for nothing.
async fn absent<D: TaskDesk>(watched: &Watched<'_, D>) -> Result<(), StoreError> {
    let till = watched.till;
    if !watched.sure {
        warn_other_account(till, &watched.provider.name, "other_account");
        return wait_on(watched, Word::Nothing).await;
    }
    till.metrics.polled(&watched.provider.name, "absent");
    if !watched.is_absent() {
        // A slow provider may still be at it.
        return wait_on(watched, Word::Absent).await;
    }
    let failure = TaskFailure {
        code: "task_not_created".into(),
        message: "The provider never took the task. Nothing was charged; it can be sent again.".into(),
    };
    end::failed(till, watched.leased, failure, None).await
}

async fn wait_on<D: TaskDesk>(watched: &Watched<'_, D>, word: Word) -> Result<(), StoreError> {
    if watched.is_last_look() {
        return end::given_up(watched.till, &**watched.desk, watched.leased, &watched.plan).await;
    }
    put_back(watched.till, watched.step(TaskState::Unknown, word, watched.slowly())).await
}
