//! The one thread that writes. It takes what has queued, commits it as one group and wakes those who wait; then it
//! lets at least the commit pace pass, because a commit costs the same for one operation and for a hundred.
//! When the database refuses (disk full, locked), the group stays first in line and is tried again until it works.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, params};
use tokio::time::Instant;

use super::apply::{Apply, Outcome};
use super::books::{Books, Nap};
use super::ops::{Op, Reply};
use super::refused::{self, Refused};
use super::{Shared, lock};
use crate::chain::Link;
use crate::error::StoreError;
use crate::group::Group;
use crate::ids::{AccountId, CallId, IdMap};

/// How long a close nobody waits for may stay queued, to share a commit with the next hold.
const PATIENCE: Duration = Duration::from_millis(20);
/// The journal is synced when commits have been late for this long.
const JOURNAL_SYNC: Duration = Duration::from_millis(50);
/// A first hold waits this long for company. What matters more than the company: on one core the thread that asked goes on
/// and sends its request before this one takes the core for a commit.
const GATHER: Duration = Duration::from_millis(1);
/// How often the watermark of open holds is moved.
const WATERMARK: Duration = Duration::from_secs(1);

pub(super) struct Writer {
    pub conn: Connection,
    pub shared: Arc<Shared>,
    pub pace: Duration,
    pub next_seq: i64,
    /// Entry of each open hold.
    pub open: IdMap<CallId, i64>,
    /// The ends of the hash chains written so far.
    pub ends: IdMap<AccountId, Link>,
    /// Calls that are in the books and not in the database, because it refused their hold or a part of it.
    pub refused: IdMap<CallId, Refused>,
    pub watermark_at: Instant,
    pub wal: PathBuf,
}

pub(super) struct Batch {
    ops: Vec<Op>,
    first: u64,
    group: Arc<Group>,
    since: Instant,
}

impl Batch {
    /// All that has queued.
    pub fn of(books: &mut Books) -> Self {
        let ops = std::mem::take(&mut books.queue);
        books.hurry = false;
        let first = books.next_op - ops.len() as u64;
        let group = std::mem::take(&mut books.group);
        let since = books.queued_since.take().unwrap_or_else(Instant::now);
        books.writing_since = Some(since);
        Self { ops, first, group, since }
    }

    fn last(&self) -> u64 {
        self.first + self.ops.len() as u64 - 1
    }
}

/// What a committed group leaves to be done.
pub(super) struct Committed {
    outcomes: Vec<Outcome>,
    failed: Vec<u64>,
    refused: IdMap<CallId, Refused>,
    new_prices: Vec<[u8; 16]>,
    holds: Vec<(CallId, Option<i64>)>,
    ends: IdMap<AccountId, Link>,
    next_seq: i64,
}

/// How a try to commit a group ended.
pub(super) enum Attempt {
    Committed(Box<Committed>),
    /// Again, and one operation after the other.
    OneByOne,
    Later,
}

