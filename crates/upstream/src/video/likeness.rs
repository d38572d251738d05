//! Whether an entry of a provider's list is the task whose creation was lost, where the provider
//! keeps no id of ours. Prompts are compared by whoever remembers ours, because it is not stored.
//! That an entry is something else counts as proof that ours was never made, so it is said only of
//! what cannot be ours: what merely differs in words, or tells too little, is not.

use super::Sought;
use super::read::{made_at, measure};
use serde_json::Value;
use std::fmt;

/// How far an entry is like what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It is surely something else: of another time, length, size or source.
    None,
    /// It tells another prompt or model, which providers may write in their own way.
    Otherwise,
    /// Something by which it would be known is not listed, or in a way that cannot be read.
    Unclear,
    /// All that the list tells of it fits; it does not tell the prompt.
    Outside,
    /// The prompt fits too.
    Whole,
}

/// An entry that may be the one sought.
#[derive(Clone, PartialEq, Eq)]
pub struct Alike {
    /// Empty where the list does not tell it.
    pub id: String,
    pub likeness: Likeness,
    /// As the list has it.
    pub entry: Value,
}

impl Alike {
    /// Unix seconds, where it tells them.
    pub fn made_at(&self) -> Option<i64> {
        made_at(&self.entry)
    }
}

/// Without the entry, which may tell a prompt.
impl fmt::Debug for Alike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.id, self.likeness)
    }
}

/// Knows a prompt again that was sent and not stored. Blanks around it do not count.
pub trait Remembers: Sync + fmt::Debug {
    /// `None`: that cannot be known any more.
    fn is_ours(&self, prompt: &str) -> Option<bool>;
}

/// What an entry tells, beside what was sent; of several things the worst counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Comparison {
    Same,
    /// Not listed, or in a way that cannot be read.
    Unclear,
    Other,
}

impl Comparison {
    /// Lengths, sizes, resolutions and ratios, in any spelling.
    pub fn measures(asked: &Value, listed: &Value) -> Comparison {
        match (measure(asked), measure(listed)) {
            (Some(asked), Some(listed)) if asked == listed => Comparison::Same,
            (Some(asked), Some(listed)) if asked.0 == listed.0 => Comparison::Other,
            _ => Comparison::Unclear,
        }
    }

    /// Names that providers give back as they were sent.
    pub fn names(asked: &str, listed: &Value) -> Comparison {
        match listed.as_str().filter(|listed| !listed.is_empty()) {
            Some(listed) if listed == asked => Comparison::Same,
            Some(_) => Comparison::Other,
            None => Comparison::Unclear,
        }
    }

    /// How far the entry is like ours; `same`: where nothing speaks against it.
    pub fn likeness(self, same: Likeness) -> Likeness {
        match (self, same) {
            (Comparison::Other, _) => Likeness::None,
            (Comparison::Unclear, Likeness::Outside | Likeness::Whole) => Likeness::Unclear,
            _ => same,
        }
    }
}

impl Sought<'_> {
    /// Whether an entry was made while ours was sent, and has these measures of it.
    pub(crate) fn compare(&self, entry: &Value, names: &[&str]) -> Comparison {
        let time = match made_at(entry) {
            Some(at) if (self.sent.0..=self.sent.1).contains(&at) => Comparison::Same,
            Some(_) => Comparison::Other,
            None => Comparison::Unclear,
        };
        let asked = |name: &str| self.body.get(name).unwrap_or(&Value::Null);
        names.iter().map(|name| Comparison::measures(asked(name), &entry[*name])).fold(time, Comparison::max)
    }

    /// Whether the prompt an entry tells is ours.
    pub(crate) fn by_prompt(&self, prompt: &Value) -> Likeness {
        let prompts = prompt.as_str().zip(self.prompt);
        match prompts.and_then(|(prompts, ours)| ours.is_ours(prompts.trim())) {
            Some(true) => Likeness::Whole,
            Some(false) => Likeness::Otherwise,
            None => Likeness::Outside,
        }
    }
}
