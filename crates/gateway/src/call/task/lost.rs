//! A task that was sent, and nobody knows under which name the provider has it, or whether it has it at all. It is looked for by our
//! id where the provider keeps one. What only looks alike is never taken for it: it may be another customer's video.

use super::look::Watched;
use super::{end, millis};
use tollgate_store::{StoreError, TaskFailure, TaskState, TaskStep};
use tollgate_upstream::video::{self, Found, Used};

/// A clock of the provider's may be this much behind or ahead, in seconds.
const CLOCKS: i64 = 300;

pub(super) async fn find(watched: &Watched<'_>) -> Result<(), StoreError> {
    let (app, task) = (watched.app, &watched.leased.task);
    if !watched.habits().finds {
        return undecided(watched).await;
    }
    if !watched.turn().await? {
        return undecided(watched).await;
    }
    let external_id = task.id.to_string();
    let until = task.unknown_since.unwrap_or_else(|| app.world.now_ms());
    let model = task.upstream_model.as_deref().unwrap_or_default();
    let sent = (task.created_at / 1_000 - CLOCKS, until / 1_000 + CLOCKS);
    let Some(sought) = watched.kept.sought(model, &external_id, sent) else { return undecided(watched).await };
    let asking = watched.asking();
    let asked = video::find(&app.client, watched.video, &asking, &sought);
    let found = tokio::time::timeout(app.settings.tasks.look_time, asked).await;
    match found {
        Ok(Ok(Some(Found::Exactly(upstream_id)))) => {
            app.metrics.polled(&watched.provider.name, "found");
            tracing::info!(task = %task.id, provider = watched.provider.name, "found a task whose creation was not answered");
            let step = TaskStep {
                id: task.id,
                fence: watched.leased.fence,
                state: TaskState::Queued,
                progress: None,
                upstream_id: Some(upstream_id),
                checked: true,
                after_ms: 0,
            };
            app.store.put_back_task(step).await.map(drop)
        }
        Ok(Ok(Some(Found::Nothing))) => {
            app.metrics.polled(&watched.provider.name, "absent");
            if watched.unknown_for() < millis(app.settings.tasks.absent_time) {
                // A slow provider may still be at it.
                return watched.still_unknown().await;
            }
            let failure = TaskFailure {
                code: "task_not_created".into(),
                message: "The provider never took the task. Nothing was charged; it can be sent again.".into(),
            };
            end::failed(app, watched.leased, failure, &Used::default()).await
        }
        Ok(Ok(Some(Found::Perhaps(_)) | None)) => {
            app.metrics.polled(&watched.provider.name, "unsure");
            undecided(watched).await
        }
        Ok(Err(fault)) => {
            app.metrics.polled(&watched.provider.name, fault.code.code());
            undecided(watched).await
        }
        Err(_) => {
            app.metrics.polled(&watched.provider.name, "timeout");
            undecided(watched).await
        }
    }
}

async fn undecided(watched: &Watched<'_>) -> Result<(), StoreError> {
    if watched.is_last_look() {
        return end::given_up(watched.app, watched.leased, &watched.kept).await;
    }
    watched.still_unknown().await
}
