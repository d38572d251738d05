//! The engine for several replicas: one PostgreSQL database. Each process gathers its operations
//! into groups (`batch`). Plain ones are decided by the process, under the locks of their accounts
//! (`plain`), all others by the functions in `functions.sql`. Closes go through the local journal
//! first, as on SQLite.

mod address;
mod audit;
mod batch;
mod calls;
mod changed_keys;
mod changes;
mod client_secrets;
mod clock;
mod codes;
mod connect;
mod events;
mod fold;
mod functions;
mod live;
mod manage;
mod merge;
mod migrate;
mod operator;
mod ops;
mod packed;
mod payments;
mod people;
mod plain;
mod probes;
mod queue;
mod queued;
mod receipts;
mod records;
mod recover;
mod responses;
mod route_health;
mod rows;
mod social;
mod statement;
mod sums;
mod tasks;
mod tls;
mod trust;
mod watch;
mod workflow_runs;
mod zones;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::task::JoinSet;
use tollgate_catalog::Money;

use crate::call::price::KnownPrices;
use crate::clock::Clock;
use crate::error::StoreError;
use crate::ids::{CallId, IdMap, Maker};
use crate::journal::Journal;
use crate::report::{Gauges, Recovered};
use crate::verify::Audited;
use crate::world::{Clocks, DataLocation, Options};
use clock::DatabaseClock;
use connect::PgConnector;
pub(crate) use connect::peek_catalog;
#[cfg(test)]
pub(crate) use migrate::MIGRATIONS;
use queue::{OpReply, PendingOp, Queue};
use watch::Watch;

pub(crate) struct PostgresEngine {
    shared: Arc<Shared>,
    connector: PgConnector,
    tasks: Mutex<JoinSet<()>>,
    total: responses::Total,
    ids: Maker,
    options: Options,
    world: Clocks,
    clock: Arc<Clock>,
    database: DatabaseClock,
    /// Held for as long as the engine lives: journal and replica identity belong to one process.
    _owner: File,
}

/// What the batching task and the callers share.
struct Shared {
    queue: Queue,
    journal: Journal,
    known_prices: KnownPrices,
    /// Calls of this replica that have a hold and no end yet.
    open: Mutex<IdMap<CallId, Running>>,
    replica: [u8; 16],
    /// What we have seen of the other replicas.
    watch: Mutex<Watch>,
    /// Where operations go that the database refuses for good.
    refused: PathBuf,
    down: AtomicBool,
    queries: AtomicU64,
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

/// A call that goes on here.
struct Running {
    /// When its hold was taken, by the clock that does not jump.
    at: i64,
    /// Another replica has ended its hold, because it took us for dead. The call goes on, leaves
    /// marks, and is charged after all.
    given_up: bool,
}

/// One JSON line for each operation that the database refuses for good.
const REFUSED: &str = "refused.jsonl";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Shared {
    fn new(journal: Journal, replica: [u8; 16], refused: PathBuf) -> Self {
        Self {
            queue: Queue::default(),
            journal,
            known_prices: KnownPrices::default(),
            open: Mutex::default(),
            replica,
            watch: Mutex::default(),
            refused,
            down: AtomicBool::new(false),
            queries: AtomicU64::new(0),
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

    /// An operation left out of the ledger is stored beside it, without the answer it may carry,
    /// for people to look at; a close also in the journal, for the next start.
    fn keep_refused(&self, pending: &PendingOp) {
        if let OpReply::Close(closer) = &pending.answer {
            self.journal.keep_close(closer.call);
        }
        let mut op: serde_json::Value = serde_json::from_str(&pending.op.written(&self.replica)).unwrap_or_default();
        if let Some(op) = op.as_object_mut() {
            op.remove("reply");
        }
        let file = crate::owner::private().create(true).append(true).open(&self.refused);
        if let Err(error) = file.and_then(|mut file| writeln!(file, "{op}")) {
            tracing::error!(%error, "cannot keep a refused operation");
        }
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
}

impl PostgresEngine {
    pub async fn open(
        place: &DataLocation,
        options: Options,
        world: Clocks,
    ) -> Result<(Arc<Self>, Recovered), StoreError> {
        let at = |error: StoreError| error.at(&place.data_dir);
        crate::owner::make_folder(&place.data_dir).map_err(at)?;
        let owner = crate::owner::own(&place.data_dir).map_err(at)?;
        let replica = crate::owner::replica_id(&place.data_dir, &world).map_err(at)?;
        let (journal, records) = Journal::open(&place.data_dir, &options).map_err(|error| at(error.into()))?;
        let connector = PgConnector::new(&place.url, functions::of(&options))?;
        connector.migrate(&replica, &crate::migration::of(migrate::MIGRATIONS, &options)).await?;
        let database = DatabaseClock::new(&world);
        let (clock, world) = database.start(&connector, &options, &world).await?;
        receipts::make_first(&connector, &world).await?;
        let shared = Arc::new(Shared::new(journal, replica, place.data_dir.join(REFUSED)));
        let mut tasks = JoinSet::new();
        let merger = merge::Merger::new(connector.clone(), options.sums_apart);
        tasks.spawn(batch::run(shared.clone(), connector.clone(), merger, options.commit_pace, options.hold_deadline));
        let engine = Arc::new(Self {
            shared,
            connector,
            tasks: Mutex::new(tasks),
            total: responses::Total::default(),
            ids: Maker::new(world.clone()),
            options,
            world,
            clock,
            database,
            _owner: owner,
        });
        engine.beat().await?;
        let recovered = engine.recover(records).await?;
        engine.release_tasks().await?;
        Ok((engine, recovered))
    }

    pub fn now(&self) -> i64 {
        (self.world.now_ms)()
    }

    /// By the clock that does not jump.
    pub fn steady(&self) -> i64 {
        (self.world.steady_ms)()
    }

    pub fn ready(&self) -> bool {
        !self.shared.down.load(Ordering::Acquire)
            && self.shared.journal.accepts(self.shared.queue.durable())
            && !self.shared.queue.is_stopped()
    }

    pub fn gauges(&self) -> Gauges {
        let s = &self.shared;
        let now = self.steady();
        let (queue_len, settle_lag_ms) = s.queue.waiting();
        let mut g = Gauges {
            queue_len,
            settle_lag_ms,
            journal_bytes: s.journal.waiting_bytes(s.queue.durable()),
            down: s.down.load(Ordering::Relaxed),
            queries: s.queries.load(Ordering::Relaxed),
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
        let open = lock(&s.open);
        g.count_open(open.values().filter(|call| !call.given_up).map(|call| now.saturating_sub(call.at)));
        drop(open);
        g
    }

    /// Writes what is queued and stops. What cannot be written in time stays in the journal.
    pub async fn shut(&self) {
        self.shared.queue.stop();
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        let all = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(std::time::Duration::from_secs(5), all).await.is_err() {
            tracing::error!("the database did not take the last operations; the journal keeps them");
        }
        tasks.shutdown().await;
    }
}
