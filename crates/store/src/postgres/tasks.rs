//! Video tasks on PostgreSQL. What changes a task goes through the queue, so that many changes are
//! one commit; taking is a statement of its own that passes over what other replicas have in their
//! hands. Ages and times to come are by the clock of the database.

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::ops::bytes;
use super::queue::{OpReply, PendingOp};
use super::queued::QueuedOp;
use super::records::SqlParam;
use super::rows::id;
use super::{PostgresEngine, lock};
use crate::call::{Closed, Hold, HoldRefused, tidy_raw_usage};
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId, TaskId};
use crate::manage::CallReach;
use crate::task::turns::{TurnWish, Turns};
use crate::task::{
    BegunTask, Leased, NewTask, OpenTasks, SentTo, Task, TaskEnd, TaskFailure, TaskNaming, TaskPage, TaskState,
    TaskStep, Webhook, WebhookOutcome, WebhookWish,
};

const TASK: &str = "t.call_id, t.account_id, t.key_id, t.endpoint, t.model, t.provider, t.upstream_model, t.upstream_id, \
     t.state, t.progress, t.plan, t.result, t.failure_code, t.failure_message, t.webhook_url, t.created_at, t.checked_at, \
     t.unknown_since, t.ended_at, t.upstream_host, t.upstream_key, t.heard, t.absent_since, t.made_since";
const TASK_COLUMNS: usize = 24;
/// All are 0 at least: what is not there counts for nothing in `greatest`.
const AGES: &str = "greatest(0, tollgate_now() - t.created_at), greatest(0, tollgate_now() - t.unknown_since), \
     greatest(0, tollgate_now() - t.absent_since), greatest(0, tollgate_now() - t.made_since)";

impl PostgresEngine {
    /// Not answered in time: whatever became of it is put right by whoever finds it past its lease.
    pub async fn begin_task(&self, hold: Hold, new: NewTask) -> Result<BegunTask, HoldRefused> {
        let id = TaskId::of(hold.call);
        let task = json!({"plan": new.plan, "webhook_url": new.webhook_url, "lease": new.lease_ms});
        let receive = match self.queue_hold(&hold, Some(task)) {
            Err(HoldRefused::Unavailable) => return Err(self.repeated_without_ledger(&hold).await),
            queued => queued?,
        };
        let verdict = match tokio::time::timeout(self.options.hold_deadline, receive).await {
            Ok(Ok(verdict)) => verdict.map(|_| BegunTask { id, fence: 1 }),
            Ok(Err(_)) | Err(_) => Err(HoldRefused::Unavailable),
        };
        // Any replica may end it, so none counts it among its own.
        lock(&self.shared.open).remove(&hold.call);
        verdict
    }

    pub async fn task_sending(&self, begun: BegunTask, to: SentTo, lease_ms: i64) -> Result<bool, StoreError> {
        self.change_task(json!({
            "kind": "task_sending", "task": bytes(&begun.id.0), "fence": begun.fence, "provider": to.provider,
            "upstream_model": to.upstream_model, "host": to.host, "key": to.key, "after": lease_ms,
        }))
        .await
        .map(|changed| changed == TaskNaming::Done)
    }

    pub async fn task_accepted(
        &self,
        id: TaskId,
        upstream_id: String,
        after_ms: i64,
    ) -> Result<TaskNaming, StoreError> {
        self.change_task(json!({
            "kind": "task_accepted", "task": bytes(&id.0), "upstream_id": upstream_id, "after": after_ms,
        }))
        .await
    }

    pub async fn task_found(&self, step: TaskStep, upstream_id: String) -> Result<TaskNaming, StoreError> {
        let mut body = self.step_body(&step);
        body["kind"] = "task_found".into();
        body["upstream_id"] = upstream_id.into();
        self.change_task(body).await
    }

    pub async fn put_back_task(&self, step: TaskStep) -> Result<bool, StoreError> {
        self.change_task(self.step_body(&step)).await.map(|changed| changed == TaskNaming::Done)
    }

    fn step_body(&self, step: &TaskStep) -> Value {
        json!({
            "kind": "task_step", "task": bytes(&step.id.0), "fence": step.fence, "state": step.state.code(),
            "progress": step.progress, "checked": step.word.is_about_it(),
            "heard": step.word.heard().map(TaskState::code), "absent": step.word.absent(), "made": step.word.is_made(),
            "after": step.after_ms, "quiet": step.quiet,
        })
    }

