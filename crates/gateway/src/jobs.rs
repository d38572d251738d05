//! What an operator begins and comes back for: an audit of the whole ledger takes minutes where it
//! is large, longer than anybody holds a connection open. Jobs live in this process; the newest are
//! remembered, and a restart forgets them.

use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many are remembered.
const REMEMBERED: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Running,
    Done,
    Failed,
}

/// Something that was begun.
#[derive(Clone, Debug, Serialize)]
pub struct OperatorJob {
    pub job_id: String,
    pub kind: &'static str,
    pub state: JobState,
    pub actor: String,
    pub started_at_ms: i64,
    pub ended_at_ms: Option<i64>,
    /// The last entry of the ledger when it began: how much there is to do.
    pub entries: i64,
    /// What it found; nothing while it runs.
    pub result: Value,
}

#[derive(Default)]
pub struct Jobs(Mutex<VecDeque<OperatorJob>>);

impl Jobs {
    fn all(&self) -> MutexGuard<'_, VecDeque<OperatorJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `false`: one of its kind runs already.
    pub fn begin(&self, job: OperatorJob) -> bool {
        let mut all = self.all();
        if all.iter().any(|other| other.kind == job.kind && other.state == JobState::Running) {
            return false;
        }
        all.push_front(job);
        all.truncate(REMEMBERED);
        true
    }

    pub fn end(&self, id: &str, state: JobState, at: i64, result: Value) {
        if let Some(job) = self.all().iter_mut().find(|job| job.job_id == id) {
            (job.state, job.ended_at_ms, job.result) = (state, Some(at), result);
        }
    }

    pub fn one(&self, id: &str) -> Option<OperatorJob> {
        self.all().iter().find(|job| job.job_id == id).cloned()
    }

    /// The newest first.
    pub fn list(&self) -> Vec<OperatorJob> {
        self.all().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: usize) -> OperatorJob {
        let (job_id, actor) = (id.to_string(), String::new());
        OperatorJob {
            job_id,
            kind: "verify",
            state: JobState::Running,
            actor,
            started_at_ms: 0,
            ended_at_ms: None,
            entries: 0,
            result: Value::Null,
        }
    }

    #[test]
    fn one_runs_at_a_time_and_few_are_remembered() {
        let jobs = Jobs::default();
        for id in 0..2 * REMEMBERED {
            assert!(jobs.begin(job(id)));
            assert!(!jobs.begin(job(1_000)), "one runs");
            jobs.end(&id.to_string(), JobState::Done, 1, Value::Null);
        }
        assert_eq!(jobs.list().len(), REMEMBERED);
        assert!(jobs.one("0").is_none() && jobs.one("39").is_some());
    }
}
