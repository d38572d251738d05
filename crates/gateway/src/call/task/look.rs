//! One look at an open task: ask its provider, and give it back for later or end it. A provider
//! that does not answer decides nothing; time decides nothing either, except that the operator
//! takes the loss before the provider has forgotten the task.

use super::watched::{LATER, SLOWLY, millis, put_back, warn_other_account};
use super::{TaskDesk, TaskHome, TaskReport, TaskStanding, Watched, end, home, lost, provider_gone};
use crate::call::Till;
use std::sync::Arc;
use tollgate_store::{Leased, StoreError, Task, TaskFailure, TaskState, TaskStep, Word};
use tollgate_upstream::Fault;

/// Looks at a task that was taken, and gives it back or ends it.
pub async fn look<D: TaskDesk>(till: &Arc<Till>, desk: &Arc<D>, leased: &Leased) -> Result<(), StoreError> {
    let task = &leased.task;
    if task.state == TaskState::Held {
        return end::never_sent(till, leased).await;
    }
    let Some(plan) = desk.read(&task.plan) else {
        tracing::error!(task = %task.id, provider = task.provider, "an open task is of a kind that this version does not know");
        return put_back(till, TaskStep::new(task.id, leased.fence, task.state, Word::Nothing, LATER)).await;
    };
    let (provider, sure) = match home(&till.serving.load(), task, |provider| desk.speaks(&plan, provider)) {
        TaskHome::Same(provider) => (provider, true),
        TaskHome::Stranger(provider) => (provider, false),
        TaskHome::Away => return provider_gone::provider_gone(till, &**desk, leased, &plan).await,
    };
    let Some(habits) = desk.habits(&plan, Some(&provider)) else {
        return provider_gone::provider_gone(till, &**desk, leased, &plan).await;
    };
    let habits = habits.at(&provider);
    let watched = Watched { till, desk, leased, plan, provider, habits, sure };
    match task.upstream_id.as_deref() {
        Some(id) => watched.poll(id).await,
        None => lost::find(&watched).await,
    }
}

/// Asks the provider of a task that somebody reads, unless it was heard of a moment ago; the task
/// as it is then. The look goes on when the reader leaves: half of one would keep the task from
/// everybody until its lease ends.
pub async fn refresh<D: TaskDesk>(till: &Arc<Till>, desk: &Arc<D>, task: Task) -> Result<Task, StoreError> {
    let heard = task.checked_at.unwrap_or(task.created_at);
    // A time to come was written before the clock was set back; it says nothing.
    let fresh = till.world.now_ms().abs_diff(heard) < millis(till.tasks.settings.refresh_after).unsigned_abs();
    if fresh || task.state.is_final() || task.upstream_id.is_none() {
        return Ok(task);
    }
    let (worker, desk, id) = (till.clone(), desk.clone(), task.id);
    let looked = till.tracker.spawn(async move {
        let lease = millis(worker.tasks.settings.lease());
        match worker.store.take_task(id, lease).await? {
            Some(leased) => look(&worker, &desk, &leased).await.map(|()| true),
            None => Ok(false),
        }
    });
    match looked.await {
        Ok(Ok(true)) => {}
        // What is known stays readable, whatever became of the look; what was found out is written
        // when the database takes it.
        Ok(Err(error)) => tracing::warn!(task = %id, %error, "a task is shown as it was last known"),
        Ok(Ok(false)) | Err(_) => return Ok(task),
    }
    Ok(till.store.task(task.account, task.id).await?.unwrap_or(task))
}

/// What a question that failed leaves of what the provider said before. Who is asked too often has
/// not failed.
pub(super) fn no_answer(fault: &Fault) -> Word {
    if fault.upstream_status == Some(429) { Word::Nothing } else { Word::Unclear }
}

