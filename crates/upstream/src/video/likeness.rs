//! Whether an entry of a provider's list is the task whose creation was lost, where the provider keeps no id of ours. Prompts are
//! compared by a mark, because ours is not kept.

use super::Sought;
use ring::digest::{Context, SHA256};
use serde_json::Value;
use std::fmt;

/// How far an entry is like what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It is something else.
    None,
    /// All that the list tells of it fits; it does not tell the prompt.
    Outside,
    /// The prompt fits too.
    Whole,
}

/// An entry that may be the one sought.
#[derive(Clone, PartialEq, Eq)]
pub struct Alike {
    pub id: String,
    pub likeness: Likeness,
    /// As the list has it.
    pub entry: Value,
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

impl Sought<'_> {
    /// Whether an entry was made while ours was sent, and has these values of it.
    pub(super) fn is_like(&self, entry: &Value, names: &[&str]) -> bool {
        let created = entry["created_at"].as_i64().unwrap_or_default();
        (self.sent.0..=self.sent.1).contains(&created)
            && names.iter().all(|name| Some(&entry[*name]) == self.body.get(*name))
    }

    /// Whether the prompt an entry tells is ours.
    pub(super) fn by_prompt(&self, prompt: &Value) -> Likeness {
        match (prompt.as_str(), self.prompt) {
            (Some(told), Some(mark)) if prompt_mark(self.external_id, told) == mark => Likeness::Whole,
            (Some(_), Some(_)) => Likeness::None,
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
