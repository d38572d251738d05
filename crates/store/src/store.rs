//! The verbs, by noun in the files of `store/`. Each goes to one of two engines; a storage engine
//! is a closed set, so this is an enum and not a trait.

use std::sync::Arc;

use crate::call::StoredReply;
use crate::call::refusals::{RefusalRow, Refusals};
use crate::clock::{Clock, ClockState};
use crate::error::StoreError;
use crate::receipt::Signed;
use crate::report::{Gauges, Recovered, Swept};
use crate::world::{Clocks, DataLocation, Options};
use crate::{postgres, sqlite};

/// The store. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    refusals: Arc<Refusals>,
    /// Changes of accounts and keys take turns, so that none is lost that was not seen.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// [`Options::lost_reply`].
    lost_reply: fn(&str) -> Option<StoredReply>,
}

#[derive(Clone)]
enum Engine {
    Sqlite(Arc<sqlite::SqliteEngine>),
    Postgres(Arc<postgres::PostgresEngine>),
}

/// A store ready for use, and what opening it had to put right.
pub struct OpenedStore {
    pub store: Store,
    pub recovered: Recovered,
}

/// The answer to a wish for a receipt.
pub enum Receipted {
    Signed(Box<Signed>),
    /// The call runs: what it will cost is not known.
    StillOpen,
    NoSuchCall,
}

/// What is awaited of PostgreSQL is apart: its futures have 5 KB, and every call would carry and
/// move room for them, on SQLite too.
macro_rules! on_engine {
    ($self:ident, $engine:ident => $same:ident.$verb:ident($($word:tt)*).await) => {
        match &$self.engine {
            Engine::Sqlite($engine) => $same.$verb($($word)*).await,
            Engine::Postgres($engine) => Box::pin($same.$verb($($word)*)).await,
        }
    };
    ($self:ident, $engine:ident => $body:expr) => {
        match &$self.engine {
            Engine::Sqlite($engine) => $body,
            Engine::Postgres($engine) => $body,
        }
    };
}

mod account_letters;
mod accounts;
mod alerts;
mod calls;
mod catalogs;
mod client_secrets;
pub(crate) mod closing;
mod deliveries;
mod export_files;
mod invites;
mod issuers;
mod jobs;
mod keys;
mod ledger;
mod live;
mod manage;
mod measures;
mod notices;
mod operators;
mod outbox;
pub(crate) mod passkeys;
mod payments;
mod people;
mod probes;
mod receipts;
mod responses;
mod route_health;
mod sessions;
mod social;
mod statements;
pub(crate) mod sums;
mod tasks;
mod trials;
mod workflow_runs;

impl Store {
    /// Opens the place, brings the schema up to date, replays the journal and resolves what a crash
    /// left open.
    pub async fn open(place: DataLocation, options: Options, world: Clocks) -> Result<OpenedStore, StoreError> {
        let lost_reply = options.lost_reply;
        let (engine, recovered) = if place.url == "sqlite" {
            let (engine, recovered) = sqlite::SqliteEngine::open(&place, options, world).await?;
            (Engine::Sqlite(engine), recovered)
        } else if place.url.starts_with("postgres://") || place.url.starts_with("postgresql://") {
            let (engine, recovered) = postgres::PostgresEngine::open(&place, options, world).await?;
            (Engine::Postgres(engine), recovered)
        } else {
            return Err(StoreError::broken("the database must be `sqlite` or `postgres://…`"));
        };
        let store = Self { engine, refusals: Arc::default(), changing: Arc::default(), lost_reply };
        Ok(OpenedStore { store, recovered })
    }

    /// Commits all that is queued and stops. Calls still open stay open; the next start resolves
    /// them.
    pub async fn shut(&self) {
        self.write_refusals(self.refusals.due(None));
        on_engine!(self, e => e.shut().await);
    }

    /// Ready to take holds.
    pub fn ready(&self) -> bool {
        on_engine!(self, e => e.ready())
    }

    /// The time the store goes by. Whoever dates what it keeps goes by the same.
    pub fn clock(&self) -> Arc<Clock> {
        on_engine!(self, e => e.clock().clone())
    }

    pub fn clock_state(&self) -> ClockState {
        on_engine!(self, e => e.clock_state())
    }

    /// An operator has looked at the clock: it is right, whatever the store thinks of it.
    pub async fn accept_clock(&self) -> Result<ClockState, StoreError> {
        on_engine!(self, e => e.accept_clock().await)
    }

    pub fn gauges(&self) -> Gauges {
        Gauges { refusals_summed: self.refusals.summed(), ..on_engine!(self, e => e.gauges()) }
    }

    fn write_refusals(&self, rows: Vec<RefusalRow>) {
        for RefusalRow { call, account, reason, row } in rows {
            on_engine!(self, e => e.note_refusal(call, account, reason, row));
        }
    }

    /// Resolves holds past their time (and those of dead replicas), forgets old idempotency keys,
    /// takes back trial credit past its time.
    pub async fn sweep(&self, now: i64) -> Result<Swept, StoreError> {
        self.write_refusals(self.refusals.due(Some(on_engine!(self, e => e.now()))));
        on_engine!(self, e => e.sweep(now).await)
    }

    /// Says that this replica lives; every five seconds or so.
    pub async fn beat(&self) -> Result<(), StoreError> {
        on_engine!(self, e => e.beat().await)
    }
}