impl<D: TaskDesk> Watched<'_, D> {
    async fn poll(&self, id: &str) -> Result<(), StoreError> {
        let (till, state) = (self.till, self.leased.task.state);
        if !self.turn().await? {
            if self.is_last_look() {
                return self.wait_on(Word::Nothing, None, None).await;
            }
            return put_back(till, self.step(state, Word::Nothing, self.another_time())).await;
        }
        let asked = self.desk.poll(self, id);
        let report = match tokio::time::timeout(till.tasks.settings.look_time, asked).await {
            Ok(Ok(report)) => report,
            Ok(Err(fault)) => {
                till.metrics.polled(&self.provider.name, fault.code.code());
                tracing::info!(task = %self.leased.task.id, provider = self.provider.name, code = fault.code.code(), status = fault.upstream_status, "a poll failed");
                if !self.sure {
                    return self.doubted().await;
                }
                let wait = fault.retry_after.map_or(0, |seconds| i64::from(seconds) * 1_000);
                return self.wait_on(no_answer(&fault), None, Some(wait)).await;
            }
            Err(_) => {
                till.metrics.polled(&self.provider.name, "timeout");
                return self.wait_on(Word::Unclear, None, Some(0)).await;
            }
        };
        till.metrics.polled(&self.provider.name, "ok");
        self.reported(report).await
    }

    async fn reported(&self, report: TaskReport<D::Made>) -> Result<(), StoreError> {
        match report.standing {
            TaskStanding::Queued => self.wait_on(Word::Queued, report.progress, None).await,
            TaskStanding::Running => self.wait_on(Word::Running, report.progress, None).await,
            TaskStanding::Succeeded => self.succeeded(report).await,
            TaskStanding::Forgotten if !self.sure => self.doubted().await,
            // Providers forget, but some also do not know a new task yet.
            TaskStanding::Forgotten => {
                if self.is_absent() || self.is_last_look() {
                    return end::given_up(self.till, &**self.desk, self.leased, &self.plan).await;
                }
                put_back(self.till, self.step(TaskState::Unknown, Word::Absent, self.slowly())).await
            }
            TaskStanding::Failed(failure) => end::failed(self.till, self.leased, failure, report.raw_usage).await,
        }
    }

    /// It is made. Its link and our copy of it are waited for, from the first time that the
    /// provider said so: a task that took long has as much time for them as any other.
    async fn succeeded(&self, report: TaskReport<D::Made>) -> Result<(), StoreError> {
        let waits = self.leased.made_ms < self.patience() && !self.is_last_look();
        match report.made {
            Some(made) => self.desk.deliver(self, made, report.progress, waits).await,
            None if waits => {
                let step = self.step(TaskState::Running, Word::Made, self.soon());
                put_back(self.till, TaskStep { progress: report.progress, ..step }).await
            }
            None => {
                let message = format!("The provider finished the task and never gave a link to the {}.", D::PRODUCT);
                let failure = TaskFailure { code: "result_missing".into(), message };
                end::failed(self.till, self.leased, failure, report.raw_usage).await
            }
        }
    }

    /// It goes on, for as long as there is patience; after that its fate counts as unknown, until
    /// the last look. A provider in trouble is left alone for so long, and until the next look at
    /// least, whoever reads the task meanwhile.
    async fn wait_on(&self, word: Word, progress: Option<u8>, trouble: Option<i64>) -> Result<(), StoreError> {
        if self.is_last_look() {
            self.cancel().await;
            return end::given_up(self.till, &**self.desk, self.leased, &self.plan).await;
        }
        let state = match word {
            Word::Queued => TaskState::Queued,
            Word::Running | Word::Made => TaskState::Running,
            Word::Nothing | Word::Unclear | Word::Absent => self.leased.task.state,
        };
        let late = self.age() >= self.patience();
        let (state, after) = if late { (TaskState::Unknown, self.slowly()) } else { (state, self.soon()) };
        let step = self.step(state, word, after.max(trouble.unwrap_or(0)));
        put_back(self.till, TaskStep { progress, quiet: trouble.is_some(), ..step }).await
    }

    /// Another account was asked, and does not know the task: it stays as it was, and is asked for
    /// less and less often.
    async fn doubted(&self) -> Result<(), StoreError> {
        warn_other_account(self.till, &self.provider.name, "other_account");
        let wait = (self.age() / 8).min(SLOWLY);
        self.wait_on(Word::Nothing, None, Some(wait)).await
    }

    /// What nobody will ask for any more should not be made.
    async fn cancel(&self) {
        let Some(id) = self.leased.task.upstream_id.as_deref().filter(|_| self.sure) else { return };
        let asked = self.desk.cancel(self, id);
        let cancelled = tokio::time::timeout(self.till.tasks.settings.look_time, asked).await;
        tracing::warn!(task = %self.leased.task.id, cancelled = matches!(cancelled, Ok(true)), "gave a task up at its provider");
    }
}
