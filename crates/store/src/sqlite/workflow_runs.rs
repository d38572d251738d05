//! Workflow runs on the embedded engine: written by the one writer, so that counts, leases and
//! fences are exact.

use rusqlite::{OptionalExtension, Row, params};

use super::writer::apply::Apply;
use super::writer::ops::Op;
use super::{SqliteEngine, lock};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId, RunId};
use crate::manage::CallReach;
use crate::workflow_run::{
    KeyedCall, NewWorkflowRun, WRITTEN_LATER_MS, WorkflowRun, WorkflowRunLimits, WorkflowRunMade, WorkflowRunPage,
    WorkflowRunWrite,
};

/// What the writer is asked to write.
pub(super) enum WorkflowRunOp {
    Create {
        new: NewWorkflowRun,
        limits: WorkflowRunLimits,
        at: i64,
    },
    Take {
        id: RunId,
        fence: i64,
        at: i64,
        until: i64,
    },
    Write(WorkflowRunWrite, i64),
    Wish {
        account: AccountId,
        id: RunId,
        wish: String,
        /// Also where another waits.
        replaces: bool,
        at: i64,
    },
    /// Forgets what ended before `before`; what the clock has put off is due at `now`.
    Tend {
        before: i64,
        now: i64,
    },
}

const RUN: &str = "id, account_id, key_id, slug, plan, state, status, wish, fence, created_at, changed_at, ended_at";

/// Answers of [`WorkflowRunOp::Create`].
const MADE: u64 = 1;
const FULL: u64 = 2;
const BEFORE: u64 = 3;

impl SqliteEngine {
    async fn ask_run(&self, op: WorkflowRunOp) -> Result<u64, StoreError> {
        self.ask_in_time(|reply| Op::WorkflowRun(Box::new(op), reply)).await
    }

    pub async fn create_run(
        &self,
        new: NewWorkflowRun,
        limits: WorkflowRunLimits,
    ) -> Result<WorkflowRunMade, StoreError> {
        let (account, idem) = (new.account, new.idem);
        match self.ask_run(WorkflowRunOp::Create { new, limits, at: self.now() }).await? {
            MADE => return Ok(WorkflowRunMade::Made),
            FULL => return Ok(WorkflowRunMade::Full),
            _ => {}
        }
        Ok(self.run_begun_with(account, idem).await?.unwrap_or(WorkflowRunMade::Conflict))
    }

    pub async fn run_begun_with(
        &self,
        account: AccountId,
        idem: Option<([u8; 32], [u8; 32])>,
    ) -> Result<Option<WorkflowRunMade>, StoreError> {
        let Some((key, fingerprint)) = idem else { return Ok(None) };
        let sql = "SELECT id, fingerprint FROM workflow_run WHERE account_id = ?1 AND idem = ?2";
        let one = |r: &Row<'_>| Ok((RunId(r.get(0)?), r.get::<_, [u8; 32]>(1)?));
        let find = move |c: &rusqlite::Connection| {
            Ok(c.prepare_cached(sql)?.query_row(params![account.0, key], one).optional()?)
        };
        let before =
            |(id, same)| if same == fingerprint { WorkflowRunMade::Before(id) } else { WorkflowRunMade::Conflict };
        Ok(self.readers.read(find).await?.map(before))
    }

    pub async fn due_runs(&self, limit: u32) -> Result<Vec<(RunId, i64)>, StoreError> {
        let sql =
            "SELECT id, fence FROM workflow_run WHERE due_at <= ?1 AND leased_until <= ?1 ORDER BY due_at LIMIT ?2";
        let now = self.now();
        let one = |r: &Row<'_>| Ok((RunId(r.get(0)?), r.get(1)?));
        self.readers
            .read(move |c| Ok(c.prepare_cached(sql)?.query_map(params![now, limit], one)?.collect::<Result<_, _>>()?))
            .await
    }

    pub async fn take_run(&self, id: RunId, fence: i64, lease_ms: i64) -> Result<bool, StoreError> {
        let at = self.now();
        Ok(self.ask_run(WorkflowRunOp::Take { id, fence, at, until: at.saturating_add(lease_ms) }).await? == 1)
    }

