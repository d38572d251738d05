//! Opening the embedded engine: one owner, the schema, the books, the journal, then whatever a
//! crash left open.

pub(super) mod migrate;
pub(super) mod old_holds;
pub(super) mod recover;

use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rusqlite::{Connection, OptionalExtension, Row, params};

use self::old_holds::OldHolds;
use super::books::leases::Since;
use super::books::{Books, IdemKeys, IdemState, KeyBalance};
use super::read::{self, Readers};
use super::stored::ResponseStore;
use super::writer::SqliteWriter;
use super::writer::ops::UnsettledHold;
use super::{Shared, SqliteEngine, receipts};
use crate::account::limits::Used;
use crate::account::lots;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, IdMap, KeyId, Maker};
use crate::journal::Journal;
use crate::journal::record::{self, JournalRecord};
use crate::ledger::{EntryKind, Pots, op_id};
use crate::migration::{self, Migration};
use crate::report::Recovered;
use crate::world::{Clocks, DataLocation, Options};

pub(crate) const FILE: &str = "tollgate.db";
/// After a start every open task is looked at within this time.
const LATEST_LOOK: i64 = 60_000;
/// How long the database's log gets before it is brought into the file, and how many KiB of pages
/// the writer keeps.
pub(super) const AT_WORK: &str = "PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -4096";
/// While a crash is put right: its ends touch pages of many accounts again and again, and nobody
/// waits until they are in the file.
const AFTER_A_CRASH: &str = "PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -65536";
/// In order; see migration.rs.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration::new("schema", include_str!("schema.sql")),
    Migration::new("0002-client-secrets", include_str!("migrations/0002-client-secrets.sql")),
    Migration::new("0003-client-secret-uses", include_str!("migrations/0003-client-secret-uses.sql")),
    Migration::new("0004-route-health", include_str!("migrations/0004-route-health.sql")),
    Migration::new("0005-workflow-runs", include_str!("migrations/0005-workflow-runs.sql")),
    Migration::new("0006-usage-cost", include_str!("migrations/0006-usage-cost.sql")),
    Migration::new("0007-probes", include_str!("migrations/0007-probes.sql")),
    Migration::new("0008-usage-sums", include_str!("migrations/0008-usage-sums.sql")),
    Migration::new("0009-people", include_str!("migrations/0009-people.sql")),
    Migration::new("0010-account-api", include_str!("migrations/0010-account-api.sql")),
    Migration::new("0011-money-in", include_str!("migrations/0011-money-in.sql")),
    Migration::new("0012-alerts", include_str!("migrations/0012-alerts.sql")),
    Migration::new("0013-issuers", include_str!("migrations/0013-issuers.sql")),
    Migration::new("0014-catalog-jobs-trial", include_str!("migrations/0014-catalog-jobs-trial.sql")),
    Migration::new("0015-usage-days", include_str!("migrations/0015-usage-days.sql")),
    Migration::new("0016-passkeys", include_str!("migrations/0016-passkeys.sql")),
    Migration::new("0017-usage-blocks", include_str!("migrations/0017-usage-blocks.sql")),
    Migration::new("0018-session-roles", include_str!("migrations/0018-session-roles.sql")),
    Migration::new("0019-members-and-ends", include_str!("migrations/0019-members-and-ends.sql")),
    Migration::new("0020-usage-unmerged", include_str!("migrations/0020-usage-unmerged.sql")),
    Migration::new("0021-usage-apart", include_str!("migrations/0021-usage-apart.sql")),
    Migration::new("0022-usage-packed", include_str!("migrations/0022-usage-packed.sql")),
    Migration::new("0023-exports-and-letters", include_str!("migrations/0023-exports-and-letters.sql")),
    Migration::new("0024-whole-calls", include_str!("migrations/0024-whole-calls.sql")),
    Migration::new("0025-last-entry", include_str!("migrations/0025-last-entry.sql")),
    Migration::new("0026-link", include_str!("migrations/0026-link.sql")),
    Migration::new("0027-given", include_str!("migrations/0027-given.sql")),
    Migration::new("0028-holds-found", include_str!("migrations/0028-holds-found.sql")),
];

