//! What operators begin and come back for, as all replicas know it. A job runs in one process,
//! which says every few seconds that it does; one of which nothing was heard is interrupted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The newest jobs that are stored.
pub const STORED_JOBS: i64 = 100;
/// Jobs of all kinds that run at once, over all replicas.
pub const JOBS_AT_ONCE: i64 = 4;
/// A job of which nothing was heard for so long does not run any more.
pub const JOB_SILENCE_MS: i64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Running,
    Done,
    Failed,
    Cancelled,
    /// Its process ended before it did.
    Interrupted,
}

impl JobState {
    pub fn word(self) -> &'static str {
        match self {
            JobState::Running => "running",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::Interrupted => "interrupted",
        }
    }

    pub(crate) fn of(word: &str) -> JobState {
        match word {
            "running" => JobState::Running,
            "done" => JobState::Done,
            "cancelled" => JobState::Cancelled,
            "interrupted" => JobState::Interrupted,
            _ => JobState::Failed,
        }
    }
}

/// Something that was begun.
#[derive(Clone, Debug, Serialize)]
pub struct OperatorJob {
    pub job_id: String,
    pub kind: String,
    pub state: JobState,
    pub actor: String,
    /// Whose process it runs in.
    #[serde(skip)]
    pub replica: String,
    /// What was asked for.
    pub asked: Value,
    pub started_at_ms: i64,
    pub ended_at_ms: Option<i64>,
    /// How far it is: `done` of `total`, in what this kind counts.
    pub progress: JobProgress,
    /// Somebody wants it to stop.
    pub cancel_asked: bool,
    /// What it found; nothing while it runs.
    pub result: Value,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobProgress {
    pub done: i64,
    pub total: i64,
}

/// What became of a piece of an export's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportPut {
    Written,
    /// All files together would be larger than they may.
    Full,
    /// Its job does not run any more.
    Ended,
}

/// The whole file of an export, in pieces that every replica can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedExport {
    pub job_id: String,
    pub bytes: i64,
    pub pieces: i64,
}
