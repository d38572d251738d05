//! What every kind of task tells the till: how it is asked for, how its provider is asked what
//! became of it, and what a finished one has used. When it is looked at, what it costs and how it
//! ends is the same for all of them.

use super::watched::Watched;
use crate::call::{Priced, Till};
use crate::refusal::Refusal;
use crate::sale::Serving;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::{Price, Route};
use tollgate_store::{Counters, StoreError, TaskFailure, TaskId};
use tollgate_upstream::{Fault, Provider};

/// Something that a provider is asked to make.
pub trait TaskWork: Send + Sync + 'static {
    /// What it is called in a sentence.
    const PRODUCT: &'static str;
    /// What it is priced by.
    fn priced(&self) -> &dyn Priced;
    /// All that is written down of it: enough for any replica to look after it.
    fn plan(&self, id: TaskId) -> Result<String, Refusal>;
    /// Whether a provider can make it: some things are made only where others are already.
    fn goes_to(&self, serving: &Serving, provider: &Provider) -> bool;
    /// Whether it surely goes to the account that has what it is made from; another's "no such
    /// thing" is no news of it.
    fn is_sure(&self, serving: &Serving) -> bool;
    /// The provider's ways with it. `None`: it makes no such things.
    fn habits(&self, provider: &Provider) -> Option<TaskHabits>;
    /// Sends it, and tells the provider's name for it. A fault with `maybe_charged` means that the
    /// task may exist.
    fn create(
        &self,
        till: &Till,
        provider: &Arc<Provider>,
        route: &Route,
        id: TaskId,
    ) -> impl Future<Output = Result<String, Fault>> + Send;
}

/// A provider's ways with one kind of task.
#[derive(Clone, Copy, Debug)]
pub struct TaskHabits {
    /// Between two looks at one task, before they are spread.
    pub every: Duration,
    /// Looks of one account in a second; 0: as many as there are.
    pub per_second: u32,
    /// How long such a task may take before its fate counts as unknown.
    pub patience: Duration,
    /// How long the provider can be asked for it.
    pub remembers: Duration,
    /// A task whose creation was not answered can be found.
    pub finds: bool,
    /// A finished task tells what was counted: one that does not is a fault.
    pub reports: bool,
}

impl TaskHabits {
    /// With what the operator has set for a provider in the place of what is usual there.
    pub fn at(self, provider: &Provider) -> TaskHabits {
        let settings = &provider.settings;
        let per_second = match settings.per_second {
            0 => self.per_second,
            limit => u32::try_from(limit).unwrap_or(u32::MAX),
        };
        TaskHabits { every: settings.poll_every.unwrap_or(self.every), per_second, ..self }
    }

    /// The time to the next look, spread by a fifth to either side; `draw` is random. Longer where
    /// so many tasks are open that the provider's limit would be passed.
    pub(super) fn next_look(&self, open: u64, draw: u64) -> Duration {
        // A little below the limit: looks of one second are not spread evenly.
        let crowd = open.saturating_mul(1_250) / u64::from(self.per_second.max(1));
        let crowd = if self.per_second == 0 { Duration::ZERO } else { Duration::from_millis(crowd) };
        let base = u64::try_from(self.every.max(crowd).as_millis()).unwrap_or(u64::MAX);
        let spread = base / 5;
        Duration::from_millis(base - spread + draw % (2 * spread + 1))
    }
}

