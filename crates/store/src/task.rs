//! A video task: the call that began it, open until its video is made or cannot be. The hold of a
//! task outlives the process that took it, so neither a sweep nor a restart ends it; only its
//! terminal state does, in one transaction with the money.
//!
//! One worker at a time may write to a task: whoever takes it gets a lease and a fencing number,
//! and a writer whose number is not the newest changes nothing.

pub(crate) mod turns;

use serde::{Deserialize, Serialize};
use tollgate_catalog::Price;

use crate::call::Close;
use crate::ids::{AccountId, KeyId, TaskId};

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Its money is held; no byte of it has left.
    Held,
    /// It may be on its way to a provider.
    Submitting,
    /// The provider has it.
    Queued,
    Running,
    /// Sent, and nobody knows what became of it.
    Unknown,
    Completed,
    Failed,
    /// It never became a task: the caller got its error at once.
    Refused,
}

impl TaskState {
    pub const ALL: [Self; 8] = [
        Self::Held,
        Self::Submitting,
        Self::Queued,
        Self::Running,
        Self::Unknown,
        Self::Completed,
        Self::Failed,
        Self::Refused,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Submitting => "submitting",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Unknown => "unknown",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }

    pub fn is_final(self) -> bool {
        self >= Self::Completed
    }

    pub(crate) fn code(self) -> i16 {
        self as i16
    }

    pub(crate) fn from_code(code: i16) -> Self {
        usize::try_from(code).ok().and_then(|i| Self::ALL.get(i).copied()).unwrap_or(Self::Unknown)
    }
}

/// What is written down with the hold, before anything is sent. Account, key, model and price are
/// those of the hold.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// What the gateway needs to go on with the task after a restart, in its own form.
    pub plan: String,
    pub webhook_url: Option<String>,
    /// How long its creator has before others look after it.
    pub lease_ms: i64,
}

/// A task that was begun, in the hands of its creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunTask {
    pub id: TaskId,
    pub fence: i64,
}

/// Where a task is sent. It is asked for there and nowhere else: another account's "no such task"
/// says nothing about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentTo {
    pub provider: String,
    pub upstream_model: String,
    pub host: String,
    /// A fingerprint of the key, never the key.
    pub key: String,
}

/// Why it failed, in words for the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailure {
    pub code: String,
    pub message: String,
}

/// What is known of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    pub id: TaskId,
    pub account: AccountId,
    pub key: KeyId,
    pub endpoint: String,
    pub model: String,
    /// The provider it was sent to, by its name in the configuration.
    pub provider: Option<String>,
    pub upstream_model: Option<String>,
    /// The provider's name for it.
    pub upstream_id: Option<String>,
    /// The host it was sent to, and a fingerprint of the key that sent it; nothing in tasks of
    /// earlier versions.
    #[serde(skip)]
    pub upstream_host: Option<String>,
    #[serde(skip)]
    pub upstream_key: Option<String>,
    pub state: TaskState,
    /// Percent, where the provider tells.
    pub progress: Option<u8>,
    pub plan: String,
    /// The finished file, in the gateway's own form.
    pub result: Option<String>,
    pub failure: Option<TaskFailure>,
    pub webhook_url: Option<String>,
    pub created_at: i64,
    /// When the provider last said something about it.
    pub checked_at: Option<i64>,
    /// Since when nobody knows what became of it.
    pub unknown_since: Option<i64>,
    /// Queued or running, as the provider last said.
    pub heard: Option<TaskState>,
    /// Since when the provider has said nothing but that it has no such task.
    pub absent_since: Option<i64>,
    /// When the provider first said that the video is made.
    pub made_since: Option<i64>,
    pub ended_at: Option<i64>,
}

/// A task somebody may write to for a while.
#[derive(Clone, Debug)]
pub struct Leased {
    pub task: Task,
    pub fence: i64,
    /// The price of its hold.
    pub price: Price,
    /// How old it is and for how long its fate has been unknown, in milliseconds, whatever was done
    /// to the wall clock meanwhile.
    pub age_ms: i64,
    pub unknown_ms: i64,
    /// For how long its provider has said nothing but that it has no such task, and how long ago it
    /// first said that it is made.
    pub absent_ms: i64,
    pub made_ms: i64,
}

