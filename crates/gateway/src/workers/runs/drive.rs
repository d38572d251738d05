//! One run in the hands of one worker. The order is law: an event moves the machine, the state is
//! written, and only then is done what the machine says is next. So whoever takes over after a
//! crash finds at least as much written as was done.

use super::attempt::{self, Attempted};
use super::{LEASE, fixture, millis, verify};
use crate::app::App;
use crate::endpoints::runs::plan::RunPlan;
use crate::endpoints::runs::saved::{RunWish, SavedRun, StepTry};
use axum::Router;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_store::{CallId, StoreError, WorkflowRun, WorkflowRunNext, WorkflowRunWrite};
use tollgate_workflows::{NotBegun, RunAction, RunEvent, RunStatus, RunSteps};

/// How many rounds pass before a step is looked at again that a provider is at work on.
const WAIT: u32 = 2;
/// A stopped run that nobody resumes ends by itself.
const STOPPED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// What a worker has in its hands.
pub(super) struct RunInHand<'a> {
    pub app: &'a Arc<App>,
    pub router: &'a Router,
    pub run: WorkflowRun,
    pub plan: RunPlan,
    pub steps: RunSteps,
    pub saved: SavedRun,
}

/// What is written of a run that cannot go on.
fn given_up(run: &WorkflowRun, state: String) -> WorkflowRunWrite {
    WorkflowRunWrite {
        id: run.id,
        fence: run.fence,
        plan: None,
        state,
        status: "failed".to_owned(),
        heard: run.wish.clone(),
        call: None,
        next: WorkflowRunNext::Ended,
    }
}

pub(super) async fn drive(app: &Arc<App>, router: &Router, mut run: WorkflowRun) -> Result<(), StoreError> {
    match fixture::planned(app, &mut run).await? {
        Ok(()) => {}
        Err(why) => {
            tracing::warn!(slug = run.slug, run = %run.id, why, "a workflow was not verified");
            return app.store.write_run(given_up(&run, fixture::failed(&run, why))).await.map(drop);
        }
    }
    let read = || {
        let plan: RunPlan = serde_json::from_str(&run.plan).ok()?;
        let workflow = plan.workflow(&run.slug)?;
        let steps = RunSteps::of(&workflow, &plan.inputs).ok()?;
        Some((plan, steps, SavedRun::read(&run)?))
    };
    let Some((plan, steps, saved)) = read() else {
        tracing::error!(run = %run.id, "a run cannot be read; it is ended");
        return app.store.write_run(given_up(&run, run.state.clone())).await.map(drop);
    };
    RunInHand { app, router, run, plan, steps, saved }.go().await
}

