//! Which prices a new catalog changes, in plain words and as data. Two catalogs of one
//! `pricing_version` differ in nothing here; two of different versions always in something.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::decimal::Decimal;
use crate::version::plain_fingerprint;
use crate::words::{self, percent};
use crate::{Face, Faces, Fraction, Group, Model, Snapshot, Tier, instant};

/// One thing that another catalog makes different for a customer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PriceChange {
    pub what: PriceChangeKind,
    /// From when on, where it is not from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub face: Option<Face>,
    /// The price of accounts that have topped up.
    #[serde(rename = "paid_prices", skip_serializing_if = "std::ops::Not::not")]
    pub paid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_pct: Option<Decimal>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceChangeKind {
    ModelAdded,
    ModelRemoved,
    /// What the model is billed by.
    BillingUnit,
    SoldTo,
    NoLongerSoldTo,
    GroupMultiplier,
    #[default]
    Price,
    TierAdded,
    TierRemoved,
    TierConditions,
    TierMultiplier,
    TierOrder,
    /// From an instant on nothing differs any more.
    SameAgain,
}

/// What `new` changes, by model in alphabetical order, groups first.
pub fn diff(old: &Snapshot, new: &Snapshot) -> Vec<PriceChange> {
    let mut changes = Vec::new();
    if old.periods.versions() == new.periods.versions() {
        return changes;
    }
    let (olds, news) = (sold(old), sold(new));
    groups(old, new, &olds, &news, &mut changes);
    for name in olds.keys().chain(news.keys()).collect::<BTreeSet<_>>() {
        match (olds.get(name), news.get(name)) {
            (Some(old), Some(new)) => timeline(old, new, &mut changes),
            (Some(old), None) => changes.push(PriceChange {
                old: Some(words::faces(&old.book.standard)),
                ..PriceChange::of(old, PriceChangeKind::ModelRemoved)
            }),
            (None, Some(new)) => changes.push(PriceChange {
                new: Some(words::faces(&new.book.standard)),
                ..PriceChange::of(new, PriceChangeKind::ModelAdded)
            }),
            _ => {}
        }
    }
    changes
}

/// All that has a price: models and social cells.
fn sold(catalog: &Snapshot) -> BTreeMap<&str, &Model> {
    let cells = catalog.social.cells().map(|cell| &cell.model);
    catalog.models.values().chain(cells).map(|model: &Arc<Model>| (model.name.as_str(), &**model)).collect()
}

fn groups(
    old: &Snapshot,
    new: &Snapshot,
    olds: &BTreeMap<&str, &Model>,
    news: &BTreeMap<&str, &Model>,
    changes: &mut Vec<PriceChange>,
) {
    let multiplier = |catalog: &Snapshot, name: &str| catalog.groups.get(name).map(|group: &Group| group.multiplier);
    for name in old.groups.keys().filter(|name| new.groups.contains_key(*name)) {
        let buys = |models: &BTreeMap<&str, &Model>| models.values().any(|model| model.enable_groups.contains(name));
        let (before, after) = (multiplier(old, name), multiplier(new, name));
        if let (Some(before), Some(after), true) = (before, after, before != after && buys(olds) && buys(news)) {
            changes.push(PriceChange {
                what: PriceChangeKind::GroupMultiplier,
                group: Some(name.clone()),
                ..PriceChange::default().between(before, after)
            });
        }
    }
}

/// What differs at first, and at each instant from which on something else does.
fn timeline(old: &Model, new: &Model, changes: &mut Vec<PriceChange>) {
    let mut before = Vec::new();
    if plain_fingerprint(old) != plain_fingerprint(new) {
        model(old, new, &mut before);
    }
    changes.extend(before.iter().cloned());
    let froms: BTreeSet<i64> = old.changes.iter().chain(&new.changes).map(|change| change.from_ms).collect();
    for from in froms {
        let [was, is] = [old, new].map(|model| model.as_of(from));
        let mut differs = Vec::new();
        if plain_fingerprint(&was) != plain_fingerprint(&is) {
            model(&was, &is, &mut differs);
        }
        if differs != before {
            let dated = |change: &PriceChange| PriceChange { from: Some(instant(from)), ..change.clone() };
            changes.extend(differs.iter().map(dated));
            if differs.is_empty() {
                changes.push(dated(&PriceChange::of(new, PriceChangeKind::SameAgain)));
            }
            before = differs;
        }
    }
}

impl Model {
    /// As it is sold at an instant, as if that were for ever.
    fn as_of(&self, at_ms: i64) -> Model {
        Model { book: self.book_at(at_ms).clone(), changes: Vec::new(), ..self.clone() }
    }
}

