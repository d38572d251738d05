//! What an experiment of `make chaos` says: one line with its counts. In a test run each has one
//! round; `make chaos` gives it minutes, and it goes on for as long.

use crate::seen::{Record, by_kind};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub struct Experiment {
    name: &'static str,
    began: Instant,
    /// In the order in which they were first counted.
    counts: Vec<(String, u64)>,
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
        Self { name, began: Instant::now(), counts: Vec::new(), rounds: 0 }
    }

    /// Once more? The first time always.
    pub fn more(&mut self) -> bool {
        self.rounds += 1;
        self.rounds == 1 || time().is_some_and(|time| self.began.elapsed() < time)
    }

    pub fn count(&mut self, what: &str, number: impl TryInto<u64>) {
        let number = number.try_into().unwrap_or(u64::MAX);
        match self.counts.iter_mut().find(|(name, _)| name == what) {
            Some((_, sum)) => *sum += number,
            None => self.counts.push((what.to_owned(), number)),
        }
    }

    /// What clients saw of a mixed load, for each kind, and how its videos ended.
    pub fn seen(&mut self, records: &[Record], ends: BTreeMap<&'static str, usize>) {
        self.count("calls", records.len());
        for (what, count) in by_kind(records) {
            self.count(&what, count);
        }
        for (end, count) in ends {
            self.count(end, count);
        }
    }

    pub fn counted(&self, what: &str) -> u64 {
        self.counts.iter().find(|(name, _)| name == what).map_or(0, |(_, number)| *number)
    }

    /// The line. An experiment that found something wrong has panicked before.
    pub fn end(self) {
        let counts: Vec<String> = self.counts.iter().map(|(what, number)| format!("{number} {what}")).collect();
        println!("chaos: {}: {}; 0 violations ({} s)", self.name, counts.join(", "), self.began.elapsed().as_secs());
    }
}
