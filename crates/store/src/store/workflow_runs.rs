//! The verbs of workflow runs. Those that ended long ago are erased by `sweep`.

use super::{Engine, Store};
use crate::call::UsageRow;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, RunId};
use crate::manage::CallReach;
use crate::workflow_run::{
    KeyedCall, NewWorkflowRun, WorkflowRun, WorkflowRunLimits, WorkflowRunMade, WorkflowRunPage, WorkflowRunWrite,
};

impl Store {
    /// Begins a run, unless the account has too many. Both limits are exact over all replicas.
    pub async fn create_run(
        &self,
        new: NewWorkflowRun,
        limits: WorkflowRunLimits,
    ) -> Result<WorkflowRunMade, StoreError> {
        on_engine!(self, e => e.create_run(new, limits).await)
    }

    /// What became of a run that was begun with this Idempotency-Key before: the run, or that the
    /// key was used with another body.
    pub async fn run_begun_with(
        &self,
        account: AccountId,
        idem: Option<([u8; 32], [u8; 32])>,
    ) -> Result<Option<WorkflowRunMade>, StoreError> {
        on_engine!(self, e => e.run_begun_with(account, idem).await)
    }

    /// Takes up to so many runs that are due, each under a lease.
    pub async fn take_runs(&self, limit: u32, lease_ms: i64) -> Result<Vec<WorkflowRun>, StoreError> {
        let mut taken = Vec::new();
        for (id, fence) in on_engine!(self, e => e.due_runs(limit).await)? {
            if on_engine!(self, e => e.take_run(id, fence, lease_ms).await)? {
                // Read after it was taken: what was asked of it before is heard.
                taken.extend(on_engine!(self, e => e.any_run(id).await)?);
            }
        }
        Ok(taken)
    }

    /// Writes down how far a run has come. `false`: somebody else has it by now; nothing changed.
    pub async fn write_run(&self, write: WorkflowRunWrite) -> Result<bool, StoreError> {
        on_engine!(self, e => e.write_run(write).await)
    }

    /// Leaves a wish with a run that has not ended. `false`: there is no such run of the account,
    /// it has ended, or another wish waits that this one does not replace.
    pub async fn wish_run(
        &self,
        account: AccountId,
        id: RunId,
        wish: String,
        replaces: bool,
    ) -> Result<bool, StoreError> {
        on_engine!(self, e => e.wish_run(account, id, wish, replaces).await)
    }

    /// A run of this account.
    pub async fn run(&self, account: AccountId, id: RunId) -> Result<Option<WorkflowRun>, StoreError> {
        Ok(self.any_run(id).await?.filter(|run| run.account == account))
    }

    /// A run, whoever it belongs to.
    pub async fn any_run(&self, id: RunId) -> Result<Option<WorkflowRun>, StoreError> {
        on_engine!(self, e => e.any_run(id).await)
    }

    pub async fn runs(&self, of: impl Into<CallReach>, page: WorkflowRunPage) -> Result<Vec<WorkflowRun>, StoreError> {
        let of = of.into();
        on_engine!(self, e => e.runs(of, page).await)
    }

    /// The call that was begun with an Idempotency-Key of this hash. Of one that has ended, what is
    /// stored for whoever repeats the key: nothing is priced or held to read it.
    pub async fn call_with_key(&self, account: AccountId, hash: [u8; 32]) -> Result<Option<KeyedCall>, StoreError> {
        on_engine!(self, e => e.call_with_key(account, hash).await)
    }

    /// Which of these calls are steps of runs.
    pub async fn runs_of_calls(&self, calls: Vec<CallId>) -> Result<Vec<(CallId, RunId)>, StoreError> {
        on_engine!(self, e => e.runs_of_calls(calls).await)
    }

    /// Rows under the names that everybody uses, each with the run that it was a step of.
    pub(crate) async fn records(&self, rows: &[UsageRow]) -> Result<Vec<serde_json::Value>, StoreError> {
        let runs = self.runs_of_calls(rows.iter().map(|row| row.call).collect()).await?;
        let record = |row: &UsageRow| {
            let mut value = row.record();
            let run = runs.iter().find(|(call, _)| *call == row.call).map(|(_, run)| run.to_string());
            value["run_id"] = run.into();
            value
        };
        Ok(rows.iter().map(record).collect())
    }
}
