//! Runs in a world made from a number: a till that remembers calls, workers that die between any
//! two moves, answers that are lost, money that ends. No step is bought twice, no run costs more
//! than was confirmed, and each ends or is stopped with a reason.

use super::generated::Numbers;
use std::collections::BTreeMap;
use tollgate_catalog::Money;
use tollgate_workflows::{NotBegun, RunAction, RunEvent, RunState, RunStatus, StepStatus, StopReason};

/// What the till knows about a call.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Answered(Money),
    Faulted,
    /// A task, with the rounds it still takes and what becomes of it.
    Open(u64, Box<Call>),
    /// Sent, and nobody will ever know.
    Unclear,
}

struct World {
    numbers: Numbers,
    calls: BTreeMap<String, (usize, Call)>,
    /// Calls by step that may have been charged.
    bought: BTreeMap<usize, u64>,
    /// How often a person allowed to send a step again.
    resubmitted: u64,
    max_cost: Money,
    ids: u64,
    poor: bool,
}

impl World {
    fn fresh(&mut self) -> String {
        self.ids += 1;
        format!("call_{}", self.ids)
    }

    fn spent(&self) -> i64 {
        self.calls.values().map(|(_, call)| charge(call)).sum()
    }

    fn call(&mut self, step: usize, id: &str) -> RunEvent {
        assert!(!self.calls.contains_key(id), "{id} is begun twice");
        let price = 1 + self.numbers.below(40) as i64;
        if self.poor && self.numbers.chance() {
            return RunEvent::NotBegun(NotBegun::Stopped(StopReason::OutOfMoney));
        }
        // The confirmed sum is decided with each hold.
        if self.spent() + price > self.max_cost.nano() {
            return RunEvent::NotBegun(NotBegun::Stopped(StopReason::OverConfirmed));
        }
        let end = match self.numbers.below(12) {
            0 => return RunEvent::NotBegun(NotBegun::Stopped(StopReason::PriceRose)),
            1 => Call::Faulted,
            2 => Call::Unclear,
            _ => Call::Answered(Money::from_nano(price)),
        };
        let call = if self.numbers.below(4) == 0 { Call::Open(self.numbers.below(4), Box::new(end)) } else { end };
        self.calls.insert(id.to_owned(), (step, call));
        *self.bought.entry(step).or_default() += 1;
        let bought = self.bought[&step];
        assert!(bought <= 1 + self.resubmitted, "step {step} was bought {bought} times");
        self.look_up(id)
    }

    fn look_up(&mut self, id: &str) -> RunEvent {
        let Some((_, call)) = self.calls.get_mut(id) else { return RunEvent::NeverBegun };
        if let Call::Open(rounds, end) = call {
            match rounds.checked_sub(1) {
                Some(left) => {
                    *rounds = left;
                    return RunEvent::Opened;
                }
                None => *call = *end.clone(),
            }
        }
        match call {
            // What it gave is there the next time that somebody looks.
            Call::Answered(charged) if self.numbers.below(15) == 0 => RunEvent::Unstored { charged: *charged },
            Call::Answered(charged) => RunEvent::Answered { charged: *charged, passed: Ok(()) },
            Call::Faulted => RunEvent::Faulted { charged: Money::ZERO, reason: "fault".to_owned() },
            Call::Open(..) | Call::Unclear => RunEvent::Unclear,
        }
    }
}

fn charge(call: &Call) -> i64 {
    match call {
        Call::Answered(money) => money.nano(),
        Call::Open(_, end) => charge(end),
        Call::Faulted | Call::Unclear => 0,
    }
}

/// A worker with the lease, until it dies or there is nothing to do. The state is written before
/// the action is carried out.
fn work(world: &mut World, stored: &mut RunState, first: RunEvent) {
    let (mut state, mut event) = (stored.clone(), first);
    loop {
        let fresh = world.fresh();
        let action = state.advance(event, &fresh);
        if world.numbers.below(6) == 0 {
            return; // dies before it has written
        }
        // What is written is text.
        *stored = serde_json::from_str(&serde_json::to_string(&state).expect("JSON")).expect("the same");
        assert_eq!(*stored, state);
        if world.numbers.below(6) == 0 {
            return; // dies before it has acted
        }
        event = match action {
            RunAction::Call { step, call } => world.call(step, &call),
            RunAction::LookUp { call, .. } => world.look_up(&call),
            RunAction::Wait { .. } | RunAction::Rest => return,
        };
        if world.numbers.below(6) == 0 {
            return; // dies with the answer in hand
        }
    }
}

