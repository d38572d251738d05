//! The book of a model: base prices, prices of paying accounts, tiers, and every price that can
//! come out of them, each made once, so that pricing a call is a look-up and a pointer clone.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::bound;
use crate::timeline::Periods;
use crate::{BillingUnit, Condition, Faces, Fraction, Price};

/// Prices as the catalog writes them.
#[derive(Clone, Debug, Default)]
pub struct Book {
    pub standard: Faces,
    /// For accounts that have topped up; `None` = the same.
    pub paid: Option<Faces>,
    pub tiers: Vec<Tier>,
    common: Option<Common>,
    open: Vec<GroupPrices>,
}

/// Other prices under conditions; the first tier whose conditions all hold applies.
#[derive(Clone, Debug)]
pub struct Tier {
    pub name: String,
    pub standard: Faces,
    pub paid: Option<Faces>,
    /// On top of the group's multiplier; 1 unless the tier is written as a multiple of the base
    /// prices.
    pub multiplier: Fraction,
    pub when: Vec<Condition>,
}

/// What a price may depend on: the facts of one call, all known before anything is sent.
#[derive(Clone, Copy)]
pub struct PriceFacts<'a> {
    /// When the call was admitted, milliseconds since 1970. Stays the same until it is settled.
    pub at_ms: i64,
    /// Input tokens: estimated at the hold, reported at settlement.
    pub context_len: u64,
    /// The most input tokens a provider could report for this call; `u64::MAX` when nothing bounds
    /// it.
    pub context_max: u64,
    /// The effective parameters of the call by path, such as `service_tier` or `metadata.mode`.
    pub attr: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the account has ever topped up.
    pub topped_up: bool,
    /// The group the call is billed in.
    pub group: &'a str,
}

