//! The verbs of tasks, their turns at providers and their webhooks.

use super::{Engine, Store};
use crate::call::{Closed, Hold, HoldRefused};
use crate::error::StoreError;
use crate::ids::{AccountId, TaskId};
use crate::manage::CallReach;
use crate::task::turns::{TurnWish, Turns};
use crate::task::{
    BegunTask, Leased, NewTask, OpenTasks, SentTo, Task, TaskEnd, TaskNaming, TaskPage, TaskStep, Webhook,
    WebhookOutcome, WebhookWish,
};

impl Store {
    /// Holds the money of a task and writes it down, in one transaction; durable when this returns.
    /// Nothing was sent yet.
    pub async fn begin_task(&self, hold: Hold, new: NewTask) -> Result<BegunTask, HoldRefused> {
        on_engine!(self, e => e.begin_task(hold, new).await)
    }

    /// It is about to be sent to this provider: durable when this returns. `false`: others look
    /// after it by now, do not send.
    pub async fn task_sending(&self, begun: BegunTask, to: SentTo, lease_ms: i64) -> Result<bool, StoreError> {
        on_engine!(self, e => e.task_sending(begun, to, lease_ms).await)
    }

    /// The provider has taken it under this name: its creator knows, so no fence is asked for.
    /// Durable when this returns. Where another task has the name, this one's fate is unknown from
    /// now on.
    pub async fn task_accepted(
        &self,
        id: TaskId,
        upstream_id: String,
        after_ms: i64,
    ) -> Result<TaskNaming, StoreError> {
        on_engine!(self, e => e.task_accepted(id, upstream_id, after_ms).await)
    }

    /// Gives a task back that goes on, with the name under which its provider was found to have it.
    /// Durable when this returns. Where another task has the name nothing changes, and whoever
    /// looked for it still has it.
    pub async fn task_found(&self, step: TaskStep, upstream_id: String) -> Result<TaskNaming, StoreError> {
        on_engine!(self, e => e.task_found(step, upstream_id).await)
    }

    /// Open tasks that are due, but not those at these providers, the longest due first, each for
    /// one taker at a time.
    pub async fn take_tasks(&self, limit: u32, lease_ms: i64, except: &[String]) -> Result<Vec<Leased>, StoreError> {
        on_engine!(self, e => e.take_tasks(limit, lease_ms, except).await)
    }

    /// One open task before it is due; `None` when it has ended, somebody has it, or its provider
    /// is to be left alone until then.
    pub async fn take_task(&self, id: TaskId, lease_ms: i64) -> Result<Option<Leased>, StoreError> {
        on_engine!(self, e => e.take_task(id, lease_ms).await)
    }

    /// Gives a task back that goes on. `false`: somebody else has it by now, nothing changed.
    pub async fn put_back_task(&self, step: TaskStep) -> Result<bool, StoreError> {
        on_engine!(self, e => e.put_back_task(step).await)
    }

    /// Ends a task: its terminal state, its money, its usage row and its webhook in one
    /// transaction, durable when this returns. `None`: somebody else has it by now, or it has
    /// ended; nothing changed.
    pub async fn finish_task(&self, end: TaskEnd) -> Result<Option<Closed>, StoreError> {
        on_engine!(self, e => e.finish_task(end).await)
    }

    /// A task of an account, however it stands. Another account's, or one that was hidden, is not
    /// found.
    pub async fn task(&self, account: AccountId, id: TaskId) -> Result<Option<Task>, StoreError> {
        on_engine!(self, e => e.task(account, id).await)
    }

    /// A task by its id alone, for those who have a right to it by another way than its account: a
    /// signed link, a webhook.
    pub async fn any_task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        on_engine!(self, e => e.any_task(id).await)
    }

    /// The task a webhook tells of, also where its account has hidden it since.
    pub async fn webhook_task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        on_engine!(self, e => e.webhook_task(id).await)
    }

    /// Which of these names at providers belong to tasks of ours, whosever they are and however
    /// they stand.
    pub async fn tasks_named(&self, upstream_ids: &[String]) -> Result<Vec<String>, StoreError> {
        on_engine!(self, e => e.tasks_named(upstream_ids).await)
    }

    /// Tasks begun between two moments that may have been sent and have no name at their provider:
    /// those being sent, those whose creation was lost, and those given up without ever having been
    /// found. Hidden ones too.
    pub async fn nameless_tasks(&self, created: (i64, i64), limit: u32) -> Result<Vec<Task>, StoreError> {
        on_engine!(self, e => e.nameless_tasks(created, limit).await)
    }

    /// A page of the tasks an account can see.
    pub async fn tasks(&self, of: impl Into<CallReach>, page: TaskPage) -> Result<Vec<Task>, StoreError> {
        let of = of.into();
        on_engine!(self, e => e.tasks(of, page).await)
    }

    /// Hides a task from its account. Its money goes its way. `false`: there is no such task to be
    /// seen.
    pub async fn hide_task(&self, account: AccountId, id: TaskId) -> Result<bool, StoreError> {
        on_engine!(self, e => e.hide_task(account, id).await)
    }

    /// Another way to the finished file (a newer link, a copy).
    pub async fn store_result(&self, id: TaskId, result: String) -> Result<(), StoreError> {
        on_engine!(self, e => e.store_result(id, result).await)
    }

    /// Open tasks by state.
    pub async fn open_tasks(&self) -> Result<Vec<OpenTasks>, StoreError> {
        on_engine!(self, e => e.open_tasks().await)
    }

    /// Turns at a provider, over all replicas: each begins at an even distance from the one before.
    pub async fn turns(&self, wish: TurnWish<'_>) -> Result<Turns, StoreError> {
        on_engine!(self, e => e.turns(wish).await)
    }

    /// Webhooks that are due, each for one taker at a time.
    pub async fn take_webhooks(&self, wish: WebhookWish, lease_ms: i64) -> Result<Vec<Webhook>, StoreError> {
        on_engine!(self, e => e.take_webhooks(wish, lease_ms).await)
    }

    /// What became of one; nothing changes when somebody else has it by now.
    pub async fn webhook_tried(&self, webhook: &Webhook, outcome: WebhookOutcome) -> Result<(), StoreError> {
        on_engine!(self, e => e.webhook_tried(webhook, outcome).await)
    }
}