fn model(old: &Model, new: &Model, changes: &mut Vec<PriceChange>) {
    if old.billing_unit != new.billing_unit {
        let [before, after] = [old, new].map(|model| Some(model.billing_unit.name().to_owned()));
        changes.push(PriceChange { old: before, new: after, ..PriceChange::of(new, PriceChangeKind::BillingUnit) });
    }
    for (from, to, what) in [(old, new, PriceChangeKind::NoLongerSoldTo), (new, old, PriceChangeKind::SoldTo)] {
        for group in from.enable_groups.iter().filter(|group| !to.enable_groups.contains(group)) {
            changes.push(PriceChange { group: Some(group.clone()), ..PriceChange::of(new, what) });
        }
    }
    let (before, after) = (Prices::base(old), Prices::base(new));
    before.compare(&after, &PriceChange::of(new, PriceChangeKind::Price), changes);
    tiers(old, new, changes);
}

fn tiers(old: &Model, new: &Model, changes: &mut Vec<PriceChange>) {
    let find = |model: &'_ Model, name: &str| model.book.tiers.iter().find(|tier| tier.name == name).cloned();
    for tier in old.book.tiers.iter().filter(|tier| find(new, &tier.name).is_none()) {
        let was = Some(format!("when {}: {}", words::conditions(&tier.when), words::tier(tier)));
        changes.push(PriceChange {
            tier: Some(tier.name.clone()),
            old: was,
            ..PriceChange::of(new, PriceChangeKind::TierRemoved)
        });
    }
    let mut common: Vec<&str> = Vec::new();
    for tier in &new.book.tiers {
        let change = |what| PriceChange { tier: Some(tier.name.clone()), ..PriceChange::of(new, what) };
        let Some(before) = find(old, &tier.name) else {
            let is = Some(format!("when {}: {}", words::conditions(&tier.when), words::tier(tier)));
            changes.push(PriceChange { new: is, ..change(PriceChangeKind::TierAdded) });
            continue;
        };
        common.push(&tier.name);
        if conditions(&before) != conditions(tier) {
            let [was, is] = [&before, tier].map(|tier| words::conditions(&tier.when));
            changes.push(PriceChange { old: Some(was), new: Some(is), ..change(PriceChangeKind::TierConditions) });
        }
        let times = |tier: &Tier| tier.multiplier != Fraction::ONE;
        if times(&before) && times(tier) {
            // Its faces follow the base price, which has been listed.
            if before.multiplier != tier.multiplier {
                changes.push(change(PriceChangeKind::TierMultiplier).between(before.multiplier, tier.multiplier));
            }
        } else {
            let (before, after) = (Prices::of(old, &before), Prices::of(new, tier));
            before.compare(&after, &change(PriceChangeKind::Price), changes);
        }
    }
    let before: Vec<&str> =
        old.book.tiers.iter().map(|tier| tier.name.as_str()).filter(|name| common.contains(name)).collect();
    if before != common {
        let [was, is] = [before, common].map(|names| Some(names.join(", ")));
        changes.push(PriceChange { old: was, new: is, ..PriceChange::of(new, PriceChangeKind::TierOrder) });
    }
}

/// Conditions without their order.
fn conditions(tier: &Tier) -> BTreeSet<String> {
    tier.when.iter().map(|condition| condition.canonical()).collect()
}

/// What one set of prices comes to: written faces and effective ones, for both kinds of account.
struct Prices {
    written: [Faces; 2],
    effective: [Faces; 2],
    multiplier: Fraction,
    has_paid: bool,
}

impl Prices {
    fn base(model: &Model) -> Prices {
        Prices::made(model, &model.book.standard, model.book.paid.as_ref(), Fraction::ONE)
    }

    fn of(model: &Model, tier: &Tier) -> Prices {
        Prices::made(model, &tier.standard, tier.paid.as_ref(), tier.multiplier)
    }

    fn made(model: &Model, standard: &Faces, paid: Option<&Faces>, multiplier: Fraction) -> Prices {
        let written = [*standard, *paid.unwrap_or(standard)];
        let effective = written.map(|faces| model.billing_unit.complete(&faces));
        Prices { written, effective, multiplier, has_paid: paid.is_some() }
    }

