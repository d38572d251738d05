//! Whether an entry of a provider's list is the task whose creation was lost, where the provider keeps no id of ours. Prompts are
//! compared by a mark, because ours is not kept. That an entry is something else counts as proof that ours was never made, so it is
//! said only of what cannot be ours: what merely differs in words, or tells too little, is not.

use super::Sought;
use super::read::{made_at, measure};
use ring::digest::{Context, SHA256};
use serde_json::Value;
use std::fmt;

/// How far an entry is like what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It is surely something else: of another time, length, size or source.
    None,
    /// It tells another prompt or model, which providers may write in their own way.
    Otherwise,
    /// Something by which it would be known is not told, or in a way that cannot be read.
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

/// By this a prompt is known again by those who know the task it was sent with. Blanks around it do not count.
pub fn prompt_mark(external_id: &str, prompt: &str) -> String {
    let mut context = Context::new(&SHA256);
    for text in [external_id, prompt.trim()] {
        context.update(&(text.len() as u64).to_be_bytes());
        context.update(text.as_bytes());
    }
    context.finish().as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What an entry tells, beside what was sent; of several things the worst counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    Same,
    /// Not told, or in a way that cannot be read.
    Unclear,
    Other,
}

impl Told {
    /// Lengths, sizes, resolutions and ratios, in any spelling.
    pub fn measures(asked: &Value, told: &Value) -> Told {
        match (measure(asked), measure(told)) {
            (Some(asked), Some(told)) if asked == told => Told::Same,
            (Some(asked), Some(told)) if asked.0 == told.0 => Told::Other,
            _ => Told::Unclear,
        }
    }

    /// Names that providers give back as they were sent.
    pub fn names(asked: &str, told: &Value) -> Told {
        match told.as_str().filter(|told| !told.is_empty()) {
            Some(told) if told == asked => Told::Same,
            Some(_) => Told::Other,
            None => Told::Unclear,
        }
    }

    /// How far the entry is like ours; `same`: where nothing speaks against it.
    pub fn likeness(self, same: Likeness) -> Likeness {
        match (self, same) {
            (Told::Other, _) => Likeness::None,
            (Told::Unclear, Likeness::Outside | Likeness::Whole) => Likeness::Unclear,
            _ => same,
        }
    }
}

impl Sought<'_> {
    /// Whether an entry was made while ours was sent, and has these measures of it.
    pub(super) fn compare(&self, entry: &Value, names: &[&str]) -> Told {
        let time = match made_at(entry) {
            Some(at) if (self.sent.0..=self.sent.1).contains(&at) => Told::Same,
            Some(_) => Told::Other,
            None => Told::Unclear,
        };
        let asked = |name: &str| self.body.get(name).unwrap_or(&Value::Null);
        names.iter().map(|name| Told::measures(asked(name), &entry[*name])).fold(time, Told::max)
    }

    /// Whether the prompt an entry tells is ours.
    pub(super) fn by_prompt(&self, prompt: &Value) -> Likeness {
        match (prompt.as_str(), self.prompt) {
            (Some(told), Some(mark)) if prompt_mark(self.external_id, told) == mark => Likeness::Whole,
            (Some(_), Some(_)) => Likeness::Otherwise,
            _ => Likeness::Outside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_task_and_one_prompt() {
        let mark = prompt_mark("task_1", "A gate opens.");
        assert_eq!(mark, prompt_mark("task_1", "A gate opens."));
        for (task, prompt) in [("task_2", "A gate opens."), ("task_1", "A gate opens"), ("task_1A", " gate opens.")] {
            assert_ne!(mark, prompt_mark(task, prompt), "{task} {prompt}");
        }
    }
}