impl Writer {
    pub fn run(mut self) {
        let mut last_commit: Option<Instant> = None;
        while let Some(batch) = self.next_batch(last_commit) {
            // Shut down while the database is away: what is not committed is in the journal.
            let Some(committed) = self.commit_until_done(&batch) else { break };
            self.finish(batch, committed);
            last_commit = Some(Instant::now());
        }
        if let Err(error) = self.conn.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);") {
            tracing::warn!(%error, "cannot tidy the database on the way out");
        }
    }

    /// Waits for work. `None`: the store is shut and everything is written.
    fn next_batch(&self, last_commit: Option<Instant>) -> Option<Batch> {
        let mut idle_since = Instant::now();
        let mut tidy = true;
        let mut books = lock(&self.shared.books);
        loop {
            let waited = books.queued_since.filter(|_| !books.queue.is_empty()).map(|s| s.elapsed());
            match waited {
                None if books.stop => return None,
                None => {
                    let asleep = idle_since.elapsed() > Duration::from_secs(1);
                    if asleep && tidy {
                        tidy = false;
                        drop(books);
                        self.checkpoint();
                        books = lock(&self.shared.books);
                        continue;
                    }
                    books.nap = if asleep { Nap::Asleep } else { Nap::Dozing };
                    books = if asleep {
                        idle_since = Instant::now();
                        self.shared.bell.wait(books).unwrap_or_else(|e| e.into_inner())
                    } else {
                        self.shared.bell.wait_timeout(books, PATIENCE).unwrap_or_else(|e| e.into_inner()).0
                    };
                }
                Some(waited) if !(books.hurry || books.stop || waited >= PATIENCE) => {
                    books.nap = Nap::Dozing;
                    let rest = PATIENCE - waited;
                    books = self.shared.bell.wait_timeout(books, rest).unwrap_or_else(|e| e.into_inner()).0;
                }
                Some(_) => {
                    books.nap = Nap::Awake;
                    let rest = last_commit.map_or(Duration::ZERO, |t| self.pace.saturating_sub(t.elapsed()));
                    let rest = rest.max(GATHER);
                    if !rest.is_zero() && !books.stop {
                        drop(books);
                        std::thread::sleep(rest);
                        books = lock(&self.shared.books);
                    }
                    return Some(Batch::of(&mut books));
                }
            }
        }
    }

    fn commit_until_done(&mut self, batch: &Batch) -> Option<Committed> {
        let mut pause = Duration::from_millis(20);
        let mut isolate = false;
        let mut tries_after_stop = 0;
        loop {
            match self.attempt(batch, &mut isolate) {
                Attempt::Committed(committed) => return Some(*committed),
                Attempt::OneByOne => {}
                Attempt::Later => {
                    tries_after_stop += u32::from(lock(&self.shared.books).stop);
                    if tries_after_stop > 20 {
                        return None;
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(250));
                }
            }
        }
    }

    /// One try to commit a group.
    pub fn attempt(&mut self, batch: &Batch, isolate: &mut bool) -> Attempt {
        match self.commit(batch, *isolate) {
            Ok(committed) => {
                self.shared.set_down(false);
                Attempt::Committed(Box::new(committed))
            }
            Err(error) if !*isolate && is_refusal(&error) => {
                // One operation breaks a rule of the schema: find it and leave it out, the others must not wait.
                tracing::error!(%error, "the database refuses an operation");
                *isolate = true;
                Attempt::OneByOne
            }
            Err(error) => {
                tracing::error!(%error, operations = batch.ops.len(), "cannot commit, trying again");
                self.shared.set_down(true);
                self.shared.retries.fetch_add(1, Ordering::Relaxed);
                if batch.since.elapsed() > JOURNAL_SYNC {
                    self.shared.journal.sync();
                }
                Attempt::Later
            }
        }
    }

    fn commit(&mut self, batch: &Batch, isolate: bool) -> rusqlite::Result<Committed> {
        let watermark = (self.watermark_at.elapsed() >= WATERMARK).then(|| self.watermark());
        let tx = self.conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut apply = Apply::new(&tx, &self.shared.known_prices, &self.ends, self.next_seq)?;
        let mut outcomes = Vec::with_capacity(batch.ops.len());
        let mut failed = Vec::new();
        let mut refused = self.refused.clone();
        for (op, number) in batch.ops.iter().zip(batch.first..) {
            if !refused.is_empty()
                && let Some(outcome) = refused::close_without_hold(&mut refused, &mut apply, op)?
            {
                outcomes.push(outcome);
                failed.push(number);
                continue;
            }
            if !isolate {
                outcomes.push(apply.write(op)?);
                continue;
            }
            tx.execute_batch("SAVEPOINT one")?;
            let before = apply.mark();
            let written = apply.write(op).and_then(|o| apply.flush().map(|()| o));
            if let Err(error) = &written
                && is_refusal(error)
            {
                tracing::error!(%error, call = op.call().map(tracing::field::display), "left out an operation the database refuses");
                tx.execute_batch("ROLLBACK TO one; RELEASE one")?;
                apply.discard(before);
                refused::remember(&mut refused, op);
                failed.push(number);
                outcomes.push(Outcome::Plain);
                continue;
            }
            outcomes.push(written?);
            tx.execute_batch("RELEASE one")?;
        }
        apply.flush()?;
        if let Some(seq) = watermark {
            let sql = "INSERT OR REPLACE INTO meta (name, value) VALUES ('oldest_open_seq', ?1)";
            tx.prepare_cached(sql)?.execute(params![seq])?;
        }
        let Apply { new_prices, holds, ends, .. } = &mut apply;
        let (new_prices, holds, ends) = (std::mem::take(new_prices), std::mem::take(holds), std::mem::take(ends));
        let next_seq = apply.next_seq();
        drop(apply);
        #[cfg(feature = "testing")]
        crate::testing::disk_is_full(&self.wal)?;
        tx.commit()?;
        if watermark.is_some() {
            self.watermark_at = Instant::now();
        }
        Ok(Committed { outcomes, failed, refused, new_prices, holds, ends, next_seq })
    }

    /// Every entry before this one belongs to a closed hold. Entries of the running group come after it.
    fn watermark(&self) -> i64 {
        self.open.values().copied().min().unwrap_or(self.next_seq)
    }

    pub fn finish(&mut self, batch: Batch, committed: Committed) {
        let shared = &self.shared;
        self.next_seq = committed.next_seq;
        self.ends.extend(committed.ends);
        for (call, seq) in committed.holds {
            match seq {
                Some(seq) => self.open.insert(call, seq),
                None => self.open.remove(&call),
            };
        }
        if !committed.new_prices.is_empty() {
            shared.known_prices.add(committed.new_prices);
        }
        let (last, len) = (batch.last(), batch.ops.len() as u64);
        shared.credit_books(&batch.ops, &committed.outcomes);
        self.refused = committed.refused;
        {
            let mut books = lock(&shared.books);
            books.writing_since = None;
            for number in &committed.failed {
                let op = usize::try_from(number - batch.first).ok().and_then(|i| batch.ops.get(i));
                op.into_iter().for_each(|op| books.take_back(op, &mut self.refused));
            }
        }
        shared.durable.store(last, Ordering::Release);
        shared.commits.fetch_add(1, Ordering::Relaxed);
        shared.committed_ops.fetch_add(len, Ordering::Relaxed);
        shared.largest_group.fetch_max(len, Ordering::Relaxed);
        batch.group.finish(committed.failed);
        for (op, outcome) in batch.ops.into_iter().zip(committed.outcomes) {
            answer(op, outcome);
        }
    }

    pub fn checkpoint(&self) {
        if std::fs::metadata(&self.wal).is_ok_and(|m| m.len() > 0)
            && let Err(error) = self.conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        {
            tracing::debug!(%error, "checkpoint put off");
        }
    }
}