    async fn change_task(&self, body: Value) -> Result<TaskNaming, StoreError> {
        let (send, receive) = oneshot::channel();
        let op = QueuedOp::Written(body.to_string());
        self.shared.queue.push(PendingOp { op, answer: OpReply::Task(send) });
        self.in_time(receive).await
    }

    /// What is not answered in time stays queued, and is done when the database takes it.
    async fn in_time<T>(&self, receive: oneshot::Receiver<Result<T, StoreError>>) -> Result<T, StoreError> {
        match tokio::time::timeout(self.options.hold_deadline, receive).await {
            Ok(answer) => answer.map_err(|_| StoreError::away("the store was shut"))?,
            Err(_) => Err(StoreError::away("the commit takes too long")),
        }
    }

    /// No journal: what is not committed when the process dies is found out again at the provider.
    pub async fn finish_task(&self, mut end: TaskEnd) -> Result<Option<Closed>, StoreError> {
        end.close.row.raw_usage = tidy_raw_usage(end.close.row.raw_usage.take());
        let estimated = end.close.estimated_for().filter(|_| !end.forgiven);
        let failure = end.failure.as_ref();
        let task = json!({
            "fence": end.fence, "state": end.state.code(), "result": end.result, "forgiven": end.forgiven,
            "failure_code": failure.map(|f| &f.code), "failure_message": failure.map(|f| &f.message),
            "webhook_url": end.webhook_url, "at": self.now(),
        });
        let waits = self.waiting_close(end.close, None);
        let op = QueuedOp::Written(waits.written(&self.shared.replica, Some((task, end.state != TaskState::Refused))));
        let (send, receive) = oneshot::channel();
        self.shared.queue.push(PendingOp { op, answer: OpReply::TaskEnd(send, estimated) });
        self.in_time(receive).await
    }

    pub async fn take_tasks(&self, limit: u32, lease_ms: i64, except: &[String]) -> Result<Vec<Leased>, StoreError> {
        let sql = format!(
            "WITH t AS (UPDATE task SET fence = fence + 1, leased = true, owner = $1, due_at = tollgate_now() + $2 \
             WHERE call_id IN (SELECT call_id FROM task WHERE state < 5 AND due_at <= tollgate_now() \
             AND (provider IS NULL OR provider <> ALL ($4)) ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING *) \
             SELECT {TASK}, t.fence, p.json, {AGES} FROM t JOIN price p ON p.id = t.price_id"
        );
        let owner = self.shared.replica.as_slice();
        let rows = self.rows(&sql, &[&owner, &lease_ms, &i64::from(limit), &except]).await?;
        rows.iter().map(leased).collect()
    }

    pub async fn take_task(&self, id: TaskId, lease_ms: i64) -> Result<Option<Leased>, StoreError> {
        let sql = format!(
            "WITH t AS (UPDATE task SET fence = fence + 1, leased = true, owner = $1, due_at = tollgate_now() + $2 \
             WHERE call_id = $3 AND state < 5 AND (NOT (leased OR quiet) OR due_at <= tollgate_now()) RETURNING *) \
             SELECT {TASK}, t.fence, p.json, {AGES} FROM t JOIN price p ON p.id = t.price_id"
        );
        let owner = self.shared.replica.as_slice();
        let rows = self.rows(&sql, &[&owner, &lease_ms, &id.0.as_slice()]).await?;
        rows.first().map(leased).transpose()
    }

    pub async fn turns(&self, wish: TurnWish<'_>) -> Result<Turns, StoreError> {
        let sql = "SELECT after_us, given FROM tollgate_turns($1, $2, $3, $4)";
        let params: [SqlParam<'_>; 4] = [&wish.line, &wish.every_us.max(1), &i64::from(wish.count), &wish.patience_us];
        let rows = self.rows(sql, &params).await?;
        let row = rows.first().ok_or_else(|| StoreError::broken("no answer"))?;
        let count = u32::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0);
        Ok(Turns { after_us: row.try_get(0)?, count })
    }

