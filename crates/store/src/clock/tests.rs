//! The clock against jumps in either direction, in a running process and between two.

use std::sync::atomic::{AtomicI64, Ordering};

use super::*;

const DAY: i64 = 86_400_000;
const HOUR: i64 = 3_600_000;
/// Some day in 2026.
const START: i64 = 20_600 * DAY;
const CONFIRM: Duration = Duration::from_secs(86_400);

/// A wall clock that can be set and a steady one that runs.
#[derive(Clone, Default)]
struct Hands {
    steady: Arc<AtomicI64>,
    ahead: Arc<AtomicI64>,
    /// How often the wall clock was looked at.
    looks: Arc<AtomicI64>,
}

impl Hands {
    fn run(&self, ms: i64) {
        self.steady.fetch_add(ms, Ordering::SeqCst);
    }

    /// How far the wall clock is ahead of the truth.
    fn set(&self, ms: i64) {
        self.ahead.store(ms, Ordering::SeqCst);
    }

    fn truth(&self) -> i64 {
        START + self.steady.load(Ordering::SeqCst)
    }

    fn start(&self, saved: Option<Saved>) -> Arc<Clock> {
        self.start_looking_every(Duration::ZERO, saved)
    }

    fn start_looking_every(&self, every: Duration, saved: Option<Saved>) -> Arc<Clock> {
        let (wall, steady) = (self.clone(), self.clone());
        let wall = Arc::new(move || {
            wall.looks.fetch_add(1, Ordering::SeqCst);
            wall.truth() + wall.ahead.load(Ordering::SeqCst)
        });
        Clock::start(wall, (Arc::new(move || steady.steady.load(Ordering::SeqCst)), every), CONFIRM, saved)
    }

    /// A process that has run for long.
    fn settled(&self) -> Arc<Clock> {
        let clock = self.start(None);
        self.run(2 * DAY);
        assert_eq!(
            (clock.now(), clock.sure(), clock.state().state),
            (self.truth(), self.truth(), ClockStanding::Right)
        );
        clock
    }
}

#[test]
fn a_jump_is_refused_reported_and_healed() {
    for jump in [400 * DAY, 2 * HOUR, -2 * HOUR, -400 * DAY] {
        let hands = Hands::default();
        let clock = hands.settled();
        hands.set(jump);
        for _ in 0..3 {
            hands.run(HOUR);
            assert_eq!((clock.now(), clock.sure()), (hands.truth(), hands.truth()), "{jump}");
        }
        let state = clock.state();
        assert_eq!((state.state, state.refusals, state.wall_ms), (ClockStanding::Refused, 1, hands.truth() + jump));
        assert_eq!(clock.correction(), jump);
        hands.set(0);
        assert_eq!((clock.now(), clock.state().state, clock.correction()), (hands.truth(), ClockStanding::Right, 0));
    }
}

#[test]
fn small_steps_are_followed_and_never_go_back() {
    let hands = Hands::default();
    let clock = hands.settled();
    hands.set(HOUR);
    assert_eq!(clock.now(), hands.truth() + HOUR);
    hands.set(0);
    assert_eq!(clock.now(), hands.truth() + HOUR, "it stands still");
    hands.run(2 * HOUR);
    assert_eq!((clock.now(), clock.state().state), (hands.truth(), ClockStanding::Right));
}

#[test]
fn a_jump_that_stays_is_believed_in_the_end_and_takes_nothing_away_before_it_is_confirmed() {
    let hands = Hands::default();
    let clock = hands.settled();
    hands.set(30 * DAY);
    clock.now();
    let sure = hands.truth();
    hands.run(DAY - 1);
    assert_eq!(clock.now(), hands.truth());
    hands.run(1);
    assert_eq!((clock.now(), clock.sure()), (hands.truth() + 30 * DAY, sure + DAY));
    assert_eq!(clock.state().state, ClockStanding::Unconfirmed);
    hands.run(DAY);
    assert_eq!((clock.sure(), clock.state().state), (hands.truth() + 30 * DAY, ClockStanding::Right));
}

#[test]
fn a_wrong_clock_at_the_start_dates_but_takes_nothing_away_and_is_put_right_at_once() {
    let hands = Hands::default();
    let saved = hands.settled().saved();
    hands.run(60_000);
    hands.set(400 * DAY);
    let clock = hands.start(Some(saved));
    assert_eq!((clock.now(), clock.sure()), (hands.truth() + 400 * DAY, hands.truth() - 60_000));
    assert_eq!(clock.state().state, ClockStanding::Unconfirmed);
    // In the same process, or in the next.
    let between = clock.saved();
    hands.set(0);
    assert_eq!((clock.now(), clock.sure(), clock.state().state), (hands.truth(), hands.truth(), ClockStanding::Right));
    let next = hands.start(Some(between));
    assert_eq!((next.now(), next.sure(), next.state().state), (hands.truth(), hands.truth(), ClockStanding::Right));
}

#[test]
fn a_gateway_that_was_off_for_long_starts_and_is_confirmed_by_running() {
    let hands = Hands::default();
    let saved = hands.settled().saved();
    let off = 400 * DAY;
    hands.run(off);
    let clock = hands.start(Some(saved));
    assert_eq!((clock.now(), clock.sure()), (hands.truth(), hands.truth() - off));
    hands.run(DAY / 2);
    // Stops in between do not matter.
    let saved = clock.saved();
    hands.run(DAY / 4);
    let clock = hands.start(Some(saved));
    assert_eq!(clock.sure(), hands.truth() - off - DAY / 4);
    hands.run(DAY / 2);
    assert_eq!((clock.sure(), clock.state().state), (hands.truth(), ClockStanding::Right));
}

