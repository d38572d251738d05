//! How many may write out the usage log at once: some in all, and fewer of one account, so that
//! nobody who reads slowly is in the way of the others. Operators have places of their own.
//!
//! A reader who has taken nothing for a while loses its place to whoever asks for one: the door
//! drops those who take nothing at all, not those who take a byte now and then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tollgate_store::AccountId;

/// Of all accounts together.
const MOST: usize = 16;
const MOST_OF_ONE: usize = 2;
const MOST_OF_OPERATORS: usize = 4;
/// A piece of an export is read in less.
const SLOWEST_PIECE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Exports {
    /// By account; `None` are operators.
    running: Mutex<HashMap<Option<AccountId>, Vec<Arc<ExportPlace>>>>,
}

struct ExportPlace {
    /// When its reader last took a piece.
    taken_at: AtomicI64,
    /// Somebody else has it.
    lost: AtomicBool,
    /// It is of everything an account has.
    whole: bool,
}

impl ExportPlace {
    fn is_stalled(&self, now: i64) -> bool {
        let waited = now.saturating_sub(self.taken_at.load(Ordering::Relaxed));
        u128::try_from(waited).is_ok_and(|waited| waited > SLOWEST_PIECE.as_millis())
    }
}

/// One that runs. It ends when this is dropped.
pub struct Exporting {
    all: Arc<Exports>,
    of: Option<AccountId>,
    place: Arc<ExportPlace>,
}

impl Exports {
    /// `None`: too many run.
    pub fn begin(self: &Arc<Self>, of: Option<AccountId>, now: i64) -> Option<Exporting> {
        self.begin_one(of, false, now)
    }

    /// The same of everything an account has: one at a time.
    pub fn begin_whole(self: &Arc<Self>, of: AccountId, now: i64) -> Option<Exporting> {
        self.begin_one(Some(of), true, now)
    }

    fn begin_one(self: &Arc<Self>, of: Option<AccountId>, whole: bool, now: i64) -> Option<Exporting> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |running: &HashMap<Option<AccountId>, Vec<Arc<ExportPlace>>>| {
            let own = running.get(&of).map_or(0, Vec::len);
            let twice = whole && running.get(&of).is_some_and(|own| own.iter().any(|place| place.whole));
            let customers: usize = running.iter().filter(|(of, _)| of.is_some()).map(|(_, own)| own.len()).sum();
            match of {
                Some(_) => twice || own >= MOST_OF_ONE || customers >= MOST,
                None => own >= MOST_OF_OPERATORS,
            }
        };
        if is_full(&running) {
            running.retain(|_, own| {
                own.retain(|place| {
                    let stalled = place.is_stalled(now);
                    place.lost.fetch_or(stalled, Ordering::Relaxed);
                    !stalled
                });
                !own.is_empty()
            });
        }
        if is_full(&running) {
            return None;
        }
        let place = Arc::new(ExportPlace { taken_at: AtomicI64::new(now), lost: AtomicBool::new(false), whole });
        running.entry(of).or_default().push(place.clone());
        Some(Exporting { all: self.clone(), of, place })
    }
}

impl Exporting {
    /// Its reader wants the next piece. `false`: it came too late, and its place is somebody
    /// else's.
    pub fn goes_on(&self, now: i64) -> bool {
        self.place.taken_at.store(now, Ordering::Relaxed);
        !self.place.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        let mut running = self.all.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = running.get_mut(&self.of) {
            own.retain(|place| !Arc::ptr_eq(place, &self.place));
            if own.is_empty() {
                running.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(n: u8) -> Option<AccountId> {
        Some(AccountId([n; 16]))
    }

    #[test]
    fn there_is_a_bound_in_all_and_for_each() {
        let exports = Arc::new(Exports::default());
        let own: Vec<_> = (0..3).filter_map(|_| exports.begin(account(1), 0)).collect();
        assert_eq!(own.len(), 2);
        assert!(exports.begin(account(1), 0).is_none());
        let others: Vec<_> = (2..30).filter_map(|n| exports.begin(account(n), 0)).collect();
        assert_eq!(others.len(), 14, "all places of accounts are taken");
        let operators: Vec<_> = (0..9).filter_map(|_| exports.begin(None, 0)).collect();
        assert_eq!(operators.len(), 4, "operators have their own, and not without end");
        drop(own);
        assert!(exports.begin(account(1), 0).is_some(), "those of operators do not count");
        drop((others, operators));
        assert!(exports.running.lock().expect("a lock").is_empty(), "nothing is left behind");
    }

    #[test]
    fn everything_is_read_once_at_a_time() {
        let exports = Arc::new(Exports::default());
        let of = AccountId([1; 16]);
        let first = exports.begin_whole(of, 0).expect("a place");
        assert!(exports.begin_whole(of, 0).is_none() && exports.begin_whole(AccountId([2; 16]), 0).is_some());
        assert!(exports.begin(Some(of), 0).is_some(), "of the usage log another");
        assert!(exports.begin_whole(of, 60_001).is_some() && !first.goes_on(60_002), "one that stalls gives way");
    }

    #[test]
    fn a_reader_who_stalls_loses_its_place_to_whoever_asks() {
        let exports = Arc::new(Exports::default());
        let slow: Vec<_> = (1..=8).flat_map(|n| [exports.begin(account(n), 0), exports.begin(account(n), 0)]).collect();
        let slow: Vec<Exporting> = slow.into_iter().flatten().collect();
        assert_eq!(slow.len(), MOST);
        assert!(slow[0].goes_on(30_000), "it reads");
        assert!(exports.begin(account(9), 60_000).is_none(), "nobody has stalled yet");
        let new = exports.begin(account(9), 60_001).expect("a place");
        assert_eq!(slow.iter().filter(|one| one.goes_on(60_002)).count(), 1, "who reads goes on");
        // What ends late takes nobody else's place away.
        drop(slow);
        assert!(new.goes_on(60_003));
        assert_eq!(exports.running.lock().expect("a lock").len(), 1);
        // An account's own places are lost like those of all.
        let _second = exports.begin(account(9), 60_003).expect("a place");
        assert!(exports.begin(account(9), 60_004).is_none());
        assert!(exports.begin(account(9), 120_004).is_some() && !new.goes_on(120_005));
    }
}
