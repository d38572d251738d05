//! Exact multipliers: 133/100, 0.8, 5. A group's discount and a mode's surcharge are fractions,
//! never floats.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A reduced, non-negative fraction. Both parts stay at or below [`Fraction::LIMIT`], which keeps
/// products of prices, quantities and multipliers far inside 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fraction {
    numerator: u64,
    denominator: u64,
}

impl Fraction {
    pub const ONE: Fraction = Fraction { numerator: 1, denominator: 1 };
    pub const LIMIT: u64 = 1_000_000_000;

    /// For constants that are written in lowest terms.
    pub(crate) const fn reduced(numerator: u64, denominator: u64) -> Fraction {
        Fraction { numerator, denominator }
    }

    /// `None` for a zero denominator, or when a part of the reduced fraction passes the limit.
    pub fn new(numerator: u64, denominator: u64) -> Option<Fraction> {
        let divisor = gcd(numerator, denominator);
        if denominator == 0 {
            return None;
        }
        let (numerator, denominator) = (numerator / divisor, denominator / divisor);
        (numerator <= Fraction::LIMIT && denominator <= Fraction::LIMIT).then_some(Fraction { numerator, denominator })
    }

    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// The product, reduced; `None` past the limit.
    pub fn times(self, other: Fraction) -> Option<Fraction> {
        Fraction::new(self.numerator.checked_mul(other.numerator)?, self.denominator.checked_mul(other.denominator)?)
    }

    /// `n` times the fraction, rounded up.
    pub fn of(self, n: u64) -> Option<u64> {
        let product = u128::from(n).checked_mul(u128::from(self.numerator))?;
        u64::try_from(product.div_ceil(u128::from(self.denominator))).ok()
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.denominator == 1 {
            write!(f, "{}", self.numerator)
        } else {
            write!(f, "{}/{}", self.numerator, self.denominator)
        }
    }
}

/// Why a text is not a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFraction;

impl fmt::Display for BadFraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is not a fraction such as \"133/100\", \"0.8\" or \"5\" (at most nine digits)")
    }
}

impl std::error::Error for BadFraction {}

impl FromStr for Fraction {
    type Err = BadFraction;

    fn from_str(text: &str) -> Result<Fraction, BadFraction> {
        let whole = |part: &str| -> Result<u64, BadFraction> {
            if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
                return Err(BadFraction);
            }
            part.parse().map_err(|_| BadFraction)
        };
        if let Some((numerator, denominator)) = text.split_once('/') {
            return Fraction::new(whole(numerator.trim())?, whole(denominator.trim())?).ok_or(BadFraction);
        }
        let (units, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let decimals = match decimals.trim_end_matches('0') {
            "" if !decimals.is_empty() => "0",
            shorter => shorter,
        };
        if decimals.len() > 9 {
            return Err(BadFraction);
        }
        let scale = 10_u64.pow(decimals.len() as u32);
        let numerator =
            whole(units)?.checked_mul(scale).and_then(|n| n.checked_add(whole(decimals).ok()?)).ok_or(BadFraction)?;
        whole(decimals)?;
        Fraction::new(numerator, scale).ok_or(BadFraction)
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fraction, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|bad| D::Error::custom(format!("{text:?} {bad}")))
    }
}
