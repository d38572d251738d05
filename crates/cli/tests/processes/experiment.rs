//! What an experiment of `make chaos` says: one line with its counts. In a test run each has one round; `make chaos` gives it
//! minutes, and it goes on for as long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub struct Experiment {
    name: &'static str,
    began: Instant,
    counts: BTreeMap<String, u64>,
    rounds: u64,
}

/// The time an experiment has, in `make chaos`.
#[expect(clippy::disallowed_methods, reason = "how long to go on is said from outside")]
fn time() -> Option<Duration> {
    let minutes: u64 = std::env::var("TOLLGATE_CHAOS_MINUTES").ok()?.parse().expect("a number of minutes");
    Some(Duration::from_secs(minutes * 60))
}

/// Whether this is `make chaos`, with its larger sizes.
pub fn long() -> bool {
    time().is_some()
}

impl Experiment {
    pub fn new(name: &'static str) -> Self {
        Self { name, began: Instant::now(), counts: BTreeMap::new(), rounds: 0 }
    }

    /// Once more? The first time always.
    pub fn more(&mut self) -> bool {
        self.rounds += 1;
        self.rounds == 1 || time().is_some_and(|time| self.began.elapsed() < time)
    }

    pub fn count(&mut self, what: &str, number: impl TryInto<u64>) {
        *self.counts.entry(what.to_owned()).or_default() += number.try_into().unwrap_or(u64::MAX);
    }

    pub fn counted(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// The line. An experiment that found something wrong has panicked before.
    pub fn end(self) {
        let counts: Vec<String> = self.counts.iter().map(|(what, number)| format!("{number} {what}")).collect();
        println!("chaos: {}: {}; 0 violations ({} s)", self.name, counts.join(", "), self.began.elapsed().as_secs());
    }
}
