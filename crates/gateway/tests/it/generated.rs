//! Thousands of generated calls: the same in every run, many at a time, and a look at all rows at
//! the end.

use crate::house::House;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tollgate_store::{CallId, UsagePage, UsageRow};

/// So many at a time.
const LANES: usize = 48;

/// SplitMix64: the same calls in every run.
pub struct Seed(pub u64);

impl Seed {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).expect("small")]
    }
}

/// How many calls are made: ten thousand with `make chaos`, a fifth of them in a test run.
#[expect(clippy::disallowed_methods, reason = "a setting of the test run")]
pub fn calls() -> usize {
    if std::env::var_os("TOLLGATE_CHAOS_MINUTES").is_some() { 10_000 } else { 2_000 }
}

/// Runs `work` for every number below `count`, many at a time.
pub async fn lanes<T, W, F>(count: usize, work: W) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
    W: Fn(usize) -> F + Send + Sync + 'static,
{
    let (work, next) = (Arc::new(work), Arc::new(AtomicUsize::new(0)));
    let mut set = tokio::task::JoinSet::new();
    for _ in 0..LANES {
        let (work, next) = (work.clone(), next.clone());
        set.spawn(async move {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    return done;
                }
                done.push(work(at).await);
            }
        });
    }
    set.join_all().await.into_iter().flatten().collect()
}

/// All rows of the account, once nothing is open.
pub async fn rows(house: &House) -> HashMap<CallId, UsageRow> {
    house.quiet().await;
    let mut all = HashMap::new();
    let mut page = UsagePage { before: None, limit: 500 };
    loop {
        let rows = house.running().app.store.usage(Some(house.account), page).await.expect("rows");
        let Some(last) = rows.last() else { return all };
        page.before = Some(last.call);
        all.extend(rows.into_iter().map(|row| (row.call, row)));
    }
}

/// The books are in order. The house would look up every call one by one; its rows were counted.
pub async fn end(house: Arc<House>) {
    let report = house.running().app.store.verify().await.expect("verified");
    assert_eq!(report.breaches, []);
    let mut house = Arc::into_inner(house).expect("nobody else has it");
    house.checked = true;
    house.running.take().expect("running").stop().await;
}
