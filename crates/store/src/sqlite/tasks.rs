//! Video tasks on the embedded engine: who may write is decided in memory (`leases`), like money;
//! the file follows. Ages and times to come are by the clock that does not jump, what people read
//! by the wall clock.

pub(super) mod rows;

use rusqlite::{OptionalExtension, params};
use tokio::time::Instant;

use self::rows::{TASK, TaskDone, TaskOp, read_task, with_price};
use super::writer::ops::Op;
use super::{SqliteEngine, lock};
use crate::call::{Closed, Hold, HoldRefused, tidy_raw_usage};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, TaskId};
use crate::manage::CallReach;
use crate::task::{
    BegunTask, Leased, NewTask, OpenTasks, SentTo, Task, TaskEnd, TaskNaming, TaskPage, TaskState, TaskStep, Webhook,
    WebhookOutcome, WebhookWish, Word,
};

impl SqliteEngine {
    /// Not durable in time: whatever became of it is put right by whoever finds it past its lease.
    pub async fn begin_task(&self, hold: Hold, new: NewTask) -> Result<BegunTask, HoldRefused> {
        let mut held = self.hold_for(hold, Some(new)).await?;
        held.durable().await.map_err(|_| HoldRefused::Unavailable)?;
        Ok(BegunTask { id: TaskId::of(held.call), fence: 1 })
    }

    pub async fn task_sending(&self, begun: BegunTask, to: SentTo, lease_ms: i64) -> Result<bool, StoreError> {
        let (call, due_at) = (begun.id.call(), self.steady().saturating_add(lease_ms));
        if !lock(&self.shared.books).leases.keep(call, begun.fence, due_at, &to.provider) {
            return Ok(false);
        }
        self.change(TaskOp::Sending { call, to, due_at }).await?;
        Ok(true)
    }

    pub async fn task_accepted(
        &self,
        id: TaskId,
        upstream_id: String,
        after_ms: i64,
    ) -> Result<TaskNaming, StoreError> {
        let (call, at) = (id.call(), self.now());
        let known = self.task_row(call).await?.is_some_and(|task| task.upstream_id.is_some());
        let due_at = {
            let mut books = lock(&self.shared.books);
            if known || !books.leases.has(call) {
                return Ok(TaskNaming::Stale);
            }
            let step = TaskStep::new(id, 0, TaskState::Queued, Word::Queued, after_ms);
            books.leases.release(&step, self.steady())
        };
        self.name(TaskOp::Accepted { call, upstream_id, at, due_at }).await
    }

    pub async fn task_found(&self, step: TaskStep, upstream_id: String) -> Result<TaskNaming, StoreError> {
        let (call, fence, at) = (step.id.call(), step.fence, self.now());
        let due_at = self.steady().saturating_add(step.after_ms);
        let known = self.task_row(call).await?.is_some_and(|task| task.upstream_id.is_some());
        let holds = || lock(&self.shared.books).leases.holds(call, fence);
        if known || !holds() {
            return Ok(TaskNaming::Stale);
        }
        let named = self.name(TaskOp::Found { step: step.clone(), upstream_id, at, due_at }).await?;
        let mut books = lock(&self.shared.books);
        if named == TaskNaming::Done && books.leases.holds(call, fence) {
            books.leases.release(&step, self.steady());
        }
        Ok(named)
    }

    async fn name(&self, op: TaskOp) -> Result<TaskNaming, StoreError> {
        match self.change(op).await {
            Ok(()) => Ok(TaskNaming::Done),
            Err(StoreError::Conflict(_)) => Ok(TaskNaming::Taken),
            Err(error) => Err(error),
        }
    }

    pub async fn take_tasks(&self, limit: u32, lease_ms: i64, except: &[String]) -> Result<Vec<Leased>, StoreError> {
        let now = self.steady();
        let until = now.saturating_add(lease_ms);
        let taken = lock(&self.shared.books).leases.take_due(now, until, limit as usize, except);
        self.leased(taken).await
    }

    pub async fn take_task(&self, id: TaskId, lease_ms: i64) -> Result<Option<Leased>, StoreError> {
        let now = self.steady();
        let fence = lock(&self.shared.books).leases.take(id.call(), now, now.saturating_add(lease_ms));
        let Some(fence) = fence else { return Ok(None) };
        Ok(self.leased(vec![(id.call(), fence)]).await?.pop())
    }

