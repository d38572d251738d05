//! Hours, days, weeks and months of a time zone, as stretches of quarters of an hour. A day has 92
//! to 100 of them where clocks are put forward or back, and begins when its date does, also where
//! that is not at midnight. A date that a zone left out has none.

use jiff::civil::{Date, DateTime};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan, Zoned};

/// Seconds of a quarter of an hour.
const QUARTER: i64 = 900;
/// Spans of one answer.
pub(crate) const MOST_SPANS: usize = 10_000;

/// What time is divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumUnit {
    Hour,
    Day,
    /// From Monday to Sunday.
    Week,
    Month,
}

impl SumUnit {
    pub const ALL: [Self; 4] = [Self::Hour, Self::Day, Self::Week, Self::Month];

    pub fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The first date of the unit that a date is in.
    fn first(self, date: Date) -> Option<Date> {
        match self {
            Self::Hour | Self::Day => Some(date),
            Self::Week => date.checked_sub(i64::from(date.weekday().to_monday_zero_offset()).days()).ok(),
            Self::Month => Some(date.first_of_month()),
        }
    }

    fn next(self, first: Date) -> Option<Date> {
        match self {
            Self::Hour | Self::Day => first.checked_add(1.day()).ok(),
            Self::Week => first.checked_add(7.days()).ok(),
            Self::Month => first.checked_add(1.month()).ok(),
        }
    }
}

/// A zone by its name, of those that are compiled in.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

fn local(zone: &TimeZone, quarter: i64) -> Option<Zoned> {
    Some(Timestamp::from_second(quarter.checked_mul(QUARTER)?).ok()?.to_zoned(zone.clone()))
}

/// Where the spans begin that cover the quarters from `from` to before `to`, the first of them at
/// `from`. `None`: there are more than [`MOST_SPANS`], or the calendar ends.
pub(crate) fn starts(unit: SumUnit, zone: &TimeZone, from: i64, to: i64) -> Option<Vec<i64>> {
    let mut starts = vec![from];
    if unit == SumUnit::Hour {
        let hour = |quarter| local(zone, quarter).map(|at| (at.date(), at.hour(), at.offset()));
        let mut last = hour(from)?;
        for quarter in from + 1..to {
            let now = hour(quarter)?;
            if now != last {
                starts.push(quarter);
                last = now;
            }
            if starts.len() > MOST_SPANS {
                return None;
            }
        }
        return Some(starts);
    }
    let mut first = unit.first(local(zone, from)?.date())?;
    loop {
        first = unit.next(first)?;
        let begins = first.to_zoned(zone.clone()).ok()?.timestamp().as_second().div_euclid(QUARTER);
        if begins >= to {
            return Some(starts);
        }
        // A date that was left out begins with the one after it.
        if starts.last().is_some_and(|last| begins > *last) {
            starts.push(begins);
        }
        if starts.len() > MOST_SPANS {
            return None;
        }
    }
}

/// What the span that a quarter is in is called in its zone.
pub(crate) fn label(unit: SumUnit, zone: &TimeZone, quarter: i64) -> String {
    let Some(at) = local(zone, quarter) else { return String::new() };
    match unit {
        SumUnit::Hour => format!("{}T{:02}:00{}", at.date(), at.hour(), at.strftime("%:z")),
        SumUnit::Day | SumUnit::Week => unit.first(at.date()).map(|date| date.to_string()).unwrap_or_default(),
        SumUnit::Month => at.strftime("%Y-%m").to_string(),
    }
}

