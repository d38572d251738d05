//! How long a task is waited for, and one whose account nobody in the configuration is: it is kept for the day the operator puts the
//! account back, and decided in the customer's favour when any other task would be.

use super::look::put_back;
use super::{end, millis};
use crate::app::App;
use crate::video::KeptPlan;
use std::time::Duration;
use tollgate_media::video::Api;
use tollgate_store::{Leased, StoreError, TaskStep, Word};
use tollgate_upstream::video::{Habits, speaker};

/// What cannot be looked at now is looked at again after this.
pub(super) const LATER: i64 = 60_000;
/// The last look is so long before the provider forgets a task.
const BEFORE: Duration = Duration::from_secs(3_600);

/// Until when a task is waited for before its fate counts as unknown.
pub(super) fn patience(app: &App, kept: &KeptPlan, habits: &Habits) -> Duration {
    let seconds = kept.seconds.unwrap_or(kept.most_seconds);
    app.settings.tasks.patience.unwrap_or_else(|| habits.patience(seconds))
}

/// The age of the last look, in milliseconds.
pub(super) fn last_look(app: &App, kept: &KeptPlan, habits: &Habits) -> i64 {
    millis(decided_at(habits, patience(app, kept, habits), app.settings.tasks.unknown_time))
}

/// The age at which a task is decided: while its provider still knows it, and not later than the operator wants to wait.
fn decided_at(habits: &Habits, patience: Duration, unknown_time: Duration) -> Duration {
    habits.remembers.saturating_sub(BEFORE).min(patience.saturating_add(unknown_time))
}

/// Tells the operator that a provider's tasks cannot be asked for, at most once in a while.
pub(super) fn tell(app: &App, provider: &str, why: &'static str) {
    app.metrics.polled(provider, why);
    if app.tasks.may_tell(provider) {
        tracing::error!(
            provider,
            why,
            "open tasks were made with another account or host than is configured; put it back until they have ended"
        );
    }
}

/// A task that nobody can be asked about.
pub(super) async fn away(app: &App, leased: &Leased, kept: &KeptPlan, api: Api) -> Result<(), StoreError> {
    let task = &leased.task;
    tell(app, task.provider.as_deref().unwrap_or_default(), "other_host");
    let last = speaker(api).map(|video| last_look(app, kept, video.habits(api)));
    if last.is_some_and(|last| leased.age_ms >= last) {
        return end::given_up(app, leased, kept).await;
    }
    put_back(app, TaskStep::new(task.id, leased.fence, task.state, Word::Nothing, LATER)).await
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let habits = speaker(api).expect("a speaker").habits(api);
            let age = decided_at(habits, habits.patience(5), unknown_time);
            assert_eq!(age, Duration::from_secs(minutes * 60), "{api:?}");
            assert!(age < super::super::HOLD_LIFE, "{api:?}: its hold would be said to be late");
            assert_eq!(decided_at(habits, Duration::from_secs(60), Duration::ZERO), Duration::from_secs(60), "{api:?}");
        }
    }
}