#[test]
fn nothing_is_bought_twice_whenever_a_worker_dies() {
    let (mut completed, mut stopped, mut cancelled, mut resubmitted) = (0, 0, 0, 0);
    for seed in 0..3_000 {
        let mut world = World {
            numbers: Numbers(seed),
            calls: BTreeMap::new(),
            bought: BTreeMap::new(),
            resubmitted: 0,
            max_cost: Money::from_nano(60),
            ids: 0,
            poor: seed % 5 == 0,
        };
        let names = ["one", "two", "three", "four"];
        let mut stored = RunState::new(names, world.max_cost);
        for _ in 0..200 {
            let event = match (stored.status, world.numbers.below(12)) {
                // Nobody looks after this one.
                (RunStatus::Stopped, _) if seed % 3 == 0 => RunEvent::Taken,
                (RunStatus::Stopped, 0) => RunEvent::CancelAsked,
                (RunStatus::Stopped, 1) => {
                    let resubmit = stored.stopped == Some(StopReason::ChargeUnknown);
                    world.resubmitted += u64::from(resubmit);
                    RunEvent::ResumeAsked { max_cost: None, resubmit }
                }
                (RunStatus::Stopped, _) => RunEvent::ResumeAsked { max_cost: None, resubmit: false },
                (_, 0) if seed % 7 == 0 => RunEvent::CancelAsked,
                (_, 1) if seed % 11 == 0 => RunEvent::TimedOut,
                _ => RunEvent::Taken,
            };
            work(&mut world, &mut stored, event);
            assert!(world.spent() <= world.max_cost.nano(), "seed {seed}");
            assert_eq!(stored.status == RunStatus::Stopped, stored.stopped.is_some(), "seed {seed}");
            if stored.has_ended() {
                break;
            }
        }
        assert!(stored.has_ended() || stored.status == RunStatus::Stopped, "seed {seed}: {stored:?}");
        let known: i64 = stored.steps.iter().map(|step| step.charged.nano()).sum();
        assert!(known <= world.spent() && stored.charged().nano() == known, "seed {seed}");
        if stored.status == RunStatus::Completed {
            assert!(stored.steps.iter().all(|step| step.status == StepStatus::Done), "seed {seed}");
            assert_eq!(world.spent(), known, "seed {seed}: everything charged is shown");
        }
        completed += u64::from(stored.status == RunStatus::Completed);
        stopped += u64::from(stored.status == RunStatus::Stopped);
        cancelled += u64::from(stored.status == RunStatus::Cancelled);
        resubmitted += world.resubmitted;
    }
    assert!(
        completed > 100 && stopped > 10 && cancelled > 100 && resubmitted > 100,
        "{completed} {stopped} {cancelled} {resubmitted}"
    );
}

fn answered(nano: i64) -> RunEvent {
    RunEvent::Answered { charged: Money::from_nano(nano), passed: Ok(()) }
}

#[test]
fn steps_go_one_after_the_other() {
    let mut run = RunState::new(["one", "two"], Money::from_nano(10));
    assert_eq!(run.advance(RunEvent::Taken, "a"), RunAction::Call { step: 0, call: "a".to_owned() });
    assert_eq!(run.advance(answered(3), "b"), RunAction::Call { step: 1, call: "b".to_owned() });
    assert_eq!(run.advance(RunEvent::Opened, "c"), RunAction::Wait { step: 1, call: "b".to_owned() });
    assert_eq!(run.status, RunStatus::Waiting);
    assert_eq!(run.advance(RunEvent::Taken, "c"), RunAction::LookUp { step: 1, call: "b".to_owned() });
    assert_eq!(run.advance(answered(4), "c"), RunAction::Rest);
    assert_eq!((run.status, run.charged()), (RunStatus::Completed, Money::from_nano(7)));
    let ended = run.clone();
    for event in [RunEvent::Taken, RunEvent::CancelAsked, RunEvent::Unclear, RunEvent::TimedOut, answered(9)] {
        assert_eq!(run.advance(event, "d"), RunAction::Rest);
        assert_eq!(run, ended, "what has ended does not move");
    }
}

#[test]
fn an_unknown_charge_stops_and_is_sent_again_only_by_a_person() {
    let mut run = RunState::new(["one"], Money::from_nano(10));
    run.advance(RunEvent::Taken, "a");
    assert_eq!(run.advance(RunEvent::Unclear, "b"), RunAction::Rest);
    assert_eq!((run.status, run.stopped), (RunStatus::Stopped, Some(StopReason::ChargeUnknown)));
    assert_eq!(run.steps[0].status, StepStatus::Unknown);
    assert_eq!(run.advance(RunEvent::Taken, "b"), RunAction::Rest, "no worker moves it");
    let same = RunAction::LookUp { step: 0, call: "a".to_owned() };
    assert_eq!(run.advance(RunEvent::ResumeAsked { max_cost: None, resubmit: false }, "b"), same);
    assert_eq!(run.advance(RunEvent::Unclear, "b"), RunAction::Rest);
    assert_eq!(run.advance(RunEvent::ResumeAsked { max_cost: None, resubmit: true }, "c"), same, "the same task first");
    assert_eq!(run.advance(RunEvent::Unclear, "c"), RunAction::Call { step: 0, call: "c".to_owned() });
    assert_eq!(run.advance(RunEvent::Unclear, "d"), RunAction::Rest, "once, not again and again");
}

