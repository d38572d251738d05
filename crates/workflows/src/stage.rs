//! How far a record has come. Three fields say it and must agree; a file may claim a stage, the
//! evidence decides.

use crate::record::{BindingStatus, ContractStatus, RuntimeEvidence, WorkflowRecord};
use serde_json::{Value, json};

/// In ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkflowStage {
    /// Being written; shown to operators only.
    Draft,
    /// Its contract is fixed and checked against our API description; shown to everybody, not
    /// runnable.
    Locked,
    /// Its fixture was run; runnable.
    Verified,
}

/// The three fields of each stage, as they are written.
const WORDS: [(WorkflowStage, [&str; 3]); 3] = [
    (WorkflowStage::Draft, ["draft_unverified", "unavailable", "absent"]),
    (WorkflowStage::Locked, ["contract_locked_not_executable", "contract_only_not_executable", "contract_only"]),
    (WorkflowStage::Verified, ["verified", "verified", "verified"]),
];

impl WorkflowStage {
    /// The stage a record claims; nothing where its fields do not agree.
    pub fn claimed(record: &WorkflowRecord) -> Option<WorkflowStage> {
        let fields = (record.contract_status, record.runtime_binding.status, record.provenance.runtime_evidence);
        match fields {
            (ContractStatus::DraftUnverified, BindingStatus::Unavailable, RuntimeEvidence::Absent) => {
                Some(WorkflowStage::Draft)
            }
            (
                ContractStatus::ContractLockedNotExecutable,
                BindingStatus::ContractOnlyNotExecutable,
                RuntimeEvidence::ContractOnly,
            ) => Some(WorkflowStage::Locked),
            (ContractStatus::Verified, BindingStatus::Verified, RuntimeEvidence::Verified) => {
                Some(WorkflowStage::Verified)
            }
            _ => None,
        }
    }

    /// What the contract status of this stage is called.
    pub fn contract_status(self) -> &'static str {
        self.words()[0]
    }

    /// Its word in the store and in lists.
    pub fn word(self) -> &'static str {
        match self {
            WorkflowStage::Draft => "draft",
            WorkflowStage::Locked => "locked",
            WorkflowStage::Verified => "verified",
        }
    }

    pub fn from_word(word: &str) -> Option<WorkflowStage> {
        WORDS.iter().map(|(stage, _)| *stage).find(|stage| stage.word() == word)
    }

    /// Writes the stage into a record.
    pub fn write(self, record: &mut Value) {
        let [contract, binding, evidence] = self.words();
        record["contract_status"] = json!(contract);
        record["runtime_binding"]["status"] = json!(binding);
        record["provenance"]["runtime_evidence"] = json!(evidence);
    }

    fn words(self) -> [&'static str; 3] {
        WORDS.iter().find(|(stage, _)| *stage == self).map_or(WORDS[0].1, |(_, words)| *words)
    }
}
