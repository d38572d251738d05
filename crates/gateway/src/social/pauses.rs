//! Which cells are paused. The store has the rows; this is what a call looks at.

use crate::social::AUTO;
use crate::world::Millis;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tollgate_store::SocialChange;

#[derive(Default)]
pub struct Pauses {
    states: Mutex<HashMap<String, State>>,
}

struct State {
    change: SocialChange,
    /// When a call was let through to see whether the cell works again.
    probed_at: Option<Millis>,
}

/// What a call finds at a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Open,
    Paused,
    /// Paused, but this one call may try.
    Probe,
}

/// A probe that never came back is given up.
const PROBE_TIME: Millis = 120_000;

impl Pauses {
    fn states(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_paused(&self, model: &str) -> bool {
        self.states().get(model).is_some_and(|state| state.change.paused)
    }

    /// Why a cell is paused.
    pub fn why(&self, model: &str) -> Option<SocialChange> {
        self.states().get(model).filter(|state| state.change.paused).map(|state| state.change.clone())
    }

    /// May a call pass? An automatic pause lets one through after a while.
    pub fn door(&self, model: &str, now: Millis, probe_after: Duration) -> Door {
        let mut states = self.states();
        let Some(state) = states.get_mut(model).filter(|state| state.change.paused) else { return Door::Open };
        let wait = Millis::try_from(probe_after.as_millis()).unwrap_or(Millis::MAX);
        let probing = state.probed_at.is_some_and(|at| now - at < PROBE_TIME);
        if state.change.actor != AUTO || probing || now - state.change.at < wait {
            return Door::Paused;
        }
        state.probed_at = Some(now);
        Door::Probe
    }

    /// One change of our own.
    pub fn put(&self, change: SocialChange) {
        self.states().insert(change.model.clone(), State { change, probed_at: None });
    }

    /// What the store says; a change of our own that is not there yet is newer and stays.
    pub fn replace(&self, list: Vec<SocialChange>) {
        let mut states = self.states();
        for change in list {
            match states.get(&change.model) {
                Some(known) if known.change.at > change.at || known.change == change => {}
                _ => drop(states.insert(change.model.clone(), State { change, probed_at: None })),
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
        assert_eq!(door(0), Door::Open);
        pauses.put(change(true, 1_000, AUTO));
        assert_eq!((door(2_000), door(900_999)), (Door::Paused, Door::Paused));
        assert_eq!((door(901_000), door(901_001)), (Door::Probe, Door::Paused), "one at a time");
        assert_eq!(door(901_000 + PROBE_TIME), Door::Probe, "the first never came back");
        pauses.replace(vec![change(true, 2_000_000, "ada")]);
        assert_eq!(door(9_000_000), Door::Paused);
        pauses.replace(vec![change(false, 3_000_000, "ada")]);
        assert_eq!(door(9_000_000), Door::Open);
        pauses.put(change(true, 4_000_000, "ada"));
        pauses.replace(vec![change(false, 3_000_000, "ada")]);
        assert_eq!(door(9_000_000), Door::Paused, "our own change is newer than what was read");
    }
}
