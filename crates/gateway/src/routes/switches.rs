//! What is paused: models, cells of social data and providers. The store has the rows, all replicas
//! read them every second, and this is what a call looks at.
//!
//! A pause by an operator ends when an operator ends it. The gateway pauses cells by itself too
//! (`social`); such a pause lets one call through after a while.

use crate::metrics::Metrics;
use crate::world::Millis;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tollgate_catalog::Model;
use tollgate_store::{PauseChange, PauseKind, Store, StoreError};

/// The actor of changes that nobody made by hand.
pub const AUTO: &str = "auto";

#[derive(Default)]
pub struct Switches {
    states: Mutex<States>,
    /// How many things are paused: nearly always none, and then nobody needs the maps.
    shut: AtomicUsize,
    /// Counts our own changes.
    own: AtomicU64,
}

/// By name.
#[derive(Default)]
struct States {
    models: HashMap<String, State>,
    providers: HashMap<String, State>,
}

impl States {
    fn of(&self, kind: PauseKind) -> &HashMap<String, State> {
        match kind {
            PauseKind::Model => &self.models,
            PauseKind::Provider => &self.providers,
        }
    }

    fn put(&mut self, state: State) {
        let map = match state.change.kind {
            PauseKind::Model => &mut self.models,
            PauseKind::Provider => &mut self.providers,
        };
        map.insert(state.change.name.clone(), state);
    }

    fn all(&self) -> impl Iterator<Item = &State> {
        self.models.values().chain(self.providers.values())
    }
}

struct State {
    change: PauseChange,
    /// Which of our own changes it was; 0 for what was read.
    own: u64,
    /// It could not be written down yet.
    unwritten: bool,
    /// When a call was let through to see whether the cell works again.
    probed_at: Option<Millis>,
}

/// Models and providers that operators have paused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PausedNames {
    pub models: BTreeSet<String>,
    pub providers: BTreeSet<String>,
}

