//! The desk for social data: which cells are open, how they are doing, what was asked in vain, and how fast a source may be
//! asked. The checks and the money of a call are elsewhere (`catalog::social`, `call`); this is what the desk remembers.

pub mod call;
mod fetch;
mod health;
mod judge;
mod kept;
mod memory;
mod pauses;
mod settings;

pub use health::Seen;
pub use judge::{Judged, judge, judge_begun, next_page, wanted};
pub use pauses::Door;
pub use settings::SocialSettings;

use crate::app::App;
use crate::world::Millis;
use health::Health;
use kept::Kept;
use memory::Memory;
use pauses::Pauses;
use std::sync::Arc;
use tollgate_catalog::social::Cell;
use tollgate_store::{SocialChange, SocialLimit, SocialTake, StoreError};
use tollgate_upstream::Pace;

pub const DAY: Millis = 86_400_000;
/// The actor of changes that nobody made by hand.
pub const AUTO: &str = "auto";

#[derive(Default)]
pub struct Desk {
    pub pace: Pace,
    pub pauses: Pauses,
    pub health: Health,
    pub memory: Memory,
    pub kept: Kept,
}

impl App {
    /// Takes over what other replicas and operators did to cells.
    pub async fn refresh_social(&self) -> Result<(), StoreError> {
        if !self.serving.load().catalog.social.is_empty() {
            let before = self.social.pauses.before_reading();
            self.social.pauses.replace(self.store.social_states().await?, before);
            let now = self.world.now_ms();
            self.social.kept.forget(now);
            let settings = &self.settings.social;
            let believed = settings.no_result_lists.max(settings.no_result_things).as_millis();
            let matters = Millis::try_from(believed).unwrap_or(Millis::MAX).max(memory::HOUR);
            let rows = self.store.social_vains(self.social.memory.since(now, matters)).await?;
            self.social.memory.read(&rows, now);
        }
        Ok(())
    }

    /// Writes a change of a cell down and acts on it. An automatic one is acted on even where it cannot be written.
    pub async fn change_social(
        &self,
        model: &str,
        paused: bool,
        actor: &str,
        reason: &str,
    ) -> Result<SocialChange, StoreError> {
        let change = SocialChange {
            model: model.to_owned(),
            paused,
            at: self.world.now_ms(),
            actor: actor.to_owned(),
            reason: reason.to_owned(),
        };
        let written = self.store.social_change(change.clone()).await;
        if written.is_ok() || actor == AUTO {
            tracing::warn!(model, paused, actor, reason, "social cell changed");
            self.social.pauses.put(change.clone(), written.is_ok());
        }
        written.map(|()| change)
    }

    /// Learns from how a call ended: health, and pausing or resuming where that is due.
    pub async fn learn_social(&self, cell: &Arc<Cell>, seen: Seen, probe: bool) {
        let now = self.world.now_ms();
        let model = &cell.model.name;
        self.social.health.add(model, seen, now);
        let change = match (probe, seen.works()) {
            (true, true) => Some((false, "the probe was answered".to_owned())),
            (true, false) => Some((true, "the probe failed".to_owned())),
            (false, _) if !self.settings.social.auto_pause => None,
            (false, _) => self.social.health.trouble(model, now).map(|why| (true, why)),
        };
        let Some((paused, reason)) = change else { return };
        if paused == self.social.pauses.is_paused(model) && !probe {
            return;
        }
        self.social.health.start_over(model);
        if let Err(error) = self.change_social(model, paused, AUTO, &reason).await {
            tracing::error!(%error, model, "a pause could not be written down");
        }
    }

    /// Our key is wrong where five calls in a row, of whatever cells, were refused for it: nothing can be had from that provider.
    pub async fn learn_key(&self, provider: &str, refused: bool) {
        if !self.social.health.asked(provider, refused) || !self.settings.social.auto_pause {
            return;
        }
        tracing::error!(provider, "the source refuses our key; its cells are paused");
        let reason = format!("the source {provider} refused the gateway's key five times in a row");
        let serving = self.serving.load_full();
        let only = |cell: &&Arc<Cell>| cell.routes.iter().all(|route| route.provider == provider);
        for cell in serving.catalog.social.cells().filter(only) {
            let model = &cell.model.name;
            if self.social.pauses.is_paused(model) {
                continue;
            }
            self.social.health.start_over(model);
            if let Err(error) = self.change_social(model, true, AUTO, &reason).await {
                tracing::error!(%error, model, "a pause could not be written down");
            }
        }
    }

    /// A call's part of the day, where the operator set limits.
    pub fn social_part(&self, cell: &Cell) -> Option<SocialTake> {
        let (all, own) = self.settings.social.limits(&cell.platform);
        if all == SocialLimit::default() && own == SocialLimit::default() {
            return None;
        }
        Some(SocialTake {
            day: self.world.now_ms().div_euclid(DAY),
            platform: cell.platform.clone(),
            cost: i64::try_from(cell.cost()).unwrap_or(i64::MAX),
            all,
            own,
        })
    }
}
