//! Quotients as decimal text: written digit by digit into JSON, so that no float is ever in
//! between.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A decimal number as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal(String);

impl Decimal {
    pub(crate) fn zero() -> Decimal {
        Decimal("0".to_owned())
    }

    /// Exact when it ends within twelve places, else rounded there (half up). The denominator is
    /// not zero.
    pub(crate) fn quotient(numerator: u128, denominator: u128) -> Decimal {
        const PLACES: u32 = 12;
        let scale = 10_u128.pow(PLACES);
        let (whole, rest) = (numerator / denominator, numerator % denominator);
        let decimals = (rest * scale * 2 + denominator) / (denominator * 2);
        Decimal::placed(whole + decimals / scale, decimals % scale, PLACES as usize)
    }

    /// Hundredths of something.
    pub(crate) fn hundredths(negative: bool, hundredths: u128) -> Decimal {
        let Decimal(text) = Decimal::placed(hundredths / 100, hundredths % 100, 2);
        Decimal(if negative && hundredths > 0 { format!("-{text}") } else { text })
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0 == "0"
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.0.starts_with('-')
    }

    fn placed(whole: u128, decimals: u128, places: usize) -> Decimal {
        if decimals == 0 {
            return Decimal(whole.to_string());
        }
        Decimal(format!("{whole}.{decimals:0places$}").trim_end_matches('0').to_owned())
    }
}

/// The same as a JSON value, for numbers of at most fifteen digits: those survive it unchanged.
pub(crate) fn decimal(numerator: u128, denominator: u128) -> serde_json::Value {
    serde_json::from_str(&Decimal::quotient(numerator, denominator).0).unwrap_or_default()
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.clone()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_written_digit_by_digit() {
        for (numerator, denominator, text) in [
            (0, 7, "0"),
            (3_000_000, 2_000_000, "1.5"),
            (3, 2_000_000, "0.0000015"),
            (10, 3, "3.333333333333"),
            (2, 3, "0.666666666667"),
            (999_999_999_999_999, 1_000_000_000_000_000, "1"),
            (999_999_999_999, 1_000_000_000_000, "0.999999999999"),
            // More digits than a float keeps.
            (999_999_999_999_999_999, 1_000_000_000, "999999999.999999999"),
            (1_000_000_000_000_000_000_000, 3_000_000_000, "333333333333.333333333333"),
        ] {
            assert_eq!(Decimal::quotient(numerator, denominator).0, text);
            assert_eq!(serde_json::to_string(&Decimal::quotient(numerator, denominator)).expect("JSON"), text);
        }
        assert_eq!(Decimal::hundredths(true, 1_250), Decimal("-12.5".to_owned()));
        assert_eq!(Decimal::hundredths(true, 0), Decimal::zero());
        assert_eq!(Decimal::hundredths(false, 5), Decimal("0.05".to_owned()));
    }
}
