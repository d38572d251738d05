//! Workflow runs on PostgreSQL: any replica works on any of them, so counts, leases and fences are
//! decided in the database.

use tokio_postgres::Row;

use super::PostgresEngine;
use super::batch::stored_reply;
use super::records::SqlParam;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId, RunId};
use crate::manage::CallReach;
use crate::workflow_run::{
    KeyedCall, NewWorkflowRun, WRITTEN_LATER_MS, WorkflowRun, WorkflowRunLimits, WorkflowRunMade, WorkflowRunPage,
    WorkflowRunWrite,
};

const RUN: &str = "id, account_id, key_id, slug, plan, state, status, wish, fence, created_at, changed_at, ended_at";

impl PostgresEngine {
    pub async fn create_run(
        &self,
        new: NewWorkflowRun,
        limits: WorkflowRunLimits,
    ) -> Result<WorkflowRunMade, StoreError> {
        let sql = "SELECT tollgate_workflow_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let (id, account, key) = (new.id.0.as_slice(), new.account.0.as_slice(), new.key.0.as_slice());
        let idem = new.idem.as_ref().map(|(key, _)| key.as_slice());
        let fingerprint = new.idem.as_ref().map(|(_, print)| print.as_slice());
        let (open, stored, now) = (i64::from(limits.open), i64::from(limits.stored), self.now());
        let NewWorkflowRun { slug, plan, state, status, .. } = &new;
        let values: [SqlParam<'_>; 12] =
            [&id, &account, &key, slug, &idem, &fingerprint, plan, state, status, &now, &open, &stored];
        let rows = self.change(sql, &values).await?;
        match rows.first().map(|row| row.try_get::<_, i16>(0)).transpose()? {
            Some(1) => return Ok(WorkflowRunMade::Made),
            Some(2) => return Ok(WorkflowRunMade::Full),
            _ => {}
        }
        Ok(self.run_begun_with(new.account, new.idem).await?.unwrap_or(WorkflowRunMade::Conflict))
    }

    pub async fn run_begun_with(
        &self,
        account: AccountId,
        idem: Option<([u8; 32], [u8; 32])>,
    ) -> Result<Option<WorkflowRunMade>, StoreError> {
        let Some((key, fingerprint)) = idem else { return Ok(None) };
        let sql = "SELECT id, fingerprint FROM workflow_run WHERE account_id = $1 AND idem = $2";
        let rows = self.rows(sql, &[&account.0.as_slice(), &key.as_slice()]).await?;
        let before = |row: &Row| {
            let same = row.try_get::<_, Option<&[u8]>>(1)? == Some(fingerprint.as_slice());
            Ok(if same { WorkflowRunMade::Before(RunId(id_of(row, 0)?)) } else { WorkflowRunMade::Conflict })
        };
        rows.first().map(before).transpose()
    }

    pub async fn due_runs(&self, limit: u32) -> Result<Vec<(RunId, i64)>, StoreError> {
        let sql =
            "SELECT id, fence FROM workflow_run WHERE due_at <= $1 AND leased_until <= $1 ORDER BY due_at LIMIT $2";
        let rows = self.rows(sql, &[&self.now(), &i64::from(limit)]).await?;
        rows.iter().map(|row| Ok((RunId(id_of(row, 0)?), row.try_get(1)?))).collect()
    }

    pub async fn take_run(&self, id: RunId, fence: i64, lease_ms: i64) -> Result<bool, StoreError> {
        let sql = "UPDATE workflow_run SET fence = fence + 1, leased_until = $4 \
                   WHERE id = $1 AND fence = $2 AND leased_until <= $3 AND due_at <= $3 RETURNING 1";
        let now = self.now();
        let until = now.saturating_add(lease_ms);
        Ok(!self.change(sql, &[&id.0.as_slice(), &fence, &now, &until]).await?.is_empty())
    }

    pub async fn write_run(&self, write: WorkflowRunWrite) -> Result<bool, StoreError> {
        let sql = "WITH written AS (UPDATE workflow_run SET plan = coalesce($3, plan), state = $4, status = $5, \
                   changed_at = $6::bigint, due_at = CASE WHEN $9::bigint IS NULL AND wish IS NOT NULL \
                   AND wish IS DISTINCT FROM $10 THEN $6::bigint ELSE $7::bigint END, leased_until = $8, ended_at = $9, \
                   wish = CASE WHEN wish IS NOT DISTINCT FROM $10 THEN NULL ELSE wish END \
                   WHERE id = $1 AND fence = $2 AND ended_at IS NULL RETURNING id), \
                   noted AS (INSERT INTO workflow_call (call_id, run_id) SELECT $11::bytea, id FROM written \
                   WHERE $11::bytea IS NOT NULL ON CONFLICT DO NOTHING) SELECT 1 FROM written";
        let now = self.now();
        let (due, leased, ended) = write.next.columns(now);
        let (id, call) = (write.id.0.as_slice(), write.call.as_ref().map(|call| call.0.as_slice()));
        let WorkflowRunWrite { fence, plan, state, status, heard, .. } = &write;
        let values: [SqlParam<'_>; 11] = [&id, fence, plan, state, status, &now, &due, &leased, &ended, heard, &call];
        Ok(!self.change(sql, &values).await?.is_empty())
    }

    pub async fn wish_run(
        &self,
        account: AccountId,
        id: RunId,
        wish: String,
        replaces: bool,
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE workflow_run SET wish = $3, due_at = $4 WHERE id = $1 AND account_id = $2 \
                   AND ended_at IS NULL AND ($5 OR wish IS NULL OR wish = $3) RETURNING 1";
        let values: [SqlParam<'_>; 5] = [&id.0.as_slice(), &account.0.as_slice(), &wish, &self.now(), &replaces];
        Ok(!self.change(sql, &values).await?.is_empty())
    }

    pub async fn any_run(&self, id: RunId) -> Result<Option<WorkflowRun>, StoreError> {
        let sql = format!("SELECT {RUN} FROM workflow_run WHERE id = $1");
        self.rows(&sql, &[&id.0.as_slice()]).await?.first().map(run).transpose()
    }

    pub async fn runs(&self, of: CallReach, page: WorkflowRunPage) -> Result<Vec<WorkflowRun>, StoreError> {
        let sql = format!(
            "SELECT {RUN} FROM workflow_run WHERE account_id = $1 AND ($2::bytea IS NULL OR id < $2) \
             AND ($4::bytea IS NULL OR key_id IN (SELECT k.id FROM key k WHERE k.person_id = $4)) ORDER BY id DESC LIMIT $3"
        );
        let after = page.after.as_ref().map(|id| id.0.as_slice());
        let person = of.person.as_ref().map(|id| id.0.as_slice());
        let values: [SqlParam<'_>; 4] = [&of.account.0.as_slice(), &after, &i64::from(page.limit), &person];
        let rows = self.rows(&sql, &values).await?;
        rows.iter().map(run).collect()
    }

    pub async fn runs_of_calls(&self, calls: Vec<CallId>) -> Result<Vec<(CallId, RunId)>, StoreError> {
        let calls: Vec<&[u8]> = calls.iter().map(|call| call.0.as_slice()).collect();
        let sql = "SELECT call_id, run_id FROM workflow_call WHERE call_id = ANY($1)";
        let rows = self.rows(sql, &[&calls]).await?;
        rows.iter().map(|row| Ok((CallId(id_of(row, 0)?), RunId(id_of(row, 1)?)))).collect()
    }

    pub async fn call_with_key(&self, account: AccountId, hash: [u8; 32]) -> Result<Option<KeyedCall>, StoreError> {
        self.flush().await?;
        let sql = "SELECT call_id, done <> 0, status, content_type, reply FROM idem \
                   WHERE account_id = $1 AND key_hash = $2";
        let rows = self.rows(sql, &[&account.0.as_slice(), &hash.as_slice()]).await?;
        let keyed = |row: &Row| {
            let reply = stored_reply(row, 2)?;
            Ok(KeyedCall { call: CallId(id_of(row, 0)?), ended: row.try_get(1)?, reply })
        };
        rows.first().map(keyed).transpose()
    }

    /// Forgets what ended before that time; what the clock has put off is due now.
    pub(super) async fn tend_runs(&self, before: i64) -> Result<(), StoreError> {
        let now = self.now();
        let sql = "UPDATE workflow_run SET due_at = $1, leased_until = 0, changed_at = $1 \
                   WHERE due_at IS NOT NULL AND changed_at > $2";
        self.change(sql, &[&now, &now.saturating_add(WRITTEN_LATER_MS)]).await?;
        let sql = "WITH old AS (DELETE FROM workflow_run WHERE ended_at < $1 RETURNING id) \
                   DELETE FROM workflow_call WHERE run_id IN (SELECT id FROM old)";
        self.change(sql, &[&before]).await?;
        Ok(())
    }
}

fn id_of(r: &Row, at: usize) -> Result<[u8; 16], StoreError> {
    r.try_get::<_, &[u8]>(at)?.try_into().map_err(|_| StoreError::broken("not an id"))
}

fn run(r: &Row) -> Result<WorkflowRun, StoreError> {
    Ok(WorkflowRun {
        id: RunId(id_of(r, 0)?),
        account: AccountId(id_of(r, 1)?),
        key: KeyId(id_of(r, 2)?),
        slug: r.try_get(3)?,
        plan: r.try_get(4)?,
        state: r.try_get(5)?,
        status: r.try_get(6)?,
        wish: r.try_get(7)?,
        fence: r.try_get(8)?,
        created_at: r.try_get(9)?,
        changed_at: r.try_get(10)?,
        ended_at: r.try_get(11)?,
    })
}