/// Who knows one kind of task: what was written down of it, and whom to ask.
pub trait TaskDesk: Send + Sync + Sized + 'static {
    /// What it is called in a sentence.
    const PRODUCT: &'static str;
    /// What was written down when the task was begun.
    type Plan: Clone + Send + Sync;
    /// What a provider has made.
    type Made: Clone + Send + Sync;
    /// Entries of a provider's list, of which one may be the task.
    type Entries: Send;

    /// `None`: this version does not know such tasks.
    fn read(&self, plan: &str) -> Option<Self::Plan>;
    /// Whether a provider can be asked about it.
    fn speaks(&self, plan: &Self::Plan, provider: &Provider) -> bool;
    /// The usual ways of a provider with it; of whoever makes it, where none is configured.
    fn habits(&self, plan: &Self::Plan, provider: Option<&Provider>) -> Option<TaskHabits>;
    /// Asks what became of a task.
    fn poll(
        &self,
        watched: &Watched<'_, Self>,
        upstream_id: &str,
    ) -> impl Future<Output = Result<TaskReport<Self::Made>, Fault>> + Send;
    /// Asks that it be made no more; whether that was taken.
    fn cancel(&self, watched: &Watched<'_, Self>, upstream_id: &str) -> impl Future<Output = bool> + Send;
    /// Looks for a task whose creation was not answered. `None`: there is no way to.
    fn find(
        &self,
        watched: &Watched<'_, Self>,
    ) -> impl Future<Output = Result<Option<TaskSearch<Self::Entries>>, Fault>> + Send;
    /// Which of the entries it is.
    fn which(
        &self,
        watched: &Watched<'_, Self>,
        entries: Self::Entries,
    ) -> impl Future<Output = Result<Which, StoreError>> + Send;
    /// It is made: the task is completed, at once or when a copy is. `waits`: there is patience for
    /// another time.
    fn deliver(
        &self,
        watched: &Watched<'_, Self>,
        made: Self::Made,
        progress: Option<u8>,
        waits: bool,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// What is written down of it.
    fn result(&self, made: &Self::Made) -> String;
    /// What it has used, at this price.
    fn used(&self, plan: &Self::Plan, made: &Self::Made, price: &Price) -> TaskUse;
    /// The most that it can use.
    fn most(&self, plan: &Self::Plan) -> Counters;
    /// The task is completed, and by us.
    fn completed(&self, _: &Watched<'_, Self>, _: &Self::Made) {}
}

/// What a provider says of a task.
pub struct TaskReport<M> {
    pub standing: TaskStanding,
    pub progress: Option<u8>,
    /// What was made, once it can be had: success without it is not yet success.
    pub made: Option<M>,
    /// The provider's own words about what it counted, for the usage row.
    pub raw_usage: Option<String>,
}

/// How far it is.
pub enum TaskStanding {
    Queued,
    Running,
    Succeeded,
    Failed(TaskFailure),
    /// The provider has no such task.
    Forgotten,
}

/// Where a lost task was looked for.
pub enum TaskSearch<E> {
    /// It carries our id.
    Exactly(String),
    /// One of these may be it.
    Perhaps(E),
    /// The provider has no such task.
    Nothing,
}

/// Which entry it is.
#[derive(Debug, PartialEq, Eq)]
pub enum Which {
    This(String),
    /// All that looked alike belongs to other tasks.
    None,
    Unsure,
}

/// What a finished task has used.
pub struct TaskUse {
    pub counters: Counters,
    /// The most that it could use, and be held for.
    pub most: Counters,
    pub estimated: bool,
    /// The charge goes by what the provider counts.
    pub by_report: bool,
    pub raw_usage: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_spread_and_fewer_where_many_are_open() {
        let habits = TaskHabits {
            every: Duration::from_secs(15),
            per_second: 20,
            patience: Duration::ZERO,
            remembers: Duration::ZERO,
            finds: false,
            reports: false,
        };
        let millis = |open, draw| habits.next_look(open, draw).as_millis();
        assert_eq!((millis(0, 0), millis(0, 6_000), millis(0, 6_001)), (12_000, 18_000, 12_000));
        assert_eq!((millis(240, 3_000), millis(320, 4_000)), (15_000, 20_000), "a task each 62.5 ms");
        let unlimited = TaskHabits { per_second: 0, ..habits };
        assert_eq!(unlimited.next_look(1_000_000, 3_000).as_millis(), 15_000);
    }
}
