//! What a call leaves behind at the source, and what follows from it: the cost of a free call is
//! given back to the day, an answer that was billed and not paid for counts against its account,
//! health, pauses and probes learn.
//!
//! The call, its fetch and a large answer on its way hold the track together. What follows happens
//! when the last of them lets go, so that a client who leaves takes nothing of it along.

use super::SocialDesk;
use super::answer_cache::Question;
use crate::routes::health::CallResult;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tollgate_catalog::social::Cell;
use tollgate_store::{AccountId, CallId, PauseChange, SocialTake, SocialVain};
use tollgate_upstream::{Blame, Fault};
use tollgate_wire::error::Code;

pub struct Track {
    desk: Arc<SocialDesk>,
    cell: Arc<Cell>,
    call: CallId,
    question: Question,
    traces: Mutex<Traces>,
}

#[derive(Debug, Default)]
struct Traces {
    /// The till let it in: it was not refused for its balance.
    admitted: bool,
    /// The part of the day that was taken.
    part: Option<SocialTake>,
    /// The automatic pause for which this call tries whether the cell works again.
    probe: Option<PauseChange>,
    /// The source may bill the operator for it.
    billed: bool,
    /// The customer pays for it, or the answer is cached for one who may.
    covered: bool,
    seen: Option<CallResult>,
    /// Who was asked last, and whether our key was refused there.
    asked: Option<(String, bool)>,
    /// It found nothing, which is written down.
    vain: Option<SocialVain>,
}

/// What is left to be written down after a call.
struct Todo {
    desk: Arc<SocialDesk>,
    cell: Arc<Cell>,
    give_back: Option<SocialTake>,
    vain: Option<SocialVain>,
    /// The pause that was tried, and whether the cell works.
    verdict: Option<(PauseChange, bool)>,
    pause: Option<String>,
    /// A provider that refuses our key.
    locked: Option<String>,
}

impl Track {
    pub fn new(
        desk: &Arc<SocialDesk>,
        cell: &Arc<Cell>,
        call: CallId,
        account: AccountId,
        question: [u8; 32],
    ) -> Arc<Track> {
        Arc::new(Track {
            desk: desk.clone(),
            cell: cell.clone(),
            call,
            question: (account, question),
            traces: Mutex::default(),
        })
    }

