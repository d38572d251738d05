//! The verbs of operators: admin keys, pauses, and the log of what was done.

use super::{Engine, Store};
use crate::error::StoreError;
use crate::ids::AdminKeyId;
use crate::operator::pause::PauseChange;
use crate::operator::workflow::WorkflowMove;
use crate::operator::{AdminKey, Attribution, NewAdminKey, OperatorEvent};

impl Store {
    /// The caller made the secret and shows it once. Who asked for it, and why, is a row.
    pub async fn create_admin_key(&self, new: NewAdminKey, secret: &str) -> Result<AdminKey, StoreError> {
        on_engine!(self, e => e.create_admin_key(new, secret).await)
    }

    pub async fn admin_key_by_hash(&self, hash: [u8; 32]) -> Result<Option<AdminKey>, StoreError> {
        on_engine!(self, e => e.admin_key_by_hash(hash).await)
    }

    pub async fn admin_keys(&self) -> Result<Vec<AdminKey>, StoreError> {
        on_engine!(self, e => e.admin_keys().await)
    }

    /// `None`: no such key. Revoking twice keeps the first time, and the first row.
    pub async fn revoke_admin_key(&self, id: AdminKeyId, done: Attribution) -> Result<Option<AdminKey>, StoreError> {
        on_engine!(self, e => e.revoke_admin_key(id, done).await)
    }

    /// What operators did to admin keys, accounts and keys, newest first.
    pub async fn operator_events(&self, limit: u32) -> Result<Vec<OperatorEvent>, StoreError> {
        on_engine!(self, e => e.operator_events(limit).await)
    }

    /// Pauses or resumes a cell: a row with time, actor and reason.
    pub async fn change_pause(&self, change: PauseChange) -> Result<(), StoreError> {
        on_engine!(self, e => e.change_pause(change).await)
    }

    /// The log of pauses, newest first.
    pub async fn pause_changes(&self, limit: u32) -> Result<Vec<PauseChange>, StoreError> {
        on_engine!(self, e => e.pause_changes(limit).await)
    }

    /// Moves a workflow: a row with time, actor, reason and evidence.
    pub async fn move_workflow(&self, moved: WorkflowMove) -> Result<(), StoreError> {
        on_engine!(self, e => e.move_workflow(moved).await)
    }

    /// The newest move of each workflow, by slug.
    pub async fn workflow_states(&self) -> Result<Vec<WorkflowMove>, StoreError> {
        on_engine!(self, e => e.workflow_states().await)
    }

    /// The moves of a workflow, newest first.
    pub async fn workflow_moves(&self, slug: String, limit: u32) -> Result<Vec<WorkflowMove>, StoreError> {
        on_engine!(self, e => e.workflow_moves(slug, limit).await)
    }

    /// The newest change of each cell that was ever paused.
    pub async fn pause_states(&self) -> Result<Vec<PauseChange>, StoreError> {
        on_engine!(self, e => e.pause_states().await)
    }
}
