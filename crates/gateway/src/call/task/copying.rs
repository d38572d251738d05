//! Our own copy of a finished video, made before its task counts as completed, and apart from the look that found it finished: a look is
//! short and readers wait for it, a copy takes as long as the file does. While it is made nobody else has the task; whoever dies over
//! it leaves the task to whoever takes it next, and a copy made twice is the same copy.

use super::look::{Watched, put_back};
use super::{end, millis};
use crate::app::App;
use crate::video::file::{Origin, Variant};
use crate::video::shelf::Uncopied;
use crate::video::{KeptPlan, KeptResult};
use futures_util::stream;
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_media::video::Api;
use tollgate_store::{Leased, StoreError, TaskState, TaskStep, Word};
use tollgate_upstream::Provider;
use tollgate_upstream::video::{Report, Used, Video};

/// A finished video on its way to the shelf.
struct Copying {
    app: Arc<App>,
    leased: Leased,
    kept: KeptPlan,
    api: Api,
    provider: Arc<Provider>,
    video: &'static dyn Video,
    sure: bool,
    file: KeptResult,
    used: Used,
    progress: Option<u8>,
    /// What does not work now is tried again, after so many milliseconds.
    again: Option<i64>,
}

/// Begins the copy of a video that was found finished, if there is a place for one. `waits`: there is patience for another time.
pub(super) async fn begin(
    watched: &Watched<'_>,
    file: KeptResult,
    report: &Report,
    waits: bool,
) -> Result<(), StoreError> {
    let (app, soon) = (watched.app, watched.soon());
    let step = TaskStep { progress: report.progress, ..watched.step(TaskState::Running, Word::Made, soon) };
    let Some(place) = app.shelf.as_ref().and_then(|shelf| shelf.place()) else {
        if waits {
            return put_back(app, step).await;
        }
        tracing::error!(task = %watched.leased.task.id, "so many videos are being copied that one is completed without a copy");
        return end::completed(watched, &file, &report.used).await;
    };
    // From here on it is ours for as long as a copy may take.
    put_back(app, step).await?;
    let lease = app.settings.video.copy_time + app.settings.tasks.lease();
    let Some(leased) = app.store.take_task(watched.leased.task.id, millis(lease)).await? else { return Ok(()) };
    let copying = Copying {
        app: app.clone(),
        leased,
        kept: watched.kept.clone(),
        api: watched.api,
        provider: watched.provider.clone(),
        video: watched.video,
        sure: watched.sure,
        file,
        used: report.used.clone(),
        progress: report.progress,
        again: waits.then_some(soon),
    };
    app.tracker.spawn(async move {
        let task = copying.leased.task.id;
        if let Err(error) = copying.run().await {
            // Its lease ends by itself.
            tracing::warn!(%task, %error, "what became of a copy could not be written down");
        }
        drop(place);
    });
    Ok(())
}

impl Copying {
    fn watched(&self) -> Watched<'_> {
        let Copying { app, leased, api, video, sure, .. } = self;
        let (kept, provider) = (self.kept.clone(), self.provider.clone());
        Watched { app, leased, kept, api: *api, provider, video: *video, sure: *sure }
    }

    async fn run(self) -> Result<(), StoreError> {
        let (app, leased, task) = (&self.app, &self.leased, self.leased.task.id);
        let why = match self.copy().await {
            Ok(copy) => {
                let file = KeptResult { copy: Some(copy), ..self.file.clone() };
                return end::completed(&self.watched(), &file, &self.used).await;
            }
            Err(why) => why,
        };
        tracing::warn!(%task, %why, "a finished video could not be copied");
        let after = match why {
            // Another process goes on with it at once.
            Uncopied::Stopped => Some(0),
            // It would not be quicker another time, and somebody waits for a video that is there.
            Uncopied::TooSlow => None,
            Uncopied::Trouble(_) => self.again,
        };
        if let Some(after) = after {
            let step = TaskStep::new(task, leased.fence, TaskState::Running, Word::Made, after);
            return put_back(app, TaskStep { progress: self.progress, ..step }).await;
        }
        tracing::error!(%task, "a video is completed without a copy of our own");
        end::completed(&self.watched(), &self.file, &self.used).await
    }

    /// The name of the copy.
    async fn copy(&self) -> Result<String, Uncopied> {
        let app = &self.app;
        let shelf = app.shelf.as_ref().ok_or_else(|| Uncopied::Trouble("there is no shelf".into()))?;
        let until = Instant::now() + app.settings.video.copy_time;
        let cut = async {
            tokio::select! {
                () = app.stopping.cancelled() => Uncopied::Stopped,
                () = tokio::time::sleep_until(until) => Uncopied::TooSlow,
            }
        };
        tokio::pin!(cut);
        let serving = app.serving.load_full();
        let told = |refusal: crate::refusal::Refusal| Uncopied::Trouble(refusal.message);
        let origin = Origin::of(app, &serving, &self.leased.task, &self.kept).map_err(told)?;
        let opened = tokio::select! {
            opened = origin.open(self.file.clone(), Variant::Video, None) => opened.map_err(told)?,
            why = &mut cut => return Err(why),
        };
        let mut body = opened.body;
        let pieces = stream::poll_fn(move |cx| body.poll_chunk(cx).map(Result::transpose));
        shelf.put(self.leased.task.id, pieces, cut).await
    }
}
