//! What a use costs the operator: the price of the route that served it, or else the vendor's own
//! list. Nobody but the operator sees it.

use crate::{Faces, Fraction, Model, Price, Tier};

/// What a route costs, in micro-USD as prices are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteCost {
    pub faces: Faces,
    /// Under tiers with prices of their own, by the name of the tier.
    pub tiers: Vec<(String, Faces)>,
}

impl Model {
    /// The price at which a use along this route is bought, where the named tier of its own prices
    /// applied. `None`: nobody knows.
    pub fn cost_price(&self, provider: &str, upstream_model: &str, tier: Option<&str>, at_ms: i64) -> Option<Price> {
        let route = self.routes.iter().find(|one| one.provider == provider && one.upstream_model == upstream_model)?;
        let listed = self.list_at(at_ms);
        let (base, rate) = match (&route.cost, listed) {
            (Some(cost), _) => (&cost.faces, Fraction::ONE),
            (None, Some(list)) => (&list.faces, list.usd_rate),
            (None, None) => return None,
        };
        let of_tier = |name: &str| route.cost.as_ref()?.tiers.iter().find(|(own, _)| own == name).map(|(_, own)| own);
        let tier: Option<&Tier> = match tier {
            None => None,
            Some(name) => Some(self.book_at(at_ms).tiers.iter().find(|one| one.name == name)?),
        };
        let (faces, times) = match tier {
            None => (base, Fraction::ONE),
            Some(tier) => match of_tier(&tier.name) {
                Some(own) => (own, Fraction::ONE),
                // A multiple of our price is the same multiple of the vendor's.
                None if tier.multiplier != Fraction::ONE => (base, tier.multiplier),
                None => return None,
            },
        };
        let mut price = Price::of_model(&self.name, self.billing_unit, "", "");
        price.faces = self.billing_unit.complete(faces);
        price.multiplier = rate.times(times)?;
        Some(price)
    }

    /// The faces that are bought dearer than they are sold to somebody, by route: what `check`
    /// warns of.
    pub fn below_cost(&self, multipliers: &[Fraction], at_ms: i64) -> Vec<(&str, Vec<&'static str>)> {
        let Some(least) = multipliers.iter().copied().reduce(|a, b| if less(b, a) { b } else { a }) else {
            return Vec::new();
        };
        let book = self.book_at(at_ms);
        let sold = [Some(&book.standard), book.paid.as_ref()];
        let of = |route: &'_ crate::Route| {
            let cost = self.cost_price(&route.provider, &route.upstream_model, None, at_ms)?;
            let below = sold.into_iter().flatten().flat_map(|faces| faces.iter()).filter(|(face, micro)| {
                let bought = cost.faces.get(*face).map(|own| scaled(own, cost.multiplier, least));
                bought.is_some_and(|bought| scaled(*micro, least, cost.multiplier) < bought)
            });
            let mut names: Vec<&'static str> = below.map(|(face, _)| face.name()).collect();
            names.dedup();
            (!names.is_empty()).then_some(names)
        };
        self.routes.iter().filter_map(|route| Some((route.provider.as_str(), of(route)?))).collect()
    }
}

/// A price times its multiplier, over the denominators of both.
fn scaled(micro: u64, own: Fraction, other: Fraction) -> u128 {
    u128::from(micro) * u128::from(own.numerator()) * u128::from(other.denominator())
}

fn less(a: Fraction, b: Fraction) -> bool {
    scaled(1, a, b) < scaled(1, b, a)
}
