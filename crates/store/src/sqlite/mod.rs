//! The embedded engine: one SQLite file owned by one process. Decisions are made in memory
//! (`books`), written in groups by one thread (`writer`, `apply`), and read by a few connections
//! apart (`read`).

mod books;
mod calls;
mod changes;
mod client_secrets;
mod clock;
mod codes;
pub(crate) mod fold;
mod live;
pub(crate) mod manage;
mod open;
mod operator;
mod payments;
mod people;
mod probes;
mod read;
mod receipts;
mod records;
mod responses;
mod route_health;
mod social;
mod statement;
mod stored;
pub(crate) mod sums;
mod syncer;
mod tasks;
mod turns;
mod unmerged;
mod workflow_runs;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use tollgate_catalog::Money;

use crate::account::{CreditKind, Pot};
use crate::call::Closed;
use crate::call::group::CommitGroup;
use crate::call::price::KnownPrices;
use crate::clock::Clock;
use crate::ids::Maker;
use crate::journal::Journal;
use crate::ledger::Pots;
use crate::report::Gauges;
use crate::verify::Audited;
use crate::world::{Clocks, Options};
use books::{Books, Nap};
pub(crate) use open::FILE;
#[cfg(test)]
pub(crate) use open::MIGRATIONS;
use read::Readers;
#[cfg(test)]
pub(crate) use stored::MIGRATIONS as RESPONSE_MIGRATIONS;
use writer::apply::Outcome;
use writer::ops::Op;

/// So many queued operations are committed at once, whoever waits.
const LARGE_GROUP: usize = 4_000;

pub(crate) struct SqliteEngine {
    shared: Arc<Shared>,
    readers: Readers,
    responses: stored::ResponseStore,
    social: social::Days,
    lines: turns::TurnQueues,
    /// The day that is added up.
    folding: tokio::sync::Mutex<Option<Box<fold::day::FoldingDay>>>,
    /// The writer and the syncer.
    threads: Mutex<Vec<JoinHandle<()>>>,
    ids: Maker,
    options: Options,
    world: Clocks,
    clock: Arc<Clock>,
    /// When the time was last saved, by the steady clock.
    clock_saved: AtomicI64,
}

/// What the writer thread and the callers share.
struct Shared {
    /// Held until the writer has ended: one process owns the data directory.
    _owner: File,
    books: Mutex<Books>,
    bell: Condvar,
    journal: Arc<Journal>,
    known_prices: KnownPrices,
    /// The last operation that is committed.
    durable: AtomicU64,
    down: AtomicBool,
    /// What the start found of a crash is put right.
    recovered: AtomicBool,
    commits: AtomicU64,
    committed_ops: AtomicU64,
    largest_group: AtomicU64,
    retries: AtomicU64,
    write_offs: AtomicI64,
    late_closes: AtomicU64,
    refusals_dropped: AtomicU64,
    breaches: AtomicU64,
    estimated: Mutex<BTreeMap<String, u64>>,
    /// What the last audit learnt, and the last entry it saw.
    audited: tokio::sync::Mutex<Option<Audited>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock was held cannot leave half a decision: every change under it is
    // arithmetic.
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Shared {
    fn new(owner: File, books: Books, journal: Journal) -> Self {
        Self {
            _owner: owner,
            books: Mutex::new(books),
            bell: Condvar::new(),
            journal: Arc::new(journal),
            known_prices: KnownPrices::default(),
            durable: AtomicU64::new(0),
            down: AtomicBool::new(false),
            recovered: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            committed_ops: AtomicU64::new(0),
            largest_group: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            write_offs: AtomicI64::new(0),
            late_closes: AtomicU64::new(0),
            refusals_dropped: AtomicU64::new(0),
            breaches: AtomicU64::new(0),
            estimated: Mutex::default(),
            audited: tokio::sync::Mutex::default(),
        }
    }

    fn count_write_off(&self, closed: &Closed) {
        if !closed.write_off.is_zero() {
            crate::ledger::bounds::add_to(&self.write_offs, closed.write_off.nano());
        }
    }

    fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// A close by our own count.
    fn count_estimated(&self, provider: Option<String>) {
        if let Some(provider) = provider {
            *lock(&self.estimated).entry(provider).or_default() += 1;
        }
    }

    fn set_down(&self, down: bool) {
        if self.down.swap(down, Ordering::AcqRel) != down {
            tracing::warn!(down, "the ledger's database changed state");
        }
    }

    /// Wakes the writer for an operation somebody waits for.
    fn ring(&self, mut books: MutexGuard<'_, Books>) {
        books.hurry = true;
        let sleeps = books.nap != Nap::Awake;
        if sleeps {
            books.nap = Nap::Awake;
        }
        drop(books);
        if sleeps {
            self.bell.notify_one();
        }
    }

    /// Makes sure the writer comes round in a while, for an operation nobody waits for; now, if
    /// many have gathered.
    fn nudge(&self, mut books: MutexGuard<'_, Books>) {
        if books.queue.len() >= LARGE_GROUP {
            return self.ring(books);
        }
        let asleep = books.nap == Nap::Asleep;
        if asleep {
            books.nap = Nap::Awake;
        }
        drop(books);
        if asleep {
            self.bell.notify_one();
        }
    }

    /// Somebody waits for what is queued.
    fn hurry(&self) {
        let books = lock(&self.books);
        if !books.queue.is_empty() {
            self.ring(books);
        }
    }

    /// Brings committed credits into the books in memory.
    fn credit_books(&self, ops: &[Op], outcomes: &[Outcome]) {
        for (op, outcome) in ops.iter().zip(outcomes) {
            let op = match op {
                Op::Credit(op, _) => op.as_ref(),
                Op::Money(op, _) => match op.credit() {
                    Some(credit) => credit,
                    None => continue,
                },
                _ => continue,
            };
            let mut books = lock(&self.books);
            let done = match outcome {
                Outcome::Credit(Ok(done)) => Some(done),
                Outcome::Money(Ok(done)) => done.credit.as_ref(),
                _ => None,
            };
            if let Some(account) = books.accounts.get_mut(&op.credit.account) {
                // What was taken in advance is given back first, then what really happened is
                // booked.
                account.available = account.available.plus(op.taken);
                account.available = account.available.plus(done.map_or(Pots::default(), |d| d.added));
                if done.is_none_or(|d| !d.applied) {
                    account.lots.give_back(&op.taken_lots);
                }
                if let Some(lot) = done.and_then(|d| d.lot.clone()) {
                    account.lots.add(lot);
                }
                let paid = op.credit.kind == CreditKind::TopUp && op.credit.pot == Pot::Paid;
                account.topped_up |= paid && done.is_some();
            }
            if let Some((key, amount)) = done.and_then(|d| d.unspent)
                && let Some(key) = books.keys.get_mut(&key)
            {
                key.spent -= amount;
            }
        }
    }
}

impl SqliteEngine {
    pub fn now(&self) -> i64 {
        (self.world.now_ms)()
    }

