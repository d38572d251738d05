//! Helpers for tests of this crate and of its users: a clock set by hand, a price, a private
//! PostgreSQL server.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tollgate_catalog::Price;

use crate::world::Clocks;

mod disk;
mod load;
mod server;
mod simulated;

pub use crate::sqlite::writer::stepping::StepDone;
pub use disk::{break_syncs, disk_is_full, fill_disk, free_disk, mend_syncs, syncs_are_broken};
pub use load::{Load, Owner, cpu_ticks};
pub use server::{PostgresServer, make_database, run_sql};
pub use simulated::{BegunSync, Crash, Disk, SeenFile, Simulated};

/// What another version of this program does with a database: its functions (PostgreSQL), and
/// migrations that come after ours.
#[derive(Clone, Debug, Default)]
pub struct OtherVersion {
    pub functions: Option<String>,
    pub migrations: Vec<String>,
}

/// A clock that stands still until it is moved. Starts at a fixed moment in 2026.
#[derive(Clone)]
pub struct TestClock {
    steady: Arc<AtomicI64>,
    /// By how much the wall clock is wrong.
    wrong: Arc<AtomicI64>,
}

impl Default for TestClock {
    fn default() -> Self {
        Self { steady: Arc::new(AtomicI64::new(1_770_000_000_000)), wrong: Arc::default() }
    }
}

impl TestClock {
    /// What the wall clock says.
    pub fn now(&self) -> i64 {
        self.steady() + self.wrong.load(Ordering::SeqCst)
    }

    fn steady(&self) -> i64 {
        self.steady.load(Ordering::SeqCst)
    }

    /// Time passes.
    pub fn advance(&self, ms: i64) {
        self.steady.fetch_add(ms, Ordering::SeqCst);
    }

    /// The wall clock is set wrong by so much, and no time passes.
    pub fn set_wrong(&self, ms: i64) {
        self.wrong.store(ms, Ordering::SeqCst);
    }

    /// Another clock of the same time, which can be set wrong by itself.
    pub fn beside(&self) -> Self {
        Self { steady: self.steady.clone(), wrong: Arc::default() }
    }

    /// This clock with randomness that repeats from run to run but not within one.
    pub fn world(&self, seed: u64) -> Clocks {
        let (clock, steady, database) = (self.clone(), self.clone(), self.clone());
        let state = Arc::new(AtomicU64::new(seed));
        Clocks {
            now_ms: Arc::new(move || clock.now()),
            steady_ms: Arc::new(move || steady.steady()),
            wall_lasts: Duration::ZERO,
            database_ms: Some(Arc::new(move || database.now())),
            random: Arc::new(move |bytes| {
                for chunk in bytes.chunks_mut(8) {
                    let word = mix(state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst));
                    chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
                }
            }),
        }
    }
}

/// SplitMix64: well spread, not secret.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A price of `micro` micro-USD per million input tokens and twice as much for output, so that
/// 1,000 counted input tokens at `micro` = 1 cost exactly one nano-USD.
pub fn price(micro: u64) -> Arc<Price> {
    let text = format!(
        r#"{{"model":"test","version":"v1","tier":null,"group":"default","paid":false,
            "faces":{{"input":{micro},"output":{}}},"multiplier":"1"}}"#,
        micro * 2
    );
    Arc::new(serde_json::from_str(&text).unwrap_or_else(|e| panic!("the test price is written wrongly: {e}")))
}
