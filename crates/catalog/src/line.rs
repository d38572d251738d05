//! The lines of a calculation, written so that whoever reads them can do the sum again without
//! knowing a catalog.

use serde::{Deserialize, Serialize};

use crate::price::{NANO_PER_MICRO, round_up};
use crate::{Face, Fraction, Measure, Money, Uncharged, Unit};

/// So much of this face at this price: `quantity × conversion ÷ size of per × micro_usd`. A line is
/// not rounded and so has no amount of its own: the charge is the sum of all lines times the
/// multiplier, rounded up once ([`total`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub face: Face,
    pub quantity: u64,
    /// What the quantity counts.
    pub unit: Measure,
    /// Tokens that one of it stands for: 50/3 for a second of audio, 1 where nothing is converted.
    pub conversion: Fraction,
    pub micro_usd: u64,
    /// What the price is for: a million tokens, a call, a second.
    pub per: Unit,
}

/// The charge that these lines come to, from what they say and nothing else.
pub fn total(lines: &[Line], multiplier: Fraction) -> Result<Money, Uncharged> {
    // A sum of fractions of nano-USD; denominators stay small because few differ.
    let (mut sum, mut divisor) = (0_u128, 1_u128);
    for line in lines {
        let amount = u128::from(line.quantity)
            .checked_mul(u128::from(line.micro_usd))
            .and_then(|amount| amount.checked_mul(NANO_PER_MICRO))
            .and_then(|amount| amount.checked_mul(u128::from(line.conversion.numerator())))
            .ok_or(Uncharged::Overflow)?;
        let per = line.per.size() * u128::from(line.conversion.denominator());
        (sum, divisor) = added(sum, divisor, amount, per).ok_or(Uncharged::Overflow)?;
    }
    let sum = sum.checked_mul(u128::from(multiplier.numerator())).ok_or(Uncharged::Overflow)?;
    let divisor = divisor.checked_mul(u128::from(multiplier.denominator())).ok_or(Uncharged::Overflow)?;
    round_up(sum, divisor)
}

/// a/b + c/d over the smallest common denominator.
fn added(a: u128, b: u128, c: u128, d: u128) -> Option<(u128, u128)> {
    let (mut divisor, mut rest) = (b, d);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let common = (b / divisor).checked_mul(d)?;
    let sum = a.checked_mul(common / b)?.checked_add(c.checked_mul(common / d)?)?;
    Some((sum, common))
}
