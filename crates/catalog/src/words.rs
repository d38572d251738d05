//! Prices and conditions in plain words, for the people who set them.

use crate::decimal::Decimal;
use crate::{Book, Condition, Face, Faces, Fraction, Model, Money, Tier, Unit, instant};

/// Micro-USD as dollars.
pub(crate) fn usd(micro: u64) -> String {
    // A face has at most thirteen digits.
    i64::try_from(micro)
        .ok()
        .and_then(|micro| micro.checked_mul(1_000))
        .map(Money::from_nano)
        .unwrap_or(Money::MAX)
        .to_string()
}

pub(crate) fn per(face: Face) -> &'static str {
    match face.unit() {
        Unit::MillionTokens => "per million tokens",
        Unit::Call => "per call",
        Unit::Second => "per second",
        Unit::Use => "per use",
    }
}

/// `input 3, output 15 USD per million tokens; per_call 0.04 USD per call`.
pub(crate) fn faces(faces: &Faces) -> String {
    let mut text = String::new();
    let mut last: Option<Unit> = None;
    let list: Vec<(Face, u64)> = faces.iter().collect();
    for (at, (face, micro)) in list.iter().enumerate() {
        text.push_str(match last {
            None => "",
            Some(unit) if unit == face.unit() => ", ",
            Some(_) => "; ",
        });
        text.push_str(&format!("{} {}", face.name(), usd(*micro)));
        last = Some(face.unit());
        if list.get(at + 1).is_none_or(|(next, _)| next.unit() != face.unit()) {
            text.push_str(&format!(" USD {}", per(*face)));
        }
    }
    text
}

/// `more than 200000 input tokens and service_tier = priority`.
pub(crate) fn conditions(when: &[Condition]) -> String {
    when.iter().map(condition).collect::<Vec<_>>().join(" and ")
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::ContextOver(limit) => format!("more than {limit} input tokens"),
        Condition::Attribute { path, equals } => format!("{path} = {equals}"),
        Condition::WallClock { zone, weekdays, hours } => {
            let mut parts = Vec::new();
            if weekdays.0 != 0 {
                let day = |day: &u8| ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][usize::from(*day) - 1];
                parts.push(weekdays.list().iter().map(day).collect::<Vec<_>>().join(","));
            }
            if hours.0 != 0 {
                parts.push(format!("hours {}", spans(&hours.list())));
            }
            format!("{} in {}", parts.join(" "), zone.name())
        }
    }
}

/// `9-16,22`: runs of hours.
fn spans(hours: &[u8]) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for hour in hours {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *hour => *end = *hour,
            _ => runs.push((*hour, *hour)),
        }
    }
    let run = |(from, to): &(u8, u8)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

/// What a tier charges.
pub(crate) fn tier(tier: &Tier) -> String {
    if tier.multiplier != Fraction::ONE {
        return format!("{} times the base price", tier.multiplier);
    }
    let paid = tier.paid.as_ref().map(|paid| format!("; after a top-up {}", faces(paid)));
    format!("{}{}", faces(&tier.standard), paid.unwrap_or_default())
}

/// By how many percent the new amount differs, signed, to two places towards zero; `None` from
/// nothing.
pub(crate) fn percent(old: (u128, u128), new: (u128, u128)) -> Option<Decimal> {
    let (old, new) = (old.0 * new.1, new.0 * old.1);
    (old > 0).then(|| Decimal::hundredths(new < old, old.abs_diff(new) * 10_000 / old))
}

impl Model {
    /// The model's prices, line by line.
    pub fn in_words(&self) -> String {
        let mut text = format!(
            "{}: billed by {}, sold to {}\n",
            self.name,
            self.billing_unit.name(),
            self.enable_groups.join(", ")
        );
        self.book.put(&mut text, "  ");
        for change in &self.changes {
            text.push_str(&format!("  from {}:\n", instant(change.from_ms)));
            change.book.put(&mut text, "    ");
        }
        text
    }
}

impl Book {
    fn put(&self, text: &mut String, margin: &str) {
        text.push_str(&format!("{margin}price: {}\n", faces(&self.standard)));
        if let Some(paid) = &self.paid {
            text.push_str(&format!("{margin}after a top-up: {}\n", faces(paid)));
        }
        for one in &self.tiers {
            text.push_str(&format!("{margin}tier {}, when {}: {}\n", one.name, conditions(&one.when), tier(one)));
        }
    }
}
