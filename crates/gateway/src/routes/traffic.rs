//! Counts how calls end, by model and by route, on every call's way out. Counting is a look-up and
//! a few additions to a counter of the thread's own stripe: no lock, and no thread waits for
//! another. What came together is taken twice a minute and added to the store (`figures.rs`).

use arc_swap::ArcSwap;
use foldhash::HashMap;
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tollgate_store::{AccountId, CountedRoute, RouteCounts};

/// Maps, so that a model seen for the first time copies few others.
const SHARDS: usize = 64;
/// Counters of one route; threads share them evenly.
const STRIPES: usize = 4;
/// Models that are counted at most: names that have left the catalog are forgotten at the latest
/// then.
const MOST_MODELS: usize = 50_000;

/// How one call or one attempt ended.
#[derive(Clone, Copy, Debug)]
pub struct SeenCall {
    pub account: AccountId,
    pub good: bool,
    /// Until the first byte, of a good one.
    pub first_byte_ms: i64,
    pub at: i64,
}

pub struct Traffic {
    shards: [ArcSwap<Shard>; SHARDS],
    /// For whoever adds a model or a route that is not there yet.
    adding: Mutex<()>,
    models: AtomicUsize,
}

type Shard = HashMap<Arc<str>, Arc<ModelCounters>>;

struct ModelCounters {
    /// Its calls as customers saw them.
    calls: Arc<RouteCounter>,
    routes: Vec<RouteSeen>,
}

#[derive(Clone)]
struct RouteSeen {
    provider: String,
    upstream_model: String,
    counter: Arc<RouteCounter>,
}

#[derive(Default)]
struct RouteCounter([Stripe; STRIPES]);

/// In a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Stripe {
    calls: AtomicU64,
    good: AtomicU64,
    accounts: AtomicU64,
    first_byte_ms: AtomicI64,
    last_at: AtomicI64,
    probes: AtomicU64,
    good_probes: AtomicU64,
    probed_at: AtomicI64,
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic {
            shards: std::array::from_fn(|_| ArcSwap::default()),
            adding: Mutex::default(),
            models: AtomicUsize::new(0),
        }
    }
}

impl Traffic {
    /// A call of a model ended, as its customer saw it.
    pub fn call(&self, model: &str, seen: SeenCall) {
        let shard = self.shard(model);
        if let Some(counters) = shard.load().get(model) {
            return counters.calls.add(seen);
        }
        self.added(shard, model, None).add(seen);
    }

    /// One route was tried.
    pub fn attempt(&self, model: &str, provider: &str, upstream_model: &str, seen: SeenCall) {
        let shard = self.shard(model);
        let known = shard.load();
        let same = |route: &&RouteSeen| route.provider == provider && route.upstream_model == upstream_model;
        if let Some(route) = known.get(model).and_then(|counters| counters.routes.iter().find(same)) {
            return route.counter.add(seen);
        }
        self.added(shard, model, Some((provider, upstream_model))).add(seen);
    }

    /// The gateway asked a route by itself, or all of a model's routes that were due: a model does
    /// well when one of them answers.
    pub fn probe(&self, model: &str, route: Option<(&str, &str)>, good: bool, at: i64) {
        let (probes, good_probes) = (1, i64::from(good));
        let counts = RouteCounts { probes, good_probes, probed_at: at, ..RouteCounts::default() };
        self.added(self.shard(model), model, route).put(counts);
    }

