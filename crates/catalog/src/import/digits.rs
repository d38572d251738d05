//! Decimal numbers as they are written: a price of a source never becomes a float.

use crate::{MAX_FACE, Money};

/// A number that is not negative: `mantissa` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digits {
    mantissa: u128,
    exponent: i32,
}

/// More digits than any price has; keeps products inside 128 bits.
const MOST_DIGITS: usize = 18;
const MOST_EXPONENT: i32 = 40;

impl Digits {
    /// `2`, `2.50`, `5e-07`; `None` for anything else, for negative numbers and endless ones.
    pub(super) fn parse(text: &str) -> Option<Digits> {
        let (number, power) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(decimals) || (number.contains('.') && decimals.is_empty()) {
            return None;
        }
        let decimals = decimals.trim_end_matches('0');
        let joined = format!("{whole}{decimals}");
        let joined = joined.trim_start_matches('0');
        let exponent = power.checked_sub(i32::try_from(decimals.len()).ok()?)?;
        if joined.len() > MOST_DIGITS || exponent.abs() > MOST_EXPONENT {
            return None;
        }
        let mantissa = if joined.is_empty() { 0 } else { joined.parse().ok()? };
        Some(Digits { mantissa, exponent })
    }

    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub(super) fn times(self, other: Digits) -> Option<Digits> {
        let mantissa = self.mantissa.checked_mul(other.mantissa)?;
        Some(Digits { mantissa, exponent: self.exponent + other.exponent })
    }

    /// The number times ten to a power, rounded up to a whole one, and whether that was exact.
    /// `None` above the highest price.
    pub(super) fn scaled(self, power: i32) -> Option<(u64, bool)> {
        let exponent = self.exponent + power;
        let by = 10_u128.checked_pow(exponent.unsigned_abs());
        let (whole, exact) = match (exponent >= 0, by) {
            (true, Some(by)) => (self.mantissa.checked_mul(by)?, true),
            (false, Some(by)) => (self.mantissa.div_ceil(by), self.mantissa.is_multiple_of(by)),
            (true, None) if self.mantissa > 0 => return None,
            _ => (u128::from(self.mantissa > 0), self.mantissa == 0),
        };
        let whole = u64::try_from(whole).ok().filter(|whole| *whole <= MAX_FACE)?;
        Some((whole, exact))
    }
}

/// An amount of USD as a provider writes it in JSON, rounded up to whole nano-USD.
pub fn written_usd(text: &str) -> Option<Money> {
    let (nano, _) = Digits::parse(text)?.scaled(9)?;
    i64::try_from(nano).ok().map(Money::from_nano)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usd_become_nano_usd_rounded_up() {
        for (text, nano) in [("0.006", 6_000_000), ("1.4e-05", 14_000), ("0.00014812499999999998", 148_125), ("0", 0)] {
            assert_eq!(written_usd(text), Some(Money::from_nano(nano)), "{text}");
        }
        for text in ["-1", "x", "1e30", ""] {
            assert_eq!(written_usd(text), None, "{text}");
        }
    }

    #[test]
    fn digits_become_whole_micro_usd_without_a_float() {
        for (text, power, expected) in [
            ("2e-06", 12, Some((2_000_000, true))),
            ("1.25e-06", 12, Some((1_250_000, true))),
            ("0.000003", 12, Some((3_000_000, true))),
            ("5E-8", 12, Some((50_000, true))),
            ("0.1", 6, Some((100_000, true))),
            ("0.30000000000000004", 6, Some((300_001, false))),
            ("1.0000000000000001e-06", 12, Some((1_000_001, false))),
            ("0", 12, Some((0, true))),
            ("0.0", 12, Some((0, true))),
            ("1e-40", 12, Some((1, false))),
            ("1e30", 12, None),
            ("-1", 12, None),
            ("1.", 12, None),
            (".5", 12, None),
            ("NaN", 12, None),
            ("1_000", 6, None),
            ("0x10", 6, None),
            ("", 6, None),
        ] {
            assert_eq!(Digits::parse(text).and_then(|digits| digits.scaled(power)), expected, "{text}");
        }
        let product = Digits::parse("1.25").and_then(|a| a.times(Digits::parse("0.1")?)).expect("a product");
        assert_eq!(product.scaled(6), Some((125_000, true)));
    }
}