impl SqliteEngine {
    pub async fn open(
        place: &DataLocation,
        options: Options,
        world: Clocks,
    ) -> Result<(Arc<Self>, Recovered), StoreError> {
        let dir = place.data_dir.clone();
        // On a thread that may wait for the disk; a simulation has only one.
        let here = options.is_simulated();
        let prepare = move || Self::prepare(&dir, options, world);
        let (engine, records) = if here {
            prepare()?
        } else {
            tokio::task::spawn_blocking(prepare).await.map_err(StoreError::broken)??
        };
        let recovered = engine.recover(records).await?;
        Ok((engine, recovered))
    }

    fn prepare(dir: &Path, options: Options, world: Clocks) -> Result<(Arc<Self>, Records), StoreError> {
        crate::owner::make_folder(dir).map_err(|error| error.at(dir))?;
        let owner = crate::owner::own(dir).map_err(|error| error.at(dir))?;
        let path = dir.join(FILE);
        let migrations = migration::of(MIGRATIONS, &options);
        let mut conn = connect(&path, &migrations)?;
        migrate::migrate(&mut conn, FILE, &migrations)?;
        // One process owns this file, so nobody is at work on any run.
        conn.execute("UPDATE workflow_run SET leased_until = 0 WHERE due_at IS NOT NULL", [])?;
        let responses = ResponseStore::open(dir, &options)?;
        let (clock, world) = super::clock::start(&conn, &options, &world)?;
        receipts::make_first(&conn, &world)?;
        let steady = (world.steady_ms)();
        let loads = || load(&conn, steady, clock.sure());
        let (opened, loaded) = both(options.is_simulated(), || open_journal(dir, &options), loads)?;
        let ((journal, records), Loaded { mut books, open, old, next_seq }) = (opened, loaded);
        if !records.is_empty() {
            conn.execute_batch(AFTER_A_CRASH)?;
        }
        books.clock = Some(clock.clone());
        books.behind_most = options.behind_most;
        let shared = Arc::new(Shared::new(owner, books, journal));
        let mut prices = conn.prepare("SELECT id FROM price")?;
        let known = prices.query_map([], |r| r.get(0))?.collect::<Result<Vec<[u8; 16]>, _>>()?;
        drop(prices);
        shared.known_prices.add(known);
        let writer = SqliteWriter {
            conn,
            shared: shared.clone(),
            pace: options.commit_pace,
            patience: options.commit_patience,
            next_seq,
            bounds: (options.reply_bytes, options.sums_apart),
            open,
            old: OldHolds::new(options.old_after, old),
            ends: IdMap::default(),
            refused: IdMap::default(),
            watermark_at: None,
            puts_right: !records.is_empty(),
            #[cfg(feature = "testing")]
            wal: dir.join(format!("{FILE}-wal")),
        };
        let threads = start_threads(writer, &options)?;
        let engine = Arc::new(Self {
            shared,
            readers: Readers::new(path, threads.is_empty()),
            responses,
            social: super::social::Days::default(),
            lines: super::turns::TurnQueues::default(),
            folding: tokio::sync::Mutex::default(),
            threads: Mutex::new(threads),
            ids: Maker::new(world.clone()),
            options,
            world,
            clock,
            clock_saved: AtomicI64::new(steady),
        });
        Ok((engine, records))
    }
}

/// The records of the journal; `None` is one that cannot be read.
type Records = Vec<Option<JournalRecord>>;

fn open_journal(dir: &Path, options: &Options) -> Result<(Journal, Records), StoreError> {
    let (journal, payloads) = Journal::open(dir, options).map_err(|error| StoreError::from(error).at(dir))?;
    let records = payloads.iter().map(|payload| record::read(payload)).collect();
    Ok((journal, records))
}