    fn shard(&self, model: &str) -> &ArcSwap<Shard> {
        let mixed = model.bytes().fold(0xcbf2_9ce4_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        &self.shards[mixed as usize % SHARDS]
    }

    /// Seen for the first time: its shard is written anew.
    fn added(&self, shard: &ArcSwap<Shard>, model: &str, route: Option<(&str, &str)>) -> Arc<RouteCounter> {
        let _alone = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let mut map = Shard::clone(&shard.load());
        let known = map.get(model);
        let calls = known.map(|counters| counters.calls.clone()).unwrap_or_default();
        let mut routes = known.map(|counters| counters.routes.clone()).unwrap_or_default();
        if known.is_none() && self.models.fetch_add(1, Ordering::Relaxed) >= MOST_MODELS {
            // Counted for nobody; see `forget`.
            self.models.fetch_sub(1, Ordering::Relaxed);
            return Arc::default();
        }
        let counter = match route {
            None => calls.clone(),
            Some((provider, upstream_model)) => {
                let same = |route: &&RouteSeen| route.provider == provider && route.upstream_model == upstream_model;
                match routes.iter().find(same) {
                    Some(route) => route.counter.clone(),
                    None => {
                        let counter = Arc::<RouteCounter>::default();
                        let (provider, upstream_model) = (provider.to_owned(), upstream_model.to_owned());
                        routes.push(RouteSeen { provider, upstream_model, counter: counter.clone() });
                        counter
                    }
                }
            }
        };
        map.insert(Arc::from(model), Arc::new(ModelCounters { calls, routes }));
        shard.store(Arc::new(map));
        counter
    }

    /// All that came together since the last time, which is then no longer here.
    pub fn take(&self) -> Vec<(CountedRoute, RouteCounts)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            for (model, counters) in shard.load().iter() {
                let mut take = |provider: &str, upstream_model: &str, counter: &RouteCounter| {
                    let counts = counter.take();
                    if counts != RouteCounts::default() {
                        let (provider, upstream_model) = (provider.to_owned(), upstream_model.to_owned());
                        all.push((CountedRoute { model: model.to_string(), provider, upstream_model }, counts));
                    }
                };
                take("", "", &counters.calls);
                for route in &counters.routes {
                    take(&route.provider, &route.upstream_model, &route.counter);
                }
            }
        }
        all
    }

    /// What could not be stored counts at the next time.
    pub fn give_back(&self, counted: Vec<(CountedRoute, RouteCounts)>) {
        for (route, counts) in counted {
            let shard = self.shard(&route.model);
            let of = (!route.provider.is_empty()).then_some((route.provider.as_str(), route.upstream_model.as_str()));
            self.added(shard, &route.model, of).put(counts);
        }
    }

    /// Forgets models that are sold no more, once there are many.
    pub fn forget(&self, sold: impl Fn(&str) -> bool) {
        if self.models.load(Ordering::Relaxed) < MOST_MODELS / 2 {
            return;
        }
        let _alone = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = 0;
        for shard in &self.shards {
            let mut map = Shard::clone(&shard.load());
            map.retain(|model, _| sold(model));
            left += map.len();
            shard.store(Arc::new(map));
        }
        self.models.store(left, Ordering::Relaxed);
    }
}

impl RouteCounter {
    fn add(&self, seen: SeenCall) {
        let stripe = &self.0[own_stripe()];
        stripe.calls.fetch_add(1, Ordering::Relaxed);
        if seen.good {
            stripe.good.fetch_add(1, Ordering::Relaxed);
            stripe.first_byte_ms.fetch_add(seen.first_byte_ms.max(0), Ordering::Relaxed);
        }
        stripe.accounts.fetch_or(account_bit(seen.account), Ordering::Relaxed);
        stripe.last_at.fetch_max(seen.at, Ordering::Relaxed);
    }

    fn put(&self, counts: RouteCounts) {
        let stripe = &self.0[own_stripe()];
        stripe.calls.fetch_add(counts.calls.unsigned_abs(), Ordering::Relaxed);
        stripe.good.fetch_add(counts.good.unsigned_abs(), Ordering::Relaxed);
        stripe.first_byte_ms.fetch_add(counts.first_byte_ms, Ordering::Relaxed);
        stripe.accounts.fetch_or(counts.accounts.cast_unsigned(), Ordering::Relaxed);
        stripe.last_at.fetch_max(counts.last_at, Ordering::Relaxed);
        stripe.probes.fetch_add(counts.probes.unsigned_abs(), Ordering::Relaxed);
        stripe.good_probes.fetch_add(counts.good_probes.unsigned_abs(), Ordering::Relaxed);
        stripe.probed_at.fetch_max(counts.probed_at, Ordering::Relaxed);
    }

