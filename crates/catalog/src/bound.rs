//! What must be set aside before a call is sent: the most it can be charged, whichever tier the
//! true length of its input leads to and whichever kind its tokens turn out to be.
//!
//! A final charge is computed with one of the prices that can still apply, for no more than what
//! was needed. So the dearest of those prices for the most of everything bounds it; `bounds.rs` of
//! the tests shows it for any outcome.

use std::fmt;
use std::sync::Arc;

use crate::{BillingUnit, Face, Fraction, Model, Money, NoPrice, Price, PriceFacts, Quantities, Uncharged};

/// The most a call can be charged, and how it came about.
#[derive(Clone, Debug)]
pub struct ChargeBound {
    pub amount: Money,
    /// The price that makes it the most; the hold is frozen with it.
    pub price: Arc<Price>,
    /// The quantities it was computed with: each token under the dearest face it can have.
    pub most: Quantities,
    /// How many prices can still apply. 1: the tier is settled.
    pub candidates: usize,
}

/// Why there is no bound. Always a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbounded {
    NoPrice(NoPrice),
    Uncharged(Uncharged),
}

impl fmt::Display for Unbounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unbounded::NoPrice(why) => why.fmt(f),
            Unbounded::Uncharged(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for Unbounded {}

impl Model {
    /// The bound for a call with these facts that can use at most what `need` says of a price:
    /// quantities per face, all input that is text (cached or not) under `input`, all output that
    /// is text under `output`.
    ///
    /// `facts.context_max` is the longest input that can be reported. Whatever is reported in the
    /// end, a charge at [`Model::price`] for quantities within the need is at most the bound's
    /// amount.
    pub fn bound(
        &self,
        facts: &PriceFacts<'_>,
        need: impl Fn(&Price) -> Result<Quantities, Uncharged>,
    ) -> Result<ChargeBound, Unbounded> {
        let prices = self.book_at(facts.at_ms).can_apply(facts).map_err(Unbounded::NoPrice)?;
        let mut bound: Option<ChargeBound> = None;
        for price in &prices {
            let most = need(price).and_then(|need| price.worst(&need)).map_err(Unbounded::Uncharged)?;
            let amount = price.charge(&most).map_err(Unbounded::Uncharged)?;
            if bound.as_ref().is_none_or(|dearest| amount > dearest.amount) {
                bound = Some(ChargeBound { amount, price: Arc::clone(price), most, candidates: prices.len() });
            }
        }
        bound.ok_or(Unbounded::NoPrice(NoPrice::Overflow))
    }
}

/// Kinds of token that a token can turn out to be, besides the kind it was announced as: text can
/// be read from a cache or written to one; what a provider does not tell apart is text.
const TEXT: &[Face] = &[Face::Input, Face::CacheRead, Face::CacheWrite, Face::CacheWrite1h];

impl Price {
    /// The same quantities with each token under the dearest face it can turn out to have.
    fn worst(&self, need: &Quantities) -> Result<Quantities, Uncharged> {
        if self.unit != BillingUnit::Tokens {
            return Ok(*need);
        }
        let mut worst = Quantities::NONE;
        for (face, quantity) in need.iter() {
            let others = match face {
                Face::PerCall | Face::VideoSecond => &[],
                tool if tool.is_tool() => &[],
                Face::Output | Face::ImageOutput | Face::AudioOutput => &[Face::Output][..],
                _ => TEXT,
            };
            let face = self.dearest_of(face, others);
            worst[face] = worst[face].checked_add(quantity).ok_or(Uncharged::Overflow)?;
        }
        Ok(worst)
    }
}

/// A price that none of these is above in any face: one of them, or one made of the dearest face of
/// each.
pub(crate) fn dearest(prices: &[&Arc<Price>]) -> Option<Arc<Price>> {
    let (first, rest) = prices.split_first()?;
    rest.iter().try_fold(Arc::clone(first), |dearest, price| upper(&dearest, price))
}

/// The one of two prices that is dearer in every face; otherwise a price made of the dearer face of
/// each.
fn upper(a: &Arc<Price>, b: &Arc<Price>) -> Option<Arc<Price>> {
    if covers(a, b) {
        return Some(Arc::clone(a));
    }
    if covers(b, a) {
        return Some(Arc::clone(b));
    }
    let mut bound = Price::clone(a);
    bound.tier = Some(format!("dearest of {} and {}", label(a), label(b)));
    bound.when.clear();
    bound.multiplier = Fraction::ONE;
    for face in Face::ALL {
        let one = |price: &Price| match price.faces.get(face) {
            Some(micro) => price.multiplier.of(micro).map(Some),
            None => Some(None),
        };
        bound.faces.set(face, one(a)?.max(one(b)?));
    }
    Some(Arc::new(bound.identified()))
}

fn label(price: &Price) -> &str {
    price.tier.as_deref().unwrap_or("base")
}

fn covers(a: &Price, b: &Price) -> bool {
    let scaled = |price: &Price, other: &Price, face| {
        price.faces.get(face).map(|micro| {
            u128::from(micro) * u128::from(price.multiplier.numerator()) * u128::from(other.multiplier.denominator())
        })
    };
    Face::ALL.iter().copied().all(|face| scaled(a, b, face) >= scaled(b, a, face))
}
