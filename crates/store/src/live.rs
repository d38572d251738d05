//! What somebody who watches an account, or the house, is shown as it happens. Nothing is written
//! for them: whoever watches reads the ledger and the tables on from where it was last, once for
//! all who watch the same account.
//!
//! The ledger of an account only grows, in the order in which its entries are committed, whichever
//! replica writes them. So a number in it is a place to go on from, after a restart and on another
//! replica too. Everything else is shown as it is now; whoever compares sees what has changed.

use tollgate_catalog::Money;

use crate::call::Ending;
use crate::ids::{AccountId, AlertEventId, CallId, KeyId, RunId, TaskId};
use crate::task::TaskState;

/// Ends of calls of one account that are read at once; what is more is passed over.
pub const LIVE_ENTRIES: i64 = 100;
/// The newest tasks, and runs, of an account that are watched.
pub const LIVE_TASKS: i64 = 100;
/// Rows of each kind that are read of the house at once.
pub(crate) const LIVE_ROWS: i64 = 100;
/// Keys that were changed so lately are shown.
pub const LIVE_KEYS_MS: i64 = 120_000;

/// Where a watcher of an account goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePlace {
    pub account: AccountId,
    /// The last entry that was seen.
    pub entry: i64,
}

/// What the ledger of an account has since a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCalls {
    pub account: AccountId,
    /// Where to go on.
    pub entry: i64,
    /// There is more than was read; the place is behind all of it.
    pub skipped: bool,
    pub calls: Vec<LiveCall>,
}

/// A call that has ended, or was refunded since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCall {
    /// Its entry; nothing for a call that was refused before anything was held.
    pub entry: Option<i64>,
    pub refunded_now: bool,
    pub call: CallId,
    pub key: KeyId,
    pub started_at: i64,
    pub ended_at: i64,
    pub endpoint: String,
    pub model: String,
    pub ending: Ending,
    pub reason: String,
    pub status: i64,
    pub charge: Money,
    pub refunded: Money,
    pub estimated: bool,
}

/// An account as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveState {
    pub standing: Option<LiveStanding>,
    /// Keys that were changed lately.
    pub keys: Vec<LiveKey>,
    /// The newest first.
    pub tasks: Vec<LiveTask>,
    pub runs: Vec<LiveRun>,
    /// Calls of the last half a minute that were refused.
    pub refused: Vec<LiveCall>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveStanding {
    pub trial_available: Money,
    pub paid_available: Money,
    pub trial_held: Money,
    pub paid_held: Money,
    pub suspended_at: Option<i64>,
    /// The balance below which the account wants to hear of it, and since when it is.
    pub threshold: Option<Money>,
    pub low_since: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveKey {
    pub key: KeyId,
    pub changed_at: i64,
    pub name: String,
    pub prefix: String,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTask {
    pub task: TaskId,
    pub key: KeyId,
    pub model: String,
    pub state: TaskState,
    pub progress: Option<i64>,
    pub created_at: i64,
    pub ended_at: Option<i64>,
    pub failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRun {
    pub run: RunId,
    pub key: KeyId,
    pub workflow: String,
    pub status: String,
    pub changed_at: i64,
    pub ended_at: Option<i64>,
}

/// The house as it is now: the newest rows of each kind, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveHouse {
    pub changes: Vec<LiveChange>,
    pub pauses: Vec<LivePause>,
    pub alerts: Vec<LiveAlert>,
    pub jobs: Vec<LiveJob>,
}

/// A row of the log of who changed what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveChange {
    pub seq: i64,
    pub at: i64,
    pub actor: String,
    pub action: String,
    pub subject: String,
    pub account: Option<AccountId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePause {
    pub seq: i64,
    pub at: i64,
    /// `model` or `provider`.
    pub kind: String,
    pub name: String,
    pub paused: bool,
    pub actor: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveAlert {
    pub event: AlertEventId,
    pub at: i64,
    /// The name of its rule, if that is still there.
    pub rule: Option<String>,
    pub subject: String,
    pub what: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveJob {
    pub job: String,
    pub kind: String,
    pub state: String,
    pub done: i64,
    pub total: i64,
}

/// Calls that came to their end between two places of the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveTraffic {
    pub ended: i64,
    pub charged: i64,
    pub charge: Money,
}