    pub async fn write_run(&self, write: WorkflowRunWrite) -> Result<bool, StoreError> {
        Ok(self.ask_run(WorkflowRunOp::Write(write, self.now())).await? == 1)
    }

    pub async fn wish_run(
        &self,
        account: AccountId,
        id: RunId,
        wish: String,
        replaces: bool,
    ) -> Result<bool, StoreError> {
        Ok(self.ask_run(WorkflowRunOp::Wish { account, id, wish, replaces, at: self.now() }).await? == 1)
    }

    pub async fn any_run(&self, id: RunId) -> Result<Option<WorkflowRun>, StoreError> {
        let sql = format!("SELECT {RUN} FROM workflow_run WHERE id = ?1");
        self.readers.read(move |c| Ok(c.prepare_cached(&sql)?.query_row(params![id.0], run).optional()?)).await
    }

    pub async fn runs(&self, of: CallReach, page: WorkflowRunPage) -> Result<Vec<WorkflowRun>, StoreError> {
        let sql = format!(
            "SELECT {RUN} FROM workflow_run WHERE account_id = ?1 AND (?2 IS NULL OR id < ?2) \
             AND (?4 IS NULL OR key_id IN (SELECT k.id FROM key k WHERE k.person_id = ?4)) ORDER BY id DESC LIMIT ?3"
        );
        let after = page.after.map(|id| id.0);
        let read = move |c: &rusqlite::Connection| {
            let rows = params![of.account.0, after, page.limit, of.person.map(|id| id.0)];
            Ok(c.prepare_cached(&sql)?.query_map(rows, run)?.collect::<Result<_, _>>()?)
        };
        self.readers.read(read).await
    }

    pub async fn runs_of_calls(&self, calls: Vec<CallId>) -> Result<Vec<(CallId, RunId)>, StoreError> {
        let read = move |c: &rusqlite::Connection| {
            let mut statement = c.prepare_cached("SELECT run_id FROM workflow_call WHERE call_id = ?1")?;
            let mut found = Vec::new();
            for call in calls {
                let run = statement.query_row(params![call.0], |r| r.get(0)).optional()?;
                found.extend(run.map(|run| (call, RunId(run))));
            }
            Ok(found)
        };
        self.readers.read(read).await
    }

    pub async fn call_with_key(&self, account: AccountId, hash: [u8; 32]) -> Result<Option<KeyedCall>, StoreError> {
        self.catch_up().await;
        let found = self.readers.idem(account, hash).await?;
        Ok(found.map(|idem| KeyedCall { call: idem.call, ended: idem.done, reply: idem.reply }))
    }

    pub(super) fn tend_runs(&self, before: i64) {
        let tend = WorkflowRunOp::Tend { before, now: self.now() };
        let mut books = lock(&self.shared.books);
        books.push(Op::WorkflowRun(Box::new(tend), None));
        self.shared.ring(books);
    }
}

fn run(r: &Row<'_>) -> rusqlite::Result<WorkflowRun> {
    Ok(WorkflowRun {
        id: RunId(r.get(0)?),
        account: AccountId(r.get(1)?),
        key: KeyId(r.get(2)?),
        slug: r.get(3)?,
        plan: r.get(4)?,
        state: r.get(5)?,
        status: r.get(6)?,
        wish: r.get(7)?,
        fence: r.get(8)?,
        created_at: r.get(9)?,
        changed_at: r.get(10)?,
        ended_at: r.get(11)?,
    })
}

