//! Workflow records: what one is, what is wrong with one, and how one is run.
//!
//! Pure: no input or output, no clock, no randomness. Files come in as text and leave as a checked
//! [`Workflow`] or as the list of every mistake in them. A run is a value that events move
//! ([`RunState`]); whoever owns a store and a till carries out what it says is next.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod bounds;
mod check;
mod confirm;
mod digest;
mod evaluate;
mod inputs;
mod mapping;
mod package;
mod pattern;
mod places;
mod record;
mod rules;
mod run;
mod selection;
mod stage;
mod steps;
mod template;
mod webvtt;
mod workflow;

// The tests from outside, in the executable of the unit tests: every executable more is linked
// once more.
#[cfg(test)]
extern crate self as tollgate_workflows;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;

pub use bounds::{MAX_DEPTH, MAX_FILE_BYTES, MAX_INPUTS, MAX_OUTPUT_CHARS, MAX_RUN_BYTES, MAX_STEPS, MAX_WORKFLOWS};
pub use check::{FileFacts, OutputCheck, StepOutput};
pub use confirm::{Confirmation, items_to_confirm, privacy_digest};
pub use digest::{canonical_json, semantic_digest};
pub use evaluate::{RecordSchema, SCHEMA_TEXT, Violation, record_schema};
pub use inputs::checked_inputs;
pub use package::{OutputFrom, Package, PackageStep, StepCount, StepModel};
pub use places::PlacedJson;
pub use record::{
    BindingStatus, ContinueAction, ContractStatus, Discovery, ExecutorQuery, InputKind, PrivacyPreflight, Provenance,
    RecoveryPolicy, RuntimeBinding, RuntimeEvidence, WorkflowInput, WorkflowRecord,
};
pub use run::{NotBegun, RunAction, RunEvent, RunState, RunStatus, RunStep, StepStatus, StopReason};
pub use selection::{ModelCandidate, SelectionPolicy};
pub use stage::WorkflowStage;
pub use steps::{RunOutputs, RunSteps, StepOfRun, outputs_fit};
pub use template::{RenderFault, TemplateValues, render};
pub use workflow::{RecordRead, Workflow, WorkflowFiles, load_workflows, read_record};
