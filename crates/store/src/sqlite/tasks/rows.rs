//! The rows of tasks and webhooks in the file.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};
use tollgate_catalog::Price;

use crate::sqlite::writer::apply::Apply;
use crate::sqlite::writer::ops::{BegunOp, HoldOp};

use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId, TaskId};
use crate::task::{SentTo, Task, TaskEnd, TaskFailure, TaskState, TaskStep, Webhook, WebhookOutcome, WebhookWish};

pub(in crate::sqlite) const TASK: &str = "t.call_id, t.account_id, t.key_id, t.endpoint, t.model, t.provider, t.upstream_model, \
     t.upstream_id, t.state, t.progress, t.plan, t.result, t.failure_code, t.failure_message, t.webhook_url, \
     t.created_at, t.checked_at, t.unknown_since, t.ended_at, t.upstream_host, t.upstream_key, \
     t.heard, t.absent_since, t.made_since";
pub(in crate::sqlite) const TASK_COLUMNS: usize = 24;

/// What the writer is asked to change of a task or a webhook. Who may was decided before.
pub(in crate::sqlite) enum TaskOp {
    Sending { call: CallId, to: SentTo, due_at: i64 },
    Accepted { call: CallId, upstream_id: String, at: i64, due_at: i64 },
    Step { step: TaskStep, at: i64, due_at: i64 },
    Found { step: TaskStep, upstream_id: String, at: i64, due_at: i64 },
    Hide { call: CallId },
    Result { call: CallId, result: String },
    WebhookTried { call: CallId, fence: i64, outcome: WebhookOutcome, now: i64 },
}

/// The end of a task, as its close carries it.
pub(in crate::sqlite) struct TaskDone {
    pub state: TaskState,
    pub result: Option<String>,
    pub failure: Option<TaskFailure>,
    pub forgiven: bool,
    pub webhook_url: Option<String>,
    /// When it is sent for the first time, by the clock that does not jump.
    pub webhook_at: i64,
}

impl TaskDone {
    pub fn of(end: &mut TaskEnd, notified_at: i64) -> Self {
        Self {
            state: end.state,
            result: end.result.take(),
            failure: end.failure.take(),
            forgiven: end.forgiven,
            webhook_url: end.webhook_url.take(),
            webhook_at: notified_at,
        }
    }

    /// The caller has it, so an idempotency key leads to it.
    pub fn is_shown(&self) -> bool {
        self.state != TaskState::Refused
    }
}