/// Both, at the same time where there are threads.
fn both<A: Send, B>(
    here: bool,
    one: impl FnOnce() -> Result<A, StoreError> + Send,
    other: impl FnOnce() -> Result<B, StoreError>,
) -> Result<(A, B), StoreError> {
    if here {
        return Ok((one()?, other()?));
    }
    std::thread::scope(|scope| {
        let one = std::thread::Builder::new().name("open".to_owned()).spawn_scoped(scope, one)?;
        let other = other();
        let one = one.join().map_err(|_| StoreError::away("the thread that reads the journal panicked"))?;
        Ok((one?, other?))
    })
}

/// None: writer and journal are in the hands of a simulation.
#[cfg_attr(not(feature = "testing"), expect(unused_variables, reason = "only a simulation goes without a thread"))]
fn start_threads(writer: SqliteWriter, options: &Options) -> Result<Vec<JoinHandle<()>>, StoreError> {
    #[cfg(feature = "testing")]
    if let Some(simulated) = &options.simulated {
        simulated.take(super::writer::stepping::Stepping::new(writer)?);
        return Ok(Vec::new());
    }
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    let shared = writer.shared.clone();
    Ok(vec![
        thread("ledger").spawn(move || writer.run())?,
        thread("journal").spawn(move || super::syncer::run(&shared))?,
    ])
}

fn connect(path: &Path, migrations: &[Migration]) -> Result<Connection, StoreError> {
    // Made by us, so that it and its companions are for us alone whatever the umask is.
    crate::owner::make_file(path)?;
    let conn = migrate::open(path, FILE, migrations)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch(AT_WORK)?;
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 20; PRAGMA foreign_keys = ON; \
         PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;",
    )?;
    Ok(conn)
}

/// What the writer and the callers begin with.
struct Loaded {
    books: Books,
    /// The entry of each open hold.
    open: IdMap<CallId, i64>,
    old: Vec<CallId>,
    next_seq: i64,
}

const ENTRY: &str = "SELECT seq, kind, call_id, account_id, key_id, trial, paid, at, price_id, model, endpoint, expires_at, \
     paid_only, lots FROM entry";

/// The books as the database has them: open holds with their accounts and keys; others come when
/// they are used. Of the ledger are read the old holds, each with what followed it up to the mark,
/// and all that comes after the mark.
fn load(conn: &Connection, now: i64, sure: i64) -> Result<Loaded, StoreError> {
    let (last_seq, last_at): (i64, i64) = conn
        .query_row("SELECT seq, at FROM entry ORDER BY seq DESC LIMIT 1", [], |r| Ok((r.get(0)?, r.get(1)?)))
        .optional()?
        .unwrap_or((0, 0));
    let (mark, old) = old_holds::read(conn)?;
    let mut books = Books::new(last_at);
    let mut seqs = IdMap::default();
    // By the index of the identities, all of which begin with the call.
    let mut of_call = conn.prepare(&format!("{ENTRY} WHERE op_id BETWEEN ?1 AND ?2 ORDER BY op_id"))?;
    for call in &old {
        let mut rows = of_call.query(params![op_id(&call.0, 0), op_id(&call.0, u8::MAX)])?;
        while let Some(r) = rows.next()? {
            if r.get::<_, i64>(0)? < mark {
                take_in(&mut books, &mut seqs, r)?;
            }
        }
    }
    let mut after = conn.prepare(&format!("{ENTRY} WHERE seq >= ?1 ORDER BY seq"))?;
    let mut rows = after.query(params![mark])?;
    while let Some(r) = rows.next()? {
        take_in(&mut books, &mut seqs, r)?;
    }
    load_owners(conn, &mut books)?;
    load_tasks(conn, &mut books, now, sure)?;
    load_running_idem(conn, &mut books)?;
    Ok(Loaded { books, open: seqs, old, next_seq: last_seq + 1 })
}

