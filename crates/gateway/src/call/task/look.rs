//! One look at an open task: ask its provider, and give it back for later or end it. A provider that does not answer decides
//! nothing; time decides nothing either, except that the operator takes the loss before the provider has forgotten the task.

use super::away::{self, LATER};
use super::{copying, end, lost, millis};
use crate::app::App;
use crate::video::{Home, KeptPlan, KeptResult, home};
use std::sync::Arc;
use std::time::Duration;
use tollgate_media::video::Api;
use tollgate_store::{Leased, StoreError, Task, TaskFailure, TaskState, TaskStep, Word};
use tollgate_upstream::video::{self, Asking, Ending, Habits, Handle, Report, Standing, Turn, Video};
use tollgate_upstream::{Fault, Provider};

/// The longest pause between two looks at a task whose fate is unknown.
const SLOWLY: i64 = 5 * 60_000;

/// A task in our hands, with all that is needed to ask about it.
pub(super) struct Watched<'a> {
    pub app: &'a Arc<App>,
    pub leased: &'a Leased,
    pub kept: KeptPlan,
    pub api: Api,
    pub provider: Arc<Provider>,
    pub video: &'static dyn Video,
    /// The provider is the account it was sent with; another's "no such task" counts for nothing.
    pub sure: bool,
}

/// Looks at a task that was taken, and gives it back or ends it.
pub async fn look(app: &Arc<App>, leased: &Leased) -> Result<(), StoreError> {
    let task = &leased.task;
    if task.state == TaskState::Held {
        return end::never_sent(app, leased).await;
    }
    let plan = KeptPlan::read(&task.plan).and_then(|kept| kept.api().map(|api| (kept, api)));
    let Some((kept, api)) = plan else {
        tracing::error!(task = %task.id, provider = task.provider, "an open task is of a kind that this version does not know");
        return put_back(app, TaskStep::new(task.id, leased.fence, task.state, Word::Nothing, LATER)).await;
    };
    let (provider, sure) = match home(&app.serving.load(), task, api) {
        Home::Same(provider) => (provider, true),
        Home::Stranger(provider) => (provider, false),
        Home::Away => return away::away(app, leased, &kept, api).await,
    };
    let Some(video) = provider.kind.video() else { return away::away(app, leased, &kept, api).await };
    let watched = Watched { app, leased, kept, api, provider, video, sure };
    match task.upstream_id.as_deref() {
        Some(id) => watched.poll(id).await,
        None => lost::find(&watched).await,
    }
}

/// Asks the provider of a task that somebody reads, unless it was heard of a moment ago; the task as it is then. The look goes on when
/// the reader leaves: half of one would keep the task from everybody until its lease ends.
pub async fn refresh(app: &Arc<App>, task: Task) -> Result<Task, StoreError> {
    let heard = task.checked_at.unwrap_or(task.created_at);
    // A time to come was written before the clock was set back; it says nothing.
    let fresh = app.world.now_ms().abs_diff(heard) < millis(app.settings.tasks.refresh_after).unsigned_abs();
    if fresh || task.state.is_final() || task.upstream_id.is_none() {
        return Ok(task);
    }
    let (worker, id) = (app.clone(), task.id);
    let looked = app.tracker.spawn(async move {
        let lease = millis(worker.settings.tasks.lease());
        match worker.store.take_task(id, lease).await? {
            Some(leased) => look(&worker, &leased).await.map(|()| true),
            None => Ok(false),
        }
    });
    match looked.await {
        Ok(Ok(true)) => {}
        // What is known stays readable, whatever became of the look; what was found out is written when the database takes it.
        Ok(Err(error)) => tracing::warn!(task = %id, %error, "a task is shown as it was last known"),
        Ok(Ok(false)) | Err(_) => return Ok(task),
    }
    Ok(app.store.task(task.account, task.id).await?.unwrap_or(task))
}

/// The time to the next look: the provider's own interval, longer where so many tasks are open that its limit would be passed.
pub(super) fn next_look(app: &App, provider: &Provider, habits: &Habits) -> i64 {
    let mut draw = [0u8; 8];
    app.world.fill(&mut draw);
    let every = provider.settings.poll_every.unwrap_or(habits.poll_every);
    let limit = polls_per_second(provider, habits);
    // A little below the limit: polls of one second are not spread evenly.
    let crowd = app.tasks.open_at(&provider.name).saturating_mul(1_250) / u64::from(limit.max(1));
    let every = every.max(if limit == 0 { Duration::ZERO } else { Duration::from_millis(crowd) });
    millis(Habits { poll_every: every, ..*habits }.next_poll(u64::from_le_bytes(draw)))
}