impl Apply<'_> {
    pub(super) fn workflow_run(&mut self, op: &WorkflowRunOp) -> rusqlite::Result<u64> {
        match op {
            WorkflowRunOp::Create { new, limits, at } => self.create_run(new, *limits, *at),
            WorkflowRunOp::Take { id, fence, at, until } => {
                let sql = "UPDATE workflow_run SET fence = fence + 1, leased_until = ?4 \
                           WHERE id = ?1 AND fence = ?2 AND leased_until <= ?3 AND due_at <= ?3";
                Ok(self.statement(sql)?.execute(params![id.0, fence, at, until])? as u64)
            }
            WorkflowRunOp::Write(write, at) => self.write_run(write, *at),
            WorkflowRunOp::Wish { account, id, wish, replaces, at } => {
                let sql = "UPDATE workflow_run SET wish = ?3, due_at = ?4 \
                           WHERE id = ?1 AND account_id = ?2 AND ended_at IS NULL AND (?5 OR wish IS NULL OR wish = ?3)";
                Ok(self.statement(sql)?.execute(params![id.0, account.0, wish, at, replaces])? as u64)
            }
            WorkflowRunOp::Tend { before, now } => {
                let sql = "UPDATE workflow_run SET due_at = ?1, leased_until = 0, changed_at = ?1 \
                           WHERE due_at IS NOT NULL AND changed_at > ?2";
                self.statement(sql)?.execute(params![now, now.saturating_add(WRITTEN_LATER_MS)])?;
                let old = "SELECT id FROM workflow_run WHERE ended_at < ?1";
                let sql = format!("DELETE FROM workflow_call WHERE run_id IN ({old})");
                self.statement(&sql)?.execute(params![before])?;
                self.statement("DELETE FROM workflow_run WHERE ended_at < ?1")?.execute(params![before])?;
                Ok(0)
            }
        }
    }

    fn create_run(&mut self, new: &NewWorkflowRun, limits: WorkflowRunLimits, at: i64) -> rusqlite::Result<u64> {
        let account = new.account.0;
        if let Some((key, _)) = new.idem {
            let sql = "SELECT count(*) FROM workflow_run WHERE account_id = ?1 AND idem = ?2";
            if self.statement(sql)?.query_row(params![account, key], |r| r.get::<_, u32>(0))? > 0 {
                return Ok(BEFORE);
            }
        }
        let sql = "SELECT count(*), coalesce(sum(ended_at IS NULL), 0) FROM workflow_run WHERE account_id = ?1";
        let count = |r: &Row<'_>| Ok((r.get::<_, u32>(0)?, r.get::<_, u32>(1)?));
        let (all, open) = self.statement(sql)?.query_row(params![account], count)?;
        if open >= limits.open {
            return Ok(FULL);
        }
        if all >= limits.stored {
            let sql = "DELETE FROM workflow_run WHERE id IN (SELECT id FROM workflow_run \
                       WHERE account_id = ?1 AND ended_at IS NOT NULL ORDER BY id LIMIT ?2)";
            self.statement(sql)?.execute(params![account, all - limits.stored + 1])?;
        }
        let sql = "INSERT INTO workflow_run (id, account_id, key_id, slug, idem, fingerprint, plan, state, status, fence, \
                   due_at, leased_until, created_at, changed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, 0, ?10, ?10)";
        let (idem, fingerprint) = new.idem.unzip();
        let NewWorkflowRun { id, key, slug, plan, state, status, .. } = new;
        let row = params![id.0, account, key.0, slug, idem, fingerprint, plan, state, status, at];
        self.statement(sql)?.execute(row)?;
        Ok(MADE)
    }

    fn write_run(&mut self, write: &WorkflowRunWrite, at: i64) -> rusqlite::Result<u64> {
        let sql = "UPDATE workflow_run SET plan = coalesce(?3, plan), state = ?4, status = ?5, changed_at = ?6, \
                   due_at = CASE WHEN ?9 IS NULL AND wish IS NOT NULL AND wish IS NOT ?10 THEN ?6 ELSE ?7 END, \
                   leased_until = ?8, ended_at = ?9, wish = CASE WHEN wish IS ?10 THEN NULL ELSE wish END \
                   WHERE id = ?1 AND fence = ?2 AND ended_at IS NULL";
        let (due, leased, ended) = write.next.columns(at);
        let WorkflowRunWrite { id, fence, plan, state, status, heard, .. } = write;
        let row = params![id.0, fence, plan, state, status, at, due, leased, ended, heard];
        let written = self.statement(sql)?.execute(row)? as u64;
        if let Some(call) = write.call.filter(|_| written == 1) {
            let sql = "INSERT OR IGNORE INTO workflow_call (call_id, run_id) VALUES (?1, ?2)";
            self.statement(sql)?.execute(params![call.0, id.0])?;
        }
        Ok(written)
    }
}
