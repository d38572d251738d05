//! What was sold and what it cost, by day, model and route: sums over the usage log.

use serde::{Deserialize, Serialize};
use tollgate_catalog::Money;

/// One day of one route of one model. The day is UTC, counted since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginRow {
    pub day: i64,
    pub model: String,
    pub provider: Option<String>,
    pub upstream_model: Option<String>,
    /// Calls that were charged, or that cost something.
    pub calls: i64,
    /// What customers paid, after refunds.
    #[serde(rename = "sold_nano_usd")]
    pub sold: Money,
    /// Of these, calls whose cost nobody knows.
    pub cost_unknown: i64,
    /// What customers paid for them.
    #[serde(rename = "sold_at_unknown_cost_nano_usd")]
    pub sold_unknown: Money,
    /// What the others cost.
    #[serde(rename = "cost_nano_usd")]
    pub cost: Money,
}

impl MarginRow {
    /// What is left of those calls whose cost is known.
    pub fn margin(&self) -> Option<Money> {
        self.sold.checked_sub(self.sold_unknown)?.checked_sub(self.cost)
    }
}

/// Longest stretch of time that is added up at once.
pub const LONGEST_REPORT_MS: i64 = 92 * DAY_MS;
pub(crate) const DAY_MS: i64 = 86_400_000;

/// The first id that can be made at a time: ids begin with it.
pub(crate) fn first_id(at_ms: i64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..6].copy_from_slice(&at_ms.max(0).to_be_bytes()[2..]);
    id
}