impl PriceFacts<'static> {
    /// A call in the default group of an account on trial credit, of unknown length, without
    /// parameters.
    pub fn at(at_ms: i64) -> PriceFacts<'static> {
        PriceFacts {
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

/// The prices of one group: base first, then one per tier in the book's order. Each is made when it
/// is first asked for: a large catalog has some hundred thousand, and most are never used before
/// the next catalog.
#[derive(Clone, Debug)]
struct GroupPrices {
    group: String,
    multiplier: Fraction,
    made: Vec<Pair>,
    /// The same for each later period of the catalog: a price names the version of its time.
    later: Vec<OnceLock<Vec<Pair>>>,
}

impl GroupPrices {
    fn pairs(&self, period: usize) -> Option<&[Pair]> {
        match period.checked_sub(1) {
            None => Some(&self.made),
            Some(at) => self.later.get(at).map(|pairs| &**pairs.get_or_init(|| vec![Pair::default(); self.made.len()])),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Pair {
    standard: OnceLock<Arc<Price>>,
    paid: OnceLock<Arc<Price>>,
}

/// What the prices of a model have in common.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) model: Arc<str>,
    pub(crate) unit: BillingUnit,
    pub(crate) periods: Arc<Periods>,
}

impl Book {
    pub(crate) fn written_as(standard: Faces, paid: Option<Faces>, tiers: Vec<Tier>) -> Book {
        Book { standard, paid, tiers, ..Book::default() }
    }

    /// Opens the book for every group the model is sold to. `None` when multipliers do not fit.
    pub(crate) fn open(&mut self, common: Common, groups: &[(&str, Fraction)]) -> Option<()> {
        let mut open = Vec::with_capacity(groups.len());
        for (group, multiplier) in groups {
            for tier in &self.tiers {
                multiplier.times(tier.multiplier)?;
            }
            let made = vec![Pair::default(); self.tiers.len() + 1];
            let later = vec![OnceLock::new(); common.periods.later.len()];
            open.push(GroupPrices { group: (*group).to_owned(), multiplier: *multiplier, made, later });
        }
        self.common = Some(common);
        self.open = open;
        Some(())
    }

    /// The base price (no tier) or a tier's, for one group and kind of account.
    fn made<'b>(
        &'b self,
        group: &'b GroupPrices,
        at: Option<usize>,
        facts: &PriceFacts<'_>,
    ) -> Result<&'b Arc<Price>, NoPrice> {
        let topped_up = facts.topped_up;
        let common = self.common.as_ref().ok_or(NoPrice::NotInGroup)?;
        let period = common.periods.at(facts.at_ms);
        let tier = at.and_then(|at| self.tiers.get(at));
        let (standard, paid, own) = match tier {
            Some(tier) => (&tier.standard, tier.paid.as_ref(), tier.multiplier),
            None => (&self.standard, self.paid.as_ref(), Fraction::ONE),
        };
        let pairs = group.pairs(period).ok_or(NoPrice::NotInGroup)?;
        let pair = pairs.get(at.map_or(0, |at| at + 1)).ok_or(NoPrice::NotInGroup)?;
        let (slot, faces, is_paid) = match paid {
            Some(paid) if topped_up => (&pair.paid, paid, true),
            _ => (&pair.standard, standard, false),
        };
        if let Some(price) = slot.get() {
            return Ok(price);
        }
        let mut price = Price::of_model(&common.model, common.unit, common.periods.version(period), &group.group);
        price.tier = tier.map(|tier| tier.name.clone());
        price.when = tier.map_or_else(Vec::new, |tier| tier.when.iter().map(Condition::record).collect());
        price.multiplier = group.multiplier.times(own).ok_or(NoPrice::Overflow)?;
        price.faces = common.unit.complete(faces);
        price.paid = is_paid;
        Ok(slot.get_or_init(|| Arc::new(price.identified())))
    }

    /// The base prices as written, for accounts that have or have not topped up.
    pub fn written(&self, topped_up: bool) -> &Faces {
        match &self.paid {
            Some(paid) if topped_up => paid,
            _ => &self.standard,
        }
    }

    fn group(&self, name: &str) -> Result<&GroupPrices, NoPrice> {
        self.open.iter().find(|open| open.group == name).ok_or(NoPrice::NotInGroup)
    }

    /// The price of a call with these facts.
    pub fn price(&self, facts: &PriceFacts<'_>) -> Result<Arc<Price>, NoPrice> {
        let group = self.group(facts.group)?;
        for (at, tier) in self.tiers.iter().enumerate() {
            if tier.applies(facts, facts.context_len)? {
                return self.made(group, Some(at), facts).cloned();
            }
        }
        self.made(group, None, facts).cloned()
    }

    /// Every price that can still apply once the true input length is known; all else is settled by
    /// the facts.
    pub(crate) fn can_apply(&self, facts: &PriceFacts<'_>) -> Result<Vec<&Arc<Price>>, NoPrice> {
        let group = self.group(facts.group)?;
        let most = facts.context_max.max(facts.context_len);
        let mut prices = Vec::new();
        for (at, tier) in self.tiers.iter().enumerate() {
            if tier.applies(facts, most)? {
                prices.push(self.made(group, Some(at), facts)?);
                if !tier.depends_on_length() {
                    // It applies whatever the length: nothing after it can.
                    return Ok(prices);
                }
            }
        }
        prices.push(self.made(group, None, facts)?);
        Ok(prices)
    }

    /// A price that no price that can still apply is above, face by face.
    pub fn dearest(&self, facts: &PriceFacts<'_>) -> Result<Arc<Price>, NoPrice> {
        bound::dearest(&self.can_apply(facts)?).ok_or(NoPrice::Overflow)
    }
}

impl Tier {
    fn applies(&self, facts: &PriceFacts<'_>, context_len: u64) -> Result<bool, NoPrice> {
        // What is cheap to ask first; all must hold, so the order makes no difference.
        for dear in [false, true] {
            for condition in self.when.iter().filter(|condition| condition.is_dear() == dear) {
                if !condition.holds(facts, context_len)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn depends_on_length(&self) -> bool {
        self.when.iter().any(|condition| matches!(condition, Condition::ContextOver(_)))
    }
}