#[test]
fn a_clock_behind_what_is_certain_is_refused_at_the_start() {
    let hands = Hands::default();
    let saved = hands.settled().saved();
    hands.set(-400 * DAY);
    let clock = hands.start(Some(saved));
    hands.run(HOUR);
    assert_eq!((clock.now(), clock.state().state), (hands.truth(), ClockStanding::Refused));
    clock.accept();
    assert_eq!((clock.now(), clock.sure()), (hands.truth() - 400 * DAY, hands.truth() - 400 * DAY));
    assert_eq!(clock.state().state, ClockStanding::Right);
}

#[test]
fn a_new_ledger_under_a_wrong_clock_is_put_right() {
    let hands = Hands::default();
    hands.set(400 * DAY);
    let clock = hands.start(None);
    assert_eq!(clock.now(), hands.truth() + 400 * DAY);
    assert!(clock.sure() < START);
    assert_eq!(clock.state().state, ClockStanding::Right, "there is nothing it could contradict");
    hands.set(0);
    assert_eq!(clock.now(), hands.truth());
    hands.run(DAY);
    assert_eq!(clock.sure(), hands.truth());
}

#[test]
fn a_clock_that_was_never_confirmed_is_set_either_way() {
    let hands = Hands::default();
    hands.set(-6 * 365 * DAY);
    let clock = hands.start(None);
    assert_eq!(clock.now(), hands.truth() - 6 * 365 * DAY, "the machine has just been switched on");
    hands.run(60_000);
    hands.set(0);
    assert_eq!((clock.now(), clock.state().refusals), (hands.truth(), 0));
    hands.set(400 * DAY);
    assert_eq!(clock.now(), hands.truth() + 400 * DAY);
    hands.run(DAY - 1);
    assert!(clock.sure() < START, "the wait has begun anew");
    hands.set(0);
    assert_eq!(clock.now(), hands.truth());
}

/// A right clock is looked at now and then, and the time goes on in between. What it is set to is
/// noticed with the next look, one that is wrong is looked at each time.
#[test]
fn a_look_at_the_wall_clock_lasts_for_a_while() {
    let hands = Hands::default();
    let clock = hands.start_looking_every(Duration::from_millis(50), None);
    let looks = || hands.looks.swap(0, Ordering::SeqCst);
    for run in [0, 1, 48] {
        hands.run(run);
        assert_eq!(clock.now(), hands.truth());
    }
    assert_eq!(looks(), 2, "at the start, and once for all three");
    // Back by little: the time stands still, and is found again as soon as it is right.
    hands.set(-1_000);
    assert_eq!(clock.now(), hands.truth(), "not noticed yet");
    let was = clock.now();
    hands.run(1);
    for _ in 0..3 {
        hands.run(100);
        assert_eq!(clock.now(), was);
    }
    assert_eq!(looks(), 3);
    hands.run(900);
    assert_eq!(clock.now(), hands.truth() - 1_000);
    // A jump is refused with the next look, and looked at again and again.
    hands.run(DAY);
    assert_eq!((clock.now(), clock.state().state), (hands.truth() - 1_000, ClockStanding::Right));
    hands.set(400 * DAY);
    assert_eq!(clock.now(), hands.truth() - 1_000);
    hands.run(50);
    looks();
    for _ in 0..3 {
        assert_eq!(clock.now(), hands.truth() - 1_000);
    }
    assert_eq!(looks(), 3);
    assert_eq!(clock.state().state, ClockStanding::Refused);
    hands.set(-1_000);
    looks();
    assert_eq!((clock.now(), looks()), (hands.truth() - 1_000, 1));
    assert_eq!((clock.now(), looks()), (hands.truth() - 1_000, 0));
}

#[test]
fn an_operator_confirms_a_clock() {
    let hands = Hands::default();
    let saved = hands.settled().saved();
    hands.run(10 * DAY);
    let clock = hands.start(Some(saved));
    assert!(clock.sure() < hands.truth());
    clock.accept();
    assert_eq!((clock.sure(), clock.state().state), (hands.truth(), ClockStanding::Right));
    hands.set(3 * HOUR);
    assert_eq!(clock.now(), hands.truth());
    clock.accept();
    assert_eq!(clock.now(), hands.truth() + 3 * HOUR);
}

proptest::proptest! {
    /// The short way through a look leaves the clock as the long one does, and is not taken where
    /// it would not.
    #[test]
    fn the_short_way_of_a_look_is_the_long_one(steps in proptest::collection::vec((0..3 * HOUR, -3..=3_i64, 0..4_u8), 1..40)) {
        let confirm = 6 * HOUR;
        let saved = Saved { now: START, sure: START, ran: 0 };
        let mut short = State::start(START, 0, confirm, saved);
        let mut long = short;
        let mut steady = 0;
        proptest::prop_assert!(short.follows(START, 0), "a clock that agrees");
        long.look(START, 0, confirm);
        for (run, ahead, scale) in steps {
            steady += run;
            let wall = START + steady + ahead * [0, 1_000, HOUR / 2, DAY][usize::from(scale)];
            long.look(wall, steady, confirm);
            if !short.follows(wall, steady) {
                short.look(wall, steady, confirm);
            }
            proptest::prop_assert_eq!(format!("{:?}", short), format!("{:?}", long));
        }
    }
}
