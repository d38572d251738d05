//! Money: a whole number of nano-USD. There is no other unit and no fraction of it anywhere in the
//! till.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount in nano-USD (1 USD = 1,000,000,000). Arithmetic is checked: `None` is a refusal, never
/// a wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(i64);

const NANO_PER_USD: i64 = 1_000_000_000;

impl Money {
    pub const ZERO: Money = Money(0);
    pub const MAX: Money = Money(i64::MAX);

    pub const fn from_nano(nano: i64) -> Money {
        Money(nano)
    }

    /// Whole dollars; `None` when they do not fit.
    pub const fn from_usd(usd: i64) -> Option<Money> {
        match usd.checked_mul(NANO_PER_USD) {
            Some(nano) => Some(Money(nano)),
            None => None,
        }
    }

    pub const fn nano(self) -> i64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    pub fn checked_add(self, other: Money) -> Option<Money> {
        self.0.checked_add(other.0).map(Money)
    }

    pub fn checked_sub(self, other: Money) -> Option<Money> {
        self.0.checked_sub(other.0).map(Money)
    }

    pub fn checked_neg(self) -> Option<Money> {
        self.0.checked_neg().map(Money)
    }

    /// The sum of many amounts; `None` when it does not fit.
    pub fn checked_sum(amounts: impl IntoIterator<Item = Money>) -> Option<Money> {
        amounts.into_iter().try_fold(Money::ZERO, Money::checked_add)
    }
}

/// Dollars in decimal, exact, without trailing zeros: `12.345678901`, `12.5`, `0`, `-0.000000001`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // From the last digit on, without the machinery of formatting: this is written into every
        // reply.
        let mut text = [0u8; 24];
        let mut at = text.len();
        let mut rest = self.0.unsigned_abs();
        let mut decimals = 9;
        let mut significant = false;
        let mut put = |at: &mut usize, byte: u8| {
            *at -= 1;
            text[*at] = byte;
        };
        while decimals > 0 {
            let digit = (rest % 10) as u8;
            significant |= digit != 0;
            if significant {
                put(&mut at, b'0' + digit);
            }
            rest /= 10;
            decimals -= 1;
        }
        if significant {
            put(&mut at, b'.');
        }
        loop {
            put(&mut at, b'0' + (rest % 10) as u8);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if self.0 < 0 {
            put(&mut at, b'-');
        }
        f.pad(std::str::from_utf8(&text[at..]).map_err(|_| fmt::Error)?)
    }
}

/// Why a text is not an amount of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadMoney {
    NotANumber,
    TooPrecise,
    TooLarge,
}

impl fmt::Display for BadMoney {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadMoney::NotANumber => "is not a decimal amount such as 12.5",
            BadMoney::TooPrecise => "has more than nine decimal places",
            BadMoney::TooLarge => "is too large an amount",
        })
    }
}

impl std::error::Error for BadMoney {}

/// Decimal dollars, at most nine places; read digit by digit, so exact.
impl FromStr for Money {
    type Err = BadMoney;

    fn from_str(text: &str) -> Result<Money, BadMoney> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let numeric = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !numeric(whole) || !numeric(decimals) {
            return Err(BadMoney::NotANumber);
        }
        if decimals.len() > 9 {
            return Err(BadMoney::TooPrecise);
        }
        let whole: i128 = whole.parse().map_err(|_| BadMoney::TooLarge)?;
        let decimals: i128 = format!("{decimals:0<9}").parse().map_err(|_| BadMoney::NotANumber)?;
        let nano = whole
            .checked_mul(i128::from(NANO_PER_USD))
            .and_then(|nano| nano.checked_add(decimals))
            .map(|nano| if negative { -nano } else { nano })
            .ok_or(BadMoney::TooLarge)?;
        i64::try_from(nano).map(Money).map_err(|_| BadMoney::TooLarge)
    }
}
