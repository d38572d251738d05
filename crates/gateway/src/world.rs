//! Time, randomness and names of hosts as values. Nothing in this crate reads a clock or the
//! system's randomness by itself, so that a test can own both.

use crate::machine::Machine;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tollgate_store::{Clock, FillRandom, NowMs};
use tollgate_upstream::NameSource;

/// Milliseconds since 1970-01-01 UTC.
pub type Millis = i64;

/// Where the time and the random bytes of a process come from.
#[derive(Clone)]
pub struct World {
    now: NowMs,
    fill: FillRandom,
    steady: NowMs,
    /// For so long a look at the wall clock lasts.
    wall_lasts: Duration,
    /// The clock of the store, once it is open: the wall clock as far as it is believed.
    trusted: Option<Arc<Clock>>,
    /// The clock of the database where it is not asked for it: in tests.
    database: Option<NowMs>,
    /// Names of addresses that others wrote down, where not the system's.
    names: Option<NameSource>,
    machine: Machine,
}

impl World {
    pub fn new(
        now: impl Fn() -> Millis + Send + Sync + 'static,
        fill: impl Fn(&mut [u8]) + Send + Sync + 'static,
    ) -> World {
        // The wall clock and the steady clock at the same moment.
        let began = (now(), Instant::now());
        let steady = move || {
            // Without the wide division of `as_millis`: every call asks several times.
            let since = began.1.elapsed();
            let seconds = Millis::try_from(since.as_secs()).unwrap_or(Millis::MAX).saturating_mul(1_000);
            began.0.saturating_add(seconds).saturating_add(Millis::from(since.subsec_millis()))
        };
        World {
            now: Arc::new(now),
            fill: Arc::new(fill),
            steady: Arc::new(steady),
            wall_lasts: Duration::ZERO,
            trusted: None,
            database: None,
            names: None,
            machine: Machine::default(),
        }
    }

    /// The time that the ledger goes by; before there is one, the wall clock.
    pub fn now_ms(&self) -> Millis {
        self.trusted.as_ref().map_or_else(|| (self.now)(), |clock| clock.now())
    }

    /// The time that is certain: whatever is erased for good is erased by it.
    pub fn sure_ms(&self) -> Millis {
        self.trusted.as_ref().map_or_else(|| (self.now)(), |clock| clock.sure())
    }

    /// The same world, going by the store's clock.
    pub fn trusting(self, clock: Arc<Clock>) -> World {
        World { trusted: Some(clock), ..self }
    }

    /// The same world, whose wall clock is looked at so often at most where it is right.
    pub fn looking_every(self, wall_lasts: Duration) -> World {
        World { wall_lasts, ..self }
    }

    /// The same world with a database that goes by this clock.
    pub fn with_database(self, clock: impl Fn() -> Millis + Send + Sync + 'static) -> World {
        World { database: Some(Arc::new(clock)), ..self }
    }

    /// A clock that does not jump: the wall clock of the start and the time since. Ages are
    /// measured with it, so that a wall clock set forward ends no hold early.
    pub fn steady_ms(&self) -> Millis {
        (self.steady)()
    }

    /// The same world with another clock that does not jump: one that a test lets pass.
    pub fn steadily(self, steady: impl Fn() -> Millis + Send + Sync + 'static) -> World {
        World { steady: Arc::new(steady), ..self }
    }

    pub fn fill(&self, bytes: &mut [u8]) {
        (self.fill)(bytes);
    }

    /// The same world, in which some names lead elsewhere.
    pub fn naming(self, names: NameSource) -> World {
        World { names: Some(names), ..self }
    }

    pub fn names(&self) -> Option<NameSource> {
        self.names.clone()
    }

    /// The same world on this machine.
    pub fn on(self, machine: Machine) -> World {
        World { machine, ..self }
    }

    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// The same sources in the form the store takes them.
    pub fn for_store(&self) -> tollgate_store::Clocks {
        let now = match self.trusted.clone() {
            Some(clock) => Arc::new(move || clock.now()),
            None => self.now.clone(),
        };
        tollgate_store::Clocks {
            now_ms: now,
            steady_ms: self.steady.clone(),
            wall_lasts: self.wall_lasts,
            database_ms: self.database.clone(),
            random: self.fill.clone(),
        }
    }
}

/// A clock that a test moves by hand.
#[derive(Clone, Default)]
pub struct HandClock(Arc<AtomicI64>);

impl HandClock {
    pub fn at(ms: Millis) -> HandClock {
        HandClock(Arc::new(AtomicI64::new(ms)))
    }

    pub fn now(&self) -> Millis {
        self.0.load(Ordering::Relaxed)
    }

    pub fn advance(&self, ms: Millis) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}
