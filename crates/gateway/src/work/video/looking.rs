//! How tasks that make a video are looked after.

use super::candidates::{self, Entries};
use super::{MadeVideo, StoredPlan, StoredResult, VideoDesk, VideoPlan, bill, copying, most};
use crate::call::task::{TaskDesk, TaskHabits, TaskReport, TaskSearch, TaskStanding, TaskUse, Watched, Which};
use tollgate_catalog::Price;
use tollgate_store::{Counters, StoreError, TaskFailure};
use tollgate_upstream::video::{
    self, Asking, Habits, Handle, SendTurn, VideoFailure, VideoReport, VideoSearch, VideoStanding,
};
use tollgate_upstream::{Fault, Provider};

/// A provider's ways with videos of such a length.
pub(super) fn habits(habits: &Habits, retained_seconds: u32) -> TaskHabits {
    TaskHabits {
        every: habits.poll_every,
        per_second: habits.polls_per_second.unwrap_or(0),
        patience: habits.patience(retained_seconds),
        remembers: habits.remembers,
        finds: habits.finds,
        reports: habits.reports,
    }
}

/// Whom a look asks.
fn asking<'w>(watched: &'w Watched<'_, VideoDesk>) -> Asking<'w> {
    Asking { provider: &watched.provider, now: watched.till.world.now_ms() / 1_000 }
}

fn unspoken() -> Fault {
    Fault::unreachable()
}

impl TaskDesk for VideoDesk {
    const PRODUCT: &'static str = "video";
    type Plan = VideoPlan;
    type Made = MadeVideo;
    type Entries = Entries;

    fn read(&self, plan: &str) -> Option<VideoPlan> {
        let stored = StoredPlan::read(plan)?;
        let api = stored.api()?;
        Some(VideoPlan { stored, api })
    }

    fn speaks(&self, plan: &VideoPlan, provider: &Provider) -> bool {
        provider.kind.video.is_some_and(|video| video.speaks(plan.api))
    }

    fn habits(&self, plan: &VideoPlan, provider: Option<&Provider>) -> Option<TaskHabits> {
        let video = provider.map_or_else(|| video::speaker(plan.api), |provider| provider.kind.video)?;
        let seconds = plan.stored.seconds.unwrap_or(plan.stored.most_seconds);
        Some(habits(video.habits(plan.api), seconds))
    }

    async fn poll(&self, watched: &Watched<'_, VideoDesk>, id: &str) -> Result<TaskReport<MadeVideo>, Fault> {
        let video = watched.provider.kind.video.ok_or_else(unspoken)?;
        let handle = Handle { api: watched.plan.api, call: &watched.plan.stored.call, id };
        let turn: &SendTurn<'_> = &|| Box::pin(watched.another_turn());
        let report = video::poll(&self.till.client, video, &asking(watched), &handle, turn).await?;
        if let Some(word) = &report.strange {
            let provider = &watched.provider.name;
            tracing::warn!(provider, word, "a provider uses a status word that is not known");
        }
        Ok(task_report(report))
    }

    async fn cancel(&self, watched: &Watched<'_, VideoDesk>, id: &str) -> bool {
        let Some(video) = watched.provider.kind.video else { return false };
        let handle = Handle { api: watched.plan.api, call: &watched.plan.stored.call, id };
        video::cancel(&self.till.client, video, &asking(watched), &handle).await.unwrap_or(false)
    }

    async fn find(&self, watched: &Watched<'_, VideoDesk>) -> Result<Option<TaskSearch<Entries>>, Fault> {
        let video = watched.provider.kind.video.ok_or_else(unspoken)?;
        let (stored, task) = (&watched.plan.stored, &watched.leased.task);
        let external_id = task.id.to_string();
        let prompt = stored.prompt(&self.secrets, &external_id);
        let Some(sought) = stored.sought(task, &external_id, prompt.as_ref(), self.till.world.now_ms()) else {
            return Ok(None);
        };
        let turn: &SendTurn<'_> = &|| Box::pin(watched.another_turn());
        let found = video::find(&self.till.client, video, &asking(watched), &sought, turn).await?;
        Ok(found.map(|found| match found {
            VideoSearch::Exactly(id) => TaskSearch::Exactly(id),
            VideoSearch::Nothing => TaskSearch::Nothing,
            VideoSearch::Perhaps { alike, whole } => TaskSearch::Perhaps(Entries { alike, whole }),
        }))
    }

