//! How long a task is waited for, and one whose account nobody in the configuration is: it is kept for the day the operator puts the
//! account back, and decided in the customer's favour when any other task would be.

use super::look::put_back;
use super::{end, millis};
use crate::app::App;
use crate::video::KeptPlan;
use std::time::Duration;
use tollgate_store::{Leased, StoreError};
use tollgate_upstream::video::{Habits, speaker};
use tollgate_wire::video::Api;

/// What cannot be looked at now is looked at again after this.
pub(super) const LATER: i64 = 60_000;
/// The last look is so long before the provider forgets a task.
const BEFORE: Duration = Duration::from_secs(3_600);
/// The age at which a task is decided, where the operator does not say.
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Until when a task is waited for before its fate counts as unknown.
pub(super) fn patience(app: &App, kept: &KeptPlan, habits: &Habits) -> Duration {
    let seconds = kept.seconds.unwrap_or(kept.most_seconds);
    app.settings.tasks.patience.unwrap_or_else(|| habits.patience(seconds))
}

/// The age of the last look, in milliseconds: while the provider still knows the task, and not later than the operator wants to wait.
pub(super) fn last_look(app: &App, kept: &KeptPlan, habits: &Habits) -> i64 {
    let patience = patience(app, kept, habits);
    let wait = app.settings.tasks.unknown_time.map_or(DAY.max(patience), |time| patience.saturating_add(time));
    millis(habits.remembers.saturating_sub(BEFORE).min(wait))
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
    put_back(app, leased, task.state, None, false, LATER).await
}
