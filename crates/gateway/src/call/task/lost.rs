//! A task that was sent, and nobody knows under which name the provider has it, or whether it has it at all. It is looked for by our
//! id where the provider keeps one, else among what its list has; there it is taken only when it can be no other (`alike.rs`).

use super::alike::{Which, which};
use super::look::{Watched, no_answer, put_back};
use super::{away, end};
use tollgate_store::{StoreError, TaskFailure, TaskState, TaskStep, Word};
use tollgate_upstream::video::{self, Found, Turn, Used};

pub(super) async fn find(watched: &Watched<'_>) -> Result<(), StoreError> {
    let (app, task) = (watched.app, &watched.leased.task);
    if !watched.habits().finds || !watched.turn().await? {
        return undecided(watched, Word::Nothing).await;
    }
    let external_id = task.id.to_string();
    let sought = watched.kept.sought(task, &external_id, app.world.now_ms());
    let Some(sought) = sought else { return undecided(watched, Word::Nothing).await };
    let asking = watched.asking();
    let turn: &Turn<'_> = &|| Box::pin(watched.another_turn());
    let asked = video::find(&app.client, watched.video, &asking, &sought, turn);
    let found = tokio::time::timeout(app.settings.tasks.look_time, asked).await;
    match found {
        Ok(Ok(Some(Found::Exactly(upstream_id)))) => taken(watched, upstream_id).await,
        Ok(Ok(Some(Found::Nothing))) => absent(watched).await,
        Ok(Ok(Some(Found::Perhaps { alike, whole }))) => match which(watched, alike, whole).await? {
            Which::This(upstream_id) => taken(watched, upstream_id).await,
            Which::None => absent(watched).await,
            Which::Unsure => {
                app.metrics.polled(&watched.provider.name, "unsure");
                undecided(watched, Word::Unclear).await
            }
        },
        Ok(Ok(None)) => undecided(watched, Word::Nothing).await,
        Ok(Err(fault)) => {
            app.metrics.polled(&watched.provider.name, fault.code.code());
            undecided(watched, no_answer(&fault)).await
        }
        Err(_) => {
            app.metrics.polled(&watched.provider.name, "timeout");
            undecided(watched, Word::Unclear).await
        }
    }
}

/// The provider has it, under this name.
async fn taken(watched: &Watched<'_>, upstream_id: String) -> Result<(), StoreError> {
    let (app, task) = (watched.app, &watched.leased.task);
    app.metrics.polled(&watched.provider.name, "found");
    tracing::info!(task = %task.id, provider = watched.provider.name, "found a task whose creation was not answered");
    let step = TaskStep::new(task.id, watched.leased.fence, TaskState::Queued, Word::Queued, 0);
    let step = TaskStep { upstream_id: Some(upstream_id), ..step };
    app.store.put_back_task(step).await.map(drop)
}

/// The provider does not have it. That it is another account's word counts for nothing.
async fn absent(watched: &Watched<'_>) -> Result<(), StoreError> {
    let app = watched.app;
    if !watched.sure {
        away::tell(app, &watched.provider.name, "other_account");
        return undecided(watched, Word::Nothing).await;
    }
    app.metrics.polled(&watched.provider.name, "absent");
    if !watched.is_absent() {
        // A slow provider may still be at it.
        return undecided(watched, Word::Absent).await;
    }
    let failure = TaskFailure {
        code: "task_not_created".into(),
        message: "The provider never took the task. Nothing was charged; it can be sent again.".into(),
    };
    end::failed(app, watched.leased, failure, &Used::default()).await
}

async fn undecided(watched: &Watched<'_>, word: Word) -> Result<(), StoreError> {
    if watched.is_last_look() {
        return end::given_up(watched.app, watched.leased, &watched.kept).await;
    }
    put_back(watched.app, watched.step(TaskState::Unknown, word, watched.slowly())).await
}
