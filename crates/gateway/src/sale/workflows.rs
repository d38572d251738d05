//! Workflows as this build can bind them: each with the operation that its endpoint is, the digest
//! of what a run depends on, and what keeps its contract from being fixed. How far one has come is
//! decided by the moves in the store; what its file claims decides nothing.

use crate::world::Millis;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_store::{Attribution, WorkflowMove, WorkflowVerb, date};
use tollgate_workflows::{Workflow, WorkflowStage};

/// By slug.
pub type BoundWorkflows = BTreeMap<String, Arc<BoundWorkflow>>;

pub struct BoundWorkflow {
    pub workflow: Arc<Workflow>,
    /// The operation's place in our API description.
    pub openapi_path: Option<String>,
    pub digest: String,
    /// Why its contract cannot be fixed.
    pub unbound: Vec<String>,
}

/// How far a workflow has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub stage: WorkflowStage,
    /// Why it is not further, where it once was.
    pub blocked: Option<String>,
}

impl BoundWorkflow {
    /// By the newest move about it.
    pub fn standing(&self, newest: Option<&WorkflowMove>) -> Standing {
        let draft = |blocked: Option<String>| Standing { stage: WorkflowStage::Draft, blocked };
        match newest.filter(|moved| moved.verb == WorkflowVerb::Lock) {
            None => draft(None),
            Some(moved) if evidence(moved)["semantic_digest_sha256"] == self.digest.as_str() => {
                Standing { stage: WorkflowStage::Locked, blocked: None }
            }
            Some(_) => {
                let why = self.unbound.first().map(|reason| format!(": {reason}")).unwrap_or_default();
                draft(Some(format!("the contract has changed since it was locked{why}")))
            }
        }
    }

    /// The record as it stands: stage, contract and evidence are ours to write, the rest is the
    /// file's.
    pub fn shown(&self, newest: Option<&WorkflowMove>) -> Value {
        let standing = self.standing(newest);
        let mut record = self.workflow.value.clone();
        standing.stage.write(&mut record);
        let locked = newest.filter(|_| standing.stage >= WorkflowStage::Locked).map(evidence).unwrap_or_default();
        let binding = &mut record["runtime_binding"];
        for field in ["contract_version", "openapi_path", "semantic_digest_sha256", "workflow_version"] {
            binding[field] = locked[field].clone();
        }
        // Only a run of the fixture can say these.
        for field in ["last_verified_at", "capability_evidence", "package_status"] {
            binding[field] = Value::Null;
        }
        let waits = "its fixture has not been run";
        match standing.blocked {
            Some(blocked) => binding["blocking_reason"] = json!(blocked),
            None if binding["blocking_reason"].is_null() => binding["blocking_reason"] = json!(waits),
            None => {}
        }
        record
    }

    /// What an operator may want to know before he tries to lock it.
    pub fn warnings(&self) -> Vec<String> {
        let file = &self.workflow.file;
        self.unbound.iter().map(|reason| format!("{file}: cannot be locked: {reason}")).collect()
    }

    /// What is written down for a verb, or why it cannot be done.
    pub fn planned(
        &self,
        verb: WorkflowVerb,
        newest: Option<&WorkflowMove>,
        done: Attribution,
        now: Millis,
    ) -> Result<WorkflowMove, String> {
        match verb {
            WorkflowVerb::Lock => self.lock(newest, done, now),
            WorkflowVerb::Unlock => self.unlock(newest, done, now),
        }
    }

    /// The move that fixes its contract, or why there is none.
    fn lock(&self, newest: Option<&WorkflowMove>, done: Attribution, now: Millis) -> Result<WorkflowMove, String> {
        let slug = &self.workflow.record.slug;
        if !self.unbound.is_empty() {
            return Err(format!("{slug} cannot be locked: {}", self.unbound.join("; ")));
        }
        if self.standing(newest).stage >= WorkflowStage::Locked {
            return Err(format!("{slug} is locked already"));
        }
        let version = next_version(newest, &date(now));
        let package = self.workflow.package.as_ref().map(|package| package.version.clone());
        let evidence = json!({
            "contract_version": version,
            "openapi_path": self.openapi_path,
            "semantic_digest_sha256": self.digest,
            "workflow_version": package.unwrap_or_else(|| version.clone()),
        });
        Ok(self.moved(WorkflowVerb::Lock, done, now, evidence))
    }

    /// The move that lets its contract change again. Its last version goes with it, so that the
    /// next one is another.
    fn unlock(&self, newest: Option<&WorkflowMove>, done: Attribution, now: Millis) -> Result<WorkflowMove, String> {
        let Some(locked) = newest.filter(|moved| moved.verb == WorkflowVerb::Lock) else {
            return Err(format!("{} is not locked", self.workflow.record.slug));
        };
        let evidence = json!({ "contract_version": evidence(locked)["contract_version"] });
        Ok(self.moved(WorkflowVerb::Unlock, done, now, evidence))
    }

    fn moved(&self, verb: WorkflowVerb, done: Attribution, at: Millis, evidence: Value) -> WorkflowMove {
        let Attribution { actor, reason } = done;
        WorkflowMove {
            slug: self.workflow.record.slug.clone(),
            verb,
            at,
            actor,
            reason,
            evidence: evidence.to_string(),
        }
    }
}

fn evidence(moved: &WorkflowMove) -> Value {
    serde_json::from_str(&moved.evidence).unwrap_or_default()
}

/// The day, and how often that day.
fn next_version(newest: Option<&WorkflowMove>, today: &str) -> String {
    let before = newest.map(evidence).unwrap_or_default();
    let before = before["contract_version"].as_str().and_then(|version| version.rsplit_once('.'));
    let number = match before {
        Some((day, number)) if day == today => number.parse::<u32>().unwrap_or(0).saturating_add(1),
        _ => 1,
    };
    format!("{today}.{number}")
}
