//! Moves of workflows: what an operator did to the contract of one, with who, why and the evidence.
//! They are rows of the operators' log like everything else that is done to the house; the newest
//! about a workflow says how far it has come.

use serde::{Deserialize, Serialize};

/// What was done to a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkflowVerb {
    /// Its contract is fixed.
    Lock,
    /// Its contract may change again.
    Unlock,
    /// Its fixture was run and passed: it is executable.
    Verify,
    /// It is not executable any more; its contract stays fixed.
    Withdraw,
}

impl WorkflowVerb {
    /// As the log has it.
    pub(crate) fn action(self) -> &'static str {
        match self {
            WorkflowVerb::Lock => "workflow.lock",
            WorkflowVerb::Unlock => "workflow.unlock",
            WorkflowVerb::Verify => "workflow.verify",
            WorkflowVerb::Withdraw => "workflow.withdraw",
        }
    }

    pub(crate) fn of(action: &str) -> Option<WorkflowVerb> {
        [Self::Lock, Self::Unlock, Self::Verify, Self::Withdraw].into_iter().find(|verb| verb.action() == action)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowMove {
    pub slug: String,
    pub verb: WorkflowVerb,
    #[serde(rename = "at_ms")]
    pub at: i64,
    pub actor: String,
    pub reason: String,
    /// JSON that this room does not read.
    pub evidence: String,
}
