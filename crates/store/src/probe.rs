//! Probes of routes: calls that the gateway makes by itself where there is no traffic. A replica
//! takes a model before it asks its routes, so that no other one does it too, and what a day may
//! cost is counted over all of them before anything is sent.

/// A wish to probe routes of one model.
#[derive(Clone, Debug)]
pub struct ProbeClaim {
    pub model: String,
    pub now: i64,
    /// Nobody has taken the model within this time.
    pub every_ms: i64,
    /// Requests that will be sent, and what they may cost at most together, in nano-USD.
    pub calls: i64,
    pub nano_usd: i64,
    pub limits: ProbeLimits,
}

/// What all probes of one day (UTC) may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeLimits {
    pub calls: i64,
    pub nano_usd: i64,
}

/// The answer to such a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeTurn {
    /// It is ours, and counted.
    Taken,
    /// It was taken a short while ago.
    NotDue,
    /// The day's calls or money are used up. The model waits for its next turn.
    Spent,
}

impl ProbeTurn {
    pub(crate) fn numbered(number: u64) -> ProbeTurn {
        match number {
            0 => ProbeTurn::NotDue,
            1 => ProbeTurn::Spent,
            _ => ProbeTurn::Taken,
        }
    }
}

/// What was spent on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeDay {
    pub calls: i64,
    /// At most: providers may have charged less.
    pub nano_usd: i64,
}