impl RunInHand<'_> {
    async fn go(mut self) -> Result<(), StoreError> {
        let (mut event, mut heard) = self.first();
        let mut call = None;
        loop {
            let fresh = self.saved.fresh(self.run.id);
            let action = self.saved.machine.advance(event, &fresh);
            if let RunAction::Call { step, call: key } = &action
                && *key == fresh
            {
                let begun_at = Some(self.app.world.now_ms());
                self.saved.tries.push(StepTry { step: *step, key: fresh, call: None, charged: Money::ZERO, begun_at });
            }
            let next = self.next(&action);
            if next == WorkflowRunNext::Ended
                && let Some(why) = verify::ended(&self).await?
                && self.saved.machine.status == RunStatus::Completed
            {
                self.saved.machine.failure.get_or_insert(why);
            }
            if !self.write(heard.take(), call.take(), next).await? {
                return Ok(());
            }
            let (RunAction::Call { step, call: key } | RunAction::LookUp { step, call: key }) = action else {
                return Ok(());
            };
            let attempted = self.attempt(step, &key).await?;
            call = self.note(&key, &attempted);
            event = self.event(step, attempted);
            heard = self.cancelled().await?;
        }
    }

    /// A step may have taken long: who has cancelled meanwhile is heard before the next one.
    async fn cancelled(&mut self) -> Result<Option<String>, StoreError> {
        let wish = self.app.store.any_run(self.run.id).await?.and_then(|run| run.wish);
        let cancels = |wish: &String| serde_json::from_str(wish).is_ok_and(|wish: RunWish| wish == RunWish::Cancel);
        let heard = wish.filter(cancels);
        self.saved.machine.cancelling |= heard.is_some();
        Ok(heard)
    }

    /// What is to be told to the machine first, and the wish that this is.
    fn first(&self) -> (RunEvent, Option<String>) {
        let wish = self.run.wish.clone();
        let now = self.app.world.now_ms();
        let (age, still) = (now.saturating_sub(self.run.created_at), now.saturating_sub(self.run.changed_at));
        let event = match wish.as_deref().and_then(|wish| serde_json::from_str(wish).ok()) {
            Some(RunWish::Cancel) => RunEvent::CancelAsked,
            Some(RunWish::Resume { max_cost, resubmit }) => RunEvent::ResumeAsked { max_cost, resubmit },
            // Nobody has asked for anything in all that time.
            None if self.saved.machine.status == RunStatus::Stopped && still >= millis(STOPPED) => {
                RunEvent::CancelAsked
            }
            None if age > millis(self.app.settings.runs.time) => RunEvent::TimedOut,
            None => RunEvent::Taken,
        };
        (event, wish)
    }

    fn next(&self, action: &RunAction) -> WorkflowRunNext {
        match action {
            RunAction::Call { .. } | RunAction::LookUp { .. } => WorkflowRunNext::Mine(millis(LEASE)),
            RunAction::Wait { .. } => WorkflowRunNext::After(millis(self.app.settings.runs.look_every * WAIT)),
            RunAction::Rest if self.saved.machine.has_ended() => WorkflowRunNext::Ended,
            RunAction::Rest => WorkflowRunNext::After(millis(STOPPED)),
        }
    }

    async fn write(
        &self,
        heard: Option<String>,
        call: Option<CallId>,
        next: WorkflowRunNext,
    ) -> Result<bool, StoreError> {
        let state = serde_json::to_string(&self.saved).unwrap_or_default();
        let status = self.saved.status().to_owned();
        let write =
            WorkflowRunWrite { id: self.run.id, fence: self.run.fence, plan: None, state, status, heard, call, next };
        self.app.store.write_run(write).await
    }

    /// Tries a step, and keeps the lease while it does. A lease that is lost changes nothing about
    /// the call: it goes on to its end, and whoever has the run now asks with the same key.
    async fn attempt(&self, step: usize, key: &str) -> Result<Attempted, StoreError> {
        let mut trying = Box::pin(attempt::attempt(self, step, key));
        let mut tick = tokio::time::interval(LEASE / 3);
        tick.tick().await;
        loop {
            tokio::select! {
                biased;
                attempted = &mut trying => return attempted,
                _ = tick.tick() => drop(self.write(None, None, WorkflowRunNext::Mine(millis(LEASE))).await),
            }
        }
    }

    /// Notes the call of a try and what it cost.
    fn note(&mut self, key: &str, attempted: &Attempted) -> Option<CallId> {
        let one = self.saved.tries.iter_mut().find(|one| one.key == key)?;
        if let Some((call, charged)) = attempted.call() {
            (one.call, one.charged) = (Some(call), charged);
        }
        one.call
    }

    fn event(&mut self, step: usize, attempted: Attempted) -> RunEvent {
        match attempted {
            Attempted::Answered { charged, outputs, warnings, passed, .. } => {
                let name = self.steps.steps[step].name.clone();
                if !warnings.is_empty() {
                    self.saved.warnings.insert(name.clone(), warnings);
                }
                self.saved.outputs.insert(name.clone(), outputs);
                let fits = tollgate_workflows::outputs_fit(&self.saved.outputs);
                if !fits {
                    self.saved.outputs.remove(&name);
                }
                let passed = if fits { passed } else { Err("its outputs are too large to be stored".to_owned()) };
                RunEvent::Answered { charged, passed }
            }
            Attempted::Faulted { charged, reason, .. } => RunEvent::Faulted { charged, reason },
            Attempted::Unstored { charged, .. } => RunEvent::Unstored { charged },
            Attempted::Waits(_) => RunEvent::Opened,
            Attempted::NeverBegun => RunEvent::NeverBegun,
            Attempted::Unclear(_) => RunEvent::Unclear,
            Attempted::Stopped(reason) => RunEvent::NotBegun(NotBegun::Stopped(reason)),
            Attempted::Refused(reason) => RunEvent::NotBegun(NotBegun::Refused(reason)),
        }
    }
}
