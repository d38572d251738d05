//! Which cells are paused. The store has the rows; this is what a call looks at.

use crate::social::AUTO;
use crate::world::Millis;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tollgate_store::SocialChange;

#[derive(Default)]
pub struct Pauses {
    states: Mutex<HashMap<String, State>>,
    /// Counts our own changes.
    own: AtomicU64,
}

struct State {
    change: SocialChange,
    /// Which of our own changes it was; 0 for what was read.
    own: u64,
    /// It could not be written down yet.
    unwritten: bool,
    /// When a call was let through to see whether the cell works again.
    probed_at: Option<Millis>,
}

/// What a call finds at a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Open,
    Paused,
    /// Paused, but a call may try whether it works again, if it gets as far as the source.
    Probe,
}

/// Who went in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Open,
    /// Nobody: it is paused, or another call is trying.
    Shut,
    /// The one call that tries, and the pause for which it does.
    Probe(SocialChange),
}

/// A probe that never came back is given up.
const PROBE_TIME: Millis = 120_000;

impl State {
    fn may_be_tried(&self, now: Millis, probe_after: Duration) -> bool {
        let wait = Millis::try_from(probe_after.as_millis()).unwrap_or(Millis::MAX);
        let probing = self.probed_at.is_some_and(|at| now - at < PROBE_TIME);
        self.change.actor == AUTO && !probing && now - self.change.at >= wait
    }
}

