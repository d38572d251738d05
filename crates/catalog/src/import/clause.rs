//! Which names a model answers to in a price list that says so by rules.

use super::json::PriceNode;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Clause {
    Equals(String),
    StartsWith(String),
    EndsWith(String),
    Contains(String),
    Any(Vec<Clause>),
    All(Vec<Clause>),
    /// A rule that is not understood matches nothing.
    Never,
}

impl Clause {
    pub(super) fn read(node: &PriceNode) -> Clause {
        let Some((word, value)) = node.map().next() else { return Clause::Never };
        let text = || match value {
            PriceNode::Text(text) => text.clone(),
            _ => String::new(),
        };
        let list = || value.list().iter().map(Clause::read).collect();
        match word {
            "equals" => Clause::Equals(text()),
            "starts_with" => Clause::StartsWith(text()),
            "ends_with" => Clause::EndsWith(text()),
            "contains" => Clause::Contains(text()),
            "or" => Clause::Any(list()),
            "and" => Clause::All(list()),
            _ => Clause::Never,
        }
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Clause::Equals(text) => name == text,
            Clause::StartsWith(text) => name.starts_with(text.as_str()),
            Clause::EndsWith(text) => name.ends_with(text.as_str()),
            Clause::Contains(text) => name.contains(text.as_str()),
            Clause::Any(clauses) => clauses.iter().any(|clause| clause.matches(name)),
            Clause::All(clauses) => clauses.iter().all(|clause| clause.matches(name)),
            Clause::Never => false,
        }
    }
}