    /// By the clock that does not jump.
    pub fn steady(&self) -> i64 {
        (self.world.steady_ms)()
    }

    /// Somebody waits for what is queued.
    pub fn hurry(&self) {
        self.shared.hurry();
    }

    /// The group of what is queued (and a ring for it), and the number of the last operation.
    fn last_queued(&self) -> (Option<Arc<CommitGroup>>, u64) {
        let books = lock(&self.shared.books);
        let last = books.next_op - 1;
        if books.queue.is_empty() {
            return (None, last);
        }
        let group = books.group.clone();
        self.shared.ring(books);
        (Some(group), last)
    }

    /// Waits until everything queued so far is committed.
    async fn flush(&self) -> Result<(), crate::StoreError> {
        let (group, last) = self.last_queued();
        let until = tokio::time::Instant::now() + self.options.hold_deadline;
        if let Some(group) = group {
            // A refused operation of somebody else is not our trouble; waiting for operation 0
            // never is refused.
            return group.wait(0, Some(until)).await;
        }
        // Nothing is queued, but a group may be on its way to the disk.
        while self.shared.durable() < last {
            if tokio::time::Instant::now() > until {
                return Err(crate::StoreError::away("the commit takes too long"));
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Waits for what is queued, so that a caller reads what it wrote; not while the database takes
    /// nothing, for what it has stays readable.
    async fn catch_up(&self) {
        if !self.shared.down.load(Ordering::Acquire)
            && let Err(error) = self.flush().await
        {
            tracing::warn!(%error, "reading without what is still to be written");
        }
    }

    /// Whether calls are served: by the journal, as long as the database is not too far behind.
    pub fn ready(&self) -> bool {
        let (journal, durable) = (&self.shared.journal, self.shared.durable());
        let down = self.shared.down.load(Ordering::Acquire);
        let writable = if down { journal.suffices(durable) } else { journal.accepts(durable) };
        let books = lock(&self.shared.books);
        writable && !books.is_behind() && !books.stop
    }

    pub fn gauges(&self) -> Gauges {
        let s = &self.shared;
        let now = self.now();
        let mut g = Gauges {
            journal_bytes: s.journal.waiting_bytes(s.durable()),
            down: s.down.load(Ordering::Relaxed),
            queries: self.readers.asked(),
            commits: s.commits.load(Ordering::Relaxed),
            committed_ops: s.committed_ops.load(Ordering::Relaxed),
            largest_group: s.largest_group.load(Ordering::Relaxed),
            retries: s.retries.load(Ordering::Relaxed),
            write_off_total: Money::from_nano(s.write_offs.load(Ordering::Relaxed)),
            late_closes: s.late_closes.load(Ordering::Relaxed),
            refusals_dropped: s.refusals_dropped.load(Ordering::Relaxed),
            breaches: s.breaches.load(Ordering::Relaxed),
            estimated: lock(&s.estimated).clone(),
            ..Gauges::default()
        };
        let books = lock(&s.books);
        let calls = books.open.iter().filter(|(call, _)| !books.leases.has(**call));
        g.count_open(calls.map(|(_, o)| now.saturating_sub(o.at)));
        g.task_holds = (books.open.len() as u64).saturating_sub(g.open_holds);
        g.queue_len = books.next_op - 1 - s.durable().min(books.next_op - 1);
        g.settle_lag_ms = u64::try_from(books.behind().as_millis()).unwrap_or(u64::MAX);
        g
    }

    pub async fn shut(&self) {
        {
            let mut books = lock(&self.shared.books);
            if !books.stop {
                books.push(Op::Clock(self.clock.saved()));
            }
            books.stop = true;
        }
        self.shared.bell.notify_all();
        self.shared.journal.stop();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("a thread of the ledger did not end well");
            }
        }
    }
}

impl Drop for SqliteEngine {
    fn drop(&mut self) {
        // Only a message: the threads write what is queued and end.
        lock(&self.shared.books).stop = true;
        self.shared.bell.notify_all();
        self.shared.journal.stop();
    }
}
