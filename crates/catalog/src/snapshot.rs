//! All that is on sale at one moment: read once, checked as a whole, never changed, replaced as a
//! whole.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::form::did_you_mean;
use crate::load::LoadedPage;
use crate::social::Social;
use crate::timeline::Periods;
use crate::{Book, Faces, Fraction, Model, Tier, Vendor};

/// A checked catalog.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub models: BTreeMap<String, Arc<Model>>,
    /// Social data; each cell is sold as a model that is not in `models`.
    pub social: Social,
    pub groups: BTreeMap<String, Group>,
    /// Who makes models, by the name that models use.
    pub vendors: BTreeMap<String, Vendor>,
    /// The order in which an account's groups are tried. Each group is named once.
    pub auto_groups: Vec<String>,
    /// The same models for look-ups by calls: quick however many there are.
    pub(crate) by_name: foldhash::HashMap<String, Arc<Model>>,
    /// When prices change, and the version of all of them in between.
    pub(crate) periods: Arc<Periods>,
    /// What the next reading needs to know of this one (see [`crate::load_again`]).
    pub(crate) loaded: HashMap<String, LoadedPage>,
}

/// A group of accounts with its price multiplier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub multiplier: Fraction,
    pub description: String,
    /// Its models and prices are shown to everybody. Those of a closed group are for the accounts
    /// in it.
    pub public: bool,
}

impl Group {
    /// The group of accounts that were put into no other. There always is one.
    pub const DEFAULT: &'static str = "default";

    /// A group of which nothing is said but its name: at multiplier 1, and closed unless it is the
    /// default one.
    pub(crate) fn plain(name: &str) -> Group {
        Group { multiplier: Fraction::ONE, description: String::new(), public: name == Group::DEFAULT }
    }
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
            || self.models.values().any(|model| model.books().any(book))
    }

    pub fn model(&self, name: &str) -> Option<&Arc<Model>> {
        self.by_name.get(name)
    }

    /// The given groups in the order they are tried. A group that the catalog does not have sells
    /// nothing, and is left out.
    pub fn in_order<'a, 'g>(&'a self, own: &'g [String]) -> impl Iterator<Item = &'a str> + use<'a, 'g> {
        self.auto_groups.iter().filter(|group| own.contains(group)).map(String::as_str)
    }

    /// The groups that everybody may know of, in the order they are tried.
    pub fn public_groups(&self) -> Vec<&str> {
        let public = |name: &&String| self.groups.get(*name).is_some_and(|group| group.public);
        self.auto_groups.iter().filter(public).map(String::as_str).collect()
    }

    /// Why an account cannot be in these groups, if it cannot.
    pub fn unknown_group(&self, own: &[String]) -> Option<String> {
        let name = own.iter().find(|name| !self.groups.contains_key(*name))?;
        let hint = did_you_mean(name, self.groups.keys().map(String::as_str));
        Some(format!("no group is called {name:?}{hint}"))
    }

    /// Why a key cannot be for these models (or cells of social data), if it cannot.
    pub fn unknown_model(&self, names: &[String]) -> Option<String> {
        let name = names.iter().find(|name| self.model(name).is_none())?;
        let hint = did_you_mean(name, self.by_name.keys().map(String::as_str));
        Some(format!("no model is called {name:?}{hint}"))
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