    /// What this replica had in its hands before it was started again is due at once.
    pub(super) async fn release_tasks(&self) -> Result<(), StoreError> {
        let sql = "UPDATE task SET due_at = least(due_at, tollgate_now()), leased = false, fence = fence + 1 \
                   WHERE owner = $1 AND leased AND state < 5";
        self.rows(sql, &[&self.shared.replica.as_slice()]).await.map(drop)
    }

    pub async fn task(&self, account: AccountId, id: TaskId) -> Result<Option<Task>, StoreError> {
        let sql = format!("SELECT {TASK} FROM task t WHERE t.call_id = $1 AND t.account_id = $2 AND NOT t.hidden");
        let rows = self.rows(&sql, &[&id.0.as_slice(), &account.0.as_slice()]).await?;
        rows.first().map(task).transpose()
    }

    pub async fn webhook_task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        let sql = format!("SELECT {TASK} FROM task t WHERE t.call_id = $1");
        let rows = self.rows(&sql, &[&id.0.as_slice()]).await?;
        rows.first().map(task).transpose()
    }

    pub async fn any_task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        let sql = format!("SELECT {TASK} FROM task t WHERE t.call_id = $1 AND NOT t.hidden");
        let rows = self.rows(&sql, &[&id.0.as_slice()]).await?;
        rows.first().map(task).transpose()
    }

    pub async fn tasks_named(&self, upstream_ids: &[String]) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT DISTINCT upstream_id FROM task WHERE upstream_id = ANY ($1)";
        self.rows(sql, &[&upstream_ids]).await?.iter().map(|r| Ok(r.try_get(0)?)).collect()
    }

    pub async fn nameless_tasks(&self, created: (i64, i64), limit: u32) -> Result<Vec<Task>, StoreError> {
        let sql = format!(
            "SELECT {TASK} FROM task t WHERE t.upstream_id IS NULL AND t.state BETWEEN 1 AND 6 \
             AND t.created_at BETWEEN $1 AND $2 ORDER BY t.created_at LIMIT $3"
        );
        let rows = self.rows(&sql, &[&created.0, &created.1, &i64::from(limit)]).await?;
        rows.iter().map(task).collect()
    }

    pub async fn tasks(&self, of: CallReach, page: TaskPage) -> Result<Vec<Task>, StoreError> {
        let (than, order, start) = if page.oldest_first { (">", "ASC", [0; 16]) } else { ("<", "DESC", [0xff; 16]) };
        let sql = format!(
            "SELECT {TASK} FROM task t WHERE t.account_id = $1 AND t.call_id {than} $2 AND NOT t.hidden AND t.state <> 7 \
             AND ($4::bytea IS NULL OR t.key_id IN (SELECT id FROM key WHERE person_id = $4)) \
             ORDER BY t.call_id {order} LIMIT $3"
        );
        let after = page.after.map_or(start, |id| id.0);
        let person = of.person.as_ref().map(|id| id.0.as_slice());
        let values: [SqlParam<'_>; 4] = [&of.account.0.as_slice(), &after.as_slice(), &i64::from(page.limit), &person];
        let rows = self.rows(&sql, &values).await?;
        rows.iter().map(task).collect()
    }

    pub async fn hide_task(&self, account: AccountId, id: TaskId) -> Result<bool, StoreError> {
        let sql = "UPDATE task SET hidden = true WHERE call_id = $1 AND account_id = $2 AND NOT hidden RETURNING 1";
        Ok(!self.rows(sql, &[&id.0.as_slice(), &account.0.as_slice()]).await?.is_empty())
    }

    pub async fn store_result(&self, id: TaskId, result: String) -> Result<(), StoreError> {
        self.rows("UPDATE task SET result = $2 WHERE call_id = $1", &[&id.0.as_slice(), &result]).await.map(drop)
    }

    pub async fn open_tasks(&self) -> Result<Vec<OpenTasks>, StoreError> {
        let sql = "SELECT state, count(*), min(created_at), provider FROM task WHERE state < 5 GROUP BY state, provider \
                   ORDER BY state, provider";
        let read = |r: &Row| {
            let count = r.try_get::<_, i64>(1)?.unsigned_abs();
            let (state, provider) = (TaskState::from_code(r.try_get(0)?), r.try_get(3)?);
            Ok(OpenTasks { state, provider, count, oldest_at: r.try_get(2)? })
        };
        self.rows(sql, &[]).await?.iter().map(read).collect()
    }

    pub async fn take_webhooks(&self, wish: WebhookWish, lease_ms: i64) -> Result<Vec<Webhook>, StoreError> {
        let sql = "WITH due AS (SELECT call_id, row_number() OVER (PARTITION BY account_id ORDER BY due_at) AS place \
                   FROM webhook WHERE due_at <= tollgate_now() AND account_id <> ALL ($3)) \
                   UPDATE webhook SET fence = fence + 1, due_at = tollgate_now() + $1 WHERE call_id IN \
                   (SELECT w.call_id FROM webhook w JOIN due ON due.call_id = w.call_id \
                   WHERE due.place <= $4 AND w.due_at <= tollgate_now() ORDER BY w.due_at LIMIT $2 \
                   FOR UPDATE OF w SKIP LOCKED) RETURNING call_id, account_id, url, attempts, created_at, fence";
        let except: Vec<&[u8]> = wish.except.iter().map(|account| account.0.as_slice()).collect();
        let (limit, each) = (i64::from(wish.limit), i64::from(wish.each));
        let read = |r: &Row| {
            Ok(Webhook {
                task: TaskId(id(r, 0)?),
                account: AccountId(id(r, 1)?),
                url: r.try_get(2)?,
                attempts: r.try_get::<_, i32>(3)?.unsigned_abs(),
                created_at: r.try_get(4)?,
                fence: r.try_get(5)?,
            })
        };
        self.rows(sql, &[&lease_ms, &limit, &except, &each]).await?.iter().map(read).collect()
    }

    pub async fn webhook_tried(&self, webhook: &Webhook, outcome: WebhookOutcome) -> Result<(), StoreError> {
        let (call, fence) = (webhook.task.0, webhook.fence);
        match outcome {
            WebhookOutcome::Over => {
                let sql = "DELETE FROM webhook WHERE call_id = $1 AND fence = $2";
                self.rows(sql, &[&call.as_slice(), &fence]).await?;
            }
            WebhookOutcome::Again(after) => {
                let sql = "UPDATE webhook SET due_at = tollgate_now() + $3, attempts = attempts + 1 \
                           WHERE call_id = $1 AND fence = $2";
                self.rows(sql, &[&call.as_slice(), &fence, &after]).await?;
            }
        }
        Ok(())
    }
}

