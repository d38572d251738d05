//! What time the store believes it is. A wall clock can be wrong: by hours on one machine of
//! several, by years after a reboot. Its word is taken only as far as it agrees with the clock that
//! does not jump and with what the ledger knows from before the start
//! (docs/decisions/0022-trusted-time.md).
//!
//! Two readings. [`Clock::now`] dates what can be put right later: entries, days of limits, ages.
//! [`Clock::sure`] is never ahead of what is certain, and decides what cannot be undone: credit
//! that lapses, records that are erased.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::Serialize;

use crate::world::NowMs;

/// Two clocks that differ by at most this agree, in milliseconds: an hour. `functions.sql` has the
/// same number.
pub(crate) const BOUND_MS: i64 = 3_600_000;

/// A time that is certain and earlier than this is that of a new ledger, which knows of none: a
/// year after 1970.
const NOTHING_KNOWN: i64 = 365 * 86_400_000;

/// What is stored of the time for the next start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    pub now: i64,
    pub sure: i64,
    /// For how long the time has run since it was doubtful; says nothing while `now` and `sure`
    /// agree.
    pub ran: i64,
}

/// The store's clock. All clones of a store share one.
pub struct Clock {
    wall: NowMs,
    steady: NowMs,
    /// After running steadily for so long a doubtful time is believed, in milliseconds.
    confirm: i64,
    /// The wall clock is looked at so often at most, where it is right, in milliseconds.
    every: i64,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// From the steady clock to the time that is believed.
    offset: i64,
    /// From the steady clock to the time that is certain; `None`: it is the same.
    sure: Option<i64>,
    /// When the time became doubtful, by the steady clock, less what it had run in earlier lives.
    doubtful_from: i64,
    /// The latest time that was given out.
    latest: i64,
    /// Until then, by the steady clock, the wall clock need not be looked at.
    known_until: i64,
    refused: Option<Refused>,
    refusals: u64,
}

/// A wall clock that is not believed.
#[derive(Clone, Copy, Debug)]
struct Refused {
    since: i64,
    offset: i64,
}

/// How the clock stands, for people and machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClockState {
    /// The time the store goes by, in milliseconds since 1970.
    pub now_ms: i64,
    /// The time by which trial credit lapses and records are erased; behind `now_ms` until that is
    /// confirmed.
    pub sure_ms: i64,
    /// The wall clock; on PostgreSQL that of the database.
    pub wall_ms: i64,
    /// `right` (or nothing is known that it could contradict), `unconfirmed` (believed, nothing is
    /// taken away by it yet) or `refused` (the store goes on without it).
    pub state: ClockStanding,
    /// How often a wall clock has been refused since the start.
    pub refusals: u64,
    /// By how much this machine's clock is ahead of the database's (PostgreSQL).
    pub own_clock_ahead_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockStanding {
    Right,
    Unconfirmed,
    Refused,
}

impl ClockStanding {
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Unconfirmed => "unconfirmed",
            Self::Refused => "refused",
        }
    }
}

impl Clock {
    /// `saved` is what the ledger knows from before; a new ledger knows nothing, and any later
    /// correction is welcome.
    pub(crate) fn start(
        wall: NowMs,
        (steady, every): (NowMs, Duration),
        confirm: Duration,
        saved: Option<Saved>,
    ) -> Arc<Self> {
        let confirm = i64::try_from(confirm.as_millis()).unwrap_or(i64::MAX);
        let (at, since) = (wall(), steady());
        let state = State::start(at, since, confirm, saved.unwrap_or_default());
        if state.refused.is_some() {
            log_refused(at, state.latest);
        } else if saved.is_some() && state.sure.is_some() {
            tracing::warn!(
                clock = %shown(at),
                last_known = %shown(since.saturating_add(state.sure.unwrap_or_default())),
                "the clock is far ahead of the last time this ledger knows; until it is confirmed no credit expires and nothing is erased"
            );
        }
        let every = i64::try_from(every.as_millis()).unwrap_or(0);
        Arc::new(Self { wall, steady, confirm, every, state: Mutex::new(state) })
    }