    async fn leased(&self, taken: Vec<(CallId, i64)>) -> Result<Vec<Leased>, StoreError> {
        if taken.is_empty() {
            return Ok(Vec::new());
        }
        self.catch_up().await;
        let now = self.steady();
        let ages: Vec<[i64; 4]> = {
            let books = lock(&self.shared.books);
            taken.iter().map(|(call, _)| books.leases.ages(*call, now)).collect()
        };
        let read = self.readers.read(move |c| {
            let mut leased = Vec::with_capacity(taken.len());
            for ((call, fence), ages) in taken.into_iter().zip(ages) {
                if let Some((task, price)) = with_price(c, call)? {
                    leased.push(Leased::new(task, fence, price, ages));
                }
            }
            Ok(leased)
        });
        read.await
    }

    #[expect(clippy::unused_async, reason = "the verb waits on the other engine")]
    pub async fn put_back_task(&self, step: TaskStep) -> Result<bool, StoreError> {
        let (call, at, steady) = (step.id.call(), self.now(), self.steady());
        let mut books = lock(&self.shared.books);
        if !books.leases.holds(call, step.fence) {
            return Ok(false);
        }
        let due_at = books.leases.release(&step, steady);
        books.push(Op::Task(Box::new(TaskOp::Step { step, at, due_at }), None));
        self.shared.nudge(books);
        Ok(true)
    }

    /// No journal: what is not committed when the process dies is found out again at the provider.
    /// Not committed in time is an error, and the end of the task all the same: it is written when
    /// the database takes it.
    pub async fn finish_task(&self, mut end: TaskEnd) -> Result<Option<Closed>, StoreError> {
        end.close.row.raw_usage = tidy_raw_usage(end.close.row.raw_usage.take());
        let (call, fence, now) = (end.close.call, end.fence, self.now());
        let estimated = end.close.estimated_for().filter(|_| !end.forgiven);
        let done = TaskDone::of(&mut end, self.steady());
        let price_id = end.close.row.price.as_ref().map(|p| p.id());
        let (closed, op, group) = {
            let mut books = lock(&self.shared.books);
            if !books.leases.holds(call, fence) {
                return Ok(None);
            }
            let group = books.group.clone();
            let Some((closed, op)) = books.close_with(end.close, price_id, now, Some(done)) else { return Ok(None) };
            books.leases.end(call);
            self.shared.ring(books);
            (closed, op, group)
        };
        self.shared.count_write_off(&closed);
        self.shared.count_estimated(estimated);
        group.wait(op, Some(Instant::now() + self.options.hold_deadline)).await?;
        Ok(Some(closed))
    }

    async fn change(&self, op: TaskOp) -> Result<(), StoreError> {
        self.ask_in_time(|reply| Op::Task(Box::new(op), reply)).await
    }

    async fn task_row(&self, call: CallId) -> Result<Option<Task>, StoreError> {
        self.catch_up().await;
        let sql = format!("SELECT {TASK} FROM task t WHERE t.call_id = ?1");
        self.readers.read(move |c| Ok(c.prepare_cached(&sql)?.query_row(params![call.0], read_task).optional()?)).await
    }

    pub async fn task(&self, account: AccountId, id: TaskId) -> Result<Option<Task>, StoreError> {
        self.catch_up().await;
        let sql = format!("SELECT {TASK} FROM task t WHERE t.call_id = ?1 AND t.account_id = ?2 AND NOT t.hidden");
        let find = move |c: &rusqlite::Connection| {
            Ok(c.prepare_cached(&sql)?.query_row(params![id.0, account.0], read_task).optional()?)
        };
        self.readers.read(find).await
    }

