//! The figures of route health: what all replicas counted within the window, read from the store
//! once a minute, so that every replica shows the same and a restart forgets nothing.

use super::traffic::Traffic;
use crate::world::Millis;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tollgate_catalog::RouteHealth;
use tollgate_store::{CountedRoute, RouteCounts, Store, StoreError, quarter_of};

/// A figure of few calls is shown only if they are of more accounts than this: it would tell one
/// customer about another.
const FEW_ACCOUNTS: u32 = 2;
const FEW_CALLS: i64 = 20;
const QUARTERS_PER_HOUR: i64 = 4;

#[derive(Default)]
pub struct Figures {
    published: ArcSwap<PublishedHealth>,
    /// For whoever reads.
    older: Mutex<OlderSums>,
}

/// What is shown until the next reading.
#[derive(Default)]
pub struct PublishedHealth {
    /// Another one when a public figure has changed.
    pub generation: u64,
    /// By model, as far as it is shown to everybody.
    pub models: HashMap<String, RouteHealth>,
    /// Everything, for operators.
    pub counted: Vec<(CountedRoute, RouteCounts)>,
}

/// The sums of quarters that nobody adds to any more, so that a reading is of two quarters only.
#[derive(Default)]
struct OlderSums {
    /// From this quarter up to, and without, this one.
    quarters: std::ops::Range<i64>,
    sums: HashMap<CountedRoute, RouteCounts>,
}

impl Figures {
    pub fn now(&self) -> Arc<PublishedHealth> {
        self.published.load_full()
    }

    /// Adds what was counted here to the store.
    pub async fn flush(&self, traffic: &Traffic, store: &Store, now: Millis) -> Result<(), StoreError> {
        let counted = traffic.take();
        if counted.is_empty() {
            return Ok(());
        }
        store.add_route_health(quarter_of(now), counted).await.map_err(|(left, error)| {
            traffic.give_back(left);
            error
        })
    }

    /// Reads what all replicas have added.
    pub async fn read(&self, store: &Store, now: Millis, window_hours: u32) -> Result<(), StoreError> {
        let mut older = self.older.lock().await;
        // Whoever adds late adds to the quarter before this one at most.
        let (this, from) = (quarter_of(now), quarter_of(now) - i64::from(window_hours) * QUARTERS_PER_HOUR + 1);
        let quarters = from..(this - 1).max(from);
        if older.quarters != quarters {
            let sums = store.route_health(quarters.clone()).await?.into_iter().collect();
            *older = OlderSums { quarters: quarters.clone(), sums };
            store.forget_route_health(from - QUARTERS_PER_HOUR).await?;
        }
        let mut sums = older.sums.clone();
        for (route, counts) in store.route_health(quarters.end..this + 2).await? {
            let sum = sums.entry(route).or_default();
            *sum = sum.plus(counts);
        }
        self.publish(sums, window_hours);
        Ok(())
    }

    fn publish(&self, sums: HashMap<CountedRoute, RouteCounts>, window_hours: u32) {
        let models: HashMap<String, RouteHealth> = sums
            .iter()
            .filter(|(route, _)| route.provider.is_empty())
            .filter_map(|(route, counts)| Some((route.model.clone(), shown(&public(counts)?, window_hours))))
            .collect();
        let mut counted: Vec<_> = sums.into_iter().collect();
        counted.sort_by(|(a, _), (b, _)| a.cmp(b));
        let before = self.published.load();
        let generation = before.generation + u64::from(before.models != models);
        self.published.store(Arc::new(PublishedHealth { generation, models, counted }));
    }
}

/// What everybody may see: where calls of customers are too few to be shown, probes alone.
fn public(counts: &RouteCounts) -> Option<RouteCounts> {
    let is_public = counts.calls >= FEW_CALLS || counts.accounts.count_ones() > FEW_ACCOUNTS;
    let seen = match counts.calls > 0 && is_public {
        true => *counts,
        false => RouteCounts { calls: 0, good: 0, last_at: 0, ..*counts },
    };
    (seen.calls + seen.probes > 0).then_some(seen)
}

/// As the record shows it: calls of customers and probes together.
pub fn shown(counts: &RouteCounts, window_hours: u32) -> RouteHealth {
    let good = counts.good.min(counts.calls) + counts.good_probes.min(counts.probes);
    RouteHealth {
        window_hours,
        sample_size: (counts.calls + counts.probes).unsigned_abs(),
        good: good.unsigned_abs(),
        last_at_ms: counts.last_at.max(counts.probed_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_calls_of_few_accounts_are_not_shown() {
        let counts = |calls, accounts| RouteCounts { calls, accounts, ..RouteCounts::default() };
        let is_public = |counts: &RouteCounts| public(counts).is_some();
        assert!(!is_public(&counts(0, 0b111)));
        assert!(!is_public(&counts(19, 0b1)) && !is_public(&counts(19, 0b11)));
        assert!(is_public(&counts(3, 0b111)), "three accounts");
        assert!(is_public(&counts(20, 0b1)), "many calls");
    }

    #[test]
    fn probes_are_nobodys_secret_and_do_not_give_calls_away() {
        let probes = RouteCounts { probes: 4, good_probes: 3, probed_at: 70, ..RouteCounts::default() };
        let few = RouteCounts { calls: 19, good: 0, accounts: 0b1, last_at: 90, ..probes };
        let of = |counts: &RouteCounts| public(counts).map(|counts| shown(&counts, 24));
        assert_eq!(of(&few), of(&probes), "nothing of a single customer");
        let seen = of(&probes).expect("shown");
        assert_eq!((seen.sample_size, seen.good, seen.last_at_ms), (4, 3, 70));
        let many = of(&RouteCounts { calls: 20, good: 10, ..few }).expect("shown");
        assert_eq!((many.sample_size, many.good, many.last_at_ms), (24, 13, 90));
    }

    #[test]
    fn the_generation_changes_with_a_public_figure_only() {
        let figures = Figures::default();
        let route = |provider: &str| CountedRoute {
            model: "m".to_owned(),
            provider: provider.to_owned(),
            upstream_model: String::new(),
        };
        let counts = |calls| RouteCounts { calls, good: calls, accounts: 1, ..RouteCounts::default() };
        let mut seen = Vec::new();
        for (provider, calls) in [("", 19), ("p", 500), ("", 20), ("", 20), ("", 21)] {
            figures.publish([(route(provider), counts(calls))].into(), 24);
            seen.push(figures.now().generation);
        }
        assert_eq!(seen, [0, 0, 1, 1, 2]);
    }
}