fn leased(r: &Row) -> Result<Leased, StoreError> {
    let price = serde_json::from_str(r.try_get(TASK_COLUMNS + 1)?).map_err(StoreError::broken)?;
    let age = |n: usize| r.try_get(TASK_COLUMNS + 2 + n);
    Ok(Leased::new(task(r)?, r.try_get(TASK_COLUMNS)?, price, [age(0)?, age(1)?, age(2)?, age(3)?]))
}

fn task(r: &Row) -> Result<Task, StoreError> {
    let (code, message): (Option<String>, Option<String>) = (r.try_get(12)?, r.try_get(13)?);
    Ok(Task {
        id: TaskId(id(r, 0)?),
        account: AccountId(id(r, 1)?),
        key: KeyId(id(r, 2)?),
        endpoint: r.try_get(3)?,
        model: r.try_get(4)?,
        provider: r.try_get(5)?,
        upstream_model: r.try_get(6)?,
        upstream_id: r.try_get(7)?,
        upstream_host: r.try_get(19)?,
        upstream_key: r.try_get(20)?,
        state: TaskState::from_code(r.try_get(8)?),
        progress: r.try_get::<_, Option<i16>>(9)?.and_then(|p| u8::try_from(p).ok()),
        plan: r.try_get(10)?,
        result: r.try_get(11)?,
        failure: code.map(|code| TaskFailure { code, message: message.unwrap_or_default() }),
        webhook_url: r.try_get(14)?,
        created_at: r.try_get(15)?,
        checked_at: r.try_get(16)?,
        unknown_since: r.try_get(17)?,
        heard: r.try_get::<_, Option<i16>>(21)?.map(TaskState::from_code),
        absent_since: r.try_get(22)?,
        made_since: r.try_get(23)?,
        ended_at: r.try_get(18)?,
    })
}
