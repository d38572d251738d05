//! Exact lengths of time: samples at their rates, rounded once and only by those who charge for
//! them.

use super::Unmeasured;
use std::cmp::Ordering;

/// No file plays longer than a day, nor has more packets than this.
const MOST_SECONDS: u64 = 86_400;
const MOST_PACKETS: u64 = 10_000_000;

/// Denominators stay below this, so that products of two lengths fit into 128 bits.
const MOST_PARTS: u128 = 1 << 50;
const NANOS: u128 = 1_000_000_000;

/// A length in seconds, as a fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Length {
    parts: u128,
    per_second: u128,
}

impl Length {
    pub const ZERO: Length = Length { parts: 0, per_second: 1 };

    /// So many samples at a rate; none at no rate.
    pub fn of(samples: u64, rate: u64) -> Length {
        if rate == 0 { Length::ZERO } else { Length::reduced(samples.into(), rate.into()) }
    }

    fn reduced(parts: u128, per_second: u128) -> Length {
        let by = gcd(parts, per_second);
        let length = Length { parts: parts / by, per_second: per_second / by };
        if length.per_second <= MOST_PARTS { length } else { length.coarse() }
    }

    /// Rounded up to a billionth of a second, where rates have nothing in common.
    fn coarse(self) -> Length {
        let whole = self.parts / self.per_second * NANOS;
        Length { parts: whole + (self.parts % self.per_second * NANOS).div_ceil(self.per_second), per_second: NANOS }
    }

    pub fn plus(self, other: Length) -> Length {
        let by = gcd(self.per_second, other.per_second);
        let common = self.per_second / by * other.per_second;
        if common > MOST_PARTS {
            let (one, two) = (self.coarse(), other.coarse());
            return Length::reduced(one.parts + two.parts, NANOS);
        }
        Length::reduced(self.parts * (common / self.per_second) + other.parts * (common / other.per_second), common)
    }

    /// Less by the other, and never below nothing.
    pub fn less(self, other: Length) -> Length {
        let by = gcd(self.per_second, other.per_second);
        let common = self.per_second / by * other.per_second;
        if common > MOST_PARTS {
            return Length::reduced(self.coarse().parts.saturating_sub(other.coarse().parts), NANOS);
        }
        let (one, two) = (self.parts * (common / self.per_second), other.parts * (common / other.per_second));
        Length::reduced(one.saturating_sub(two), common)
    }

    /// Whole seconds, rounded up.
    pub fn whole_seconds(self) -> u64 {
        u64::try_from(self.parts.div_ceil(self.per_second)).unwrap_or(u64::MAX)
    }

    /// Milliseconds, rounded to the nearest.
    pub fn millis(self) -> u64 {
        u64::try_from((self.parts * 1000 + self.per_second / 2) / self.per_second).unwrap_or(u64::MAX)
    }
}

impl PartialOrd for Length {
    fn partial_cmp(&self, other: &Length) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Length {
    fn cmp(&self, other: &Length) -> Ordering {
        (self.parts * other.per_second).cmp(&(other.parts * self.per_second))
    }
}

fn gcd(mut one: u128, mut two: u128) -> u128 {
    while two != 0 {
        (one, two) = (two, one % two);
    }
    one.max(1)
}

/// Samples counted so far, by their rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    by_rate: Vec<(u64, u64)>,
    packets: u64,
}

/// More rates than this in one track, and the file is not honest.
const MOST_RATES: usize = 16;

impl Tally {
    /// One more packet.
    #[inline]
    pub(super) fn add(&mut self, samples: u64, rate: u64) -> Result<(), Unmeasured> {
        self.packets += 1;
        self.many(samples, rate)
    }

    /// A run of packets that its container counts for us.
    #[inline]
    pub(super) fn many(&mut self, samples: u64, rate: u64) -> Result<(), Unmeasured> {
        let at = match self.by_rate.iter().position(|(known, _)| *known == rate) {
            Some(at) => at,
            None if self.by_rate.len() < MOST_RATES => {
                self.by_rate.push((rate, 0));
                self.by_rate.len() - 1
            }
            None => return Err(Unmeasured::Broken),
        };
        let counted = &mut self.by_rate[at].1;
        *counted = counted.saturating_add(samples);
        if self.packets > MOST_PACKETS || *counted >= rate.max(1).saturating_mul(MOST_SECONDS + 1) {
            return Err(Unmeasured::TooLong);
        }
        Ok(())
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_rate.is_empty()
    }

    pub(super) fn length(&self) -> Length {
        self.by_rate.iter().fold(Length::ZERO, |sum, (rate, samples)| sum.plus(Length::of(*samples, *rate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up_once_and_exactly() {
        for (samples, rate, seconds) in [
            (0, 44_100, 0),
            (1, 44_100, 1),
            (44_100, 44_100, 1),
            (44_101, 44_100, 2),
            (8_820, 44_100, 1),
            (u64::MAX, 1, u64::MAX),
        ] {
            assert_eq!(Length::of(samples, rate).whole_seconds(), seconds, "{samples} at {rate}");
        }
        assert_eq!(Length::of(7, 0), Length::ZERO);
        assert_eq!(Length::of(1_234, 1_000).millis(), 1_234);
    }

    #[test]
    fn sums_of_unlike_rates_are_exact_or_rounded_up_by_a_billionth() {
        let third = Length::of(1, 3);
        assert_eq!(third.plus(third).plus(third), Length::of(1, 1));
        assert_eq!(Length::of(44_100, 44_100).plus(Length::of(16_000, 48_000)).less(third), Length::of(1, 1));
        assert_eq!(third.less(Length::of(1, 1)), Length::ZERO);
        // Primes near 2^32: a common denominator would not fit.
        let odd = Length::of(4_294_967_290, 4_294_967_291).plus(Length::of(4_294_967_278, 4_294_967_279));
        assert!(odd > Length::of(1_999_999_999, 1_000_000_000) && odd.whole_seconds() == 2);
        assert!(Length::of(1, 2) < Length::of(2, 3));
    }

    #[test]
    fn a_tally_has_ends() {
        let mut tally = Tally::default();
        assert!(tally.add(86_400 * 8_000, 8_000).is_ok());
        assert_eq!(tally.add(8_000, 8_000), Err(Unmeasured::TooLong));
        let mut rates = Tally::default();
        assert!((1..=16).all(|rate| rates.add(1, rate).is_ok()));
        assert_eq!(rates.add(1, 17), Err(Unmeasured::Broken));
    }
}
