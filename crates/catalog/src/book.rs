//! The book of a model: base prices, prices of paying accounts, tiers, and every price that can come out of
//! them, built ahead so that pricing a call is a look-up and a pointer clone.

use std::fmt;
use std::sync::Arc;

use crate::bound;
use crate::{BillingUnit, Condition, Faces, Fraction, Price};

/// Prices as the catalog writes them.
#[derive(Clone, Debug, Default)]
pub struct Book {
    pub standard: Faces,
    /// For accounts that have topped up; `None` = the same.
    pub paid: Option<Faces>,
    pub tiers: Vec<Tier>,
    pub(crate) built: Vec<GroupPrices>,
}

/// Other prices under conditions; the first tier whose conditions all hold applies.
#[derive(Clone, Debug)]
pub struct Tier {
    pub name: String,
    pub standard: Faces,
    pub paid: Option<Faces>,
    /// On top of the group's multiplier; 1 unless the tier is written as a multiple of the base prices.
    pub multiplier: Fraction,
    pub when: Vec<Condition>,
}

/// What a price may depend on: the facts of one call, all known before anything is sent.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// When the call was admitted, milliseconds since 1970. Stays the same until it is settled.
    pub at_ms: i64,
    /// Input tokens: estimated at the hold, reported at settlement.
    pub context_len: u64,
    /// The most input tokens a provider could report for this call; `u64::MAX` when nothing bounds it.
    pub context_max: u64,
    /// The effective parameters of the call by path, such as `service_tier` or `metadata.mode`.
    pub attr: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the account has ever topped up.
    pub topped_up: bool,
    /// The group the call is billed in.
    pub group: &'a str,
}

impl Facts<'static> {
    /// A call in the default group of an account on trial credit, of unknown length, without parameters.
    pub fn at(at_ms: i64) -> Facts<'static> {
        Facts {
            at_ms,
            context_len: 0,
            context_max: u64::MAX,
            attr: &|_| None,
            topped_up: false,
            group: crate::Group::DEFAULT,
        }
    }
}

/// Why a model has no price for a call. Always a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPrice {
    /// The model is not sold to that group.
    NotInGroup,
    /// The time of the call is outside the calendar.
    BadTime,
    /// An upper bound over several tiers does not fit into a price.
    Overflow,
}

impl fmt::Display for NoPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoPrice::NotInGroup => "the model is not offered to this group",
            NoPrice::BadTime => "the time of the call is outside the calendar",
            NoPrice::Overflow => "the price is too large",
        })
    }
}

impl std::error::Error for NoPrice {}

/// The finished prices of one group: base first, then one per tier in the book's order.
#[derive(Clone, Debug)]
pub(crate) struct GroupPrices {
    pub(crate) group: String,
    pub(crate) base: Pair,
    pub(crate) tiers: Vec<Pair>,
}

#[derive(Clone, Debug)]
pub(crate) struct Pair {
    standard: Arc<Price>,
    paid: Arc<Price>,
}

impl Pair {
    fn of(&self, topped_up: bool) -> &Arc<Price> {
        if topped_up { &self.paid } else { &self.standard }
    }
}

impl Book {
    /// Builds the prices of every group the model is sold to. `None` when multipliers do not fit.
    pub(crate) fn build(
        &mut self,
        model: &str,
        unit: BillingUnit,
        version: &str,
        groups: &[(&str, Fraction)],
    ) -> Option<()> {
        let mut built = Vec::with_capacity(groups.len());
        for (group, multiplier) in groups {
            let pair = |tier: Option<&Tier>| {
                let (standard, paid, own) = match tier {
                    Some(tier) => (tier.standard, tier.paid, tier.multiplier),
                    None => (self.standard, self.paid, Fraction::ONE),
                };
                let mut price = Price::of_model(model, unit, version, group);
                price.tier = tier.map(|tier| tier.name.clone());
                price.multiplier = multiplier.times(own)?;
                price.faces = unit.complete(&standard);
                let paid = paid.map(|faces| {
                    let mut price = price.clone();
                    price.paid = true;
                    price.faces = unit.complete(&faces);
                    price
                });
                let standard = Arc::new(price.identified());
                let paid = paid.map_or_else(|| Arc::clone(&standard), |price| Arc::new(price.identified()));
                Some(Pair { standard, paid })
            };
            built.push(GroupPrices {
                group: (*group).to_owned(),
                base: pair(None)?,
                tiers: self.tiers.iter().map(|tier| pair(Some(tier))).collect::<Option<_>>()?,
            });
        }
        self.built = built;
        Some(())
    }

    /// The base prices as written, for accounts that have or have not topped up.
    pub fn written(&self, topped_up: bool) -> &Faces {
        match &self.paid {
            Some(paid) if topped_up => paid,
            _ => &self.standard,
        }
    }

    fn group(&self, name: &str) -> Result<&GroupPrices, NoPrice> {
        self.built.iter().find(|built| built.group == name).ok_or(NoPrice::NotInGroup)
    }

    /// The price of a call with these facts.
    pub fn price(&self, facts: &Facts<'_>) -> Result<Arc<Price>, NoPrice> {
        let group = self.group(facts.group)?;
        for (tier, pair) in self.tiers.iter().zip(&group.tiers) {
            if tier.applies(facts, facts.context_len)? {
                return Ok(Arc::clone(pair.of(facts.topped_up)));
            }
        }
        Ok(Arc::clone(group.base.of(facts.topped_up)))
    }

    /// Every price that can still apply once the true input length is known; all else is settled by the facts.
    pub(crate) fn can_apply(&self, facts: &Facts<'_>) -> Result<Vec<&Arc<Price>>, NoPrice> {
        let group = self.group(facts.group)?;
        let most = facts.context_max.max(facts.context_len);
        let mut prices = Vec::new();
        for (tier, pair) in self.tiers.iter().zip(&group.tiers) {
            if tier.applies(facts, most)? {
                prices.push(pair.of(facts.topped_up));
                if tier.applies(facts, 0)? {
                    // It applies whatever the length: nothing after it can.
                    return Ok(prices);
                }
            }
        }
        prices.push(group.base.of(facts.topped_up));
        Ok(prices)
    }

    /// A price that no price that can still apply is above, face by face.
    pub fn dearest(&self, facts: &Facts<'_>) -> Result<Arc<Price>, NoPrice> {
        bound::dearest(&self.can_apply(facts)?).ok_or(NoPrice::Overflow)
    }
}

impl Tier {
    fn applies(&self, facts: &Facts<'_>, context_len: u64) -> Result<bool, NoPrice> {
        for condition in &self.when {
            if !condition.holds(facts, context_len)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
