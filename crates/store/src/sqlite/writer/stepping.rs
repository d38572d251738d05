//! The writer without its thread, for a simulation: what it does at its own pace otherwise, it does
//! here when it is asked to. The steps are those of `writer.rs`.

use crate::error::StoreError;
use crate::journal::JournalSync;
use crate::sqlite::lock;
use crate::sqlite::writer::{Attempt, Batch, SqliteWriter};

pub(crate) struct Stepping {
    writer: SqliteWriter,
    /// A group that could not be committed yet, and whether it is written one operation after the
    /// other.
    waiting: Option<(Batch, bool)>,
    /// Whether a commit that has returned survives a power cut.
    syncs: bool,
}

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepDone {
    /// There was nothing to write.
    Idle,
    Committed,
    /// The group stays first in line.
    Failed,
}

impl Stepping {
    pub(in crate::sqlite) fn new(writer: SqliteWriter) -> Result<Self, StoreError> {
        let mode: String = writer.conn.query_row("PRAGMA journal_mode", [], |r| r.get(0))?;
        let synchronous: i64 = writer.conn.query_row("PRAGMA synchronous", [], |r| r.get(0))?;
        Ok(Self { writer, waiting: None, syncs: mode == "wal" && synchronous >= 2 })
    }

    pub fn syncs(&self) -> bool {
        self.syncs
    }

    /// Tries once to commit what waits, or else what has queued.
    pub fn step(&mut self) -> StepDone {
        let (batch, mut isolate) = match self.waiting.take() {
            Some(waiting) => waiting,
            None => {
                let mut books = lock(&self.writer.shared.books);
                if books.queue.is_empty() {
                    return StepDone::Idle;
                }
                (Batch::of(&mut books), false)
            }
        };
        match self.writer.attempt(&batch, &mut isolate) {
            Attempt::Committed(committed) => {
                self.writer.finish(batch, *committed);
                StepDone::Committed
            }
            Attempt::OneByOne | Attempt::Later => {
                self.waiting = Some((batch, isolate));
                StepDone::Failed
            }
        }
    }

    pub fn begin_sync(&self) -> Option<JournalSync> {
        self.writer.shared.journal.begin_sync()
    }

    /// As the syncer does.
    pub fn end_sync(&self, sync: JournalSync) -> bool {
        self.writer.shared.sync(sync)
    }

    pub fn checkpoint(&self) {
        self.writer.checkpoint();
    }
}
