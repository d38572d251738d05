//! What the tiers of a model's price go by, held to what a request of its kind can say: a tier that
//! never applies is a misspelt one, and what it is for would be sold at the base price.

use tollgate_catalog::form::did_you_mean;
use tollgate_catalog::{Condition, Model};

/// One fact about a request of some kind, and the values that it can have for one model.
pub struct TierFact<'m> {
    pub name: &'static str,
    pub values: FactValues<'m>,
}

pub enum FactValues<'m> {
    Any,
    OneOf(Vec<&'m str>),
    /// Whole numbers from the least to the most.
    Whole(u64, u64),
}

impl<'m> TierFact<'m> {
    pub fn any(name: &'static str) -> TierFact<'m> {
        TierFact { name, values: FactValues::Any }
    }

    pub fn one_of(name: &'static str, values: Vec<&'m str>) -> TierFact<'m> {
        TierFact { name, values: FactValues::OneOf(values) }
    }

    /// Whether something is asked for, where it can be.
    pub fn flag(name: &'static str, possible: bool) -> TierFact<'m> {
        TierFact::one_of(name, if possible { vec!["true", "false"] } else { vec!["false"] })
    }

    /// Why it is never this value.
    fn never(&self, value: &str) -> Option<String> {
        let possible = match &self.values {
            FactValues::Any => return None,
            FactValues::OneOf(list) if list.contains(&value) => return None,
            FactValues::OneOf(list) => list.join(", "),
            FactValues::Whole(least, most) => {
                let number = value.parse::<u64>().ok().filter(|number| number.to_string() == value);
                if number.is_some_and(|number| (*least..=*most).contains(&number)) {
                    return None;
                }
                format!("whole numbers from {least} to {most}")
            }
        };
        Some(format!("`{}` is never {value:?} here; it can be {possible}", self.name))
    }
}

/// What is wrong with the tiers of a model of this kind. `sized`: its requests have a
/// `context_len`.
pub fn wrong_tiers(model: &Model, endpoint_type: &str, facts: &[TierFact<'_>], sized: bool) -> Vec<String> {
    if model.supported_endpoint_types.iter().any(|name| name != endpoint_type) {
        // Requests of its other kinds have facts of their own.
        return Vec::new();
    }
    let names = || facts.iter().map(|fact| fact.name);
    let conditions = model.books().flat_map(|book| &book.tiers).flat_map(|tier| &tier.when);
    let wrong = |condition: &Condition| match condition {
        Condition::ContextOver(_) if !sized => {
            Some("a price of this kind of model cannot depend on `context_len`: its requests have none".to_owned())
        }
        // The catalog itself knows by which endpoints its models are asked.
        Condition::Attribute { path, .. } if path == Condition::ENDPOINT => None,
        Condition::Attribute { path, equals } => match facts.iter().find(|fact| fact.name == path) {
            Some(fact) => fact.never(equals),
            None => {
                let (hint, names) = (did_you_mean(path, names()), names().collect::<Vec<_>>().join(", "));
                Some(format!("a price cannot depend on {path:?}{hint}; it can on {names}"))
            }
        },
        Condition::ContextOver(_) | Condition::WallClock { .. } => None,
    };
    conditions.filter_map(wrong).collect()
}