impl Apply<'_> {
    pub(in crate::sqlite) fn new_task(&mut self, h: &HoldOp, task: &BegunOp) -> rusqlite::Result<()> {
        let sql = "INSERT INTO task (call_id, account_id, key_id, endpoint, model, state, plan, webhook_url, created_at, \
                   price_id, due_at) VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10)";
        self.statement(sql)?.execute(params![
            h.call.0,
            h.account.0,
            h.key.0,
            h.endpoint,
            h.model,
            task.new.plan,
            task.new.webhook_url,
            task.created_at,
            h.price_id,
            task.due_at,
        ])?;
        Ok(())
    }

    pub(in crate::sqlite) fn end_task(
        &mut self,
        call: CallId,
        account: AccountId,
        done: &TaskDone,
        at: i64,
    ) -> rusqlite::Result<()> {
        let sql = "UPDATE task SET state = ?2, result = ?3, failure_code = ?4, failure_message = ?5, ended_at = ?6, \
                   progress = CASE WHEN ?2 = 5 THEN 100 ELSE progress END WHERE call_id = ?1";
        let failure = done.failure.as_ref();
        self.statement(sql)?.execute(params![
            call.0,
            done.state.code(),
            done.result,
            failure.map(|f| f.code.as_str()),
            failure.map(|f| f.message.as_str()),
            at,
        ])?;
        if let Some(url) = &done.webhook_url {
            let sql = "INSERT OR IGNORE INTO webhook (call_id, account_id, url, created_at, due_at) \
                       VALUES (?1, ?2, ?3, ?4, ?5)";
            self.statement(sql)?.execute(params![call.0, account.0, url, at, done.webhook_at])?;
        }
        Ok(())
    }

    /// An error inside: the name is another task's.
    pub(in crate::sqlite) fn task(&mut self, op: &TaskOp) -> rusqlite::Result<Result<(), StoreError>> {
        match op {
            TaskOp::Sending { call, to, due_at } => {
                let sql = "UPDATE task SET state = 1, provider = ?2, upstream_model = ?3, upstream_host = ?4, \
                           upstream_key = ?5, due_at = ?6 WHERE call_id = ?1";
                let SentTo { provider, upstream_model, host, key } = to;
                self.statement(sql)?.execute(params![call.0, provider, upstream_model, host, key, due_at])?;
            }
            TaskOp::Accepted { call, upstream_id, at, due_at } => {
                if !self.name_task(*call, upstream_id)? {
                    // The provider did take it, whatever is said of it later.
                    let sql = "UPDATE task SET state = 4, unknown_since = coalesce(unknown_since, ?2), heard = 2, \
                               absent_since = NULL, due_at = ?3 WHERE call_id = ?1";
                    self.statement(sql)?.execute(params![call.0, at, due_at])?;
                    return Ok(Err(name_taken()));
                }
                let sql = "UPDATE task SET state = 2, checked_at = ?2, unknown_since = NULL, heard = 2, absent_since = NULL, \
                           quiet = 0, due_at = ?3 WHERE call_id = ?1";
                self.statement(sql)?.execute(params![call.0, at, due_at])?;
            }
            TaskOp::Found { step, upstream_id, at, due_at } => {
                if !self.name_task(step.id.call(), upstream_id)? {
                    return Ok(Err(name_taken()));
                }
                self.step_task(step, *at, *due_at)?;
            }
            TaskOp::Step { step, at, due_at } => self.step_task(step, *at, *due_at)?,
            TaskOp::Hide { call } => {
                self.statement("UPDATE task SET hidden = 1 WHERE call_id = ?1")?.execute(params![call.0])?;
            }
            TaskOp::Result { call, result } => {
                let sql = "UPDATE task SET result = ?2 WHERE call_id = ?1";
                self.statement(sql)?.execute(params![call.0, result])?;
            }
            TaskOp::WebhookTried { call, fence, outcome: WebhookOutcome::Over, .. } => {
                let sql = "DELETE FROM webhook WHERE call_id = ?1 AND fence = ?2";
                self.statement(sql)?.execute(params![call.0, fence])?;
            }
            TaskOp::WebhookTried { call, fence, outcome: WebhookOutcome::Again(after), now } => {
                let sql = "UPDATE webhook SET due_at = ?3, attempts = attempts + 1 WHERE call_id = ?1 AND fence = ?2";
                self.statement(sql)?.execute(params![call.0, fence, now + after])?;
            }
        }
        Ok(Ok(()))
    }

    fn step_task(&mut self, step: &TaskStep, at: i64, due_at: i64) -> rusqlite::Result<()> {
        let sql = "UPDATE task SET state = ?2, progress = coalesce(?3, progress), \
                   checked_at = CASE WHEN ?4 THEN ?5 ELSE checked_at END, \
                   unknown_since = CASE WHEN ?2 = 4 THEN coalesce(unknown_since, ?5) END, due_at = ?6, quiet = ?7, \
                   heard = coalesce(?8, heard), \
                   absent_since = CASE WHEN ?9 IS NULL THEN absent_since WHEN ?9 THEN coalesce(absent_since, ?5) END, \
                   made_since = CASE WHEN ?10 THEN coalesce(made_since, ?5) ELSE made_since END WHERE call_id = ?1";
        let (state, heard) = (step.state.code(), step.word.heard().map(TaskState::code));
        let TaskStep { id, progress, word, quiet, .. } = step;
        let (about_it, absent, made) = (word.is_about_it(), word.absent(), word.is_made());
        self.statement(sql)?
            .execute(params![id.0, state, progress, about_it, at, due_at, quiet, heard, absent, made])?;
        Ok(())
    }

    /// Gives a task its name at the provider, unless another task has that name there.
    fn name_task(&mut self, call: CallId, upstream_id: &str) -> rusqlite::Result<bool> {
        let sql = "INSERT INTO task_name (home, upstream_id, call_id) \
                   SELECT coalesce(upstream_host, provider, ''), ?2, call_id FROM task WHERE call_id = ?1 \
                   ON CONFLICT DO NOTHING";
        if self.statement(sql)?.execute(params![call.0, upstream_id])? == 0 {
            return Ok(false);
        }
        let sql = "UPDATE task SET upstream_id = ?2 WHERE call_id = ?1";
        self.statement(sql)?.execute(params![call.0, upstream_id])?;
        Ok(true)
    }

    pub(in crate::sqlite) fn take_webhooks(
        &mut self,
        now: i64,
        until: i64,
        wish: &WebhookWish,
    ) -> rusqlite::Result<Vec<Webhook>> {
        let due = self.due_webhooks(now, wish)?;
        let sql = "UPDATE webhook SET due_at = ?2, fence = fence + 1 WHERE call_id = ?1 \
                   RETURNING call_id, account_id, url, attempts, created_at, fence";
        let mut statement = self.statement(sql)?;
        let read = |r: &Row<'_>| {
            Ok(Webhook {
                task: TaskId(r.get(0)?),
                account: AccountId(r.get(1)?),
                url: r.get(2)?,
                attempts: r.get(3)?,
                created_at: r.get(4)?,
                fence: r.get(5)?,
            })
        };
        due.iter().map(|task| statement.query_row(params![task.0, until], read)).collect()
    }

    /// Read in their order until there are enough.
    fn due_webhooks(&mut self, now: i64, wish: &WebhookWish) -> rusqlite::Result<Vec<TaskId>> {
        let mut statement =
            self.statement("SELECT call_id, account_id FROM webhook WHERE due_at <= ?1 ORDER BY due_at")?;
        let mut rows = statement.query(params![now])?;
        let mut taken: HashMap<AccountId, u32> = wish.except.iter().map(|account| (*account, wish.each)).collect();
        let mut due = Vec::new();
        while due.len() < wish.limit as usize {
            let Some(row) = rows.next()? else { break };
            let of_account = taken.entry(AccountId(row.get(1)?)).or_default();
            if *of_account < wish.each {
                *of_account += 1;
                due.push(TaskId(row.get(0)?));
            }
        }
        Ok(due)
    }
}

