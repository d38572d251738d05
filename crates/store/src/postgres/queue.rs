//! The queue of one process: operations in the order they are to be applied.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

use tokio::sync::{Notify, oneshot};

use super::lock;
use super::queued::QueuedOp;
use crate::call::{Closed, HoldRefused};
use crate::error::StoreError;
use crate::ids::CallId;
use crate::task::TaskNaming;

/// The most operations in one statement.
const GROUP: usize = 500;
/// The most bytes in one statement: far below what PostgreSQL reads as one value, since stored
/// replies are among them.
const GROUP_BYTES: usize = 8 << 20;

pub(super) struct PendingOp {
    pub op: QueuedOp,
    pub answer: OpReply,
}

/// Who wants to know. A hold and an extension answer with the pots of the whole hold.
pub(super) enum OpReply {
    /// The call and its price.
    Hold(CallId, [u8; 16], oneshot::Sender<Result<(i64, i64), HoldRefused>>),
    Extend(oneshot::Sender<Result<(i64, i64), HoldRefused>>),
    Close(Box<Closer>),
    /// Whether a change of a task was made.
    Task(oneshot::Sender<Result<TaskNaming, StoreError>>),
    /// What the end of a task did to the account; nothing when somebody else has it. And whose
    /// report was missing.
    TaskEnd(oneshot::Sender<Result<Option<Closed>, StoreError>>, Option<String>),
    Nobody,
}

/// Who closes a call.
pub(super) struct Closer {
    pub call: CallId,
    pub send: oneshot::Sender<Closed>,
    /// Learns whether there ever was such a hold.
    pub known: Option<oneshot::Sender<bool>>,
    /// The provider whose report is missing, counted when the close is applied.
    pub estimated: Option<String>,
}

#[derive(Default)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    bell: Notify,
}

#[derive(Default)]
struct Inner {
    /// With the time each was queued.
    waiting: VecDeque<(Instant, PendingOp)>,
    /// Since when the oldest operation waits of the group that was taken.
    taken: Option<Instant>,
    pushed: u64,
    durable: u64,
    stopped: bool,
}

impl Queue {
    /// Queues an operation and says its number.
    pub fn push(&self, pending: PendingOp) -> u64 {
        let mut inner = lock(&self.inner);
        inner.waiting.push_back((Instant::now(), pending));
        inner.pushed += 1;
        let number = inner.pushed;
        drop(inner);
        self.bell.notify_one();
        number
    }

    /// The number of the last operation that was queued.
    pub fn pushed(&self) -> u64 {
        lock(&self.inner).pushed
    }

    pub fn durable(&self) -> u64 {
        lock(&self.inner).durable
    }

    pub fn len(&self) -> usize {
        lock(&self.inner).waiting.len()
    }

    pub fn is_stopped(&self) -> bool {
        lock(&self.inner).stopped
    }

    /// Operations not yet applied, and the age of the oldest in milliseconds.
    pub fn waiting(&self) -> (u64, u64) {
        let inner = lock(&self.inner);
        let oldest = inner.taken.or_else(|| inner.waiting.front().map(|(since, _)| *since));
        let age = oldest.map_or(0, |s| u64::try_from(s.elapsed().as_millis()).unwrap_or(u64::MAX));
        (inner.pushed - inner.durable, age)
    }

    pub fn stop(&self) {
        lock(&self.inner).stopped = true;
        self.bell.notify_one();
    }

    /// Waits for an operation. `false`: the store is shut and the queue is empty.
    pub async fn waits(&self) -> bool {
        loop {
            {
                let inner = lock(&self.inner);
                if !inner.waiting.is_empty() || inner.stopped {
                    return !inner.waiting.is_empty();
                }
            }
            self.bell.notified().await;
        }
    }

    /// The next group, as large as it may be.
    pub fn take(&self) -> Vec<PendingOp> {
        let mut inner = lock(&self.inner);
        let count = group_len(inner.waiting.iter().map(|(_, p)| p.op.bytes()));
        inner.taken = inner.waiting.front().map(|(since, _)| *since);
        inner.waiting.drain(..count).map(|(_, pending)| pending).collect()
    }

    pub fn done(&self, count: usize) {
        let mut inner = lock(&self.inner);
        inner.durable += count as u64;
        inner.taken = None;
    }
}

/// How many of these sizes make a group: at least one, if there is one.
fn group_len(sizes: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0usize;
    let fits = sizes.take(GROUP).take_while(|size| {
        let first = bytes == 0;
        bytes = bytes.saturating_add(*size);
        first || bytes <= GROUP_BYTES
    });
    fits.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_counts_until_it_is_done() {
        let queue = Queue::default();
        let pending = || PendingOp { op: QueuedOp::Written("{}".into()), answer: OpReply::Nobody };
        assert_eq!(queue.waiting(), (0, 0));
        queue.push(pending());
        let group = queue.take();
        std::thread::sleep(std::time::Duration::from_millis(30));
        queue.push(pending());
        let (count, age) = queue.waiting();
        assert!(count == 2 && age >= 30, "the one in flight counts: {count}, {age}");
        queue.done(group.len());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (count, age) = queue.waiting();
        assert!(count == 1 && (20..1_000_000).contains(&age), "and then the next, from when it came: {count}, {age}");
        queue.take();
        queue.done(1);
        assert_eq!(queue.waiting(), (0, 0));
    }

    #[test]
    fn a_group_is_bounded_by_number_and_by_bytes() {
        let len = |sizes: &[usize]| group_len(sizes.iter().copied());
        assert_eq!(len(&[]), 0);
        assert_eq!(len(&[100; 499]), 499);
        assert_eq!(len(&[100; 2_000]), GROUP);
        assert_eq!(len(&[1 << 20; 20]), 8);
        assert_eq!(len(&[64 << 20, 1]), 1, "one that is too large goes alone");
        assert_eq!(len(&[1, 64 << 20]), 1);
    }
}
