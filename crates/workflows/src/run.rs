//! A run as a value that events move. The order is law: an event changes the state, the state is
//! written, and only then is the action carried out that came with it. So whoever takes over after
//! a crash finds at least as much written as was done.
//!
//! A step is begun under a call id that was written before. When a worker finds such a step, it
//! looks the call up and never sends it again unless the till has never heard of it: resume the
//! same task first, no other model by itself, stop when nobody can say what was charged.

use serde::{Deserialize, Serialize};
use tollgate_catalog::Money;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    pub status: RunStatus,
    /// Why it is stopped.
    pub stopped: Option<StopReason>,
    /// Why it failed, in words.
    pub failure: Option<String>,
    pub steps: Vec<RunStep>,
    /// The most that was confirmed. The till decides it with each hold.
    pub max_cost: Money,
    /// It is to end before the next step.
    pub cancelling: bool,
    /// The step whose charge is unknown may be sent once more, if nothing is found of it.
    pub may_resubmit: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStep {
    pub name: String,
    pub status: StepStatus,
    /// The call it was begun under.
    pub call: Option<String>,
    pub charged: Money,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    /// A provider is at work on a task.
    Waiting,
    Completed,
    Failed,
    /// It needs a person.
    Stopped,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Pending,
    Sent,
    Done,
    Failed,
    /// Nobody can say whether it was charged.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    OutOfMoney,
    OverConfirmed,
    ModelOffSale,
    PriceRose,
    ChargeUnknown,
    /// There is no room for what a step makes.
    StorageFull,
    TookTooLong,
}

/// Why a step was not begun: nothing was held and nothing sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotBegun {
    Stopped(StopReason),
    /// The request itself is wrong, and would be the next time.
    Refused(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// A worker has read it and holds its lease.
    Taken,
    /// The call ended with an answer; whether that passes the checks of its step.
    Answered {
        charged: Money,
        passed: Result<(), String>,
    },
    /// The call is a task that a provider is at work on.
    Opened,
    /// The call ended without an answer.
    Faulted {
        charged: Money,
        reason: String,
    },
    /// The call ended with an answer, and there was no room for it.
    Unstored {
        charged: Money,
    },
    NotBegun(NotBegun),
    /// The till knows the call and cannot say how it ended.
    Unclear,
    /// The till has never heard of the call.
    NeverBegun,
    CancelAsked,
    ResumeAsked {
        max_cost: Option<Money>,
        resubmit: bool,
    },
    TimedOut,
}

/// What is to be done once the state is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunAction {
    /// Begin a call under this id.
    Call { step: usize, call: String },
    /// Ask the till what became of the call with this id.
    LookUp { step: usize, call: String },
    /// Come back later: the task goes on by itself.
    Wait { step: usize, call: String },
    /// Nothing, until somebody asks for something.
    Rest,
}