    async fn which(&self, watched: &Watched<'_, VideoDesk>, entries: Entries) -> Result<Which, StoreError> {
        candidates::which(watched, &self.till.store, entries).await
    }

    async fn deliver(
        &self,
        watched: &Watched<'_, VideoDesk>,
        made: MadeVideo,
        progress: Option<u8>,
        waits: bool,
    ) -> Result<(), StoreError> {
        match &self.copies {
            Some(copies) => copying::begin(watched, copies, made, progress, waits).await,
            None => watched.complete(&made).await,
        }
    }

    fn result(&self, made: &MadeVideo) -> String {
        made.file.text()
    }

    fn used(&self, plan: &VideoPlan, made: &MadeVideo, price: &Price) -> TaskUse {
        bill::used(&plan.stored, &made.used, price)
    }

    fn most(&self, plan: &VideoPlan) -> Counters {
        most(&plan.stored.bound())
    }

    /// Tells the operator where the provider made, and bills us for, another resolution than the
    /// customer asked for and pays.
    fn completed(&self, watched: &Watched<'_, VideoDesk>, made: &MadeVideo) {
        let asked = watched.plan.stored.fact("resolution").filter(|asked| made.used.is_other_than(asked));
        let Some(asked) = asked else { return };
        let (task, provider) = (&watched.leased.task, &watched.provider.name);
        let model = task.upstream_model.as_deref().unwrap_or_default();
        self.till.metrics.other_tier(provider, model);
        tracing::error!(task = %task.id, provider, model, asked, made = made.used.resolution,
            "a provider made another resolution than was asked for; the customer pays what was asked for");
    }
}

fn task_report(report: VideoReport) -> TaskReport<MadeVideo> {
    let made = StoredResult::of(&report).map(|file| MadeVideo { file, used: report.used.clone() });
    let standing = match report.standing {
        VideoStanding::Queued => TaskStanding::Queued,
        VideoStanding::Running => TaskStanding::Running,
        VideoStanding::Succeeded => TaskStanding::Succeeded,
        VideoStanding::Ended(VideoFailure::Forgotten) => TaskStanding::Forgotten,
        VideoStanding::Ended(_) => TaskStanding::Failed(match report.failure {
            Some(failure) => TaskFailure { code: failure.code, message: failure.message },
            None => {
                TaskFailure { code: "task_failed".into(), message: "The provider could not make the video.".into() }
            }
        }),
    };
    TaskReport { standing, progress: report.progress, made, raw_usage: report.used.raw }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::task::{HOLD_LIFE, decided_at};
    use std::time::Duration;
    use tollgate_media::video::Api;

    /// The age, in minutes, at which a short video is decided when the operator says nothing.
    #[test]
    fn a_task_is_decided_before_its_provider_forgets_it() {
        const THREE_DAYS: u64 = 72 * 60 + 15;
        let table = [
            (Api::DashScope, 23 * 60),
            (Api::MiniMaxV1, 23 * 60),
            (Api::Sora, 23 * 60),
            (Api::Veo, 47 * 60),
            (Api::Ark, THREE_DAYS),
            (Api::MiniMaxV2, THREE_DAYS),
            (Api::KlingV1, THREE_DAYS),
            (Api::Kling2, THREE_DAYS),
            (Api::KlingOmni, THREE_DAYS),
        ];
        let unknown_time = crate::settings::TaskSettings::default().unknown_time;
        for (api, minutes) in table {
            let habits = habits(video::speaker(api).expect("a speaker").habits(api), 5);
            let age = decided_at(habits.remembers, habits.patience, unknown_time);
            assert_eq!(age, Duration::from_secs(minutes * 60), "{api:?}");
            assert!(age < HOLD_LIFE, "{api:?}: its hold would be said to be late");
            let soon = decided_at(habits.remembers, Duration::from_secs(60), Duration::ZERO);
            assert_eq!(soon, Duration::from_secs(60), "{api:?}");
        }
    }
}