fn polls_per_second(provider: &Provider, habits: &Habits) -> u32 {
    match provider.settings.per_second {
        0 => habits.polls_per_second.unwrap_or(0),
        limit => u32::try_from(limit).unwrap_or(u32::MAX),
    }
}

/// Gives a task back that goes on.
pub(super) async fn put_back(app: &App, step: TaskStep) -> Result<(), StoreError> {
    if !app.store.put_back_task(step).await? {
        app.metrics.stale_task();
    }
    Ok(())
}

/// What a question that failed leaves of what the provider said before. Who is asked too often has not failed.
pub(super) fn no_answer(fault: &Fault) -> Word {
    if fault.upstream_status == Some(429) { Word::Nothing } else { Word::Unclear }
}

impl Watched<'_> {
    pub fn habits(&self) -> &'static Habits {
        self.video.habits(self.api)
    }

    pub fn asking(&self) -> Asking<'_> {
        Asking { provider: &self.provider, now: self.app.world.now_ms() / 1_000 }
    }

    pub fn age(&self) -> i64 {
        self.leased.age_ms
    }

    /// Waits for a turn at the provider; `false`: the line is too long.
    pub async fn turn(&self) -> Result<bool, StoreError> {
        let limit = polls_per_second(&self.provider, self.habits());
        let patience = self.app.settings.tasks.turn_time;
        self.app.tasks.turns.turn(&self.app.store, &self.provider.name, limit, patience).await
    }

    /// A further turn for the same look. Without the store there is none.
    pub async fn another_turn(&self) -> bool {
        self.turn().await.unwrap_or(false)
    }

    /// Until when a task is waited for before its fate counts as unknown.
    fn patience(&self) -> i64 {
        millis(away::patience(self.app, &self.kept, self.habits()))
    }

    pub fn is_last_look(&self) -> bool {
        self.age() >= away::last_look(self.app, &self.kept, self.habits())
    }

    /// Whether the provider has said for long enough, and nothing else meanwhile, that it has no such task. How long its fate is
    /// unknown says nothing of that: the provider may have been away, and may not know its newest tasks when it is back.
    pub fn is_absent(&self) -> bool {
        self.leased.absent_ms >= millis(self.app.settings.tasks.absent_time)
    }

    pub fn step(&self, state: TaskState, word: Word, after_ms: i64) -> TaskStep {
        TaskStep::new(self.leased.task.id, self.leased.fence, state, word, after_ms)
    }

    async fn poll(&self, id: &str) -> Result<(), StoreError> {
        let (app, state) = (self.app, self.leased.task.state);
        if !self.turn().await? {
            if self.is_last_look() {
                return self.undecided(Word::Nothing, None, None).await;
            }
            return put_back(app, self.step(state, Word::Nothing, self.another_time())).await;
        }
        let asking = self.asking();
        let handle = Handle { api: self.api, call: &self.kept.call, id };
        let turn: &Turn<'_> = &|| Box::pin(self.another_turn());
        let asked = video::poll(&app.client, self.video, &asking, &handle, turn);
        let report = match tokio::time::timeout(app.settings.tasks.look_time, asked).await {
            Ok(Ok(report)) => report,
            Ok(Err(fault)) => {
                app.metrics.polled(&self.provider.name, fault.code.code());
                tracing::info!(task = %self.leased.task.id, provider = self.provider.name, code = fault.code.code(), status = fault.upstream_status, "a poll failed");
                if !self.sure {
                    return self.doubted().await;
                }
                let wait = fault.retry_after.map_or(0, |seconds| i64::from(seconds) * 1_000);
                return self.undecided(no_answer(&fault), None, Some(wait)).await;
            }
            Err(_) => {
                app.metrics.polled(&self.provider.name, "timeout");
                return self.undecided(Word::Unclear, None, Some(0)).await;
            }
        };
        app.metrics.polled(&self.provider.name, "ok");
        if let Some(word) = &report.strange {
            tracing::warn!(provider = self.provider.name, word, "a provider uses a status word that is not known");
        }
        self.reported(report).await
    }

    async fn reported(&self, report: Report) -> Result<(), StoreError> {
        match report.standing {
            Standing::Queued => self.undecided(Word::Queued, report.progress, None).await,
            Standing::Running => self.undecided(Word::Running, report.progress, None).await,
            Standing::Succeeded => self.succeeded(&report).await,
            Standing::Ended(Ending::Forgotten) if !self.sure => self.doubted().await,
            // Providers forget, but some also do not know a new task yet.
            Standing::Ended(Ending::Forgotten) => {
                if self.is_absent() || self.is_last_look() {
                    return end::given_up(self.app, self.leased, &self.kept).await;
                }
                put_back(self.app, self.step(TaskState::Unknown, Word::Absent, self.slowly())).await
            }
            Standing::Ended(_) => {
                let failure = report.failure.map(|one| TaskFailure { code: one.code, message: one.message });
                let failure = failure.unwrap_or_else(|| TaskFailure {
                    code: "task_failed".into(),
                    message: "The provider could not make the video.".into(),
                });
                end::failed(self.app, self.leased, failure, &report.used).await
            }
        }
    }

    /// The video is made. Its link and our copy of it are waited for, from the first time that the provider said so: a task that took
    /// long has as much time for them as any other.
    async fn succeeded(&self, report: &Report) -> Result<(), StoreError> {
        let waits = self.leased.made_ms < self.patience() && !self.is_last_look();
        match KeptResult::of(report) {
            Some(file) if self.app.shelf.is_some() => copying::begin(self, file, report, waits).await,
            Some(file) => end::completed(self, &file, &report.used).await,
            None if waits => {
                let step = self.step(TaskState::Running, Word::Made, self.soon());
                put_back(self.app, TaskStep { progress: report.progress, ..step }).await
            }
            None => {
                let message = "The provider finished the task and never gave a link to the video.".into();
                let failure = TaskFailure { code: "result_missing".into(), message };
                end::failed(self.app, self.leased, failure, &report.used).await
            }
        }
    }

    /// It goes on, for as long as there is patience; after that its fate counts as unknown, until the last look. A provider in trouble
    /// is left alone for so long, and until the next look at least, whoever reads the task meanwhile.
    async fn undecided(&self, word: Word, progress: Option<u8>, trouble: Option<i64>) -> Result<(), StoreError> {
        if self.is_last_look() {
            self.cancel().await;
            return end::given_up(self.app, self.leased, &self.kept).await;
        }
        let state = match word {
            Word::Queued => TaskState::Queued,
            Word::Running | Word::Made => TaskState::Running,
            Word::Nothing | Word::Unclear | Word::Absent => self.leased.task.state,
        };
        let late = self.age() >= self.patience();
        let (state, after) = if late { (TaskState::Unknown, self.slowly()) } else { (state, self.soon()) };
        let step = self.step(state, word, after.max(trouble.unwrap_or(0)));
        put_back(self.app, TaskStep { progress, quiet: trouble.is_some(), ..step }).await
    }

    /// Another account was asked, and does not know the task: it stays as it was, and is asked for less and less often.
    async fn doubted(&self) -> Result<(), StoreError> {
        away::tell(self.app, &self.provider.name, "other_account");
        let wait = (self.age() / 8).min(SLOWLY);
        self.undecided(Word::Nothing, None, Some(wait)).await
    }

    /// What nobody will ask for any more should not be made.
    async fn cancel(&self) {
        let Some(id) = self.leased.task.upstream_id.as_deref().filter(|_| self.sure) else { return };
        let asking = self.asking();
        let handle = Handle { api: self.api, call: &self.kept.call, id };
        let asked = video::cancel(&self.app.client, self.video, &asking, &handle);
        let cancelled = tokio::time::timeout(self.app.settings.tasks.look_time, asked).await;
        tracing::warn!(task = %self.leased.task.id, cancelled = matches!(cancelled, Ok(Ok(true))), "gave a task up at its provider");
    }

    pub fn soon(&self) -> i64 {
        next_look(self.app, &self.provider, self.habits())
    }

    /// Where the line is too long: at any time of the next round, so that those who came together do not come together again.
    pub fn another_time(&self) -> i64 {
        let mut draw = [0u8; 4];
        self.app.world.fill(&mut draw);
        let soon = self.soon().max(1);
        soon / 5 + i64::from(u32::from_le_bytes(draw)) % soon
    }

    /// A task whose fate is unknown is looked at less and less often.
    pub fn slowly(&self) -> i64 {
        (self.leased.unknown_ms / 4).min(SLOWLY).max(self.soon())
    }
}