    fn take(&self) -> RouteCounts {
        let signed = |number: &AtomicU64| i64::try_from(number.swap(0, Ordering::Relaxed)).unwrap_or(i64::MAX);
        let one = |stripe: &Stripe| RouteCounts {
            // Good ones first: whoever ends in between is counted as a call the next time, and no
            // more are good than there are.
            good: signed(&stripe.good),
            calls: signed(&stripe.calls),
            accounts: signed(&stripe.accounts),
            first_byte_ms: stripe.first_byte_ms.swap(0, Ordering::Relaxed),
            last_at: stripe.last_at.swap(0, Ordering::Relaxed),
            good_probes: signed(&stripe.good_probes),
            probes: signed(&stripe.probes),
            probed_at: stripe.probed_at.swap(0, Ordering::Relaxed),
        };
        self.0.iter().map(one).fold(RouteCounts::default(), RouteCounts::plus)
    }
}

/// One of 63 bits: two accounts may share one, so there are never more bits than accounts.
fn account_bit(account: AccountId) -> u64 {
    let mixed = account.0.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    1 << (mixed % 63)
}

/// The stripe of this thread.
fn own_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static OWN: Cell<usize> = const { Cell::new(usize::MAX) } }
    OWN.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        own.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(account: u8, good: bool, at: i64) -> SeenCall {
        SeenCall { account: AccountId([account; 16]), good, first_byte_ms: 5, at }
    }

    #[test]
    fn what_many_threads_count_is_taken_once() {
        let traffic = Traffic::default();
        std::thread::scope(|scope| {
            for thread in 0..8_u8 {
                let traffic = &traffic;
                scope.spawn(move || {
                    for n in 0..1_000 {
                        let model = format!("m{}", n % 10);
                        traffic.call(&model, seen(thread, n % 4 != 0, n));
                        traffic.attempt(&model, "p", "up", seen(thread, true, n));
                    }
                });
            }
        });
        let taken = traffic.take();
        assert_eq!(taken.len(), 20);
        assert_eq!(size_of::<Stripe>(), 64, "one cache line");
        let sum = |provider: &str| {
            let of = taken.iter().filter(|(route, _)| route.provider == provider);
            of.fold(RouteCounts::default(), |sum, (_, counts)| sum.plus(*counts))
        };
        assert_eq!((sum("").calls, sum("").good, sum("").last_at), (8_000, 6_000, 999));
        assert_eq!((sum("p").calls, sum("p").good, sum("p").first_byte_ms), (8_000, 8_000, 40_000));
        assert!((3..=8).contains(&sum("").accounts.count_ones()));
        assert!(traffic.take().is_empty(), "taken is taken");
        traffic.give_back(taken.clone());
        let mut again = traffic.take();
        again.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut taken = taken;
        taken.sort_by(|(a, _), (b, _)| a.cmp(b));
        assert_eq!(again, taken);
    }

    #[test]
    fn probes_are_counted_beside_calls() {
        let traffic = Traffic::default();
        traffic.call("m", seen(1, true, 10));
        for (route, good, at) in [(None, true, 20), (Some(("p", "up")), false, 15), (Some(("p", "up")), true, 30)] {
            traffic.probe("m", route, good, at);
        }
        let taken = traffic.take();
        traffic.give_back(taken);
        let mut taken = traffic.take();
        taken.sort_by(|(a, _), (b, _)| a.cmp(b));
        let of = |at: usize| {
            let (route, n) = &taken[at];
            (route.provider.as_str(), n.calls, n.good, n.probes, n.good_probes, n.last_at, n.probed_at)
        };
        assert_eq!((of(0), of(1)), (("", 1, 1, 1, 1, 10, 20), ("p", 0, 0, 2, 1, 0, 30)));
    }

    #[test]
    fn a_bit_is_never_the_sign() {
        for n in 0..=255 {
            assert!(account_bit(AccountId([n; 16])) < 1 << 63);
        }
    }
}
