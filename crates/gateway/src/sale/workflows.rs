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
    /// Nothing where it can be run.
    pub code: Option<BlockingCode>,
    /// Why it is not further, where it once was.
    pub blocked: Option<String>,
}

/// Why a workflow cannot be run, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockingCode {
    NotVerified,
    ContractChanged,
    Withdrawn,
    EvidenceTooOld,
}

impl BlockingCode {
    pub fn word(self) -> &'static str {
        match self {
            BlockingCode::NotVerified => "not_verified",
            BlockingCode::ContractChanged => "contract_changed",
            BlockingCode::Withdrawn => "withdrawn",
            BlockingCode::EvidenceTooOld => "evidence_too_old",
        }
    }
}

/// What is said where nothing else keeps a workflow from being run.
pub const NOT_VERIFIED: &str = "its fixture has not been run";

/// What only the run of a fixture can say of a record.
const PROVEN: [&str; 6] =
    ["last_verified_at", "capability_evidence", "package_status", "price_source", "availability_source", "model_ids"];

impl BoundWorkflow {
    /// By the newest move about it, at this time.
    pub fn standing(&self, newest: Option<&WorkflowMove>, now: Millis) -> Standing {
        let at = |stage: WorkflowStage, code: BlockingCode, blocked: Option<String>| Standing {
            stage,
            code: Some(code).filter(|_| stage != WorkflowStage::Verified),
            blocked,
        };
        let Some(moved) = newest.filter(|moved| moved.verb != WorkflowVerb::Unlock) else {
            return at(WorkflowStage::Draft, BlockingCode::NotVerified, None);
        };
        let evidence = evidence(moved);
        if evidence["semantic_digest_sha256"] != self.digest.as_str() {
            let why = self.unbound.first().map(|reason| format!(": {reason}")).unwrap_or_default();
            let reason = format!("the contract has changed since it was locked{why}");
            return at(WorkflowStage::Draft, BlockingCode::ContractChanged, Some(reason));
        }
        match moved.verb {
            WorkflowVerb::Lock | WorkflowVerb::Unlock => at(WorkflowStage::Locked, BlockingCode::NotVerified, None),
            WorkflowVerb::Withdraw => {
                let reason = format!("it was withdrawn: {}", moved.reason);
                at(WorkflowStage::Locked, BlockingCode::Withdrawn, Some(reason))
            }
            WorkflowVerb::Verify if evidence["valid_until_ms"].as_i64().is_some_and(|until| until > now) => {
                at(WorkflowStage::Verified, BlockingCode::NotVerified, None)
            }
            WorkflowVerb::Verify => {
                let reason = "its evidence is too old: verify it again".to_owned();
                at(WorkflowStage::Locked, BlockingCode::EvidenceTooOld, Some(reason))
            }
        }
    }

    /// When its standing changes by itself.
    pub fn changes_at(newest: Option<&WorkflowMove>) -> Option<Millis> {
        let verified = newest.filter(|moved| moved.verb == WorkflowVerb::Verify);
        verified.and_then(|moved| evidence(moved)["valid_until_ms"].as_i64())
    }

    /// The record as it stands: stage, contract and evidence are ours to write, the rest is the
    /// file's.
    pub fn shown(&self, newest: Option<&WorkflowMove>, now: Millis) -> Value {
        let standing = self.standing(newest, now);
        let mut record = self.workflow.value.clone();
        standing.stage.write(&mut record);
        let proof = newest.filter(|_| standing.stage >= WorkflowStage::Locked).map(evidence).unwrap_or_default();
        let binding = &mut record["runtime_binding"];
        for field in ["contract_version", "openapi_path", "semantic_digest_sha256", "workflow_version"] {
            binding[field] = proof[field].clone();
        }
        let verified = standing.stage == WorkflowStage::Verified;
        for field in PROVEN {
            match (verified, field) {
                (true, _) if !proof[field].is_null() => binding[field] = proof[field].clone(),
                // What the file says of them is its own wish.
                (_, "price_source" | "availability_source" | "model_ids") => {}
                _ => binding[field] = Value::Null,
            }
        }
        match standing.blocked {
            _ if verified => binding["blocking_reason"] = Value::Null,
            Some(blocked) => binding["blocking_reason"] = json!(blocked),
            None if binding["blocking_reason"].is_null() => binding["blocking_reason"] = json!(NOT_VERIFIED),
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
            WorkflowVerb::Withdraw => self.withdraw(newest, done, now),
            WorkflowVerb::Verify => Err("a workflow is verified by a run of its fixture".to_owned()),
        }
    }

    /// The move that makes it executable, with what the run of its fixture has proven; or why there
    /// is none.
    pub fn verified(
        &self,
        newest: Option<&WorkflowMove>,
        done: Attribution,
        now: Millis,
        proof: serde_json::Map<String, Value>,
    ) -> Result<WorkflowMove, String> {
        let locked = self.fixed(newest, now)?;
        let mut evidence = evidence(locked);
        if let Value::Object(evidence) = &mut evidence {
            evidence.extend(proof);
        }
        Ok(self.moved(WorkflowVerb::Verify, done, now, evidence))
    }

    /// The newest move of a contract that is fixed and has not changed since.
    pub fn fixed<'m>(&self, newest: Option<&'m WorkflowMove>, now: Millis) -> Result<&'m WorkflowMove, String> {
        let slug = &self.workflow.record.slug;
        let standing = self.standing(newest, now);
        match newest.filter(|_| standing.stage >= WorkflowStage::Locked) {
            Some(moved) => Ok(moved),
            None => Err(standing.blocked.unwrap_or_else(|| format!("{slug} is not locked"))),
        }
    }

    /// The move that makes it wait for another run of its fixture.
    fn withdraw(&self, newest: Option<&WorkflowMove>, done: Attribution, now: Millis) -> Result<WorkflowMove, String> {
        let verified = newest.filter(|moved| moved.verb == WorkflowVerb::Verify);
        let verified = verified.ok_or_else(|| format!("{} is not verified", self.workflow.record.slug))?;
        let mut evidence = evidence(verified);
        if let Value::Object(evidence) = &mut evidence {
            evidence.retain(|field, _| !PROVEN.contains(&field.as_str()) && field != "valid_until_ms");
        }
        Ok(self.moved(WorkflowVerb::Withdraw, done, now, evidence))
    }

    /// The move that fixes its contract, or why there is none.
    fn lock(&self, newest: Option<&WorkflowMove>, done: Attribution, now: Millis) -> Result<WorkflowMove, String> {
        let slug = &self.workflow.record.slug;
        if !self.unbound.is_empty() {
            return Err(format!("{slug} cannot be locked: {}", self.unbound.join("; ")));
        }
        if self.standing(newest, now).stage >= WorkflowStage::Locked {
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
        let Some(locked) = newest.filter(|moved| moved.verb != WorkflowVerb::Unlock) else {
            return Err(format!("{} is not locked", self.workflow.record.slug));
        };
        let evidence = json!({ "contract_version": evidence(locked)["contract_version"] });
        Ok(self.moved(WorkflowVerb::Unlock, done, now, evidence))
    }

    fn moved(&self, verb: WorkflowVerb, done: Attribution, at: Millis, evidence: Value) -> WorkflowMove {
        let Attribution { actor, reason, .. } = done;
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