    pub async fn webhook_task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        self.task_row(id.call()).await
    }

    pub async fn any_task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        self.catch_up().await;
        let sql = format!("SELECT {TASK} FROM task t WHERE t.call_id = ?1 AND NOT t.hidden");
        let find = move |c: &rusqlite::Connection| {
            Ok(c.prepare_cached(&sql)?.query_row(params![id.0], read_task).optional()?)
        };
        self.readers.read(find).await
    }

    pub async fn tasks_named(&self, upstream_ids: &[String]) -> Result<Vec<String>, StoreError> {
        self.catch_up().await;
        let ids = upstream_ids.to_vec();
        let find = move |c: &rusqlite::Connection| {
            let mut statement = c.prepare_cached("SELECT EXISTS (SELECT 1 FROM task WHERE upstream_id = ?1)")?;
            let mut known = Vec::new();
            for id in ids {
                if statement.query_row(params![id], |r| r.get(0))? {
                    known.push(id);
                }
            }
            Ok(known)
        };
        self.readers.read(find).await
    }

    pub async fn nameless_tasks(&self, created: (i64, i64), limit: u32) -> Result<Vec<Task>, StoreError> {
        self.catch_up().await;
        let sql = format!(
            "SELECT {TASK} FROM task t WHERE t.upstream_id IS NULL AND t.state BETWEEN 1 AND 6 \
             AND t.created_at BETWEEN ?1 AND ?2 ORDER BY t.created_at LIMIT ?3"
        );
        let find = move |c: &rusqlite::Connection| {
            let mut statement = c.prepare_cached(&sql)?;
            let rows = statement.query_map(params![created.0, created.1, limit], read_task)?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.readers.read(find).await
    }

    pub async fn tasks(&self, of: CallReach, page: TaskPage) -> Result<Vec<Task>, StoreError> {
        self.catch_up().await;
        let (than, order, start) = if page.oldest_first { (">", "ASC", [0; 16]) } else { ("<", "DESC", [0xff; 16]) };
        let sql = format!(
            "SELECT {TASK} FROM task t WHERE t.account_id = ?1 AND t.call_id {than} ?2 AND NOT t.hidden AND t.state <> 7 \
             AND (?4 IS NULL OR t.key_id IN (SELECT id FROM key WHERE person_id = ?4)) \
             ORDER BY t.call_id {order} LIMIT ?3"
        );
        let after = page.after.map_or(start, |id| id.0);
        self.readers
            .read(move |c| {
                let mut statement = c.prepare_cached(&sql)?;
                let rows = statement
                    .query_map(params![of.account.0, after, page.limit, of.person.map(|id| id.0)], read_task)?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }

    pub async fn hide_task(&self, account: AccountId, id: TaskId) -> Result<bool, StoreError> {
        let found = self.task(account, id).await?.is_some();
        if found {
            self.change(TaskOp::Hide { call: id.call() }).await?;
        }
        Ok(found)
    }

    pub async fn store_result(&self, id: TaskId, result: String) -> Result<(), StoreError> {
        self.change(TaskOp::Result { call: id.call(), result }).await
    }

    pub async fn open_tasks(&self) -> Result<Vec<OpenTasks>, StoreError> {
        let sql = "SELECT state, count(*), min(created_at), provider FROM task WHERE state < 5 GROUP BY state, provider \
                   ORDER BY state, provider";
        let read = |r: &rusqlite::Row<'_>| {
            let count: i64 = r.get(1)?;
            let (state, provider) = (TaskState::from_code(r.get(0)?), r.get(3)?);
            Ok(OpenTasks { state, provider, count: count.unsigned_abs(), oldest_at: r.get(2)? })
        };
        self.readers.read(move |c| Ok(c.prepare_cached(sql)?.query_map([], read)?.collect::<Result<_, _>>()?)).await
    }

    pub async fn take_webhooks(&self, wish: WebhookWish, lease_ms: i64) -> Result<Vec<Webhook>, StoreError> {
        let now = self.steady();
        let sql = "SELECT EXISTS (SELECT 1 FROM webhook WHERE due_at <= ?1)";
        // Nothing is written where nothing is due.
        if !self.readers.read(move |c| Ok(c.prepare_cached(sql)?.query_row(params![now], |r| r.get(0))?)).await? {
            return Ok(Vec::new());
        }
        self.ask_in_time(|reply| Op::TakeWebhooks { now, until: now.saturating_add(lease_ms), wish, reply }).await
    }

    pub async fn webhook_tried(&self, webhook: &Webhook, outcome: WebhookOutcome) -> Result<(), StoreError> {
        let (call, fence, now) = (webhook.task.call(), webhook.fence, self.steady());
        self.change(TaskOp::WebhookTried { call, fence, outcome, now }).await
    }
}
