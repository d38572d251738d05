//! The one thread that writes. It takes what has queued, commits it as one group and wakes those
//! who wait; then it lets at least the commit pace pass, because a commit costs the same for one
//! operation and for a hundred. When the database refuses (disk full, locked), the group stays
//! first in line and is tried again until it works.

pub(super) mod apply;
pub(super) mod entries;
#[cfg(feature = "testing")]
pub(crate) mod fill;
pub(super) mod idem;
pub(super) mod ops;
pub(super) mod pace;
pub(super) mod records;
pub(super) mod refused;
pub(super) mod row_hashes;
pub(super) mod row_statement;
#[cfg(feature = "testing")]
pub(crate) mod stepping;
pub(super) mod whole;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use tokio::time::Instant;

use self::apply::{Apply, Outcome};
use self::ops::{CommitReply, Op};
use self::pace::{Next, Tries, WriterView, is_late};
use self::refused::RefusedCall;
use self::row_hashes::RowHashes;
use self::whole::whole_calls;
use super::books::{Books, Nap};
use super::open::AT_WORK;
use super::open::old_holds::OldHolds;
use super::{Shared, lock};
use crate::call::group::CommitGroup;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, IdMap};
use crate::ledger::chain::ChainLink;

/// How often the mark is moved from which a start reads the ledger.
const WATERMARK: Duration = Duration::from_secs(1);

pub(super) struct SqliteWriter {
    pub conn: Connection,
    pub shared: Arc<Shared>,
    pub pace: Duration,
    pub patience: Duration,
    pub next_seq: i64,
    /// Bytes of replies that are stored for an account, and sums that wait to be merged.
    pub bounds: (u64, u32),
    /// Entry of each open hold.
    pub open: IdMap<CallId, i64>,
    pub old: OldHolds,
    /// The ends of the hash chains written so far.
    pub ends: IdMap<AccountId, ChainLink>,
    /// Calls that are in the books and not in the database, because it refused their hold or a part
    /// of it.
    pub refused: IdMap<CallId, RefusedCall>,
    /// When the mark was last moved. The first group moves it: a process that does not live for
    /// long must not leave the same to be read by the next.
    pub watermark_at: Option<Instant>,
    /// A start does not wait until what it recovers is brought from the log into the file: it is
    /// durable there.
    pub puts_right: bool,
    #[cfg(feature = "testing")]
    pub wal: std::path::PathBuf,
}

pub(super) struct Batch {
    ops: Vec<Op>,
    first: u64,
    group: Arc<CommitGroup>,
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