impl PausedNames {
    /// How many routes of a model are open.
    pub fn open_routes(&self, model: &Model) -> usize {
        let open = model.routes.iter().filter(|route| !self.providers.contains(&route.provider));
        if self.models.contains(&model.name) { 0 } else { open.count() }
    }
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
pub enum Admission {
    Open,
    /// Nobody: it is paused, or another call is trying.
    Shut,
    /// The one call that tries, and the pause for which it does.
    Probe(PauseChange),
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

impl Switches {
    fn states(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_paused(&self, kind: PauseKind, name: &str) -> bool {
        self.shut.load(Ordering::Relaxed) > 0
            && self.states().of(kind).get(name).is_some_and(|state| state.change.paused)
    }

    /// A model, or a cell by the name it is sold under.
    pub fn model_is_paused(&self, name: &str) -> bool {
        self.is_paused(PauseKind::Model, name)
    }

    pub fn provider_is_paused(&self, name: &str) -> bool {
        self.is_paused(PauseKind::Provider, name)
    }

    /// What operators have paused; pauses of the gateway itself pass, and are nobody's word.
    pub fn paused_names(&self) -> PausedNames {
        if self.shut.load(Ordering::Relaxed) == 0 {
            return PausedNames::default();
        }
        let states = self.states();
        let names = |map: &HashMap<String, State>| {
            let by_hand = map.iter().filter(|(_, state)| state.change.paused && state.change.actor != AUTO);
            by_hand.map(|(name, _)| name.clone()).collect()
        };
        PausedNames { models: names(&states.models), providers: names(&states.providers) }
    }

    /// No provider of the model takes anything new.
    pub fn shut_off(&self, model: &Model) -> bool {
        self.shut.load(Ordering::Relaxed) > 0
            && model.routes.iter().all(|route| self.provider_is_paused(&route.provider))
    }

    /// The newest change of a model or cell.
    pub fn last(&self, model: &str) -> Option<PauseChange> {
        self.states().models.get(model).map(|state| state.change.clone())
    }

    /// How a cell looks from outside. An automatic pause lets one call through after a while.
    pub fn door(&self, model: &str, now: Millis, probe_after: Duration) -> Door {
        let states = self.states();
        let Some(state) = states.models.get(model).filter(|state| state.change.paused) else { return Door::Open };
        if state.may_be_tried(now, probe_after) { Door::Probe } else { Door::Paused }
    }

    /// A call that nothing else stands in the way of goes in; of those that would try a paused
    /// cell, one.
    pub fn enter(&self, model: &str, now: Millis, probe_after: Duration) -> Admission {
        let mut states = self.states();
        let state = states.models.get_mut(model).filter(|state| state.change.paused);
        let Some(state) = state else { return Admission::Open };
        if !state.may_be_tried(now, probe_after) {
            return Admission::Shut;
        }
        state.probed_at = Some(now);
        Admission::Probe(state.change.clone())
    }

    /// Whoever tried did not get as far as the source.
    pub fn leave(&self, pause: &PauseChange) {
        if let Some(state) = self.states().models.get_mut(&pause.name).filter(|state| state.change == *pause) {
            state.probed_at = None;
        }
    }

    /// One change of our own, and whether it is written down.
    pub fn put(&self, change: PauseChange, written: bool) {
        let mut states = self.states();
        let own = self.own.fetch_add(1, Ordering::Relaxed) + 1;
        states.put(State { change, own, unwritten: !written, probed_at: None });
        self.count(&states);
    }

    /// Changes of our own that the store does not have, with their numbers.
    pub fn changes_to_write(&self) -> Vec<(u64, PauseChange)> {
        let states = self.states();
        states.all().filter(|state| state.unwritten).map(|state| (state.own, state.change.clone())).collect()
    }

    /// The store has it now.
    pub fn written(&self, model: &str, number: u64) {
        if let Some(state) = self.states().models.get_mut(model).filter(|state| state.own == number) {
            state.unwritten = false;
        }
    }

    /// To be asked before the store is read.
    pub fn before_reading(&self) -> u64 {
        self.own.load(Ordering::Relaxed)
    }

    /// What the store said. Its order counts and not the clocks of those who wrote; only a change
    /// of our own that was made while it was being read, or is not written down yet, is newer.
    pub fn replace(&self, list: Vec<PauseChange>, before: u64) {
        let mut states = self.states();
        for change in list {
            match states.of(change.kind).get(&change.name) {
                Some(known) if known.own > before || known.change == change => {}
                Some(known) if known.unwritten && known.change.at > change.at => {}
                _ => states.put(State { change, own: 0, unwritten: false, probed_at: None }),
            }
        }
        self.count(&states);
    }

    fn count(&self, states: &States) {
        self.shut.store(states.all().filter(|state| state.change.paused).count(), Ordering::Relaxed);
    }

    /// Everything that was ever paused, and whether it is.
    fn shown(&self) -> Vec<(PauseKind, String, bool)> {
        let states = self.states();
        states.all().map(|state| (state.change.kind, state.change.name.clone(), state.change.paused)).collect()
    }
}

impl Switches {
    /// What is paused, as the store has it; and what the store could not be given until now, is
    /// written.
    pub async fn read(&self, store: &Store, metrics: &Metrics) -> Result<(), StoreError> {
        let before = self.before_reading();
        self.replace(store.pause_states().await?, before);
        for (kind, name, paused) in self.shown() {
            metrics.switched(kind.word(), &name, paused);
        }
        for (number, change) in self.changes_to_write() {
            store.change_pause(change.clone()).await?;
            self.written(&change.name, number);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(paused: bool, at: Millis, actor: &str) -> PauseChange {
        let (kind, name, reason) = (PauseKind::Model, "m".to_owned(), String::new());
        PauseChange { kind, name, paused, at, actor: actor.to_owned(), reason }
    }

    #[test]
    fn an_automatic_pause_lets_one_call_try_and_an_operators_does_not() {
        let pauses = Switches::default();
        let wait = Duration::from_secs(900);
        let door = |now| pauses.door("m", now, wait);
        let enter = |now| pauses.enter("m", now, wait);
        assert_eq!((door(0), enter(0)), (Door::Open, Admission::Open));
        let pause = change(true, 1_000, AUTO);
        pauses.put(pause.clone(), true);
        assert_eq!((door(2_000), door(900_999), enter(900_999)), (Door::Paused, Door::Paused, Admission::Shut));
        assert_eq!((door(901_000), door(901_000)), (Door::Probe, Door::Probe), "looking takes nothing");
        assert_eq!(
            (enter(901_000), enter(901_001)),
            (Admission::Probe(pause.clone()), Admission::Shut),
            "one at a time"
        );
        pauses.leave(&change(true, 999, AUTO));
        assert_eq!(door(901_002), Door::Paused, "that was another pause");
        pauses.leave(&pause);
        assert_eq!(enter(901_003), Admission::Probe(pause.clone()), "the first did not get as far as the source");
        assert_eq!(enter(901_003 + PROBE_TIME), Admission::Probe(pause), "the first never came back");
        pauses.replace(vec![change(true, 2_000_000, "ada")], pauses.before_reading());
        assert_eq!((door(9_000_000), enter(9_000_000)), (Door::Paused, Admission::Shut));
        pauses.replace(vec![change(false, 3_000_000, "ada")], pauses.before_reading());
        assert_eq!(door(9_000_000), Door::Open);
    }

    #[test]
    fn what_could_not_be_written_is_reported_until_it_is() {
        let pauses = Switches::default();
        pauses.put(change(true, 1_000, AUTO), false);
        let waiting = pauses.changes_to_write();
        assert_eq!(waiting, [(1, change(true, 1_000, AUTO))]);
        pauses.put(change(true, 2_000, AUTO), false);
        pauses.written("m", waiting[0].0);
        assert_eq!(pauses.changes_to_write(), [(2, change(true, 2_000, AUTO))], "the newer one is not written by that");
        pauses.written("m", 2);
        assert!(pauses.changes_to_write().is_empty() && pauses.model_is_paused("m"));
    }

    #[test]
    fn the_order_of_the_store_counts_and_not_the_clocks() {
        let pauses = Switches::default();
        let paused = || pauses.model_is_paused("m");
        // Our clock is ahead of that of the replica where somebody resumes the cell later.
        pauses.put(change(true, 9_000, AUTO), true);
        pauses.replace(vec![change(false, 5_000, "ada")], pauses.before_reading());
        assert!(!paused());
        // While the store was being read a change of our own was made: what was read is older.
        let before = pauses.before_reading();
        pauses.put(change(true, 6_000, "bob"), true);
        pauses.replace(vec![change(false, 5_000, "ada")], before);
        assert!(paused());
        // What could not be written down is remembered for as long as nobody did anything after it.
        pauses.put(change(false, 7_000, AUTO), false);
        pauses.replace(vec![change(true, 6_000, "bob")], pauses.before_reading());
        assert!(!paused());
        pauses.replace(vec![change(true, 8_000, "bob")], pauses.before_reading());
        assert!(paused());
    }

    #[test]
    fn a_provider_is_not_a_model_of_that_name() {
        let switches = Switches::default();
        let provider = PauseChange { kind: PauseKind::Provider, ..change(true, 1_000, "ada") };
        switches.replace(vec![provider], switches.before_reading());
        assert!(switches.provider_is_paused("m") && !switches.model_is_paused("m"));
        switches.replace(vec![change(true, 2_000, "ada")], switches.before_reading());
        assert!(switches.provider_is_paused("m") && switches.model_is_paused("m"));
        let resumed = PauseChange { kind: PauseKind::Provider, ..change(false, 3_000, "ada") };
        switches.replace(vec![resumed], switches.before_reading());
        assert!(!switches.provider_is_paused("m") && switches.model_is_paused("m"));
        assert_eq!(switches.shut.load(Ordering::Relaxed), 1);
    }
}
