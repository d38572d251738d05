//! The verbs of one call: hold, extend, close, and the row that explains it.

use super::{Engine, Store};
use crate::account::Charged;
use crate::call::group::{Closing, Held};
use crate::call::refusals::RefusalRow;
use crate::call::wish::CallEntry;
use crate::call::{Close, Extend, Hold, HoldRefused, Mark, UsageFacts, UsagePage, UsageRow};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId};
use crate::margin::{LONGEST_REPORT_MS, MarginRow};

impl Store {
    /// Reserves money for a call. On SQLite the decision is made in memory and the hold is durable
    /// a little later ([`Held::durable`]); on PostgreSQL it is durable when this returns.
    pub async fn hold(&self, hold: Hold) -> Result<Held, HoldRefused> {
        on_engine!(self, e => e.hold(hold).await)
    }

    /// Reserves more for a call that outgrows its hold, under the same rules; the answer is the
    /// whole hold as it is then, and durable as that of a hold is. Refused, or asked for a second
    /// time: nothing changes.
    pub async fn extend(&self, extend: Extend) -> Result<Held, HoldRefused> {
        on_engine!(self, e => e.extend(extend).await)
    }

    /// Whether a call of this endpoint leaves word under its key when nobody knows what became of
    /// it ([`Options::lost_reply`](crate::Options)).
    pub fn is_begun_once(&self, endpoint: &str) -> bool {
        (self.lost_reply)(endpoint).is_some()
    }

    /// Ends a held call. Survives a crash of the process when this returns; never waits for the
    /// database.
    pub fn close(&self, close: Close) -> Closing {
        on_engine!(self, e => e.close(close))
    }

    /// Remembers, in the journal only, what a running call has produced so far.
    pub fn mark(&self, mark: Mark) {
        on_engine!(self, e => e.mark(mark));
    }

    /// Usage row of a call that was refused before it had a hold; of many of one key in a minute,
    /// one row for the rest of them ([`crate::REFUSALS_PER_MINUTE`]). Left out when the store is
    /// under pressure.
    pub fn note_refusal(&self, call: CallId, account: AccountId, reason: String, row: UsageFacts) {
        self.write_refusals(self.refusals.note(RefusalRow { call, account, reason, row }));
    }

    /// What a call was charged, whoever's it is; `None` when nothing was.
    pub async fn charged(&self, call: CallId) -> Result<Option<Charged>, StoreError> {
        on_engine!(self, e => e.charged(call).await)
    }

    /// The usage log, newest first; of all accounts when none is named.
    pub async fn usage(&self, account: Option<AccountId>, page: UsagePage) -> Result<Vec<UsageRow>, StoreError> {
        on_engine!(self, e => e.usage(account, page).await)
    }

    /// One call of an account, with its frozen price. Another account's call is not found.
    pub async fn usage_of(&self, account: AccountId, call: CallId) -> Result<Option<UsageRow>, StoreError> {
        on_engine!(self, e => e.usage_of(account, call).await)
    }

    /// What was sold and what it cost, of calls that began in this stretch of time, which is at
    /// most [`crate::LONGEST_REPORT_MS`] long.
    pub async fn margins(&self, from_ms: i64, to_ms: i64) -> Result<Vec<MarginRow>, StoreError> {
        if from_ms < 0 || to_ms.saturating_sub(from_ms) > LONGEST_REPORT_MS {
            return Err(StoreError::Conflict("a report is of 92 days at most".to_owned()));
        }
        on_engine!(self, e => e.margins(from_ms, to_ms).await)
    }

    /// The ledger entries of one call of an account, in their order.
    pub async fn entries_of(&self, account: AccountId, call: CallId) -> Result<Vec<CallEntry>, StoreError> {
        on_engine!(self, e => e.entries_of(account, call).await)
    }
}
