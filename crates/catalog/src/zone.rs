//! The clock on the wall of a time zone, quick enough to be asked with every call. Offsets from UTC
//! change a few times a year; the last one that was looked up is cached for the quarter of an hour
//! it was found valid in.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::NoPrice;

/// A time zone that remembers its last offset.
#[derive(Debug)]
pub struct Zone {
    zone: TimeZone,
    /// A quarter of an hour and the offset that holds all through it, packed; 0 for none.
    known: AtomicU64,
}

/// Local time as prices need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalTime {
    /// 1 = Monday … 7 = Sunday.
    pub(crate) weekday: u8,
    pub(crate) hour: u8,
}

const QUARTER: i64 = 900;
/// Both parts of a packed offset are shifted to be positive; the calendar's quarters take 30 bits,
/// offsets 18.
const QUARTERS_FROM: i64 = 1 << 30;
const OFFSETS_FROM: i64 = 1 << 17;

impl Zone {
    pub(crate) fn new(zone: TimeZone) -> Zone {
        Zone { zone, known: AtomicU64::new(0) }
    }

    pub fn name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The local time at milliseconds since 1970.
    pub(crate) fn local(&self, at_ms: i64) -> Result<LocalTime, NoPrice> {
        let second = at_ms.div_euclid(1_000);
        let local = second.checked_add(self.offset(second)?).ok_or(NoPrice::BadTime)?;
        // The first of January 1970 was a Thursday.
        let weekday = (local.div_euclid(86_400) + 3).rem_euclid(7) + 1;
        let hour = local.rem_euclid(86_400) / 3_600;
        Ok(LocalTime { weekday: weekday as u8, hour: hour as u8 })
    }

    /// Seconds to add to UTC.
    fn offset(&self, second: i64) -> Result<i64, NoPrice> {
        let quarter = second.div_euclid(QUARTER);
        let known = self.known.load(Ordering::Relaxed);
        if known != 0 && (known >> 18) as i64 - QUARTERS_FROM == quarter {
            return Ok((known & 0x3_ffff) as i64 - OFFSETS_FROM);
        }
        let offset = self.looked_up(second)?;
        // Cached only if the whole quarter agrees, so that no change of clocks is missed.
        let ends = [quarter * QUARTER, quarter * QUARTER + QUARTER - 1];
        if ends.into_iter().all(|end| self.looked_up(end) == Ok(offset)) {
            let packed = ((quarter + QUARTERS_FROM) as u64) << 18 | (offset + OFFSETS_FROM) as u64;
            self.known.store(packed, Ordering::Relaxed);
        }
        Ok(offset)
    }

    fn looked_up(&self, second: i64) -> Result<i64, NoPrice> {
        let at = Timestamp::from_second(second).map_err(|_| NoPrice::BadTime)?;
        Ok(i64::from(self.zone.to_offset(at).seconds()))
    }
}

