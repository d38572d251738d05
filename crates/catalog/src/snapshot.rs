//! All that is on sale at one moment: read once, checked as a whole, never changed, replaced as a whole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::load::Kept;
use crate::social::Social;
use crate::{Book, Faces, Fraction, Model, Tier};

/// A checked catalog.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub models: BTreeMap<String, Arc<Model>>,
    /// Social data; each cell is sold as a model that is not in `models`.
    pub social: Social,
    /// Hash of the effective price set: the same for the same prices however the files are arranged.
    pub pricing_version: String,
    pub groups: BTreeMap<String, Group>,
    /// The order in which an account's groups are tried.
    pub auto_groups: Vec<String>,
    /// The same models for look-ups by calls: quick however many there are.
    pub(crate) by_name: HashMap<String, Arc<Model>>,
    /// What the next reading needs to know of this one (see [`crate::load_again`]).
    pub(crate) kept: HashMap<String, Kept>,
}

/// A group of accounts with its price multiplier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub multiplier: Fraction,
    pub description: String,
}

impl Group {
    /// The group every account is in, at multiplier 1 unless the catalog says otherwise.
    pub const DEFAULT: &'static str = "default";
}

impl Snapshot {
    /// Whether somebody without money could buy something: it is on sale for nothing.
    pub fn gives_away(&self) -> bool {
        let free = |faces: &Faces| faces.iter().all(|(_, price)| price == 0);
        let book = |book: &Book| {
            let tier = |tier: &Tier| {
                tier.multiplier.numerator() == 0 || free(&tier.standard) || tier.paid.as_ref().is_some_and(free)
            };
            free(&book.standard) || book.paid.as_ref().is_some_and(free) || book.tiers.iter().any(tier)
        };
        self.groups.values().any(|group| group.multiplier.numerator() == 0)
            || self.models.values().any(|model| book(&model.book))
    }

    pub fn model(&self, name: &str) -> Option<&Arc<Model>> {
        self.by_name.get(name)
    }

    /// Every provider a route leads to, once, in alphabetical order.
    pub fn providers(&self) -> Vec<&str> {
        let sold = self.models.values().chain(self.social.cells().map(|cell| &cell.model));
        let mut names: Vec<&str> = sold.flat_map(|model| &model.routes).map(|route| route.provider.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