/// One entry: a hold opens, its end closes it.
fn take_in(books: &mut Books, seqs: &mut IdMap<CallId, i64>, r: &Row<'_>) -> Result<(), StoreError> {
    let call = r.get::<_, Option<[u8; 16]>>(2)?.map(CallId);
    let (Some(kind), Some(call)) = (EntryKind::from_code(r.get(1)?), call) else { return Ok(()) };
    let pots = Pots { trial: r.get(5)?, paid: r.get(6)? };
    let lots = lots::from_text(r.get::<_, Option<String>>(13)?.as_deref());
    let at: i64 = r.get(7)?;
    let seq: i64 = r.get(0)?;
    match kind {
        EntryKind::Hold => {
            let mut open = UnsettledHold {
                account: AccountId(r.get(3)?),
                key: KeyId(r.get(4)?),
                held: pots,
                lots,
                counted: Used::default(),
                extended: None,
                paid_only: r.get(12)?,
                at,
                expires_at: r.get(11)?,
                price_id: r.get(8)?,
                model: r.get(9)?,
                endpoint: r.get::<_, String>(10)?.into(),
                idem: None,
            };
            open.counted.add(at, pots.total());
            books.open.insert(call, open);
            seqs.insert(call, seq);
        }
        EntryKind::Settle | EntryKind::Void | EntryKind::Expire => {
            books.open.remove(&call);
            seqs.remove(&call);
        }
        EntryKind::Extend => {
            if let Some(open) = books.open.get_mut(&call) {
                open.held = open.held.plus(pots);
                open.lots.extend(lots);
                open.counted.add(at, pots.total());
            }
        }
        EntryKind::WriteOff
        | EntryKind::TopUp
        | EntryKind::Adjust
        | EntryKind::Refund
        | EntryKind::Lapse
        | EntryKind::Reopen => {}
    }
    Ok(())
}

fn load_owners(conn: &Connection, books: &mut Books) -> Result<(), StoreError> {
    for open in books.open.values() {
        if !books.accounts.contains_key(&open.account)
            && let Some(found) = read::account_balance(conn, open.account)?
        {
            books.accounts.insert(open.account, found);
        }
        if !books.keys.contains_key(&open.key)
            && let Some(found) = read::key(conn, open.key)?
        {
            books.keys.insert(open.key, KeyBalance::of(&found));
        }
    }
    Ok(())
}

/// Open tasks. Those whose creator was at work are due at once: it is gone. A clock that was set
/// back since they were written must not put the others off for long, nor make them younger than
/// they are by more than the time since. Nor may one that is ahead make them old: their age is
/// counted up to the time that is certain.
fn load_tasks(conn: &Connection, books: &mut Books, now: i64, sure: i64) -> Result<(), StoreError> {
    let sql = "SELECT call_id, CASE WHEN state < 2 THEN 0 ELSE due_at END, provider, quiet, created_at, unknown_since, \
               absent_since, made_since FROM task WHERE state < 5";
    let mut open = conn.prepare(sql)?;
    let mut rows = open.query([])?;
    while let Some(r) = rows.next()? {
        let provider: Option<String> = r.get(2)?;
        let due_at = r.get::<_, i64>(1)?.min(now.saturating_add(LATEST_LOOK));
        let age = |at: i64| sure.min(now).saturating_sub(at).max(0);
        let written = |column| Ok::<_, rusqlite::Error>(r.get::<_, Option<i64>>(column)?.map(|at| now - age(at)));
        let (begun, unknown, absent, made) = (written(4)?.unwrap_or(now), written(5)?, written(6)?, written(7)?);
        let since = Since { begun, unknown, absent, made };
        books.leases.load(CallId(r.get(0)?), due_at, provider.map(Into::into), r.get(3)?, since);
    }
    Ok(())
}

fn load_running_idem(conn: &Connection, books: &mut Books) -> Result<(), StoreError> {
    let mut running = conn.prepare("SELECT account_id, key_hash, fingerprint, call_id FROM idem WHERE done = 0")?;
    let mut rows = running.query([])?;
    while let Some(r) = rows.next()? {
        let (account, key_hash) = (AccountId(r.get(0)?), r.get(1)?);
        let call = CallId(r.get(3)?);
        if let Some(open) = books.open.get_mut(&call) {
            open.idem = Some(key_hash);
        }
        let known = IdemKeys { fingerprint: r.get(2)?, call, state: IdemState::Running, op: 0 };
        books.idem.insert((account, key_hash), known);
    }
    Ok(())
}