fn name_taken() -> StoreError {
    StoreError::Conflict("another task has this name at its provider".into())
}

pub(in crate::sqlite) fn read_task(r: &Row<'_>) -> rusqlite::Result<Task> {
    let code: Option<String> = r.get(12)?;
    let message: Option<String> = r.get(13)?;
    Ok(Task {
        id: TaskId(r.get(0)?),
        account: AccountId(r.get(1)?),
        key: KeyId(r.get(2)?),
        endpoint: r.get(3)?,
        model: r.get(4)?,
        provider: r.get(5)?,
        upstream_model: r.get(6)?,
        upstream_id: r.get(7)?,
        upstream_host: r.get(19)?,
        upstream_key: r.get(20)?,
        state: TaskState::from_code(r.get(8)?),
        progress: r.get(9)?,
        plan: r.get(10)?,
        result: r.get(11)?,
        failure: code.map(|code| TaskFailure { code, message: message.unwrap_or_default() }),
        webhook_url: r.get(14)?,
        created_at: r.get(15)?,
        checked_at: r.get(16)?,
        unknown_since: r.get(17)?,
        heard: r.get::<_, Option<i16>>(21)?.map(TaskState::from_code),
        absent_since: r.get(22)?,
        made_since: r.get(23)?,
        ended_at: r.get(18)?,
    })
}

/// A task with its frozen price; `None` when it is gone.
pub(in crate::sqlite) fn with_price(conn: &Connection, call: CallId) -> Result<Option<(Task, Price)>, StoreError> {
    let sql = format!("SELECT {TASK}, p.json FROM task t JOIN price p ON p.id = t.price_id WHERE t.call_id = ?1");
    let mut found = conn.prepare_cached(&sql)?;
    let mut rows = found.query(params![call.0])?;
    let Some(r) = rows.next()? else { return Ok(None) };
    let json: String = r.get(TASK_COLUMNS)?;
    Ok(Some((read_task(r)?, serde_json::from_str(&json).map_err(StoreError::broken)?)))
}
