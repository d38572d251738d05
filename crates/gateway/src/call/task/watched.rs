//! A task in our hands: whom to ask about it, when to look again, and how long it is waited for.

use super::desk::{TaskDesk, TaskHabits};
use crate::call::Till;
use std::sync::Arc;
use std::time::Duration;
use tollgate_store::{Leased, StoreError, TaskState, TaskStep, Word};
use tollgate_upstream::Provider;

/// The longest pause between two looks at a task whose fate is unknown.
pub(super) const SLOWLY: i64 = 5 * 60_000;
/// What cannot be looked at now is looked at again after this.
pub(super) const LATER: i64 = 60_000;
/// The last look is so long before the provider forgets a task.
const BEFORE: Duration = Duration::from_secs(3_600);

/// A task in our hands, with all that is needed to ask about it.
pub struct Watched<'a, D: TaskDesk> {
    pub till: &'a Arc<Till>,
    pub desk: &'a Arc<D>,
    pub leased: &'a Leased,
    pub plan: D::Plan,
    pub provider: Arc<Provider>,
    pub habits: TaskHabits,
    /// The provider is the account it was sent with; another's "no such task" counts for nothing.
    pub sure: bool,
}

/// Gives a task back that goes on.
pub(crate) async fn put_back(till: &Till, step: TaskStep) -> Result<(), StoreError> {
    if !till.store.put_back_task(step).await? {
        till.metrics.stale_task();
    }
    Ok(())
}

pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Until when a task is waited for before its fate counts as unknown.
fn patience(till: &Till, habits: &TaskHabits) -> Duration {
    till.tasks.settings.patience.unwrap_or(habits.patience)
}

/// The age of the last look, in milliseconds.
pub(super) fn last_look(till: &Till, habits: &TaskHabits) -> i64 {
    millis(decided_at(habits.remembers, patience(till, habits), till.tasks.settings.unknown_time))
}

/// The age at which a task is decided: while its provider still knows it, and not later than the
/// operator wants to wait.
pub(crate) fn decided_at(remembers: Duration, patience: Duration, unknown_time: Duration) -> Duration {
    remembers.saturating_sub(BEFORE).min(patience.saturating_add(unknown_time))
}

/// The time to the next look.
pub(super) fn next_look(till: &Till, provider: &Provider, habits: &TaskHabits) -> i64 {
    let mut draw = [0u8; 8];
    till.world.fill(&mut draw);
    millis(habits.next_look(till.tasks.open_at(&provider.name), u64::from_le_bytes(draw)))
}

/// Tells the operator that a provider's tasks cannot be asked for, at most once in a while.
pub(super) fn warn_other_account(till: &Till, provider: &str, why: &'static str) {
    till.metrics.polled(provider, why);
    if till.tasks.may_warn(provider) {
        tracing::error!(
            provider,
            why,
            "open tasks were made with another account or host than is configured; put it back until they have ended"
        );
    }
}

impl<D: TaskDesk> Watched<'_, D> {
    pub fn age(&self) -> i64 {
        self.leased.age_ms
    }

    /// Waits for a turn at the provider; `false`: the line is too long.
    pub async fn turn(&self) -> Result<bool, StoreError> {
        let (limit, patience) = (self.habits.per_second, self.till.tasks.settings.turn_time);
        self.till.routes.turns.turn(&self.till.store, &self.provider.name, limit, patience).await
    }

    /// A further turn for the same look. Without the store there is none.
    pub async fn another_turn(&self) -> bool {
        self.turn().await.unwrap_or(false)
    }

    /// Until when it is waited for before its fate counts as unknown.
    pub fn patience(&self) -> i64 {
        millis(patience(self.till, &self.habits))
    }

    pub fn is_last_look(&self) -> bool {
        self.age() >= last_look(self.till, &self.habits)
    }

    /// Whether the provider has said for long enough, and nothing else meanwhile, that it has no
    /// such task. How long its fate is unknown says nothing of that: the provider may have been
    /// away, and may not know its newest tasks when it is back.
    pub fn is_absent(&self) -> bool {
        self.leased.absent_ms >= millis(self.till.tasks.settings.absent_time)
    }

    pub fn step(&self, state: TaskState, word: Word, after_ms: i64) -> TaskStep {
        TaskStep::new(self.leased.task.id, self.leased.fence, state, word, after_ms)
    }

    pub fn soon(&self) -> i64 {
        next_look(self.till, &self.provider, &self.habits)
    }

    /// Where the line is too long: at any time of the next round, so that those who came together
    /// do not come together again.
    pub fn another_time(&self) -> i64 {
        let mut draw = [0u8; 4];
        self.till.world.fill(&mut draw);
        let soon = self.soon().max(1);
        soon / 5 + i64::from(u32::from_le_bytes(draw)) % soon
    }

    /// A task whose fate is unknown is looked at less and less often.
    pub fn slowly(&self) -> i64 {
        (self.leased.unknown_ms / 4).min(SLOWLY).max(self.soon())
    }
}
