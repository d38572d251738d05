//! Which workflow is meant, and whether it can be run: by its stage, and by the contract that a
//! quote was made for.

use crate::app::App;
use crate::refusal::Refusal;
use crate::sale::workflows::{BlockingCode, BoundWorkflow, NOT_VERIFIED, Standing};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_wire::error::Code;

/// A workflow that customers may see.
pub struct FoundWorkflow {
    pub bound: Arc<BoundWorkflow>,
    standing: Standing,
}

/// One that is or was public. A draft that never was is nobody's business.
pub fn find(app: &App, slug: &str) -> Result<FoundWorkflow, Refusal> {
    let all = app.workflows.all();
    let changed = |standing: &Standing| standing.code == Some(BlockingCode::ContractChanged);
    let shown = all.get(slug).filter(|shown| shown.is_public() || changed(&shown.standing));
    let shown = shown.ok_or_else(|| Refusal::about(Code::NotFound, "slug", "There is no such workflow."))?;
    let found = FoundWorkflow { bound: shown.bound.clone(), standing: shown.standing.clone() };
    if changed(&found.standing) { Err(found.blocked(Code::ContractChanged)) } else { Ok(found) }
}

impl FoundWorkflow {
    fn reason(&self) -> &str {
        self.standing.blocked.as_deref().unwrap_or(NOT_VERIFIED)
    }

    /// What a quote says of it.
    pub fn written(&self, quote: &mut Value) {
        let code = self.standing.code;
        quote["executable"] = json!(code.is_none());
        quote["blocking_code"] = json!(code.map(BlockingCode::word));
        quote["blocking_reason"] = json!(code.map(|_| self.reason()));
    }

    /// It can be run, and is the one that was quoted.
    pub fn executable(&self, quoted: Option<&str>) -> Result<(), Refusal> {
        if self.standing.code.is_some() {
            return Err(self.blocked(Code::WorkflowNotExecutable));
        }
        if quoted.is_some_and(|quoted| quoted != self.bound.digest) {
            let text = "The workflow has changed since it was quoted; quote it again. Nothing was begun.";
            let refusal = Refusal::about(Code::ContractChanged, "confirm.contract", text);
            return Err(refusal.because(BlockingCode::ContractChanged.word()));
        }
        Ok(())
    }

    fn blocked(&self, code: Code) -> Refusal {
        let why = self.reason();
        let mut refusal = Refusal::new(code, format!("The workflow cannot be run: {why}."));
        let word = self.standing.code.map(BlockingCode::word);
        refusal.reason = word;
        refusal.details = Some(json!({ "blocking_code": word, "blocking_reason": why }).to_string().into());
        refusal
    }
}
