//! The verbs of the ledger as a whole: reading it, and the audit.

use super::{Engine, Store};
use crate::error::StoreError;
use crate::ledger::entries::{Entry, EntryPage};
use crate::report::AuditReport;
use crate::verify::AuditedFor;

impl Store {
    /// The number of the last entry, once all before it are committed: up to there the ledger is as
    /// it was at this moment.
    pub async fn last_entry(&self) -> Result<i64, StoreError> {
        on_engine!(self, e => e.last_entry().await)
    }

    /// Ledger entries, a page at a time.
    pub async fn entries(&self, page: EntryPage) -> Result<Vec<Entry>, StoreError> {
        on_engine!(self, e => e.entries(page).await)
    }

    /// Recomputes every balance, every charge and every hash from the entries.
    pub async fn verify(&self) -> Result<AuditReport, StoreError> {
        on_engine!(self, e => e.verify(false, AuditedFor::Somebody).await)
    }

    /// The same beside other work: on one thread, where [`Store::verify`] may take two.
    pub async fn verify_quietly(&self) -> Result<AuditReport, StoreError> {
        on_engine!(self, e => e.verify(false, AuditedFor::Nobody).await)
    }

    /// [`Store::verify`], and nothing is let pass that a healthy ledger may have: losses, entries
    /// from before there was a hash chain.
    pub async fn verify_strictly(&self) -> Result<AuditReport, StoreError> {
        on_engine!(self, e => e.verify(true, AuditedFor::Somebody).await)
    }

    /// The same for what has changed since the last audit of this process, or for everything when
    /// there is none to go on from: at the start, and after one that failed.
    pub async fn verify_changed(&self) -> Result<AuditReport, StoreError> {
        on_engine!(self, e => e.verify_changed().await)
    }
}
