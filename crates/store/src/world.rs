//! What the store takes from outside: where the data lives, how it is tuned, and the clock and
//! randomness.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::call::StoredReply;

/// Milliseconds since 1970.
pub type NowMs = Arc<dyn Fn() -> i64 + Send + Sync>;
/// Fills the bytes with randomness.
pub type FillRandom = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// Clocks and randomness as values, so that tests own them. What the wall clock says is believed
/// only as far as `clock.rs` allows.
#[derive(Clone)]
pub struct Clocks {
    pub now_ms: NowMs,
    /// A clock that does not jump: the wall clock of the start and the time since. By it holds end,
    /// and ages are measured.
    pub steady_ms: NowMs,
    /// For so long a look at the wall clock lasts where that is right, by the steady clock: every
    /// call asks several times. Nothing in tests, which set the one without the other.
    pub wall_lasts: Duration,
    /// The database's clock (PostgreSQL) where it is not asked for it: in tests.
    pub database_ms: Option<NowMs>,
    pub random: FillRandom,
}

/// Where the data lives.
#[derive(Clone, Debug)]
pub struct DataLocation {
    /// `sqlite` (a file in `data_dir`) or `postgres://…`.
    pub url: String,
    /// Journal, replica identity, admin socket and the SQLite file. Owned by one process at a time.
    pub data_dir: PathBuf,
}

/// Settings of the store. The defaults are right for production.
#[derive(Clone, Debug)]
pub struct Options {
    /// Least time between two commits. A commit costs CPU whatever its size, so waiting makes
    /// groups.
    pub commit_pace: Duration,
    /// How long what is safe in the journal waits for company before it is committed, unless
    /// somebody asks for it (SQLite).
    pub commit_patience: Duration,
    /// How far the database may be behind the journal: no holds are taken while an operation is
    /// older that it does not have (SQLite).
    pub behind_most: Duration,
    /// How long a call waits for its hold to become durable before it is refused.
    pub hold_deadline: Duration,
    /// Total size of the close journal above which new holds are refused.
    pub journal_limit: u64,
    /// Size of one journal segment, allocated in advance so that a full disk does not stop
    /// settlements.
    pub journal_segment: u64,
    /// After so many entries an open hold is listed by itself, and a start does not read what came
    /// between (SQLite).
    pub old_after: u64,
    /// So many sums of usage wait at most to be merged into the table of sums; on PostgreSQL so
    /// many calls of a replica, or a few more.
    pub sums_apart: u32,
    /// Quarters of accounts that are added up and stored at a time when a day is folded (SQLite).
    pub fold_part: u32,
    /// All that customers may store of responses and conversations, over all accounts.
    pub stored_bytes: u64,
    /// What the disk must have left for the ledger before anything is stored for customers
    /// (SQLite).
    pub disk_reserve: u64,
    /// How long an idempotency key is remembered.
    pub idem_retention: Duration,
    /// All replies that are stored for the idempotency keys of one account; one more is not stored.
    pub reply_bytes: u64,
    /// What a call of this endpoint leaves under its idempotency key when it is ended by others
    /// and nobody knows what became of it. Without one the key is free again.
    pub lost_reply: fn(&str) -> Option<StoredReply>,
    /// A replica silent for this long is taken for dead and its open holds are resolved
    /// (PostgreSQL).
    pub replica_silence: Duration,
    /// After so long a clock that was in doubt is believed, and credit lapses by it.
    pub clock_confirm: Duration,
    /// Nothing happens by itself: a simulation says when the embedded engine commits.
    #[cfg(feature = "testing")]
    pub simulated: Option<crate::testing::Simulated>,
    /// The journal cannot be synced: holds are durable with their commit.
    #[cfg(feature = "testing")]
    pub journal_sync_fails: bool,
    /// A fault on purpose: holds count as durable by the journal that rest on what it does not
    /// know.
    #[cfg(feature = "testing")]
    pub journal_is_overrated: bool,
    /// What another version of this program does with the database.
    #[cfg(feature = "testing")]
    pub version: Option<crate::testing::OtherVersion>,
}

impl Options {
    #[cfg(feature = "testing")]
    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    #[cfg(not(feature = "testing"))]
    pub(crate) fn is_simulated(&self) -> bool {
        false
    }

    #[cfg(feature = "testing")]
    pub(crate) fn overrates_journal(&self) -> bool {
        self.journal_is_overrated
    }

    #[cfg(not(feature = "testing"))]
    pub(crate) fn overrates_journal(&self) -> bool {
        false
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            commit_pace: Duration::from_millis(4),
            commit_patience: Duration::from_millis(200),
            behind_most: Duration::from_secs(10),
            hold_deadline: Duration::from_secs(2),
            journal_limit: 64 << 20,
            journal_segment: 4 << 20,
            old_after: 250_000,
            sums_apart: 4_000,
            fold_part: 500,
            stored_bytes: 8 << 30,
            disk_reserve: 64 << 20,
            idem_retention: Duration::from_secs(24 * 3600),
            reply_bytes: 256 << 20,
            lost_reply: |_| None,
            replica_silence: Duration::from_secs(300),
            clock_confirm: Duration::from_secs(24 * 3600),
            #[cfg(feature = "testing")]
            simulated: None,
            #[cfg(feature = "testing")]
            journal_sync_fails: false,
            #[cfg(feature = "testing")]
            journal_is_overrated: false,
            #[cfg(feature = "testing")]
            version: None,
        }
    }
}
