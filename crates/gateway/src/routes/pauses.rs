//! Provider and model pairs that do not report usage are paused (docs/money-rules.md R7): what they
//! deliver is charged by our own count, and more than a few of such rows mean that somebody pays
//! wrongly.
//!
//! Counted are completed calls only: a client that left has no report, and that is nobody's fault.
//! A paused pair is skipped by routing. After a while one call is let through; if it comes with a
//! report the pair is back, if not it waits again.

use crate::metrics::Metrics;
use crate::world::Millis;
use foldhash::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tollgate_upstream::Provider;

/// The window of an hour is made of twelve parts.
const PARTS: usize = 12;
const PART_MS: Millis = 3_600_000 / PARTS as Millis;
/// A probe that did not end in an answer (a fault, a client that left) says nothing; then the next
/// call is one.
const PROBE_MS: Millis = 60_000;

#[derive(Default)]
pub struct Pauses {
    /// Pairs that are not open: nearly always none, and then nobody needs the map.
    shut: AtomicUsize,
    pairs: Mutex<HashMap<String, HashMap<String, Pair>>>,
}

#[derive(Default)]
struct Pair {
    state: State,
    /// Completed calls and those without a report, by part of the window.
    rows: [(u64, u64); PARTS],
    /// The part that is being filled, counted from the beginning of time.
    part: Millis,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Paused {
        until: Millis,
    },
    Probing {
        since: Millis,
    },
}

impl Pauses {
    /// May a call go this way now? `now` is of the steady clock.
    pub fn lets(&self, provider: &Provider, model: &str, now: Millis) -> bool {
        if self.shut.load(Ordering::Relaxed) == 0 || provider.settings.estimated_percent == 0 {
            return true;
        }
        let mut pairs = self.lock();
        let Some(pair) = pairs.get_mut(&provider.name).and_then(|models| models.get_mut(model)) else { return true };
        match pair.state {
            State::Open => true,
            State::Paused { until } if now < until => false,
            State::Probing { since } if now < since + PROBE_MS => false,
            State::Paused { .. } | State::Probing { .. } => {
                tracing::info!(
                    provider = provider.name,
                    model,
                    "one call is let through to see whether usage is reported"
                );
                pair.state = State::Probing { since: now };
                true
            }
        }
    }

    /// Whether calls do not go this way now, or one of them tries: for who only looks.
    pub fn is_shut(&self, provider: &str, model: &str) -> bool {
        self.shut.load(Ordering::Relaxed) > 0
            && self
                .lock()
                .get(provider)
                .and_then(|models| models.get(model))
                .is_some_and(|pair| pair.state != State::Open)
    }

    /// All pairs, provider and model, that calls do not go to now.
    pub fn shut_pairs(&self) -> Vec<(String, String)> {
        if self.shut.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let pairs = self.lock();
        let all =
            pairs.iter().flat_map(|(provider, models)| models.iter().map(move |(model, pair)| (provider, model, pair)));
        let shut = all.filter(|(_, _, pair)| pair.state != State::Open);
        shut.map(|(provider, model, _)| (provider.clone(), model.clone())).collect()
    }

