//! A task that was sent, and nobody knows under which name the provider has it, or whether it has it at all. It is looked for by our
//! id where the provider keeps one, else among what its list has; there it is taken only when it can be no other (`alike.rs`).

use super::alike::{Which, which};
use super::look::{Watched, no_answer, put_back};
use super::{away, end};
use crate::app::App;
use tollgate_store::{Named, StoreError, Task, TaskFailure, TaskId, TaskState, TaskStep, Word};
use tollgate_upstream::video::{self, Found, Turn, Used};

const NAME_TAKEN: &str = "name_taken";

pub(super) async fn find(watched: &Watched<'_>) -> Result<(), StoreError> {
    let (app, task) = (watched.app, &watched.leased.task);
    if !watched.habits().finds || !watched.turn().await? {
        return undecided(watched, Word::Nothing).await;
    }
    let external_id = task.id.to_string();
    let prompt = watched.kept.prompt(&app.secrets, &external_id);
    let sought = watched.kept.sought(task, &external_id, prompt.as_ref(), app.world.now_ms());
    let Some(sought) = sought else { return undecided(watched, Word::Nothing).await };
    let asking = watched.asking();
    let turn: &Turn<'_> = &|| Box::pin(watched.another_turn());
    let asked = video::find(&app.client, watched.video, &asking, &sought, turn);
    let found = tokio::time::timeout(app.settings.tasks.look_time, asked).await;
    match found {
        Ok(Ok(Some(Found::Exactly(upstream_id)))) => taken(watched, upstream_id, Word::Queued).await,
        Ok(Ok(Some(_))) if was_taken(task) => {
            app.metrics.polled(&watched.provider.name, "unsure");
            undecided(watched, Word::Unclear).await
        }
        Ok(Ok(Some(Found::Nothing))) => absent(watched).await,
        Ok(Ok(Some(Found::Perhaps { alike, whole }))) => match which(watched, &app.store, alike, whole).await? {
            Which::This(upstream_id) => taken(watched, upstream_id, Word::Unclear).await,
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

/// Whether the provider has said that it has this task, under a name that is another's. Then no list can say that it was never made, and
/// none of its entries is it: that would be a second video for one creation.
fn was_taken(task: &Task) -> bool {
    task.heard.is_some()
}

/// The provider has it, under this name. `otherwise` is what its answer says should the name be another task's: that it has ours all
/// the same, or nothing.
async fn taken(watched: &Watched<'_>, upstream_id: String, otherwise: Word) -> Result<(), StoreError> {
    let (app, task, provider) = (watched.app, &watched.leased.task, &watched.provider.name);
    let id = task.id;
    let step = TaskStep::new(id, watched.leased.fence, TaskState::Queued, Word::Queued, 0);
    match app.store.task_found(step, upstream_id.clone()).await? {
        Named::Done => {
            app.metrics.polled(provider, "found");
            tracing::info!(task = %id, provider, "found a task whose creation was not answered");
            Ok(())
        }
        Named::Stale => {
            app.metrics.stale_task();
            Ok(())
        }
        Named::Taken => {
            if was_taken(task) {
                // Told before.
                app.metrics.polled(provider, NAME_TAKEN);
            } else {
                tell_taken(app, id, provider, &upstream_id);
            }
            undecided(watched, otherwise).await
        }
    }
}

/// The provider names two tasks alike, or one of them was mistaken for the other. Whose video it is nobody can say any more, so the
/// second has none.
pub(super) fn tell_taken(app: &App, id: TaskId, provider: &str, upstream_id: &str) {
    app.metrics.polled(provider, NAME_TAKEN);
    tracing::error!(task = %id, provider, upstream_id, "the provider's name of a task is another task's; its fate stays unknown");
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