impl Leased {
    /// With its ages, as the fields have them. Each goes by a time that was written down under
    /// another setting of the wall clock, so they need not fit together; but nothing about a task
    /// is older than the task, and one that is young is not looked at as seldom as one that has
    /// been unknown for hours.
    pub(crate) fn new(task: Task, fence: i64, price: Price, ages: [i64; 4]) -> Leased {
        let [age_ms, unknown_ms, absent_ms, made_ms] = ages.map(|one| one.min(ages[0]));
        Leased { task, fence, price, age_ms, unknown_ms, absent_ms, made_ms }
    }
}

/// What became of a name that a task was to have at its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskNaming {
    Done,
    /// It has ended, has a name already, or somebody else has it by now; nothing changed.
    Stale,
    /// Another task has that name at the same host, for ever: it is not given to a second one,
    /// whose customer would see the other's video. Ids of providers are unique at a host over all
    /// accounts, so the key it was sent with does not count.
    Taken,
}

/// What was found out about a task that goes on.
#[derive(Clone, Debug)]
pub struct TaskStep {
    pub id: TaskId,
    pub fence: i64,
    pub state: TaskState,
    pub word: Word,
    /// `None` leaves what is known.
    pub progress: Option<u8>,
    /// When it is due again; until then nobody has it.
    pub after_ms: i64,
    /// Nor does anybody take it early: its provider wants to be left alone.
    pub quiet: bool,
}

impl TaskStep {
    pub fn new(id: TaskId, fence: i64, state: TaskState, word: Word, after_ms: i64) -> TaskStep {
        TaskStep { id, fence, state, word, progress: None, after_ms, quiet: false }
    }
}

/// What the provider said of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It was not asked, or wants to be asked later: what it said before stands.
    Nothing,
    /// It was asked, and did not say: "no such task" begins anew.
    Unclear,
    /// It has no such task.
    Absent,
    Queued,
    Running,
    /// The video is made, but cannot be had yet.
    Made,
}

impl Word {
    pub(crate) fn is_about_it(self) -> bool {
        !matches!(self, Self::Nothing | Self::Unclear)
    }

    /// Where it stands by this word.
    pub(crate) fn heard(self) -> Option<TaskState> {
        match self {
            Self::Queued => Some(TaskState::Queued),
            Self::Running | Self::Made => Some(TaskState::Running),
            Self::Nothing | Self::Unclear | Self::Absent => None,
        }
    }

    /// Whether the provider has no such task; `None` leaves what it said before.
    pub(crate) fn absent(self) -> Option<bool> {
        (self != Self::Nothing).then_some(self == Self::Absent)
    }

    pub(crate) fn is_made(self) -> bool {
        self == Self::Made
    }
}

/// The end of a task and of its money.
#[derive(Clone)]
pub struct TaskEnd {
    pub fence: i64,
    pub state: TaskState,
    pub result: Option<String>,
    pub failure: Option<TaskFailure>,
    /// The customer pays nothing; what it would have cost is the operator's loss.
    pub forgiven: bool,
    /// Who is to be notified.
    pub webhook_url: Option<String>,
    /// The call is the task.
    pub close: Close,
}

/// Tasks of an account in the order of their creation, from the one after `after`.
#[derive(Clone, Copy, Debug)]
pub struct TaskPage {
    pub after: Option<TaskId>,
    pub limit: u32,
    pub oldest_first: bool,
}

/// How many open tasks of a provider are in a state, and how old the oldest is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenTasks {
    pub state: TaskState,
    pub provider: Option<String>,
    pub count: u64,
    pub oldest_at: i64,
}

/// Somebody is to be notified that a task has ended; written with the end itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub task: TaskId,
    pub account: AccountId,
    pub url: String,
    /// Times it was tried before.
    pub attempts: u32,
    pub created_at: i64,
    pub fence: i64,
}

/// Which of those that are due a teller takes: the ones due longest, but few of any account, so
/// that receivers that do not answer keep nobody else's news waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookWish {
    pub limit: u32,
    /// Of one account.
    pub each: u32,
    /// Accounts of which the teller has enough in its hands.
    pub except: Vec<AccountId>,
}

/// What became of a try to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// Taken, or given up: it is not tried again.
    Over,
    /// To be tried again after so many milliseconds.
    Again(i64),
}
