//! What the store tells about itself: recovery, sweeps, gauges and the result of an audit.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_catalog::Money;

/// What start-up found and resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// Calls closed with a charge: from the journal, or at their last mark.
    pub settled: u64,
    /// Calls closed without a charge.
    pub voided: u64,
    /// Calls in the journal whose hold never became durable: noted in the usage log, not charged.
    pub dropped: u64,
}

/// What one sweep resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Holds past their time.
    pub expired: u64,
    /// Holds of replicas that went silent.
    pub orphaned: u64,
    /// Idempotency keys past retention.
    pub forgotten: u64,
    /// Trial credits that expired, wholly or in part.
    pub lapsed: u64,
}

/// Result of an audit. No breach = every number adds up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    pub entries: u64,
    /// The number of the last entry that was seen.
    pub last_seq: i64,
    pub accounts: u64,
    pub usage_rows: u64,
    /// Usage rows from before they were hashed, or by a replica of such a version: of those only
    /// the money was checked.
    pub unhashed_rows: u64,
    /// When the last of them ended.
    pub unhashed_until_ms: Option<i64>,
    /// The invariants that were looked at; of the others this report says nothing.
    pub checked: Vec<&'static str>,
    pub breaches: Vec<Breach>,
}

/// One broken invariant with the first rows that show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Breach {
    /// `I1` … `I21`.
    pub invariant: &'static str,
    pub rows: Vec<String>,
}

/// Numbers for metrics; cheap to read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Gauges {
    /// Open holds of calls; a task may be open for days, and is counted with the tasks.
    pub open_holds: u64,
    /// Open holds of tasks. On PostgreSQL they belong to all replicas alike and are not counted by
    /// any.
    pub task_holds: u64,
    /// Open holds of calls younger than 10 s, 1 min, 10 min, 1 h, and older.
    pub open_by_age: [u64; 5],
    pub oldest_open_ms: i64,
    pub queue_len: u64,
    /// Age of the oldest operation that is not yet in the database, one that is being written
    /// included.
    pub settle_lag_ms: u64,
    pub journal_bytes: u64,
    pub down: bool,
    /// Readings and statements asked of the database beside the groups.
    pub queries: u64,
    pub commits: u64,
    pub committed_ops: u64,
    pub largest_group: u64,
    /// Times a group had to be tried again.
    pub retries: u64,
    pub write_off_total: Money,
    /// Closes that found their hold already closed.
    pub late_closes: u64,
    /// Usage rows of refusals left out under pressure.
    pub refusals_dropped: u64,
    /// Refused calls that share a row with others of their key and minute.
    pub refusals_summed: u64,
    /// Breaches found by the last audit.
    pub breaches: u64,
    /// Closes by our own count, because the provider did not say, by provider: calls, tasks, and
    /// what a crash or a sweep left.
    pub estimated: BTreeMap<String, u64>,
}

impl Gauges {
    /// Fills in the open holds from their ages in milliseconds.
    pub(crate) fn count_open(&mut self, ages: impl Iterator<Item = i64>) {
        const LIMITS: [i64; 4] = [10_000, 60_000, 600_000, 3_600_000];
        for age in ages {
            self.open_holds += 1;
            self.oldest_open_ms = self.oldest_open_ms.max(age);
            let bucket = LIMITS.iter().position(|limit| age < *limit).unwrap_or(LIMITS.len());
            self.open_by_age[bucket] += 1;
        }
    }
}