impl Clone for Zone {
    fn clone(&self) -> Zone {
        Zone { zone: self.zone.clone(), known: AtomicU64::new(self.known.load(Ordering::Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;

    /// The same from the library's own calendar.
    fn by_the_book(zone: &TimeZone, at_ms: i64) -> LocalTime {
        let time = zone.to_datetime(Timestamp::from_millisecond(at_ms).expect("in the calendar"));
        LocalTime { weekday: time.weekday().to_monday_one_offset() as u8, hour: time.hour() as u8 }
    }

    #[test]
    fn the_cached_offset_never_says_anything_else_than_the_calendar() {
        let zones = TimeZoneDatabase::bundled();
        for name in [
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "Australia/Lord_Howe",
            "Asia/Kathmandu",
            "Pacific/Apia",
            "Africa/Monrovia",
        ] {
            let plain = zones.get(name).expect("a zone");
            let zone = Zone::new(plain.clone());
            // Over 400 years in odd steps, and second by second around every change of 2011, 2018
            // and 2026.
            let strides = (-6_000_000_000_000_i64..6_000_000_000_000).step_by(1_234_567_891);
            for at_ms in strides {
                assert_eq!(zone.local(at_ms), Ok(by_the_book(&plain, at_ms)), "{name} at {at_ms}");
            }
            for year in [1_293_840_000_000_i64, 1_514_764_800_000, 1_767_225_600_000] {
                let hours = (year..year + 366 * 86_400_000).step_by(3_600_000);
                let changed =
                    |at: &i64| by_the_book(&plain, *at).hour != (by_the_book(&plain, *at - 3_600_000).hour + 1) % 24;
                for change in hours.filter(changed) {
                    for at_ms in (change - 7_200_000..change + 7_200_000).step_by(13_000) {
                        assert_eq!(zone.local(at_ms), Ok(by_the_book(&plain, at_ms)), "{name} at {at_ms}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_quarter_in_which_the_clocks_change_is_not_cached() {
        // Liberia put its clocks forward by 44 minutes and 30 seconds at 00:44:30 UTC on 7
        // January 1972.
        let plain = TimeZoneDatabase::bundled().get("Africa/Monrovia").expect("a zone");
        let change = 63_593_070_i64;
        let by_the_book =
            |second| i64::from(plain.to_offset(Timestamp::from_second(second).expect("a time")).seconds());
        assert_ne!(by_the_book(change - 1), by_the_book(change));
        let around = || (-360..360).map(|step| change + step * 5);
        let zone = Zone::new(plain.clone());
        for second in around().chain(around().rev()) {
            assert_eq!(zone.offset(second), Ok(by_the_book(second)), "at {second}");
        }
    }

    #[test]
    fn what_was_looked_up_is_not_looked_up_again_for_a_quarter_of_an_hour() {
        let zone = Zone::new(TimeZone::UTC);
        // A memory that is wrong shows that it is asked: an hour ahead, from 1970 on and long
        // before.
        for quarter in [0, 1, -200_000] {
            let packed = ((quarter + QUARTERS_FROM) as u64) << 18 | (3_600 + OFFSETS_FROM) as u64;
            for (second, offset) in [(-1, 0), (QUARTER, 0), (0, 3_600), (QUARTER - 1, 3_600)] {
                zone.known.store(packed, Ordering::Relaxed);
                assert_eq!(zone.offset(quarter * QUARTER + second), Ok(offset), "quarter {quarter}, second {second}");
            }
            zone.offset((quarter + 1) * QUARTER).expect("an offset");
            let cached = ((quarter + 1 + QUARTERS_FROM) as u64) << 18 | OFFSETS_FROM as u64;
            assert_eq!(zone.known.load(Ordering::Relaxed), cached, "the next one is cached");
        }
        // In the summer of 2026, and not as it was in 1970.
        let zone = Zone::new(TimeZoneDatabase::bundled().get("Europe/Berlin").expect("a zone"));
        let july = 1_983_000;
        assert_eq!(zone.offset(july * QUARTER + 450), Ok(7_200));
        let cached = ((july + QUARTERS_FROM) as u64) << 18 | (7_200 + OFFSETS_FROM) as u64;
        assert_eq!(zone.known.load(Ordering::Relaxed), cached);
        // West of Greenwich too.
        let zone = Zone::new(TimeZoneDatabase::bundled().get("America/New_York").expect("a zone"));
        assert_eq!(zone.offset(july * QUARTER), Ok(-14_400));
        assert_eq!((zone.known.load(Ordering::Relaxed) >> 18) as i64 - QUARTERS_FROM, july);
    }

    #[test]
    fn times_outside_the_calendar_are_refused() {
        let zone = Zone::new(TimeZone::UTC);
        for at_ms in [i64::MIN, i64::MAX] {
            assert_eq!(zone.local(at_ms), Err(NoPrice::BadTime));
        }
        assert_eq!(zone.local(-1), Ok(LocalTime { weekday: 3, hour: 23 }));
        assert_eq!(zone.local(0), Ok(LocalTime { weekday: 4, hour: 0 }));
    }
}
