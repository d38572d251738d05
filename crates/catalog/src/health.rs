//! `route_health` of the public record: how the calls of a model ended lately. What is counted is
//! the gateway's affair; how it is shown is defined here, beside the rest of the record.

use jiff::Timestamp;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::decimal::Decimal;

/// How the calls of a model ended within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteHealth {
    pub window_hours: u32,
    /// Calls that were sent to a provider; not zero.
    pub sample_size: u64,
    /// Those of them that were answered.
    pub good: u64,
    /// When the last one ended.
    pub last_at_ms: i64,
}

impl RouteHealth {
    /// Ten-thousandths, rounded down: one failure among many is never hidden.
    fn ratio(&self) -> Decimal {
        let part = u128::from(self.good.min(self.sample_size)) * 10_000 / u128::from(self.sample_size.max(1));
        Decimal::quotient(part, 10_000)
    }

    /// The second, in UTC.
    fn last_checked_at(&self) -> String {
        Timestamp::from_second(self.last_at_ms.div_euclid(1_000)).unwrap_or_default().to_string()
    }
}

impl Serialize for RouteHealth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_struct("RouteHealth", 4)?;
        record.serialize_field("window_hours", &self.window_hours)?;
        record.serialize_field("sample_size", &self.sample_size)?;
        record.serialize_field("success_ratio", &self.ratio())?;
        record.serialize_field("last_checked_at", &self.last_checked_at())?;
        record.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_among_many_is_not_rounded_away() {
        let shown = |good, sample_size| RouteHealth { window_hours: 24, sample_size, good, last_at_ms: 0 }.ratio();
        assert_eq!(shown(99_999, 100_000).to_string(), "0.9999");
        assert_eq!(shown(5, 5).to_string(), "1");
        assert_eq!(shown(0, 5).to_string(), "0");
        assert_eq!(shown(2, 3).to_string(), "0.6666");
    }
}