/// A rule of the schema was broken: trying again cannot help. Anything else may pass.
pub(super) fn is_refusal(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(e, _) => {
            matches!(e.code, ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        }
        _ => true,
    }
}

fn answer(op: Op, outcome: Outcome) {
    fn send<T>(reply: Reply<T>, value: Result<T, StoreError>) {
        if let Some(reply) = reply {
            // The asker may have gone; the operation is done all the same.
            let _ = reply.send(value);
        }
    }
    let refused = || StoreError::broken("the database refused the operation");
    match (op, outcome) {
        (
            Op::Account(_, reply)
            | Op::Key(_, reply)
            | Op::Revoke(_, _, reply)
            | Op::Limits(_, _, _, reply)
            | Op::Webhook(_, _, _, reply)
            | Op::Social(_, reply)
            | Op::Task(_, reply)
            | Op::Operator(_, reply)
            | Op::ReceiptKey(_, reply),
            outcome,
        ) => {
            let done = match outcome {
                Outcome::Done(value) => value,
                _ => Err(refused()),
            };
            send(reply, done);
        }
        (Op::Credit(_, reply), Outcome::Credit(value)) => send(reply, value),
        (Op::Credit(_, reply), _) => send(reply, Err(refused())),
        (Op::TakeWebhooks { reply, .. }, Outcome::Webhooks(taken)) => send(reply, Ok(taken)),
        (Op::TakeWebhooks { reply, .. }, _) => send(reply, Err(refused())),
        (Op::ForgetIdem { reply, .. } | Op::Response(_, reply), Outcome::Count(count)) => send(reply, Ok(count)),
        (Op::ForgetIdem { reply, .. } | Op::Response(_, reply), _) => send(reply, Err(refused())),
        (Op::Hold(_) | Op::Extend(_) | Op::Close(_) | Op::Refusal(_) | Op::Lapse(_) | Op::Recount(..), _) => {}
    }
}
