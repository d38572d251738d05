//! How routes do, in sums by quarter of an hour that all replicas add to. A replica counts in
//! memory and adds what came together every half a minute, so there are as many writes as routes
//! with traffic, however many calls they have.

/// What is counted apart: the calls of a model as its customers saw them, or what was tried along
/// one of its routes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountedRoute {
    pub model: String,
    /// Both empty: the calls of the model, whichever way they went.
    pub provider: String,
    pub upstream_model: String,
}

/// Calls and how many of them went well. Those that the gateway made by itself are counted apart:
/// they tell nothing of customers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCounts {
    pub calls: i64,
    pub good: i64,
    /// A bit for each account, by a hash: no more bits than there are accounts.
    pub accounts: i64,
    /// Of the good ones, until the first byte, together.
    pub first_byte_ms: i64,
    /// When the last one ended.
    pub last_at: i64,
    pub probes: i64,
    pub good_probes: i64,
    /// When the last probe ended.
    pub probed_at: i64,
}

impl RouteCounts {
    /// Both together.
    pub fn plus(self, other: RouteCounts) -> RouteCounts {
        RouteCounts {
            calls: self.calls.saturating_add(other.calls),
            good: self.good.saturating_add(other.good),
            accounts: self.accounts | other.accounts,
            first_byte_ms: self.first_byte_ms.saturating_add(other.first_byte_ms),
            last_at: self.last_at.max(other.last_at),
            probes: self.probes.saturating_add(other.probes),
            good_probes: self.good_probes.saturating_add(other.good_probes),
            probed_at: self.probed_at.max(other.probed_at),
        }
    }
}

/// The quarter of an hour, counted since 1970, that a moment is in.
pub fn quarter_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(QUARTER_MS)
}

pub(crate) const QUARTER_MS: i64 = 15 * 60 * 1_000;
/// Rows that are added in one statement or transaction.
pub(crate) const AT_ONCE: usize = 1_000;
