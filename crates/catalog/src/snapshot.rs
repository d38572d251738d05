//! All that is on sale at one moment: read once, checked as a whole, never changed, replaced as a whole.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::social::Social;
use crate::{Faces, Fraction, Model, Tier};

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

/// The version of a price set: a hash over what a call can be charged, and nothing else.
pub(crate) fn pricing_version<'a>(models: impl Iterator<Item = &'a Model>, groups: &BTreeMap<String, Group>) -> String {
    let mut lines: Vec<String> = models.map(|model| price_text(model, groups)).collect();
    lines.sort_unstable();
    let mut hash = Sha256::new();
    for line in lines {
        hash.update(line);
        hash.update("\n");
    }
    let digest = hash.finalize();
    digest[..8].iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The effective prices of a model as one canonical text: defaults filled in, order of no meaning removed.
fn price_text(model: &Model, groups: &BTreeMap<String, Group>) -> String {
    let mut text = format!("{:?} {}", model.name, model.billing_unit.name());
    let mut sold: Vec<String> = model
        .enable_groups
        .iter()
        .filter_map(|name| Some(format!("{name:?}={}", groups.get(name)?.multiplier)))
        .collect();
    sold.sort_unstable();
    let _ = write!(text, " groups[{}]", sold.join(" "));
    let book = &model.book;
    write_pair(&mut text, &book.standard, book.paid.as_ref());
    for tier in &book.tiers {
        let _ = write!(text, " tier {}", conditions_text(tier));
        let _ = write!(text, " x{}", tier.multiplier);
        write_pair(&mut text, &tier.standard, tier.paid.as_ref());
    }
    text
}

fn write_pair(text: &mut String, standard: &Faces, paid: Option<&Faces>) {
    for faces in [standard, paid.unwrap_or(standard)] {
        text.push('{');
        for (face, price) in faces.completed().iter() {
            let _ = write!(text, " {}={price}", face.name());
        }
        text.push('}');
    }
}

fn conditions_text(tier: &Tier) -> String {
    let mut when: Vec<String> = tier.when.iter().map(|condition| condition.record().to_string()).collect();
    when.sort_unstable();
    when.join("&")
}
