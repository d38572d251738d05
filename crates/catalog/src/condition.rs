//! The conditions of a tier. Each knows how to be tested against the facts of a call and how to
//! write itself into the public record; time is a fact like the others, read in the condition's own
//! time zone.

use serde_json::{Value, json};

use crate::zone::Zone;
use crate::{NoPrice, PriceFacts};

/// One condition of a tier's `when` list; all of a tier's conditions must hold.
#[derive(Clone, Debug)]
pub enum Condition {
    /// More input tokens than this.
    ContextOver(u64),
    /// An effective parameter of the call (after defaults) has this value.
    Attribute { path: String, equals: String },
    /// The local time of the request lies in these weekdays and hours; an empty set means any.
    WallClock { zone: Zone, weekdays: Weekdays, hours: Hours },
}

/// ISO weekdays, 1 = Monday … 7 = Sunday, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weekdays(pub(crate) u8);

/// Hours 0-23 as bits; hour 9 is 09:00 up to, not including, 10:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours(pub(crate) u32);

impl Weekdays {
    pub fn list(self) -> Vec<u8> {
        (1..=7).filter(|day| self.0 & (1 << day) != 0).collect()
    }

    /// Every day, whether it was written out or left out.
    fn any_as_all(self) -> u8 {
        if self.0 == 0 { 0b1111_1110 } else { self.0 }
    }

    fn allows(self, day: u8) -> bool {
        self.0 == 0 || self.0 & (1 << day) != 0
    }
}

impl Hours {
    pub fn list(self) -> Vec<u8> {
        (0..24).filter(|hour| self.0 & (1 << hour) != 0).collect()
    }

    /// Every hour, whether it was written out or left out.
    fn any_as_all(self) -> u32 {
        if self.0 == 0 { 0x00ff_ffff } else { self.0 }
    }

    fn allows(self, hour: u8) -> bool {
        self.0 == 0 || self.0 & (1 << hour) != 0
    }
}

impl Condition {
    /// The fact whether the model is made to think: `true` or `false`.
    pub const THINKING: &'static str = "thinking";
    /// The fact by which type of endpoint a call came.
    pub const ENDPOINT: &'static str = "endpoint";

    /// What of a request it goes by, where that is a parameter and not a fact about it.
    pub fn parameter(&self) -> Option<(&str, &str)> {
        match self {
            Condition::Attribute { path, equals } if path != Self::THINKING && path != Self::ENDPOINT => {
                Some((path, equals))
            }
            _ => None,
        }
    }

    /// The value that it asks of a fact about a request.
    pub fn fact(&self, name: &str) -> Option<&str> {
        match self {
            Condition::Attribute { path, equals } if path == name => Some(equals),
            _ => None,
        }
    }

    /// Whether it holds for a call with this many input tokens.
    pub(crate) fn holds(&self, facts: &PriceFacts<'_>, context_len: u64) -> Result<bool, NoPrice> {
        match self {
            Condition::ContextOver(limit) => Ok(context_len > *limit),
            Condition::Attribute { path, equals } => Ok((facts.attr)(path).is_some_and(|value| value == *equals)),
            Condition::WallClock { zone, weekdays, hours } => {
                let local = zone.local(facts.at_ms)?;
                Ok(weekdays.allows(local.weekday) && hours.allows(local.hour))
            }
        }
    }

    /// One text for conditions that mean the same.
    pub(crate) fn canonical(&self) -> String {
        match self {
            Condition::ContextOver(limit) => format!("context>{limit}"),
            Condition::Attribute { path, equals } => format!("attr {path:?}={equals:?}"),
            Condition::WallClock { zone, weekdays, hours } => {
                format!("clock {} {:x} {:x}", zone.name(), weekdays.any_as_all(), hours.any_as_all())
            }
        }
    }

    /// Whether asking for it costs more than a comparison: the parameters of a call may have to be
    /// searched.
    pub(crate) fn is_dear(&self) -> bool {
        matches!(self, Condition::Attribute { .. })
    }

    pub fn is_about_time(&self) -> bool {
        matches!(self, Condition::WallClock { .. })
    }

    /// About the request itself, its length or its parameters.
    pub fn is_about_request(&self) -> bool {
        !self.is_about_time()
    }

    /// As the specification's record writes it.
    pub fn record(&self) -> Value {
        match self {
            Condition::ContextOver(limit) => {
                json!({"dim": "context_len", "context_len_gt": limit})
            }
            Condition::Attribute { path, equals } => {
                json!({"dim": "request_attr", "path": path, "equals": equals})
            }
            Condition::WallClock { zone, weekdays, hours } => {
                let mut record = json!({
                    "dim": "wall_clock",
                    "timezone": zone.name(),
                });
                if weekdays.0 != 0 {
                    record["weekdays"] = json!(weekdays.list());
                }
                if hours.0 != 0 {
                    record["hours"] = json!(hours.list());
                }
                record
            }
        }
    }
}
