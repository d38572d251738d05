//! The thread that syncs the journal beside the writer: holds are durable with it, and the writer
//! is busy for tens of milliseconds with a large group.

use std::sync::Arc;

use tokio::time::Instant;

use super::Shared;
use crate::journal::JournalSync;

pub(super) fn run(shared: &Arc<Shared>) {
    let mut last = None;
    while let Some(sync) = shared.journal.next_sync(last) {
        last = Some(Instant::now());
        shared.sync(sync);
    }
}

impl Shared {
    /// Ends a sync; where that makes nothing durable, the database is to. Says whether it did.
    pub(super) fn sync(&self, sync: JournalSync) -> bool {
        let synced = self.journal.finish_sync(sync, || self.durable());
        if !synced {
            self.hurry();
        }
        synced
    }
}
