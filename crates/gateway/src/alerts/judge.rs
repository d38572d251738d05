//! Whether something that was measured is an alert. Once it is, it stays one until the value has
//! come back beyond the bound by a tenth, so that a value at the bound does not swing.

use crate::world::Millis;
use tollgate_store::{AlertFiring, AlertMove, AlertRule};

/// How long after somebody last heard of it they are reminded.
const REMINDED_MS: Millis = 86_400_000;

/// Something that was measured for a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertReading {
    pub subject: String,
    pub value: i64,
    pub bound: AlertBound,
    /// In words, for people.
    pub says: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertBound {
    /// Less is an alert.
    Below(i64),
    /// As much is an alert.
    AtLeast(i64),
}

impl AlertReading {
    pub fn fires(&self, firing: bool) -> bool {
        match self.bound {
            AlertBound::Below(bound) if firing => self.value < bound.saturating_add(bound / 10),
            AlertBound::Below(bound) => self.value < bound,
            AlertBound::AtLeast(bound) if firing => self.value >= bound.saturating_sub(bound / 10),
            AlertBound::AtLeast(bound) => self.value >= bound,
        }
    }
}

/// What is to be written of a subject, if anything.
pub fn verdict(rule: &AlertRule, was: Option<&AlertFiring>, reading: &AlertReading, now: Millis) -> Option<AlertMove> {
    match (reading.fires(was.is_some()), was) {
        (true, None) => Some(AlertMove::Firing),
        (false, Some(_)) => Some(AlertMove::Cleared),
        (false, None) => None,
        (true, Some(_)) if rule.is_silent_at(now) => None,
        (true, Some(was)) => match was.notified_at {
            None => Some(AlertMove::Firing),
            Some(at) => (now - at >= REMINDED_MS).then_some(AlertMove::Reminder),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_the_bound_does_not_swing() {
        let reading = |value, bound| AlertReading { subject: String::new(), value, bound, says: String::new() };
        for (value, bound, fires, stays) in [
            (99, AlertBound::Below(100), true, true),
            (100, AlertBound::Below(100), false, true),
            (109, AlertBound::Below(100), false, true),
            (110, AlertBound::Below(100), false, false),
            (100, AlertBound::AtLeast(100), true, true),
            (90, AlertBound::AtLeast(100), false, true),
            (89, AlertBound::AtLeast(100), false, false),
            (1, AlertBound::AtLeast(1), true, true),
            (0, AlertBound::AtLeast(1), false, false),
        ] {
            let one = reading(value, bound);
            assert_eq!((one.fires(false), one.fires(true)), (fires, stays), "{one:?}");
        }
    }
}
