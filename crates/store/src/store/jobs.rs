//! The verbs of jobs.

use super::{Engine, Store};
use crate::error::StoreError;
use crate::operator::Attribution;
use crate::operator_job::{JOB_SILENCE_MS, JOBS_AT_ONCE, JobProgress, JobState, OperatorJob, STORED_JOBS};
use crate::person::statement::{SqlRow, may, must, values};

/// No id comes after it.
const LAST_ID: &str = "job_zzzzzzzzzzzzzzzzzzzzzzzzzzz";

impl Store {
    /// The process that jobs run in, by a name that it has after a restart too.
    pub fn replica_name(&self) -> String {
        match &self.engine {
            Engine::Sqlite(_) => "sqlite".to_owned(),
            Engine::Postgres(engine) => engine.replica_name(),
        }
    }

    /// Writes a job down, if there is room and none of its kind runs; what is old is forgotten.
    /// `false`: too many run, or one of its kind does.
    pub async fn begin_job(&self, job: &OperatorJob, done: &Attribution) -> Result<bool, StoreError> {
        let now = self.people_now();
        let write = vec![
            must(
                "INSERT INTO operator_job (id, kind, state, actor, replica, asked, started_at, seen_at, done, total, cancel, result) \
                 SELECT $1, $2, 'running', $3, $4, $5, $6, $7, 0, $8, 0, 'null' \
                 WHERE (SELECT count(*) FROM operator_job WHERE state = 'running' AND seen_at > $9) < $10 \
                 AND NOT EXISTS (SELECT 1 FROM operator_job WHERE state = 'running' AND seen_at > $9 AND kind = $2)",
                values![
                    &job.job_id,
                    &job.kind,
                    &job.actor,
                    &job.replica,
                    job.asked.to_string(),
                    job.started_at_ms,
                    now,
                    job.progress.total,
                    now - JOB_SILENCE_MS,
                    JOBS_AT_ONCE,
                ],
            ),
            may(
                "DELETE FROM operator_job WHERE state <> 'running' AND id NOT IN \
                 (SELECT id FROM operator_job ORDER BY started_at DESC, id DESC LIMIT $1)",
                values![STORED_JOBS],
            ),
            may(
                "INSERT INTO operator_event (at, actor, action, subject, reason, detail, request_id) \
                 VALUES ($1, $2, 'job.begin', $3, $4, $5, $6)",
                values![now, &done.actor, &job.job_id, &done.reason, &job.kind, done.request.as_ref()],
            ),
        ];
        Ok(self.write_people(write).await?.is_none())
    }

    /// How far it is. `true`: go on; `false`: it was cancelled, or taken for dead.
    pub async fn note_job(&self, id: &str, progress: JobProgress) -> Result<bool, StoreError> {
        const SQL: &str = "UPDATE operator_job SET done = $2, total = $3, seen_at = $4 \
             WHERE id = $1 AND state = 'running' AND cancel = 0";
        let values = values![id, progress.done, progress.total, self.people_now()];
        Ok(self.write_people(vec![must(SQL, values)]).await?.is_none())
    }

    /// Its end, if it has none yet.
    pub async fn end_job(&self, id: &str, state: JobState, result: &str) -> Result<(), StoreError> {
        const SQL: &str =
            "UPDATE operator_job SET state = $2, ended_at = $3, result = $4 WHERE id = $1 AND state = 'running'";
        self.write_people(vec![may(SQL, values![id, state.word(), self.people_now(), result])]).await.map(drop)
    }

    /// Asks a job to stop. `false`: it does not run.
    pub async fn cancel_job(&self, id: &str, done: &Attribution) -> Result<bool, StoreError> {
        let write = vec![
            must("UPDATE operator_job SET cancel = 1 WHERE id = $1 AND state = 'running'", values![id]),
            may(
                "INSERT INTO operator_event (at, actor, action, subject, reason, detail, request_id) \
                 VALUES ($1, $2, 'job.cancel', $3, $4, '', $5)",
                values![self.people_now(), &done.actor, id, &done.reason, done.request.as_ref()],
            ),
        ];
        Ok(self.write_people(write).await?.is_none())
    }

    /// Jobs of which nothing was heard, and at a start those of this process before it.
    pub async fn interrupt_jobs(&self, own: Option<&str>) -> Result<(), StoreError> {
        const SILENT: &str =
            "UPDATE operator_job SET state = 'interrupted', ended_at = $1 WHERE state = 'running' AND seen_at <= $2";
        const OWN: &str =
            "UPDATE operator_job SET state = 'interrupted', ended_at = $1 WHERE state = 'running' AND replica = $2";
        let now = self.people_now();
        let mut write = vec![may(SILENT, values![now, now - JOB_SILENCE_MS])];
        write.extend(own.map(|own| may(OWN, values![now, own])));
        self.write_people(write).await.map(drop)
    }

    pub async fn job(&self, id: &str) -> Result<Option<OperatorJob>, StoreError> {
        const SQL: &str = "SELECT id, kind, state, actor, replica, asked, started_at, seen_at, ended_at, done, total, cancel, result \
             FROM operator_job WHERE id = $1";
        let now = self.people_now();
        let rows = self.people_rows(SQL, values![id]).await?;
        rows.first().map(|row| job(row, now)).transpose()
    }

    /// The newest first, those that began before this one.
    pub async fn jobs(&self, before: Option<&str>, limit: u32) -> Result<Vec<OperatorJob>, StoreError> {
        // Ids begin with their time.
        const SQL: &str = "SELECT id, kind, state, actor, replica, asked, started_at, seen_at, ended_at, done, total, cancel, result \
             FROM operator_job WHERE id < $1 ORDER BY id DESC LIMIT $2";
        let now = self.people_now();
        let rows = self.people_rows(SQL, values![before.unwrap_or(LAST_ID), i64::from(limit)]).await?;
        rows.iter().map(|row| job(row, now)).collect()
    }
}

fn job(row: &SqlRow, now: i64) -> Result<OperatorJob, StoreError> {
    let (state, seen_at) = (JobState::of(&row.text(2)?), row.int(7)?);
    let silent = state == JobState::Running && seen_at <= now - JOB_SILENCE_MS;
    Ok(OperatorJob {
        job_id: row.text(0)?,
        kind: row.text(1)?,
        state: if silent { JobState::Interrupted } else { state },
        actor: row.text(3)?,
        replica: row.text(4)?,
        asked: serde_json::from_str(&row.text(5)?).unwrap_or_default(),
        started_at_ms: row.int(6)?,
        ended_at_ms: row.opt_int(8)?,
        progress: JobProgress { done: row.int(9)?, total: row.int(10)? },
        cancel_asked: row.int(11)? != 0,
        result: serde_json::from_str(&row.text(12)?).unwrap_or_default(),
    })
}