    /// The time, as far as it is believed. Goes back only when a clock that was ahead is put right.
    pub fn now(&self) -> i64 {
        let steady = (self.steady)();
        let mut state = self.lock();
        if steady < state.known_until {
            state.latest = state.latest.max(steady.saturating_add(state.offset));
            return state.latest;
        }
        let wall = (self.wall)();
        if state.follows(wall, steady) {
            state.looked(steady, self.every);
            return state.latest;
        }
        drop(state);
        self.look(wall, steady).latest
    }

    /// The time that is certain.
    pub fn sure(&self) -> i64 {
        let steady = (self.steady)();
        self.read().sure_at(steady)
    }

    /// The word of the wall clock is taken, whatever it says: an operator has looked.
    pub(crate) fn accept(&self) {
        let (wall, steady) = ((self.wall)(), (self.steady)());
        let mut state = self.lock();
        *state =
            State { offset: wall - steady, sure: None, latest: wall, known_until: i64::MIN, refused: None, ..*state };
        tracing::warn!(clock = %shown(wall), "the clock is accepted by an operator");
    }

    pub(crate) fn saved(&self) -> Saved {
        let steady = (self.steady)();
        let state = self.read();
        Saved { now: state.latest, sure: state.sure_at(steady), ran: steady.saturating_sub(state.doubtful_from) }
    }

    /// By how much the wall clock is ahead of the time while it is refused, else nothing.
    pub(crate) fn correction(&self) -> i64 {
        let state = self.read();
        state.refused.map_or(0, |refused| refused.offset.saturating_sub(state.offset))
    }

