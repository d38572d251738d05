//! Waiting for durability. Operations are committed in groups; everybody who waits for one waits on
//! its group, so a commit wakes exactly the tasks it concerns.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::call::Closed;
use crate::error::StoreError;
use crate::ids::CallId;
use crate::journal::Journal;
use crate::sqlite;
use tollgate_catalog::Money;

/// One commit-to-be.
#[derive(Default)]
pub(crate) struct CommitGroup {
    done: AtomicBool,
    notify: Notify,
    /// Operations the database refused for good (a bug or damage): their waiters get an error.
    failed: Mutex<Vec<u64>>,
}

impl CommitGroup {
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// The group is durable, but for the operations named.
    pub fn finish(&self, failed: Vec<u64>) {
        if !failed.is_empty() {
            *self.failed.lock().unwrap_or_else(|e| e.into_inner()) = failed;
        }
        self.done.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    fn verdict(&self, op: u64) -> Result<(), StoreError> {
        let failed = self.failed.lock().unwrap_or_else(|e| e.into_inner());
        if failed.contains(&op) {
            return Err(StoreError::broken("the database refused the operation"));
        }
        Ok(())
    }

    pub async fn wait(&self, op: u64, until: Option<Instant>) -> Result<(), StoreError> {
        if !self.is_done() {
            let notified = self.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if !self.is_done() {
                match until {
                    Some(until) => {
                        if tokio::time::timeout_at(until, notified).await.is_err() && !self.is_done() {
                            return Err(StoreError::away("the commit takes too long"));
                        }
                    }
                    None => notified.await,
                }
            }
        }
        self.verdict(op)
    }
}

/// Money is reserved. Nothing of the answer may reach the client before [`Held::durable`] says so.
pub struct Held {
    pub call: CallId,
    /// What was taken from the trial pot and from the paid pot.
    pub trial: Money,
    pub paid: Money,
    pub(crate) wait: HeldWait,
}

pub(crate) enum HeldWait {
    Done,
    /// For the journal or the database, whichever has it first.
    Either {
        synced: Arc<CommitGroup>,
        /// Whose syncer is to be woken.
        sleeper: Option<Arc<Journal>>,
        group: Arc<CommitGroup>,
        op: u64,
        until: Instant,
    },
    Group {
        group: Arc<CommitGroup>,
        op: u64,
        until: Instant,
    },
}

impl Held {
    /// All that is held: of an extension, the whole hold as it is then.
    pub fn total(&self) -> Money {
        self.trial.checked_add(self.paid).unwrap_or(Money::MAX)
    }

    /// Asks for what makes it durable. [`Held::durable`] does too; whoever has something to send
    /// before sends it first, because the thread that is woken here takes the processor.
    pub fn make_durable(&mut self) {
        if let HeldWait::Either { sleeper, .. } = &mut self.wait
            && let Some(journal) = sleeper.take()
        {
            journal.wake();
        }
    }

    /// Waits until the hold survives a crash; at once when it does already. An error means: the
    /// ledger did not answer in time; close the call without a charge.
    pub async fn durable(&mut self) -> Result<(), StoreError> {
        self.make_durable();
        match &self.wait {
            HeldWait::Done => return Ok(()),
            HeldWait::Group { group, op, until } => group.wait(*op, Some(*until)).await?,
            // What the database says goes before what the journal has.
            HeldWait::Either { group, op, .. } if group.is_done() => group.verdict(*op)?,
            HeldWait::Either { synced, group, op, until, .. } => {
                tokio::select! {
                    biased;
                    // A sync refuses nothing.
                    done = synced.wait(0, None) => done?,
                    done = group.wait(*op, Some(*until)) => done?,
                }
            }
        }
        self.wait = HeldWait::Done;
        Ok(())
    }
}

/// A close under way. It survives a crash of the process already; await it to learn the outcome, or
/// drop it.
pub struct Closing {
    pub(crate) wait: ClosingWait,
}

pub(crate) enum ClosingWait {
    Done(Closed),
    Group { closed: Closed, group: Arc<CommitGroup>, op: u64, engine: Arc<sqlite::SqliteEngine> },
    Reply(oneshot::Receiver<Closed>),
}

impl Closing {
    /// The outcome where it is known without waiting (SQLite decides at once).
    pub fn known(&self) -> Option<Closed> {
        match &self.wait {
            ClosingWait::Done(closed) | ClosingWait::Group { closed, .. } => Some(*closed),
            ClosingWait::Reply(_) => None,
        }
    }

    async fn finish(self) -> Result<Closed, StoreError> {
        match self.wait {
            ClosingWait::Done(closed) => Ok(closed),
            ClosingWait::Group { closed, group, op, engine } => {
                engine.hurry();
                group.wait(op, None).await?;
                Ok(closed)
            }
            ClosingWait::Reply(reply) => reply.await.map_err(|_| StoreError::away("the store was shut")),
        }
    }
}

impl IntoFuture for Closing {
    type Output = Result<Closed, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.finish())
    }
}