    fn traces(&self) -> MutexGuard<'_, Traces> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    pub fn call(&self) -> CallId {
        self.call
    }

    pub fn question(&self) -> Question {
        self.question
    }

    pub fn admitted(&self) {
        self.traces().admitted = true;
    }

    pub fn was_admitted(&self) -> bool {
        self.traces().admitted
    }

    pub fn took(&self, part: SocialTake) {
        self.traces().part = Some(part);
    }

    pub fn probes(&self, pause: PauseChange) {
        self.traces().probe = Some(pause);
    }

    pub fn bills(&self) {
        self.traces().billed = true;
    }

    pub fn asked(&self, provider: &str, refused: bool) {
        self.traces().asked = Some((provider.to_owned(), refused));
    }

    /// The source had data.
    pub fn works(&self) {
        self.traces().seen = Some(CallResult::Data);
    }

    pub fn covered(&self) {
        self.traces().covered = true;
    }

    /// Found nothing, for which the operator pays: remembered, so that it is not asked again at
    /// once.
    pub fn nothing(&self) {
        let settings = &self.desk.settings;
        let one_thing = self.cell.capability.is_one_thing();
        let believed = if one_thing { settings.no_result_things } else { settings.no_result_lists };
        let vain = self.without_charge(i64::try_from(believed.as_millis()).unwrap_or(0));
        let mut traces = self.traces();
        traces.seen = Some(CallResult::NoResult);
        traces.vain = Some(vain);
    }

    /// An answer without a charge, which counts against its account and whose question is not asked
    /// again for so long.
    fn without_charge(&self, believed: i64) -> SocialVain {
        let now = self.desk.till.world.now_ms();
        let (account, question) = self.question;
        let until = now.saturating_add(believed);
        let vain = SocialVain { call: self.call, question, account, at: now, until };
        self.desk.memory.note(&vain, now);
        vain
    }

    /// It failed: what that says about the cell.
    pub fn failed(&self, fault: &Fault) {
        let seen = match (fault.code, fault.blame) {
            (Code::SocialDataNoResult, _) => Some(CallResult::NoResult),
            (_, Blame::Operator) => Some(CallResult::Operator),
            // Our table may be stale when the source refuses what passed our check, or a caller
            // plays with it: somebody has to look, and nobody else's calls suffer.
            (Code::InvalidParameter, _) => {
                let (cell, param) = (&self.cell.model.name, &fault.param);
                tracing::error!(cell, param, "the source refuses a parameter that the catalog allows");
                None
            }
            (Code::SocialDataCapacityReached, _) => None,
            _ => Some(CallResult::Fault),
        };
        let mut traces = self.traces();
        traces.seen = seen;
        traces.covered = false;
        traces.billed |= fault.maybe_charged;
    }

    /// The call is over for its client. Waits for what follows, if nobody else holds on to it.
    pub async fn end(self: Arc<Self>) {
        let Some(mut track) = Arc::into_inner(self) else { return };
        if let Some(todo) = track.finish() {
            // Apart, because a client may still leave.
            let _ = track.desk.till.tracker.spawn(todo.run()).await;
        }
    }

    /// Learns what needs no waiting, and says what does.
    fn finish(&mut self) -> Option<Todo> {
        let traces = std::mem::take(self.traces.get_mut().unwrap_or_else(PoisonError::into_inner));
        let (desk, till, model) = (&self.desk, &self.desk.till, &self.cell.model.name);
        let now = till.world.now_ms();
        let automatic = desk.settings.auto_pause;
        let mut todo = Todo {
            desk: desk.clone(),
            cell: self.cell.clone(),
            give_back: traces.part.filter(|_| !traces.billed),
            vain: traces.vain,
            verdict: None,
            pause: None,
            locked: None,
        };
        if todo.vain.is_none() && traces.billed && !traces.covered {
            todo.vain = Some(self.without_charge(0));
        }
        if let Some(seen) = traces.seen {
            till.routes.health.add(model, seen, self.question.0, now);
            if traces.probe.is_none() && automatic && !till.routes.switches.model_is_paused(model) {
                todo.pause = till.routes.health.trouble(model, now);
            }
        }
        match (traces.probe, traces.seen) {
            (Some(pause), Some(seen)) => todo.verdict = Some((pause, seen.works())),
            // It never got as far as the source, or nobody knows what came of it: the next call may
            // try.
            (Some(pause), None) => till.routes.switches.leave(&pause),
            (None, _) => {}
        }
        let locked =
            traces.asked.filter(|(provider, refused)| till.routes.health.asked(provider, *refused) && automatic);
        todo.locked = locked.map(|(provider, _)| provider);
        todo.is_something().then_some(todo)
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        if let Some(todo) = self.finish() {
            // Without a runtime the process is at its very end.
            if tokio::runtime::Handle::try_current().is_ok() {
                self.desk.till.tracker.spawn(todo.run());
            }
        }
    }
}

impl Todo {
    fn is_something(&self) -> bool {
        self.give_back.is_some()
            || self.vain.is_some()
            || self.verdict.is_some()
            || self.pause.is_some()
            || self.locked.is_some()
    }

    async fn run(self) {
        let Todo { desk, cell, give_back, vain, verdict, pause, locked } = self;
        let model = &cell.model.name;
        if let Some(part) = give_back
            && let Err(error) = desk.till.store.social_give_back(part).await
        {
            tracing::warn!(%error, "the cost of a free call stays counted");
        }
        if let Some(vain) = vain {
            desk.write_vain(vain).await;
        }
        if let Some((pause, works)) = verdict {
            desk.probed(&pause, works).await;
        }
        if let Some(reason) = pause {
            desk.pause_cell(model, &reason).await;
        }
        if let Some(provider) = locked {
            desk.lock_out(&provider).await;
        }
    }
}