/// A moment in milliseconds: since 1970, with an offset, or by the clocks of the zone. A date is
/// its beginning.
pub(crate) fn moment(text: &str, zone: &TimeZone) -> Option<i64> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let at = match text.parse::<Timestamp>() {
        Ok(at) => at,
        Err(_) => text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()?.timestamp(),
    };
    Some(at.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> i64 {
        moment(text, &zone(name).expect("a zone")).expect("a time").div_euclid(1_000 * QUARTER)
    }

    /// Lengths of spans, in quarters of an hour.
    fn lengths(name: &str, unit: SumUnit, from: &str, to: &str) -> Vec<i64> {
        let (from, to) = (of(name, from), of(name, to));
        let mut all = starts(unit, &zone(name).expect("a zone"), from, to).expect("spans");
        all.push(to);
        all.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn a_day_is_as_long_as_its_clocks_say() {
        let day = SumUnit::Day;
        for (zone, from, to, expected) in [
            ("UTC", "2026-10-01", "2026-10-03", vec![96, 96]),
            ("Asia/Kathmandu", "2026-10-01", "2026-10-03", vec![96, 96]),
            ("Europe/Berlin", "2026-03-28", "2026-03-31", vec![96, 92, 96]),
            ("Europe/Berlin", "2026-10-24", "2026-10-27", vec![96, 100, 96]),
            ("Australia/Lord_Howe", "2026-04-04", "2026-04-07", vec![96, 98, 96]),
            // A day that began at one o'clock, and one that was left out.
            ("America/Sao_Paulo", "2018-11-03", "2018-11-06", vec![96, 92, 96]),
            ("Pacific/Apia", "2011-12-29", "2012-01-01", vec![96, 96]),
            // Neither end is at midnight.
            ("Asia/Kolkata", "2026-10-01T12:00", "2026-10-03T06:30", vec![48, 96, 26]),
        ] {
            assert_eq!(lengths(zone, day, from, to), expected, "{zone} {from}");
        }
        assert_eq!(lengths("UTC", SumUnit::Week, "2026-10-01", "2026-10-13"), [4 * 96, 7 * 96, 96]);
        assert_eq!(lengths("Asia/Kathmandu", SumUnit::Month, "2026-01-15", "2026-04-01"), [17 * 96, 28 * 96, 31 * 96]);
    }

    #[test]
    fn an_hour_that_comes_twice_is_two() {
        let hours = lengths("Europe/Berlin", SumUnit::Hour, "2026-10-25", "2026-10-25T04:00");
        assert_eq!(hours, [4, 4, 4, 4, 4], "0, 1, 2, 2, 3 o'clock");
        let berlin = zone("Europe/Berlin").expect("a zone");
        let first = of("Europe/Berlin", "2026-10-25T02:00");
        assert_eq!(label(SumUnit::Hour, &berlin, first), "2026-10-25T02:00+02:00");
        assert_eq!(label(SumUnit::Hour, &berlin, first + 4), "2026-10-25T02:00+01:00");
        let kathmandu = lengths("Asia/Kathmandu", SumUnit::Hour, "2026-10-25T00:15", "2026-10-25T02:00");
        assert_eq!(kathmandu, [3, 4], "hours by the clocks there");
    }

    #[test]
    fn spans_have_names() {
        let zone = zone("Asia/Kathmandu").expect("a zone");
        let at = of("Asia/Kathmandu", "2026-10-01");
        assert_eq!(label(SumUnit::Day, &zone, at), "2026-10-01");
        assert_eq!(label(SumUnit::Day, &zone, at - 1), "2026-09-30");
        assert_eq!(label(SumUnit::Week, &zone, at), "2026-09-28");
        assert_eq!(label(SumUnit::Month, &zone, at), "2026-10");
    }

    #[test]
    fn times_are_read_in_three_ways() {
        let berlin = zone("Europe/Berlin").expect("a zone");
        let read = |text| moment(text, &berlin);
        assert_eq!(read("1790805600000"), Some(1_790_805_600_000));
        for same in ["2026-10-01", "2026-10-01T00:00", "2026-10-01T00:00:00", "2026-09-30T22:00:00Z"] {
            assert_eq!(read(same), Some(1_790_805_600_000), "{same}");
        }
        for wrong in ["", "yesterday", "2026-13-01", "2026-10", "99999999999999999999"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn there_is_a_bound() {
        let zone = zone("UTC").expect("a zone");
        assert!(starts(SumUnit::Hour, &zone, 2_000_000, 2_000_000 + 4 * 10_000).is_some());
        assert!(starts(SumUnit::Hour, &zone, 2_000_000, 2_000_000 + 4 * 10_001).is_none());
        assert!(super::zone("Mars/Olympus").is_none());
    }
}