impl RunState {
    /// A run of these steps that has been confirmed.
    pub fn new<'n>(steps: impl IntoIterator<Item = &'n str>, max_cost: Money) -> RunState {
        let step = |name: &str| RunStep {
            name: name.to_owned(),
            status: StepStatus::Pending,
            call: None,
            charged: Money::ZERO,
        };
        RunState {
            status: RunStatus::Running,
            stopped: None,
            failure: None,
            steps: steps.into_iter().map(step).collect(),
            max_cost,
            cancelling: false,
            may_resubmit: false,
        }
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.status, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    }

    /// What its steps have cost so far.
    pub fn charged(&self) -> Money {
        Money::checked_sum(self.steps.iter().map(|step| step.charged)).unwrap_or(Money::MAX)
    }

    /// Moves it. `fresh` is a call id that nobody has used, for the step that may begin.
    pub fn advance(&mut self, event: RunEvent, fresh: &str) -> RunAction {
        match (self.status, event) {
            (RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled, _) => RunAction::Rest,
            (RunStatus::Stopped, RunEvent::ResumeAsked { max_cost, resubmit }) => {
                self.resume(max_cost, resubmit, fresh)
            }
            (RunStatus::Stopped, RunEvent::CancelAsked) => self.end(RunStatus::Cancelled),
            (RunStatus::Stopped, _) => RunAction::Rest,
            (_, RunEvent::CancelAsked) => {
                self.cancelling = true;
                self.go_on(fresh)
            }
            (_, RunEvent::TimedOut) => self.stop(StopReason::TookTooLong),
            (_, RunEvent::Taken | RunEvent::ResumeAsked { .. }) => self.go_on(fresh),
            (_, event) => match self.under_way() {
                Some(step) => self.ended(step, event, fresh),
                // A word about a step that nobody began changes nothing.
                None => self.go_on(fresh),
            },
        }
    }

    /// What became of the step that is under way.
    fn ended(&mut self, at: usize, event: RunEvent, fresh: &str) -> RunAction {
        let step = &mut self.steps[at];
        match event {
            RunEvent::Answered { charged, passed } => {
                step.charged = charged;
                match passed {
                    Ok(()) => {
                        step.status = StepStatus::Done;
                        self.go_on(fresh)
                    }
                    Err(reason) => self.fail(at, reason),
                }
            }
            RunEvent::Faulted { charged, reason } => {
                step.charged = charged;
                self.fail(at, reason)
            }
            // It is done and paid: a resume looks for its answer under the same call.
            RunEvent::Unstored { charged } => {
                step.charged = charged;
                if self.cancelling { self.end(RunStatus::Cancelled) } else { self.stop(StopReason::StorageFull) }
            }
            RunEvent::Opened => {
                self.status = RunStatus::Waiting;
                RunAction::Wait { step: at, call: step.call.clone().unwrap_or_default() }
            }
            RunEvent::NotBegun(NotBegun::Refused(reason)) => self.fail(at, reason),
            RunEvent::NotBegun(NotBegun::Stopped(reason)) => {
                (step.status, step.call) = (StepStatus::Pending, None);
                if self.cancelling { self.end(RunStatus::Cancelled) } else { self.stop(reason) }
            }
            RunEvent::Unclear if self.may_resubmit && !self.cancelling => {
                self.may_resubmit = false;
                self.begin(at, fresh)
            }
            RunEvent::Unclear => {
                step.status = StepStatus::Unknown;
                self.stop(StopReason::ChargeUnknown)
            }
            RunEvent::NeverBegun if self.cancelling => {
                (step.status, step.call) = (StepStatus::Pending, None);
                self.end(RunStatus::Cancelled)
            }
            // Nothing was ever bought under this id, so it is as good as new.
            RunEvent::NeverBegun => RunAction::Call { step: at, call: step.call.clone().unwrap_or_default() },
            RunEvent::Taken | RunEvent::CancelAsked | RunEvent::ResumeAsked { .. } | RunEvent::TimedOut => {
                self.go_on(fresh)
            }
        }
    }

    /// The same task first; otherwise the next step.
    fn go_on(&mut self, fresh: &str) -> RunAction {
        if let Some(at) = self.under_way() {
            return RunAction::LookUp { step: at, call: self.steps[at].call.clone().unwrap_or_default() };
        }
        match self.steps.iter().position(|step| step.status == StepStatus::Pending) {
            None => self.end(RunStatus::Completed),
            Some(_) if self.cancelling => self.end(RunStatus::Cancelled),
            Some(at) => self.begin(at, fresh),
        }
    }

    fn begin(&mut self, at: usize, fresh: &str) -> RunAction {
        self.status = RunStatus::Running;
        self.steps[at].status = StepStatus::Sent;
        self.steps[at].call = Some(fresh.to_owned());
        RunAction::Call { step: at, call: fresh.to_owned() }
    }

    fn resume(&mut self, max_cost: Option<Money>, resubmit: bool, fresh: &str) -> RunAction {
        self.max_cost = max_cost.unwrap_or(self.max_cost);
        (self.status, self.stopped, self.may_resubmit) = (RunStatus::Running, None, resubmit);
        for step in self.steps.iter_mut().filter(|step| step.status == StepStatus::Unknown) {
            step.status = StepStatus::Sent;
        }
        self.go_on(fresh)
    }

    fn under_way(&self) -> Option<usize> {
        self.steps.iter().position(|step| step.status == StepStatus::Sent)
    }

    fn fail(&mut self, at: usize, reason: String) -> RunAction {
        self.steps[at].status = StepStatus::Failed;
        self.failure = Some(reason);
        self.end(RunStatus::Failed)
    }

    fn stop(&mut self, reason: StopReason) -> RunAction {
        self.stopped = Some(reason);
        self.end(RunStatus::Stopped)
    }

    fn end(&mut self, status: RunStatus) -> RunAction {
        self.status = status;
        if status != RunStatus::Stopped {
            self.stopped = None;
        }
        self.may_resubmit = false;
        RunAction::Rest
    }
}