    fn compare(&self, new: &Prices, change: &PriceChange, changes: &mut Vec<PriceChange>) {
        let pots = if self.has_paid || new.has_paid { 0..2 } else { 0..1 };
        for pot in pots {
            for face in Face::ALL {
                let named = self.written[pot].has(face) || new.written[pot].has(face);
                let [before, after] = [self, new].map(|prices| prices.amount(pot, face));
                let same = match (before, after) {
                    (Some((a, b)), Some((c, d))) => a * d == c * b,
                    (before, after) => before == after,
                };
                if named && !same {
                    let dollars =
                        |amount: Option<(u128, u128)>| amount.map(|(n, d)| Decimal::quotient(n, d * 1_000_000));
                    let change_pct = before.zip(after).and_then(|(before, after)| percent(before, after));
                    let [was, is] = [before, after].map(|amount| dollars(amount).map(|usd| usd.to_string()));
                    let face = Some(face);
                    changes.push(PriceChange { face, paid: pot == 1, old: was, new: is, change_pct, ..change.clone() });
                }
            }
        }
    }

    /// Micro-USD as a fraction.
    fn amount(&self, pot: usize, face: Face) -> Option<(u128, u128)> {
        let micro = self.effective[pot].get(face)?;
        let multiplier = self.multiplier;
        Some((u128::from(micro) * u128::from(multiplier.numerator()), u128::from(multiplier.denominator())))
    }
}

impl PriceChange {
    /// Whether something becomes dearer, or cheaper; `None`: neither can be said.
    pub fn rises(&self) -> Option<bool> {
        match (&self.change_pct, self.what, &self.old, &self.new) {
            (Some(percent), ..) if !percent.is_zero() => Some(!percent.is_negative()),
            (None, PriceChangeKind::Price, None, Some(_)) => Some(true),
            (None, PriceChangeKind::Price, Some(_), None) => Some(false),
            _ => None,
        }
    }

    fn of(model: &Model, what: PriceChangeKind) -> PriceChange {
        PriceChange { what, model: Some(model.name.clone()), ..PriceChange::default() }
    }

    fn between(self, old: Fraction, new: Fraction) -> PriceChange {
        let [before, after] = [old, new].map(|one| (u128::from(one.numerator()), u128::from(one.denominator())));
        let change_pct = percent(before, after);
        PriceChange { old: Some(old.to_string()), new: Some(new.to_string()), change_pct, ..self }
    }
}

/// One line: `input: 3 -> 3.3 USD per million tokens (+10 %)`. The model is said by whoever prints
/// it.
impl fmt::Display for PriceChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let old = self.old.as_deref().unwrap_or_default();
        let new = self.new.as_deref().unwrap_or_default();
        let group = self.group.as_deref().unwrap_or_default();
        let tier = self.tier.as_ref().map(|tier| format!("tier {tier}: ")).unwrap_or_default();
        if let Some(from) = &self.from {
            write!(f, "from {from}: ")?;
        }
        match self.what {
            PriceChangeKind::ModelAdded => write!(f, "new: {new}"),
            PriceChangeKind::ModelRemoved => write!(f, "no longer sold (was {old})"),
            PriceChangeKind::BillingUnit => write!(f, "billed by {new} instead of {old}"),
            PriceChangeKind::SoldTo => write!(f, "now sold to group {group}"),
            PriceChangeKind::NoLongerSoldTo => write!(f, "no longer sold to group {group}"),
            PriceChangeKind::GroupMultiplier => write!(f, "multiplier {old} -> {new}"),
            PriceChangeKind::Price => {
                let face = self.face.unwrap_or(Face::Input);
                let paid = if self.paid { " after a top-up" } else { "" };
                let per = words::per(face);
                write!(f, "{tier}{}{paid}: ", face.name())?;
                match (&self.old, &self.new) {
                    (None, _) => write!(f, "now {new} USD {per}"),
                    (_, None) => write!(f, "no longer charged (was {old} USD {per})"),
                    _ => write!(f, "{old} -> {new} USD {per}"),
                }
            }
            PriceChangeKind::TierAdded => write!(f, "{tier}new, {new}"),
            PriceChangeKind::TierRemoved => write!(f, "{tier}removed (was {old})"),
            PriceChangeKind::TierConditions => write!(f, "{tier}when {new} (was {old})"),
            PriceChangeKind::TierMultiplier => write!(f, "{tier}multiplier {old} -> {new}"),
            PriceChangeKind::TierOrder => write!(f, "tiers are tried in the order {new} (was {old})"),
            PriceChangeKind::SameAgain => f.write_str("the same prices again"),
        }?;
        match &self.change_pct {
            Some(percent) if percent.is_zero() => f.write_str(" (less than 0.01 %)"),
            Some(percent) => write!(f, " ({}{percent} %)", if percent.is_negative() { "" } else { "+" }),
            None => Ok(()),
        }
    }
}