    fn op(&self, number: u64) -> Option<&Op> {
        self.ops.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn last(&self) -> u64 {
        self.first + self.ops.len() as u64 - 1
    }
}

/// What a committed group leaves to be done.
pub(super) struct Committed {
    outcomes: Vec<Outcome>,
    failed: Vec<u64>,
    refused: IdMap<CallId, RefusedCall>,
    new_prices: Vec<[u8; 16]>,
    holds: Vec<(CallId, Option<i64>)>,
    ends: IdMap<AccountId, ChainLink>,
    next_seq: i64,
}

/// How a try to commit a group ended.
pub(super) enum Attempt {
    Committed(Box<Committed>),
    /// Again, and one operation after the other.
    OneByOne,
    Later,
}

impl SqliteWriter {
    pub fn run(mut self) {
        let mut last_commit: Option<Instant> = None;
        while let Some(batch) = self.next_batch(last_commit) {
            // Shut down while the database is away: what is not committed is in the journal.
            let Some(committed) = self.commit_until_done(&batch) else { break };
            self.finish(batch, committed);
            last_commit = Some(Instant::now());
        }
        if let Err(error) = self.shared.journal.tidy(self.shared.durable()) {
            tracing::warn!(%error, "cannot tidy the journal on the way out");
        }
        if let Err(error) = self.conn.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);") {
            tracing::warn!(%error, "cannot tidy the database on the way out");
        }
    }

    /// Waits for work. `None`: the store is shut and everything is written.
    fn next_batch(&mut self, last_commit: Option<Instant>) -> Option<Batch> {
        let mut idle_since = Instant::now();
        let mut tidied = false;
        let shared = self.shared.clone();
        let mut books = lock(&shared.books);
        loop {
            let seen = WriterView {
                waited: books.queued_since.filter(|_| !books.queue.is_empty()).map(|since| since.elapsed()),
                hurry: books.hurry,
                stop: books.stop,
                idle: idle_since.elapsed(),
                tidied,
                since_commit: last_commit.map(|at| at.elapsed()),
                pace: self.pace,
                patience: self.patience,
            };
            match seen.next() {
                Next::End => return None,
                Next::Tidy => {
                    tidied = true;
                    drop(books);
                    self.begin_work();
                    self.checkpoint();
                    books = lock(&shared.books);
                }
                Next::Sleep => {
                    books.nap = Nap::Asleep;
                    idle_since = Instant::now();
                    books = shared.bell.wait(books).unwrap_or_else(|e| e.into_inner());
                }
                Next::Doze(rest) => {
                    books.nap = Nap::Dozing;
                    books = shared.bell.wait_timeout(books, rest).unwrap_or_else(|e| e.into_inner()).0;
                }
                Next::Write { after } => {
                    books.nap = Nap::Awake;
                    drop(books);
                    std::thread::sleep(after);
                    return Some(Batch::of(&mut lock(&shared.books)));
                }
            }
        }
    }

    fn commit_until_done(&mut self, batch: &Batch) -> Option<Committed> {
        let mut isolate = false;
        let mut tries = Tries::new();
        loop {
            match self.attempt(batch, &mut isolate) {
                Attempt::Committed(committed) => return Some(*committed),
                Attempt::OneByOne => {}
                Attempt::Later => {
                    let stop = lock(&self.shared.books).stop;
                    std::thread::sleep(tries.again(stop)?);
                }
            }
        }
    }

    /// One try to commit a group.
    pub fn attempt(&mut self, batch: &Batch, isolate: &mut bool) -> Attempt {
        self.begin_work();
        match self.commit(batch, *isolate) {
            Ok(committed) => {
                self.shared.set_down(false);
                Attempt::Committed(Box::new(committed))
            }
            Err(error) if !*isolate && is_refusal(&error) => {
                // One operation breaks a rule of the schema: find it and leave it out, the others
                // must not wait.
                tracing::error!(%error, "the database refuses an operation");
                *isolate = true;
                Attempt::OneByOne
            }
            Err(error) => {
                tracing::error!(%error, operations = batch.ops.len(), "cannot commit, trying again");
                self.shared.set_down(true);
                self.shared.retries.fetch_add(1, Ordering::Relaxed);
                if is_late(batch.since.elapsed()) {
                    self.shared.journal.sync();
                }
                Attempt::Later
            }
        }
    }

    /// From the first group after a recovery on, or the first rest, the database is used as always.
    fn begin_work(&mut self) {
        if self.puts_right && self.shared.recovered.load(Ordering::Acquire) {
            // Where that fails, it is asked for again.
            self.puts_right = self.conn.execute_batch(AT_WORK).is_err();
        }
    }

    fn commit(&mut self, batch: &Batch, isolate: bool) -> rusqlite::Result<Committed> {
        let due = self.watermark_at.is_none_or(|at| at.elapsed() >= WATERMARK);
        let moved = due.then(|| self.old.look(&self.open, self.next_seq));
        let tx = self.conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut apply = Apply::new(&tx, &self.shared.known_prices, &self.ends, self.next_seq, self.bounds)?;
        let mut outcomes = Vec::with_capacity(batch.ops.len());
        let mut failed = Vec::new();
        let mut refused = self.refused.clone();
        // One operation after the other has to stand by itself.
        if !isolate && refused.is_empty() {
            apply.whole = whole_calls(&batch.ops);
            apply.hashes = RowHashes::of(&batch.ops);
        }
        for (op, number) in batch.ops.iter().zip(batch.first..) {
            if !refused.is_empty()
                && let Some(outcome) = refused::close_without_hold(&mut refused, &mut apply, op)?
            {
                outcomes.push(outcome);
                failed.push(number);
                continue;
            }
            let written = if isolate { write_alone(&tx, &mut apply, op)? } else { Some(apply.write(op)?) };
            if written.is_none() {
                refused::remember(&mut refused, op);
                failed.push(number);
            }
            outcomes.push(written.unwrap_or(Outcome::Plain));
        }
        apply.flush()?;
        if let Some(moved) = &moved {
            moved.write(&tx)?;
        }
        let Apply { new_prices, holds, ends, .. } = &mut apply;
        let (new_prices, holds, ends) = (std::mem::take(new_prices), std::mem::take(holds), std::mem::take(ends));
        let next_seq = apply.next_seq();
        drop(apply);
        #[cfg(feature = "testing")]
        crate::testing::disk_is_full(&self.wal)?;
        tx.commit()?;
        if let Some(moved) = moved {
            self.watermark_at = Some(Instant::now());
            self.old.moved(moved);
        }
        Ok(Committed { outcomes, failed, refused, new_prices, holds, ends, next_seq })
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
        shared.known_prices.add(committed.new_prices);
        let (last, len) = (batch.last(), batch.ops.len() as u64);
        shared.credit_books(&batch.ops, &committed.outcomes);
        self.refused = committed.refused;
        for number in &committed.failed {
            self.keep_close(batch.op(*number));
        }
        {
            let mut books = lock(&shared.books);
            books.writing_since = None;
            books.durable = last;
            for number in &committed.failed {
                batch.op(*number).into_iter().for_each(|op| books.take_back(op, &mut self.refused));
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

    /// A close that was left out while its hold is in the ledger: the next start tries it again. A
    /// task's is found out again instead.
    fn keep_close(&self, op: Option<&Op>) {
        let Some(Op::Close(close)) = op else { return };
        if close.task.is_none() && self.refused.get(&close.call) != Some(&RefusedCall::Hold) {
            self.shared.journal.keep_close(close.call);
        }
    }

    pub fn checkpoint(&self) {
        if let Err(error) = self.conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::debug!(%error, "checkpoint put off");
        }
    }
}

/// Writes one operation so that it can be left out; `None`: the database refuses it for good.
fn write_alone(tx: &Connection, apply: &mut Apply<'_>, op: &Op) -> rusqlite::Result<Option<Outcome>> {
    tx.execute_batch("SAVEPOINT one")?;
    let before = apply.mark();
    match apply.write(op).and_then(|outcome| apply.flush().map(|()| outcome)) {
        Ok(outcome) => {
            tx.execute_batch("RELEASE one")?;
            Ok(Some(outcome))
        }
        Err(error) if is_refusal(&error) => {
            tracing::error!(%error, call = op.call().map(tracing::field::display), "left out an operation the database refuses");
            tx.execute_batch("ROLLBACK TO one; RELEASE one")?;
            apply.discard(before);
            Ok(None)
        }
        Err(error) => Err(error),
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
    fn send<T>(reply: CommitReply<T>, value: Result<T, StoreError>) {
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
            | Op::Revoke(_, reply)
            | Op::Change(_, reply)
            | Op::Webhook(_, reply)
            | Op::Social(_, reply)
            | Op::RouteHealth(_, reply)
            | Op::Task(_, reply)
            | Op::Operator(_, reply)
            | Op::SigningSecrets(_, _, reply)
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
        (Op::Money(_, reply), Outcome::Money(value)) => send(reply, value),
        (Op::Money(_, reply), _) => send(reply, Err(refused())),
        (Op::TakeWebhooks { reply, .. }, Outcome::Webhooks(taken)) => send(reply, Ok(taken)),
        (Op::TakeWebhooks { reply, .. }, _) => send(reply, Err(refused())),
        (
            Op::ForgetIdem { reply, .. }
            | Op::FillSums(_, reply)
            | Op::FoldSums(_, reply)
            | Op::ClientSecret(_, reply)
            | Op::Manage(_, reply)
            | Op::WorkflowRun(_, reply)
            | Op::People(_, reply)
            | Op::Probe(_, reply),
            outcome,
        ) => {
            let Outcome::Count(count) = outcome else { return send(reply, Err(refused())) };
            send(reply, Ok(count));
        }
        (
            Op::Hold(_) | Op::Extend(_) | Op::Close(_) | Op::Refusal(_) | Op::Lapse(_) | Op::Clock(_) | Op::Recount(..),
            _,
        ) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn what_cannot_help_is_not_tried_again_and_what_may_pass_is() {
        let failed = |code| is_refusal(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        for code in [ffi::SQLITE_CONSTRAINT, ffi::SQLITE_CONSTRAINT_TRIGGER, ffi::SQLITE_MISMATCH, ffi::SQLITE_TOOBIG] {
            assert!(failed(code), "{code}");
        }
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED, ffi::SQLITE_IOERR, ffi::SQLITE_READONLY] {
            assert!(!failed(code), "{code}");
        }
        assert!(is_refusal(&rusqlite::Error::QueryReturnedNoRows), "a row that should be there");
    }
}