    /// A call was completed, with the provider's report or without.
    pub fn note(&self, provider: &Provider, model: &str, estimated: bool, now: Millis, metrics: &Metrics) {
        let most = provider.settings.estimated_percent;
        if most == 0 {
            return;
        }
        let mut pairs = self.lock();
        let pair = match pairs.get_mut(&provider.name).and_then(|models| models.get_mut(model)) {
            Some(pair) => pair,
            None => pairs.entry(provider.name.clone()).or_default().entry(model.to_owned()).or_default(),
        };
        let before = pair.state;
        match before {
            State::Open => {
                pair.add(estimated, now);
                let (rows, without) = pair.sum();
                if estimated
                    && without >= provider.settings.estimated_rows
                    && without.saturating_mul(100) > rows.saturating_mul(most)
                {
                    pair.pause(provider, now);
                    tracing::error!(provider = provider.name, model, rows, without, "usage is not reported: paused");
                }
            }
            State::Probing { .. } if estimated => {
                pair.pause(provider, now);
                tracing::error!(provider = provider.name, model, "usage is still not reported: paused again");
            }
            State::Probing { .. } => {
                *pair = Pair::default();
                tracing::info!(provider = provider.name, model, "usage is reported again");
            }
            // Calls that were under way when it was paused.
            State::Paused { .. } => {}
        }
        let shut = |state| usize::from(state != State::Open);
        if before != pair.state {
            self.shut.fetch_add(shut(pair.state), Ordering::Relaxed);
            self.shut.fetch_sub(shut(before), Ordering::Relaxed);
            metrics.paused(&provider.name, model, pair.state != State::Open);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashMap<String, Pair>>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pair {
    fn pause(&mut self, provider: &Provider, now: Millis) {
        let time = Millis::try_from(provider.settings.pause_time.as_millis()).unwrap_or(Millis::MAX);
        *self = Pair { state: State::Paused { until: now.saturating_add(time) }, ..Pair::default() };
    }

    fn add(&mut self, estimated: bool, now: Millis) {
        let part = now.div_euclid(PART_MS);
        // Parts that nobody filled are of the past.
        for stale in (self.part + 1).max(part - PARTS as Millis + 1)..=part {
            self.rows[at(stale)] = (0, 0);
        }
        self.part = self.part.max(part);
        let (rows, without) = &mut self.rows[at(part)];
        *rows += 1;
        *without += u64::from(estimated);
    }

    fn sum(&self) -> (u64, u64) {
        self.rows.iter().fold((0, 0), |(rows, without), part| (rows + part.0, without + part.1))
    }
}

fn at(part: Millis) -> usize {
    usize::try_from(part.rem_euclid(PARTS as Millis)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tollgate_upstream::{BaseUrl, ProviderSettings, kind};

    const MINUTE: Millis = 60_000;

    struct Desk {
        pauses: Pauses,
        metrics: Metrics,
        provider: Provider,
    }

    impl Desk {
        fn new(percent: u64) -> Desk {
            let settings = ProviderSettings {
                estimated_percent: percent,
                estimated_rows: 3,
                pause_time: Duration::from_secs(600),
                ..ProviderSettings::default()
            };
            let base = BaseUrl::parse("http://127.0.0.1:9").expect("an address");
            let provider =
                Provider::new("p", kind("openai").expect("a kind"), base, None, settings).expect("a provider");
            Desk { pauses: Pauses::default(), metrics: Metrics::default(), provider }
        }

        fn note(&self, times: u32, estimated: bool, now: Millis) {
            for _ in 0..times {
                self.pauses.note(&self.provider, "m", estimated, now, &self.metrics);
            }
        }

        fn lets(&self, now: Millis) -> bool {
            self.pauses.lets(&self.provider, "m", now)
        }
    }

    #[test]
    fn more_than_the_share_and_more_than_a_few_are_needed() {
        let desk = Desk::new(1);
        desk.note(2, true, 0);
        assert!(desk.lets(0), "a few are none");
        let desk = Desk::new(1);
        desk.note(300, false, 0);
        desk.note(3, true, 0);
        assert!(desk.lets(0), "3 of 303 are not more than 1 %");
        desk.note(1, true, 0);
        assert!(!desk.lets(0), "4 of 304 are");
        assert!(desk.pauses.lets(&desk.provider, "other", 0));
    }

    #[test]
    fn zero_turns_it_off() {
        let desk = Desk::new(0);
        desk.note(100, true, 0);
        assert!(desk.lets(0));
    }

    #[test]
    fn what_is_an_hour_old_is_forgotten() {
        let desk = Desk::new(1);
        desk.note(2, true, 0);
        desk.note(2, true, 61 * MINUTE);
        assert!(desk.lets(61 * MINUTE));
        desk.note(1, true, 110 * MINUTE);
        assert!(!desk.lets(110 * MINUTE));
        let desk = Desk::new(1);
        desk.note(2, true, 0);
        desk.note(2, true, 100 * 60 * MINUTE);
        assert!(desk.lets(100 * 60 * MINUTE), "many empty parts in between");
    }

    #[test]
    fn one_call_probes_and_its_report_decides() {
        let desk = Desk::new(1);
        desk.note(3, true, 0);
        assert!(!desk.lets(9 * MINUTE));
        desk.note(50, false, 9 * MINUTE);
        assert!(!desk.lets(9 * MINUTE), "calls of before do not count");
        assert!(desk.lets(10 * MINUTE), "the probe");
        assert!(!desk.lets(10 * MINUTE), "and no second one beside it");
        assert!(desk.lets(11 * MINUTE), "but when that one said nothing");
        desk.note(1, true, 11 * MINUTE);
        assert!(!desk.lets(20 * MINUTE));
        assert!(desk.lets(21 * MINUTE));
        desk.note(1, false, 21 * MINUTE);
        assert!(desk.lets(21 * MINUTE) && desk.lets(21 * MINUTE));
        assert_eq!(desk.pauses.shut.load(Ordering::Relaxed), 0);
    }
}
