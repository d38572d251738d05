//! What an operator puts on top of a vendor's list price, as an exact fraction.

use crate::{Faces, Fraction, MAX_FACE};
use std::fmt;
use std::str::FromStr;

/// A list price times this is the price. Written as a percentage: `10%`, `12.5%`, `0%`, `-5%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Margin(Fraction);

impl Margin {
    /// Sold at the list price.
    pub const NONE: Margin = Margin(Fraction::ONE);

    pub fn factor(self) -> Fraction {
        self.0
    }

    pub fn of_factor(factor: Fraction) -> Margin {
        Margin(factor)
    }

    /// The prices for these list prices, each rounded up to a whole micro-USD; `None` when one is
    /// beyond what a price may be.
    pub fn prices(self, list: &Faces) -> Option<Faces> {
        let mut prices = Faces::NONE;
        for (face, micro) in list.iter() {
            let price = self.0.of(micro).filter(|price| *price <= MAX_FACE)?;
            prices.set(face, Some(price));
        }
        Some(prices)
    }
}

/// Why a text is not a margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMargin;

impl fmt::Display for BadMargin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is not a margin such as 10%, 12.5% or -5% (more than -100%, at most 900%)")
    }
}

impl std::error::Error for BadMargin {}

impl FromStr for Margin {
    type Err = BadMargin;

    fn from_str(text: &str) -> Result<Margin, BadMargin> {
        let percent = text.strip_suffix('%').ok_or(BadMargin)?;
        let (below, digits) = match percent.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, percent.strip_prefix('+').unwrap_or(percent)),
        };
        let part: Fraction = digits.parse().map_err(|_| BadMargin)?;
        if digits.contains('/') {
            return Err(BadMargin);
        }
        let (n, d) = (part.numerator(), part.denominator().checked_mul(100).ok_or(BadMargin)?);
        let sum = if below { d.checked_sub(n) } else { d.checked_add(n) };
        let factor = sum.and_then(|sum| Fraction::new(sum, d)).ok_or(BadMargin)?;
        let sensible = factor.numerator() > 0 && factor.numerator() <= factor.denominator().saturating_mul(10);
        sensible.then_some(Margin(factor)).ok_or(BadMargin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Face;

    #[test]
    fn margins_are_exact_percentages() {
        for (text, factor) in [
            ("10%", Some("11/10")),
            ("0%", Some("1")),
            ("12.5%", Some("9/8")),
            ("-5%", Some("19/20")),
            ("+33.3%", Some("1333/1000")),
            ("900%", Some("10")),
            ("901%", None),
            ("-100%", None),
            ("10", None),
            ("1/2%", None),
            ("ten%", None),
            ("%", None),
            ("--5%", None),
        ] {
            let found = text.parse::<Margin>().ok().map(|margin| margin.factor().to_string());
            assert_eq!(found.as_deref(), factor, "{text}");
        }
    }

    /// A price is never below list times margin, and less than a micro-USD above it.
    #[test]
    fn every_face_is_rounded_up_by_itself() {
        let list = Faces::NONE.with(Face::Input, 1).with(Face::Output, 3_333_333).with(Face::CacheRead, 0);
        let prices = "10%".parse::<Margin>().expect("a margin").prices(&list).expect("prices");
        assert_eq!(prices, Faces::NONE.with(Face::Input, 2).with(Face::Output, 3_666_667).with(Face::CacheRead, 0));
        assert_eq!(Margin::NONE.prices(&list), Some(list));
        let dear = Faces::NONE.with(Face::Input, MAX_FACE);
        assert_eq!("10%".parse::<Margin>().expect("a margin").prices(&dear), None);
    }
}
