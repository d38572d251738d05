//! What the catalog says of a model that makes videos, besides prices: by which rules its requests
//! are read, and which values of their parameters are on sale. Which rules and parameters there are
//! is not known here; whoever knows them checks it.

use std::collections::BTreeMap;

use crate::{Book, Condition, LineInFile, Model};

/// The `video` table of a model.
#[derive(Clone, Debug)]
pub struct VideoTable {
    /// The name of the rules.
    pub variant: String,
    /// Values on sale by parameter, where they are not the rules' own list.
    pub sold: BTreeMap<String, Vec<String>>,
    /// Parameters whose values cost the same on purpose.
    pub one_price: Vec<String>,
    /// Tier and ratio go to the provider beside a size that is sent as it was written.
    pub tier_beside_size: bool,
    /// Where it is written, for messages.
    pub place: LineInFile,
}

impl Model {
    /// The parameters of a request that tiers of any time go by, each with the values they ask for.
    pub fn tier_parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        let conditions = self.books().flat_map(|book| &book.tiers).flat_map(|tier| &tier.when);
        conditions.filter_map(|condition| condition.parameter().map(|(path, equals)| (plain(path), equals)))
    }
}

impl Book {
    /// The values of a request's parameter that have a tier of their own; every other one is sold
    /// at the base price.
    pub fn tiers_by<'m>(&'m self, parameter: &'m str) -> impl Iterator<Item = &'m str> {
        let conditions = self.tiers.iter().flat_map(|tier| &tier.when);
        conditions.filter_map(move |condition| match condition {
            Condition::Attribute { path, equals } if plain(path) == parameter => Some(equals.as_str()),
            _ => None,
        })
    }
}

/// `metadata.mode` and `mode` are the same parameter.
pub(crate) fn plain(path: &str) -> &str {
    path.strip_prefix("metadata.").unwrap_or(path)
}
