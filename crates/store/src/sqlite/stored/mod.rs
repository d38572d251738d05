//! What customers store, in a database file beside the ledger's: filling it, its cache or its log
//! does not harm the ledger. Nothing in it is part of a transaction of the ledger.
//!
//! Writes queue; whoever finds nobody at work takes all that waits and commits it as one
//! transaction, so that a sync is shared by all who came meanwhile. A write that the database
//! refuses is reported to its asker and not tried again.

mod open;
mod room;
mod write;

use std::sync::{Arc, Mutex};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use super::lock;
use super::read::Readers;
use crate::error::StoreError;
use crate::response::quota::{NoRoom, StorageUsed};
#[cfg(test)]
pub(crate) use open::MIGRATIONS;
use room::DiskRoom;
pub(super) use write::ResponseOp;

/// Written in one transaction, if it is more than one operation: so much the log may have to take
/// at once.
const GROUP_BYTES: u64 = 8 << 20;

/// How many rows there were, or why there are none.
pub(super) type WrittenRows = Result<u64, NoRoom>;

pub(super) struct ResponseStore {
    readers: Readers,
    desk: Arc<Desk>,
    /// Write on the thread that asks: in a simulation there is no other.
    here: bool,
}

/// Where writes meet.
struct Desk {
    conn: Mutex<Connection>,
    queue: Mutex<Queue>,
    room: DiskRoom,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Wish>,
    /// Somebody is at work and will take what waits.
    busy: bool,
}

struct Wish {
    op: ResponseOp,
    reply: oneshot::Sender<Result<WrittenRows, StoreError>>,
}

impl ResponseStore {
    /// Writes one operation; durable when this returns.
    pub async fn write(&self, op: ResponseOp) -> Result<WrittenRows, StoreError> {
        let (reply, replied) = oneshot::channel();
        let first = {
            let mut queue = lock(&self.desk.queue);
            queue.waiting.push(Wish { op, reply });
            !std::mem::replace(&mut queue.busy, true)
        };
        if first && self.here {
            tokio::task::yield_now().await;
            self.desk.work();
        } else if first {
            let desk = self.desk.clone();
            // Not waited for here: it works for others too, and each of them hears from it.
            drop(tokio::task::spawn_blocking(move || desk.work()));
        }
        replied.await.map_err(StoreError::away)?
    }

    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.readers.read(work).await
    }

    /// How much an account has stored.
    pub async fn stored(&self, account: crate::AccountId) -> Result<StorageUsed, StoreError> {
        self.read(move |conn| Ok(write::stored(conn, &account.0)?)).await
    }
}

/// After a panic whoever comes next works.
struct AtWork<'a>(&'a Mutex<Queue>);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.0).busy = false;
        }
    }
}

impl Desk {
    /// Takes what waits until nothing does.
    fn work(&self) {
        let _at_work = AtWork(&self.queue);
        loop {
            let wishes = {
                let mut queue = lock(&self.queue);
                if queue.waiting.is_empty() {
                    queue.busy = false;
                    return;
                }
                std::mem::take(&mut queue.waiting)
            };
            let mut conn = lock(&self.conn);
            let mut rest = wishes.into_iter().peekable();
            while rest.peek().is_some() {
                let mut bytes = 0;
                let group = std::iter::from_fn(|| {
                    let fits = |wish: &Wish| bytes == 0 || bytes + wish.op.bytes() <= GROUP_BYTES;
                    rest.next_if(fits).inspect(|wish| bytes += wish.op.bytes())
                });
                let group = group.collect();
                self.serve(&mut conn, group);
            }
        }
    }

    fn serve(&self, conn: &mut Connection, wishes: Vec<Wish>) {
        let ops: Vec<&ResponseOp> = wishes.iter().map(|wish| &wish.op).collect();
        match self.commit(conn, &ops) {
            Ok(written) => {
                for (wish, written) in wishes.into_iter().zip(written) {
                    answer_all(wish, Ok(written));
                }
            }
            // One of them is the trouble: each by itself.
            Err(_) => {
                for wish in wishes {
                    let written = self.alone(conn, &wish.op);
                    answer_all(wish, written);
                }
            }
        }
        self.room.tidy(conn);
    }

    /// One operation in a transaction of its own. Erasing works on a full disk too: there is a
    /// reserve for it.
    fn alone(&self, conn: &mut Connection, op: &ResponseOp) -> Result<WrittenRows, StoreError> {
        let mut done = self.commit(conn, &[op]);
        if op.erases() && done.as_ref().is_err_and(is_full) {
            self.room.give_way(conn);
            done = self.commit(conn, &[op]);
        }
        match done {
            Ok(mut written) => written.pop().ok_or_else(|| StoreError::broken("nothing was written")),
            Err(error) => {
                tracing::error!(%error, "cannot write what a customer stores");
                Err(error.into())
            }
        }
    }

    fn commit(&self, conn: &mut Connection, ops: &[&ResponseOp]) -> rusqlite::Result<Vec<WrittenRows>> {
        let bytes: u64 = ops.iter().map(|op| op.bytes()).sum();
        let free = if bytes > 0 { self.room.look(bytes) } else { room::Free::Enough };
        let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut written = Vec::with_capacity(ops.len());
        for op in ops {
            written.push(match free {
                room::Free::Little if !op.erases() => Err(NoRoom::All),
                _ => write::write(&tx, op, self.room.most())?,
            });
        }
        #[cfg(feature = "testing")]
        if bytes > 0 {
            crate::testing::disk_is_full(&self.room.file())?;
        }
        tx.commit()?;
        self.room.erased(ops.iter().any(|op| op.erases()));
        Ok(written)
    }
}

/// The asker may have gone; what is written is written.
fn answer_all(wish: Wish, written: Result<WrittenRows, StoreError>) {
    let _ = wish.reply.send(written);
}

fn is_full(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure))
}
