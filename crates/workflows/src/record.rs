//! A record as a type. It is read from a value that the schema has passed, so nothing here checks
//! anything a second time.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct WorkflowRecord {
    pub contract_status: ContractStatus,
    pub workflow_id: String,
    pub slug: String,
    pub title: String,
    pub summary: String,
    pub last_modified: String,
    pub discovery: Discovery,
    pub inputs: Vec<WorkflowInput>,
    pub executor_query: ExecutorQuery,
    pub runtime_binding: RuntimeBinding,
    pub privacy_preflight: PrivacyPreflight,
    pub recovery_policy: RecoveryPolicy,
    pub acceptance_checks: Vec<String>,
    pub continue_action: ContinueAction,
    pub provenance: Provenance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContractStatus {
    DraftUnverified,
    ContractLockedNotExecutable,
    Verified,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindingStatus {
    Unavailable,
    ContractOnlyNotExecutable,
    Verified,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeEvidence {
    Absent,
    ContractOnly,
    Verified,
}

/// Who may find it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Discovery {
    pub indexable: bool,
    pub sitemap: bool,
    pub locales: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct WorkflowInput {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: InputKind,
    pub required: bool,
    pub description: String,
    pub default: Value,
    pub allowed_values: Vec<Value>,
    pub cost_sensitive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    Asset,
    String,
    Enum,
    Boolean,
    Integer,
}

/// Which models can do it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ExecutorQuery {
    pub input_modalities: Vec<String>,
    pub output_modalities: Vec<String>,
    pub required_capabilities: Vec<String>,
    pub selection_policy: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RuntimeBinding {
    pub status: BindingStatus,
    pub operation_id: Option<String>,
    pub endpoint: Option<String>,
    pub fixture_path: Option<String>,
    pub semantic_digest_sha256: Option<String>,
    pub blocking_reason: Option<String>,
    pub known_unimplemented_fields: Vec<String>,
    pub model_ids: Vec<String>,
    pub request_field_map: Map<String, Value>,
}

/// What is shown before anything is sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PrivacyPreflight {
    pub processing_region: String,
    pub retention: String,
    pub training_use: String,
    pub deletion: String,
    pub commercial_use: String,
    pub watermark: String,
}

/// Its three constants are law for every run and have no field here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RecoveryPolicy {
    pub confirmation_required_for: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ContinueAction {
    pub enabled: bool,
    pub href: Option<String>,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Provenance {
    pub requirement_id: String,
    pub source_kind: String,
    pub runtime_evidence: RuntimeEvidence,
}

impl WorkflowRecord {
    pub fn input(&self, id: &str) -> Option<&WorkflowInput> {
        self.inputs.iter().find(|input| input.id == id)
    }
}
