//! The desk for social data: which cells are open, how they are doing, what was asked in vain, and
//! how fast a source may be asked. The checks and the money of a call are elsewhere
//! (`catalog::social`, `call`); this is what the desk remembers.

mod answer_cache;
mod asked;
mod call;
mod fetch;
mod judge;
mod large;
mod memory;
mod run;
mod track;

pub use asked::AskedCell;
pub use run::{SocialCallRequest, cell, checked};
use track::Track;

use crate::call::Till;
pub use crate::routes::switches::AUTO;
use crate::settings::SocialSettings;
use crate::world::Millis;
use answer_cache::AnswerCache;
use memory::Memory;
use std::sync::Arc;
use tollgate_catalog::social::Cell;
use tollgate_store::{PauseChange, PauseKind, SocialLimit, SocialTake, SocialVain, StoreError};
use tollgate_upstream::{Blame, Client, Fault};
use tollgate_wire::error::Code;

pub const DAY: Millis = 86_400_000;

pub struct SocialDesk {
    pub(crate) till: Arc<Till>,
    pub(crate) settings: SocialSettings,
    /// Judges addresses that the source may open.
    links: Client,
    memory: Memory,
    cache: AnswerCache,
}

fn fault(code: Code, message: &str) -> Fault {
    Fault { blame: Blame::Provider, code, message: message.to_owned(), try_other: false, ..Fault::unreachable() }
}

/// An answer without data. It was billed, so no other route is tried.
fn no_data() -> Fault {
    let message = "The data source answered without data.";
    Fault { maybe_charged: true, sent: true, ..fault(Code::SocialDataUpstreamError, message) }
}

/// The specification knows one status for a source that did not answer properly.
fn as_social(fault: Fault) -> Fault {
    match fault.code {
        Code::UpstreamError | Code::UpstreamTimeout | Code::UpstreamInvalidReply | Code::Overloaded => Fault {
            code: Code::SocialDataUpstreamError,
            message: "The data source did not answer.".to_owned(),
            ..fault
        },
        _ => fault,
    }
}

impl SocialDesk {
    pub fn new(till: Arc<Till>, settings: SocialSettings, links: Client) -> SocialDesk {
        SocialDesk { till, settings, links, memory: Memory::default(), cache: AnswerCache::default() }
    }

    /// Takes over what other replicas and operators did: what is paused, and what was asked in
    /// vain.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.till.routes.switches.read(&self.till.store, &self.till.metrics).await?;
        if self.till.serving.load().catalog.social.is_empty() {
            return Ok(());
        }
        let now = self.till.world.now_ms();
        for lost in self.cache.forget(now) {
            // It was billed and is not paid for.
            self.memory.note(&lost, now);
            self.write_vain(lost).await;
        }
        let settings = &self.settings;
        let believed = settings.no_result_lists.max(settings.no_result_things).as_millis();
        let matters = Millis::try_from(believed).unwrap_or(Millis::MAX).max(memory::HOUR);
        let rows = self.till.store.social_vains(self.memory.since(now, matters)).await?;
        self.memory.read(&rows, now);
        Ok(())
    }

    /// Writes a change of a cell down and acts on it. An automatic one is acted on even where it
    /// cannot be written yet.
    pub async fn change(
        &self,
        model: &str,
        paused: bool,
        actor: &str,
        reason: &str,
    ) -> Result<PauseChange, StoreError> {
        let change = PauseChange {
            kind: PauseKind::Model,
            name: model.to_owned(),
            paused,
            at: self.till.world.now_ms(),
            actor: actor.to_owned(),
            reason: reason.to_owned(),
        };
        let written = self.till.store.change_pause(change.clone()).await;
        if written.is_ok() || actor == AUTO {
            tracing::warn!(model, paused, actor, reason, "social cell changed");
            self.till.routes.switches.put(change.clone(), written.is_ok());
        }
        written.map(|()| change)
    }

    async fn pause_cell(&self, model: &str, reason: &str) {
        if !self.till.routes.switches.model_is_paused(model) {
            self.change_cell(model, true, reason).await;
        }
    }

    /// A change by the gateway itself; old failures count no more after it.
    async fn change_cell(&self, model: &str, paused: bool, reason: &str) {
        self.till.routes.health.start_over(model);
        if let Err(error) = self.change(model, paused, AUTO, reason).await {
            tracing::error!(%error, model, "a change could not be written down; it will be");
        }
    }

    /// The verdict of a probe. It counts only while the pause for which it was let through is the
    /// last word: what anybody, here or elsewhere, did to the cell meanwhile stays.
    async fn probed(&self, pause: &PauseChange, works: bool) {
        if let Err(error) = self.till.routes.switches.read(&self.till.store, &self.till.metrics).await {
            tracing::warn!(%error, "pauses could not be read; what is known decides");
        }
        if self.till.routes.switches.last(&pause.name).as_ref() == Some(pause) {
            let reason = if works { "the probe was answered" } else { "the probe failed" };
            self.change_cell(&pause.name, !works, reason).await;
        }
    }

    /// Our key is wrong where five calls in a row, of whatever cells, were refused for it: nothing
    /// can be had from that provider.
    async fn lock_out(&self, provider: &str) {
        tracing::error!(provider, "the source refuses our key; its cells are paused");
        let reason = format!("the source {provider} refused the gateway's key five times in a row");
        let serving = self.till.serving.load_full();
        let only = |cell: &&Arc<Cell>| cell.routes.iter().all(|route| route.provider == provider);
        for cell in serving.catalog.social.cells().filter(only) {
            self.pause_cell(&cell.model.name, &reason).await;
        }
    }

    async fn write_vain(&self, vain: SocialVain) {
        if let Err(error) = self.till.store.social_vain(vain).await {
            tracing::warn!(%error, "other replicas do not learn of an answer without data");
        }
    }

    /// A call's part of the day, where the operator set limits.
    fn part(&self, cell: &Cell) -> Option<SocialTake> {
        let (all, own) = self.settings.limits(&cell.platform);
        if all == SocialLimit::default() && own == SocialLimit::default() {
            return None;
        }
        Some(SocialTake {
            day: self.till.world.now_ms().div_euclid(DAY),
            platform: cell.platform.clone(),
            cost: i64::try_from(cell.cost()).unwrap_or(i64::MAX),
            all,
            own,
        })
    }
}