impl Pauses {
    fn states(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_paused(&self, model: &str) -> bool {
        self.states().get(model).is_some_and(|state| state.change.paused)
    }

    /// The newest change of a cell.
    pub fn last(&self, model: &str) -> Option<SocialChange> {
        self.states().get(model).map(|state| state.change.clone())
    }

    /// How it looks from outside. An automatic pause lets one call through after a while.
    pub fn door(&self, model: &str, now: Millis, probe_after: Duration) -> Door {
        let states = self.states();
        let Some(state) = states.get(model).filter(|state| state.change.paused) else { return Door::Open };
        if state.may_be_tried(now, probe_after) { Door::Probe } else { Door::Paused }
    }

    /// A call that nothing else stands in the way of goes in; of those that would try a paused cell, one.
    pub fn enter(&self, model: &str, now: Millis, probe_after: Duration) -> Entry {
        let mut states = self.states();
        let Some(state) = states.get_mut(model).filter(|state| state.change.paused) else { return Entry::Open };
        if !state.may_be_tried(now, probe_after) {
            return Entry::Shut;
        }
        state.probed_at = Some(now);
        Entry::Probe(state.change.clone())
    }

    /// Whoever tried did not get as far as the source.
    pub fn leave(&self, pause: &SocialChange) {
        if let Some(state) = self.states().get_mut(&pause.model).filter(|state| state.change == *pause) {
            state.probed_at = None;
        }
    }

    /// One change of our own, and whether it is written down.
    pub fn put(&self, change: SocialChange, written: bool) {
        let mut states = self.states();
        let own = self.own.fetch_add(1, Ordering::Relaxed) + 1;
        states.insert(change.model.clone(), State { change, own, unwritten: !written, probed_at: None });
    }

    /// Changes of our own that the store does not have, with their numbers.
    pub fn unwritten(&self) -> Vec<(u64, SocialChange)> {
        let states = self.states();
        states.values().filter(|state| state.unwritten).map(|state| (state.own, state.change.clone())).collect()
    }

    /// The store has it now.
    pub fn written(&self, model: &str, number: u64) {
        if let Some(state) = self.states().get_mut(model).filter(|state| state.own == number) {
            state.unwritten = false;
        }
    }

    /// To be asked before the store is read.
    pub fn before_reading(&self) -> u64 {
        self.own.load(Ordering::Relaxed)
    }

    /// What the store said. Its order counts and not the clocks of those who wrote; only a change of our own that was made
    /// while it was being read, or is not written down yet, is newer.
    pub fn replace(&self, list: Vec<SocialChange>, before: u64) {
        let mut states = self.states();
        for change in list {
            match states.get(&change.model) {
                Some(known) if known.own > before || known.change == change => {}
                Some(known) if known.unwritten && known.change.at > change.at => {}
                _ => {
                    let state = State { change, own: 0, unwritten: false, probed_at: None };
                    states.insert(state.change.model.clone(), state);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(paused: bool, at: Millis, actor: &str) -> SocialChange {
        SocialChange { model: "m".to_owned(), paused, at, actor: actor.to_owned(), reason: String::new() }
    }

    #[test]
    fn an_automatic_pause_lets_one_call_try_and_an_operators_does_not() {
        let pauses = Pauses::default();
        let wait = Duration::from_secs(900);
        let door = |now| pauses.door("m", now, wait);
        let enter = |now| pauses.enter("m", now, wait);
        assert_eq!((door(0), enter(0)), (Door::Open, Entry::Open));
        let pause = change(true, 1_000, AUTO);
        pauses.put(pause.clone(), true);
        assert_eq!((door(2_000), door(900_999), enter(900_999)), (Door::Paused, Door::Paused, Entry::Shut));
        assert_eq!((door(901_000), door(901_000)), (Door::Probe, Door::Probe), "looking takes nothing");
        assert_eq!((enter(901_000), enter(901_001)), (Entry::Probe(pause.clone()), Entry::Shut), "one at a time");
        pauses.leave(&change(true, 999, AUTO));
        assert_eq!(door(901_002), Door::Paused, "that was another pause");
        pauses.leave(&pause);
        assert_eq!(enter(901_003), Entry::Probe(pause.clone()), "the first did not get as far as the source");
        assert_eq!(enter(901_003 + PROBE_TIME), Entry::Probe(pause), "the first never came back");
        pauses.replace(vec![change(true, 2_000_000, "ada")], pauses.before_reading());
        assert_eq!((door(9_000_000), enter(9_000_000)), (Door::Paused, Entry::Shut));
        pauses.replace(vec![change(false, 3_000_000, "ada")], pauses.before_reading());
        assert_eq!(door(9_000_000), Door::Open);
    }

    #[test]
    fn what_could_not_be_written_is_told_until_it_is() {
        let pauses = Pauses::default();
        pauses.put(change(true, 1_000, AUTO), false);
        let waiting = pauses.unwritten();
        assert_eq!(waiting, [(1, change(true, 1_000, AUTO))]);
        pauses.put(change(true, 2_000, AUTO), false);
        pauses.written("m", waiting[0].0);
        assert_eq!(pauses.unwritten(), [(2, change(true, 2_000, AUTO))], "the newer one is not written by that");
        pauses.written("m", 2);
        assert!(pauses.unwritten().is_empty() && pauses.is_paused("m"));
    }

    #[test]
    fn the_order_of_the_store_counts_and_not_the_clocks() {
        let pauses = Pauses::default();
        let paused = || pauses.is_paused("m");
        // Our clock is ahead of that of the replica where somebody resumes the cell later.
        pauses.put(change(true, 9_000, AUTO), true);
        pauses.replace(vec![change(false, 5_000, "ada")], pauses.before_reading());
        assert!(!paused());
        // While the store was being read a change of our own was made: what was read is older.
        let before = pauses.before_reading();
        pauses.put(change(true, 6_000, "bob"), true);
        pauses.replace(vec![change(false, 5_000, "ada")], before);
        assert!(paused());
        // What could not be written down is kept for as long as nobody did anything after it.
        pauses.put(change(false, 7_000, AUTO), false);
        pauses.replace(vec![change(true, 6_000, "bob")], pauses.before_reading());
        assert!(!paused());
        pauses.replace(vec![change(true, 8_000, "bob")], pauses.before_reading());
        assert!(paused());
    }
}