#[test]
fn an_answer_without_room_is_looked_for_again_and_not_bought_again() {
    let mut run = RunState::new(["one", "two"], Money::from_nano(10));
    run.advance(RunEvent::Taken, "a");
    assert_eq!(run.advance(RunEvent::Unstored { charged: Money::from_nano(3) }, "b"), RunAction::Rest);
    assert_eq!((run.status, run.stopped), (RunStatus::Stopped, Some(StopReason::StorageFull)));
    assert_eq!(run.charged(), Money::from_nano(3), "it is paid");
    let same = RunAction::LookUp { step: 0, call: "a".to_owned() };
    assert_eq!(run.advance(RunEvent::ResumeAsked { max_cost: None, resubmit: false }, "b"), same);
    assert_eq!(run.advance(answered(3), "b"), RunAction::Call { step: 1, call: "b".to_owned() });
    // There was no room before it was bought.
    run.advance(RunEvent::NotBegun(NotBegun::Stopped(StopReason::StorageFull)), "c");
    let next = run.advance(RunEvent::ResumeAsked { max_cost: None, resubmit: false }, "d");
    assert_eq!(next, RunAction::Call { step: 1, call: "d".to_owned() });
    // Who has cancelled is not asked for room.
    run.advance(RunEvent::CancelAsked, "e");
    assert_eq!(run.advance(RunEvent::Unstored { charged: Money::from_nano(2) }, "e"), RunAction::Rest);
    assert_eq!((run.status, run.charged()), (RunStatus::Cancelled, Money::from_nano(5)));
}

#[test]
fn what_was_never_begun_keeps_its_id() {
    let mut run = RunState::new(["one"], Money::from_nano(10));
    run.advance(RunEvent::Taken, "a");
    assert_eq!(run.advance(RunEvent::Taken, "b"), RunAction::LookUp { step: 0, call: "a".to_owned() });
    assert_eq!(run.advance(RunEvent::NeverBegun, "b"), RunAction::Call { step: 0, call: "a".to_owned() });
}

#[test]
fn money_that_ends_in_step_two_stops_and_a_larger_sum_goes_on() {
    let mut run = RunState::new(["one", "two"], Money::from_nano(10));
    run.advance(RunEvent::Taken, "a");
    run.advance(answered(8), "b");
    run.advance(RunEvent::NotBegun(NotBegun::Stopped(StopReason::OverConfirmed)), "c");
    assert_eq!((run.status, run.stopped), (RunStatus::Stopped, Some(StopReason::OverConfirmed)));
    let more = RunEvent::ResumeAsked { max_cost: Some(Money::from_nano(20)), resubmit: false };
    assert_eq!(run.advance(more, "d"), RunAction::Call { step: 1, call: "d".to_owned() });
    assert_eq!((run.max_cost, run.stopped), (Money::from_nano(20), None));
}

#[test]
fn a_cancelled_run_ends_before_the_next_step() {
    let mut run = RunState::new(["one", "two"], Money::from_nano(10));
    run.advance(RunEvent::Taken, "a");
    assert_eq!(run.advance(RunEvent::CancelAsked, "b"), RunAction::LookUp { step: 0, call: "a".to_owned() });
    assert_eq!(run.advance(answered(8), "b"), RunAction::Rest);
    assert_eq!((run.status, run.charged()), (RunStatus::Cancelled, Money::from_nano(8)));
    let mut early = RunState::new(["one"], Money::from_nano(10));
    assert_eq!(early.advance(RunEvent::CancelAsked, "a"), RunAction::Rest);
    assert_eq!(early.status, RunStatus::Cancelled);
}

#[test]
fn a_failed_check_or_a_refused_request_fails_the_run() {
    for (event, charged) in [
        (RunEvent::Answered { charged: Money::from_nano(3), passed: Err("text is empty".to_owned()) }, 3),
        (RunEvent::Faulted { charged: Money::ZERO, reason: "fault".to_owned() }, 0),
        (RunEvent::NotBegun(NotBegun::Refused("bad field".to_owned())), 0),
    ] {
        let mut run = RunState::new(["one", "two"], Money::from_nano(10));
        run.advance(RunEvent::Taken, "a");
        assert_eq!(run.advance(event, "b"), RunAction::Rest);
        assert_eq!((run.status, run.charged().nano()), (RunStatus::Failed, charged));
        assert!(run.failure.is_some() && run.steps[1].status == StepStatus::Pending);
    }
}
