//! What the social data endpoints must remember together, over restarts and replicas: how much of a
//! day's capacity is used, what was asked in vain, and the pace of a route. Days are counted apart,
//! so a clock that jumps only moves between counters.

use serde::{Deserialize, Serialize};

use crate::ids::{AccountId, CallId};

/// One call asks for its part of a day's capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocialTake {
    /// Days since 1970-01-01 UTC.
    pub day: i64,
    pub platform: String,
    /// What the call may cost the operator, in micro-USD.
    pub cost: i64,
    pub all: SocialLimit,
    pub own: SocialLimit,
}

/// The most of one day; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocialLimit {
    pub calls: Option<i64>,
    /// Micro-USD.
    pub cost: Option<i64>,
}

/// The day's capacity does not cover the call: which limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocialFull {
    AllCalls,
    AllCost,
    OwnCalls,
    OwnCost,
}

/// What was used of a day: of all platforms (an empty name), or of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocialDay {
    pub day: i64,
    pub platform: String,
    pub calls: i64,
    /// Micro-USD.
    #[serde(rename = "cost_micro_usd")]
    pub cost: i64,
}

/// A call that found nothing and cost the operator something. The question is not sent again before
/// `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocialVain {
    pub call: CallId,
    /// A hash of cell and parameters.
    pub question: [u8; 32],
    pub account: AccountId,
    pub at: i64,
    pub until: i64,
}

/// When a request may begin on a route of which so many may begin in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocialTurn {
    /// This process is alone: it keeps the pace by itself.
    Own,
    /// After so many milliseconds.
    After(u64),
    /// Not before so many milliseconds, which is longer than the caller would wait. No turn was
    /// taken.
    Busy(u64),
}

/// How long a vain call counts against its account.
pub(crate) const VAIN_COUNTS: i64 = 3_600_000;

impl SocialFull {
    /// As the database function numbers them; 0 is none.
    pub(crate) fn numbered(number: i16) -> Option<SocialFull> {
        [SocialFull::AllCalls, SocialFull::AllCost, SocialFull::OwnCalls, SocialFull::OwnCost]
            .get(usize::try_from(number).ok()?.checked_sub(1)?)
            .copied()
    }
}

impl SocialTake {
    /// Decides for counters that are at hand.
    pub(crate) fn fits(&self, all: &SocialDay, own: &SocialDay) -> Result<(), SocialFull> {
        let over = |used: i64, more: i64, most: Option<i64>| most.is_some_and(|most| used.saturating_add(more) > most);
        match () {
            () if over(all.calls, 1, self.all.calls) => Err(SocialFull::AllCalls),
            () if over(all.cost, self.cost, self.all.cost) => Err(SocialFull::AllCost),
            () if over(own.calls, 1, self.own.calls) => Err(SocialFull::OwnCalls),
            () if over(own.cost, self.cost, self.own.cost) => Err(SocialFull::OwnCost),
            () => Ok(()),
        }
    }
}
