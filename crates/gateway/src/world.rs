//! Time, randomness and names of hosts as values. Nothing in this crate reads a clock or the system's randomness by itself,
//! so that a test can own both.

use crate::machine::Machine;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::time::Instant;
use tollgate_store::{FillRandom, NowMs};
use tollgate_upstream::Names;

/// Milliseconds since 1970-01-01 UTC.
pub type Millis = i64;

/// Where the time and the random bytes of a process come from.
#[derive(Clone)]
pub struct World {
    now: NowMs,
    fill: FillRandom,
    steady: NowMs,
    /// Names of addresses that others wrote down, where not the system's.
    names: Option<Names>,
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
            let since = Millis::try_from(began.1.elapsed().as_millis()).unwrap_or(Millis::MAX);
            began.0.saturating_add(since)
        };
        World {
            now: Arc::new(now),
            fill: Arc::new(fill),
            steady: Arc::new(steady),
            names: None,
            machine: Machine::default(),
        }
    }

    pub fn now_ms(&self) -> Millis {
        (self.now)()
    }

    /// A clock that does not jump: the wall clock of the start and the time since. Ages are measured with it, so that a
    /// wall clock set forward ends no hold early.
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
    pub fn naming(self, names: Names) -> World {
        World { names: Some(names), ..self }
    }

    pub fn names(&self) -> Option<Names> {
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
    pub fn for_store(&self) -> tollgate_store::World {
        tollgate_store::World { now_ms: self.now.clone(), steady_ms: self.steady.clone(), random: self.fill.clone() }
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
