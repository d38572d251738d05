//! A run of a workflow: a row that outlives the process that works on it. What it is to do and how
//! far it has come are texts that this room does not read. It holds no money of its own: its steps
//! are ordinary calls.
//!
//! One worker at a time may write to a run: whoever takes it gets a lease and a fencing number, and
//! a writer whose number is not the newest changes nothing. What customers ask of a run is left
//! with it as a wish, for whoever works on it.

use serde::{Deserialize, Serialize};

use crate::call::StoredReply;
use crate::ids::{AccountId, CallId, KeyId, RunId};

/// A run that begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewWorkflowRun {
    pub id: RunId,
    pub account: AccountId,
    pub key: KeyId,
    pub slug: String,
    /// The hash of its Idempotency-Key, and a fingerprint of what was asked with it.
    pub idem: Option<([u8; 32], [u8; 32])>,
    pub plan: String,
    pub state: String,
    pub status: String,
}

/// How many runs an account may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkflowRunLimits {
    /// Runs that have not ended.
    pub open: u32,
    /// Rows in all: of those that have ended the oldest give way.
    pub stored: u32,
}

/// What became of a run that was to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkflowRunMade {
    Made,
    /// One was begun with this Idempotency-Key before.
    Before(RunId),
    /// The Idempotency-Key was used with other inputs.
    Conflict,
    /// The account has as many open as it may.
    Full,
}

/// What is known of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRun {
    pub id: RunId,
    pub account: AccountId,
    pub key: KeyId,
    pub slug: String,
    pub plan: String,
    pub state: String,
    pub status: String,
    /// What was asked of it and nobody has heard yet.
    pub wish: Option<String>,
    pub fence: i64,
    pub created_at: i64,
    pub changed_at: i64,
    pub ended_at: Option<i64>,
}

/// What a worker writes down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRunWrite {
    pub id: RunId,
    pub fence: i64,
    pub plan: Option<String>,
    pub state: String,
    pub status: String,
    /// The wish that this answers.
    pub heard: Option<String>,
    /// A call of the run, for the usage log.
    pub call: Option<CallId>,
    pub next: WorkflowRunNext,
}

/// When a run is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowRunNext {
    /// The worker goes on with it, under a lease of so many milliseconds.
    Mine(i64),
    /// After so many milliseconds, by anybody.
    After(i64),
    /// When somebody asks something of it.
    Rest,
    /// Never: it has ended.
    Ended,
}

/// A call that was begun with an Idempotency-Key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedCall {
    pub call: CallId,
    pub ended: bool,
    /// What whoever repeats the key gets; nothing where it was not stored.
    pub reply: Option<StoredReply>,
}

/// Runs of an account, newest first, from the one after `after`.
#[derive(Clone, Copy, Debug)]
pub struct WorkflowRunPage {
    pub after: Option<RunId>,
    pub limit: u32,
}

impl WorkflowRunNext {
    /// When it is due, until when it is leased and when it ended, as columns.
    pub(crate) fn columns(self, now: i64) -> (Option<i64>, i64, Option<i64>) {
        match self {
            Self::Mine(lease) => (Some(now), now.saturating_add(lease), None),
            Self::After(pause) => (Some(now.saturating_add(pause)), 0, None),
            Self::Rest => (None, 0, None),
            Self::Ended => (None, 0, Some(now)),
        }
    }
}

/// A run that was written so much later than now was written before the clock was set back: it is
/// looked at at once, not when the clock has come back to where it was.
pub(crate) const WRITTEN_LATER_MS: i64 = 60_000;

/// How long a run that has ended is shown: thirty days.
pub(crate) const RUNS_RETAINED_MS: i64 = 30 * 24 * 3_600_000;
