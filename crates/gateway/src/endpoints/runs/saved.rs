//! How far a run has come, as it is stored: the machine, every try of a step with its call, and
//! what steps gave.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use tollgate_catalog::Money;
use tollgate_store::{CallId, RunId, WorkflowRun};
use tollgate_wire::Dropped;
use tollgate_workflows::{RunOutputs, RunState, RunStatus};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedRun {
    pub machine: RunState,
    pub tries: Vec<StepTry>,
    pub outputs: RunOutputs,
    /// What did not count of what steps asked with, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub warnings: BTreeMap<String, Vec<StepWarning>>,
}

/// A field of a step's request that did not count, or not as it was sent; as it is shown on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepWarning {
    pub field: String,
    pub message: String,
}

/// How names begin of what a client has no form for in an answer: nobody asked for that.
const OF_ANSWERS: &str = "answer.";

impl StepWarning {
    /// One for each field that a provider does not get.
    pub fn list(dropped: &Dropped) -> Vec<StepWarning> {
        dropped.fields().iter().map(|field| StepWarning::dropped(field)).collect()
    }

    /// Of a usage row, which has names separated by commas.
    pub fn of_row(dropped: &str) -> Vec<StepWarning> {
        dropped.split(',').filter(|name| !name.is_empty()).map(StepWarning::dropped).collect()
    }

    fn dropped(field: &str) -> StepWarning {
        let message = match field.starts_with(OF_ANSWERS) {
            true => "The answer had this, and there is no form for it here; it was left out.",
            false => "This model does not read this field; it was dropped.",
        };
        StepWarning { field: field.to_owned(), message: message.to_owned() }
    }

    /// It is about the answer, not about what was asked.
    pub fn is_of_answer(&self) -> bool {
        self.field.starts_with(OF_ANSWERS)
    }
}

/// One try of a step. Its key is made of the run and its number, so whoever takes over asks with
/// the same and buys nothing twice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepTry {
    pub step: usize,
    pub key: String,
    pub call: Option<CallId>,
    pub charged: Money,
    /// When it was written down.
    #[serde(default)]
    pub begun_at: Option<i64>,
}

/// What a customer asks of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunWish {
    Cancel,
    Resume { max_cost: Option<Money>, resubmit: bool },
}

impl SavedRun {
    pub fn new<'n>(steps: impl IntoIterator<Item = &'n str>, max_cost: Money) -> SavedRun {
        let machine = RunState::new(steps, max_cost);
        SavedRun { machine, tries: Vec::new(), outputs: BTreeMap::new(), warnings: BTreeMap::new() }
    }

    pub fn read(run: &WorkflowRun) -> Option<SavedRun> {
        serde_json::from_str(&run.state).ok()
    }

    /// The Idempotency-Key of the next try.
    pub fn fresh(&self, run: RunId) -> String {
        format!("{run}.{}", self.tries.len() + 1)
    }

    /// What all tries have cost, those that were given up too.
    pub fn charged(&self) -> Money {
        Money::checked_sum(self.tries.iter().map(|one| one.charged)).unwrap_or(Money::MAX)
    }

    /// What is left of what was confirmed.
    pub fn left(&self) -> Money {
        let left = self.machine.max_cost.checked_sub(self.charged());
        left.unwrap_or(Money::ZERO).max(Money::ZERO)
    }

    pub fn status(&self) -> &'static str {
        status_word(self.machine.status)
    }
}

pub fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Waiting => "waiting",
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Stopped => "stopped",
        RunStatus::Cancelled => "cancelled",
    }
}

/// A value as JSON that a customer reads: names of files become links.
pub fn linked(value: &Value, link: &dyn Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::String(text) => link(text).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => items.iter().map(|inner| linked(inner, link)).collect(),
        Value::Object(members) => members.iter().map(|(name, inner)| (name.clone(), linked(inner, link))).collect(),
        plain => plain.clone(),
    }
}
