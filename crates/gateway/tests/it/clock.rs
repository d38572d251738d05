//! The clock of a test's house.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tollgate_gateway::world::World;

/// The clock of a house: the real one, which a test may set forward or back, or make the life of a
/// call stumble over.
#[derive(Clone, Default)]
pub struct Clock {
    /// A moment at which the clock stands still.
    fixed: Option<i64>,
    shift: Arc<AtomicI64>,
    /// Time that has passed beside the real one.
    passed: Arc<AtomicI64>,
    trap: Arc<Mutex<Option<&'static str>>>,
}

impl Clock {
    /// One that stands still at this moment, if one is given.
    pub fn standing(fixed: Option<i64>) -> Clock {
        Clock { fixed, ..Clock::default() }
    }

    /// The wall clock is set; no time passes.
    pub fn set(&self, ms: i64) {
        self.shift.store(ms, Ordering::SeqCst);
    }

    /// So much time has passed since the beginning, beside the real one.
    pub fn pass(&self, ms: i64) {
        self.set(ms);
        self.passed.store(ms, Ordering::SeqCst);
    }

    /// The next look at the clock by a call that waits for its provider panics.
    pub fn trap(&self) {
        self.trap_in("tollgate_gateway::call::answer::");
    }

    /// The next look at the clock from inside this function or file panics.
    pub fn trap_in(&self, place: &'static str) {
        *self.trap.lock().expect("a lock") = Some(place);
    }

    fn stumbles(&self) -> bool {
        let place = *self.trap.lock().expect("a lock");
        let Some(place) = place else { return false };
        let here = std::backtrace::Backtrace::force_capture().to_string().contains(place);
        here && self.trap.lock().expect("a lock").take().is_some()
    }

    #[expect(clippy::disallowed_methods, reason = "tests run in real time")]
    fn now(&self) -> i64 {
        assert!(!self.stumbles(), "on purpose, in the middle of a call");
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.fixed.unwrap_or_else(|| i64::try_from(real).unwrap_or(0)) + self.shift.load(Ordering::SeqCst)
    }
}

pub fn world(clock: &Clock) -> World {
    let (clock, passed, database) = (clock.clone(), clock.passed.clone(), clock.clone());
    let began = (clock.now(), tokio::time::Instant::now());
    World::new(
        move || clock.now(),
        |bytes| {
            use std::io::Read as _;
            std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes)).expect("random bytes");
        },
    )
    .steadily(move || {
        let since = i64::try_from(began.1.elapsed().as_millis()).unwrap_or(i64::MAX);
        began.0 + since + passed.load(Ordering::SeqCst)
    })
    .with_database(move || database.now())
}