    pub(crate) fn state(&self) -> ClockState {
        let (wall, steady) = ((self.wall)(), (self.steady)());
        let state = self.read();
        let standing = match (state.refused, state.sure) {
            (Some(_), _) => ClockStanding::Refused,
            (None, Some(sure)) if steady.saturating_add(sure) > NOTHING_KNOWN => ClockStanding::Unconfirmed,
            _ => ClockStanding::Right,
        };
        ClockState {
            now_ms: state.latest,
            sure_ms: state.sure_at(steady),
            wall_ms: wall,
            state: standing,
            refusals: state.refusals,
            own_clock_ahead_ms: 0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn read(&self) -> State {
        self.look((self.wall)(), (self.steady)())
    }

    fn look(&self, wall: i64, steady: i64) -> State {
        let mut state = self.lock();
        let before = *state;
        state.look(wall, steady, self.confirm);
        state.looked(steady, self.every);
        match (before.refused, state.refused) {
            (None, Some(_)) => log_refused(wall, state.latest),
            (Some(_), None) => tracing::warn!(clock = %shown(wall), "the clock is believed again"),
            _ if before.latest > state.latest => {
                tracing::warn!(clock = %shown(wall), was = %shown(before.latest), "a clock that was ahead was put right");
            }
            _ => {}
        }
        *state
    }
}

fn log_refused(wall: i64, reported: i64) {
    tracing::error!(
        clock = %shown(wall),
        expected = %shown(reported),
        "the clock is wrong, or was: it is not used; `tollgate clock` tells more"
    );
}

/// The time of an entry that follows one of `last`: not before it, unless that was dated by a clock
/// that was far ahead.
pub(crate) fn ledger_time(last: i64, now: i64) -> i64 {
    if last > now.saturating_add(BOUND_MS) { now } else { last.max(now) }
}

/// A moment as people write it.
fn shown(at: i64) -> String {
    let seconds = at.rem_euclid(86_400_000) / 1_000;
    format!(
        "{} {:02}:{:02}:{:02} UTC",
        crate::account::limits::date(at),
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

fn agree(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= BOUND_MS.unsigned_abs()
}

impl State {
    fn start(wall: i64, steady: i64, confirm: i64, saved: Saved) -> Self {
        let offset = wall.saturating_sub(steady);
        let sure = saved.sure.min(saved.now);
        let unsure = !agree(sure, saved.now) || !agree(saved.now, wall);
        // Stops of up to this length are common; a longer one begins the wait anew.
        let ran = if wall.saturating_sub(saved.now) <= confirm { saved.ran } else { 0 };
        let mut state = Self {
            offset,
            sure: unsure.then(|| sure.saturating_sub(steady)),
            doubtful_from: steady.saturating_sub(ran),
            latest: wall,
            known_until: i64::MIN,
            refused: None,
            refusals: 0,
        };
        if wall < saved.now && !agree(wall, saved.now) {
            let was_sure = agree(sure, saved.now);
            if was_sure || (wall < sure && !agree(wall, sure)) {
                // Time that was certain does not come back.
                state.offset = saved.now.saturating_sub(steady);
                state.latest = saved.now;
                state.sure = (!was_sure).then(|| sure.saturating_sub(steady));
                state.refuse(offset, steady);
            }
        }
        if agree(wall, saved.now) {
            state.latest = wall.max(saved.now);
        }
        state.settle(steady, confirm);
        state
    }

    /// What [`State::look`] does where the time is certain and the wall clock agrees with it, as it
    /// nearly always does. `false`: nothing was done.
    fn follows(&mut self, wall: i64, steady: i64) -> bool {
        let offset = wall.saturating_sub(steady);
        let plain = self.refused.is_none() && self.sure.is_none() && agree(offset, self.offset);
        if plain {
            self.offset = offset;
            self.latest = self.latest.max(steady.saturating_add(offset));
        }
        plain
    }

    /// A look at the clocks: follow the wall clock, or go on without it.
    fn look(&mut self, wall: i64, steady: i64, confirm: i64) {
        let offset = wall.saturating_sub(steady);
        if agree(offset, self.offset) {
            self.offset = offset;
            self.refused = None;
        } else if self.sure.is_some_and(|sure| offset >= sure || agree(offset, sure)) {
            // The time was never confirmed: whoever sets the clock puts it right, and begins the
            // wait anew.
            self.take_over(offset, steady);
        } else {
            match self.refused {
                Some(refused) if agree(refused.offset, offset) => {
                    if steady.saturating_sub(refused.since) >= confirm {
                        self.take_over(offset, steady);
                    }
                }
                _ => self.refuse(offset, steady),
            }
        }
        self.settle(steady, confirm);
        self.latest = self.latest.max(steady.saturating_add(self.offset));
    }

    /// From here on the time counts on by itself for a while. Not where the wall clock is refused,
    /// nor where it was set back a little and the time stands still until it comes.
    fn looked(&mut self, steady: i64, every: i64) {
        let stands = self.refused.is_some() || self.latest > steady.saturating_add(self.offset);
        self.known_until = if stands { i64::MIN } else { steady.saturating_add(every) };
    }

    fn refuse(&mut self, offset: i64, steady: i64) {
        self.refused = Some(Refused { since: steady, offset });
        self.refusals += 1;
    }

    fn take_over(&mut self, offset: i64, steady: i64) {
        let sure = self.sure.unwrap_or(self.offset).min(self.offset);
        self.sure = (offset > sure).then_some(sure);
        self.doubtful_from = steady;
        self.offset = offset;
        self.latest = steady.saturating_add(offset);
        self.refused = None;
    }

    /// A doubtful time becomes certain when it agrees with what is, or after a while.
    fn settle(&mut self, steady: i64, confirm: i64) {
        let Some(sure) = self.sure else { return };
        if agree(sure, self.offset) || steady.saturating_sub(self.doubtful_from) >= confirm {
            self.sure = None;
        }
    }

    fn sure_at(&self, steady: i64) -> i64 {
        self.sure.map_or(self.latest, |sure| steady.saturating_add(sure).min(self.latest))
    }
}

#[cfg(test)]
mod tests;
