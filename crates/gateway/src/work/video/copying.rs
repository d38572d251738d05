//! Our own copy of a finished video, made before its task counts as completed, and apart from the
//! look that found it finished: a look is short and readers wait for it, a copy takes as long as
//! the file does. While it is made nobody else has the task; whoever dies over it leaves the task
//! to whoever takes it next, and a copy made twice is the same copy.

use super::file::{FileOrigin, FileVariant};
use super::{CopyStore, MadeVideo, StoredResult, VideoDesk, VideoPlan};
use crate::call::task::{TaskHabits, Watched, millis, put_back};
use crate::work::files::Uncopied;
use futures_util::stream;
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_store::{Leased, StoreError, TaskState, TaskStep, Word};
use tollgate_upstream::Provider;

/// A finished video on its way to where copies are stored.
struct Copying {
    desk: Arc<VideoDesk>,
    leased: Leased,
    plan: VideoPlan,
    provider: Arc<Provider>,
    habits: TaskHabits,
    sure: bool,
    made: MadeVideo,
    progress: Option<u8>,
    /// What does not work now is tried again, after so many milliseconds.
    again: Option<i64>,
}

/// Begins the copy of a video that was found finished, if there is a place for one. `waits`: there
/// is patience for another time.
pub(super) async fn begin(
    watched: &Watched<'_, VideoDesk>,
    copies: &CopyStore,
    made: MadeVideo,
    progress: Option<u8>,
    waits: bool,
) -> Result<(), StoreError> {
    let (till, desk, soon) = (watched.till, watched.desk, watched.soon());
    let step = TaskStep { progress, ..watched.step(TaskState::Running, Word::Made, soon) };
    let Some(place) = copies.place() else {
        if waits {
            return put_back(till, step).await;
        }
        tracing::error!(task = %watched.leased.task.id, "so many videos are being copied that one is completed without a copy");
        return watched.complete(&made).await;
    };
    // From here on it is ours for as long as a copy may take.
    put_back(till, step).await?;
    let lease = desk.settings.copy_time + till.tasks.settings.lease();
    let Some(leased) = till.store.take_task(watched.leased.task.id, millis(lease)).await? else { return Ok(()) };
    let copying = Copying {
        desk: desk.clone(),
        leased,
        plan: watched.plan.clone(),
        provider: watched.provider.clone(),
        habits: watched.habits,
        sure: watched.sure,
        made,
        progress,
        again: waits.then_some(soon),
    };
    till.tracker.spawn(async move {
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
    fn watched(&self) -> Watched<'_, VideoDesk> {
        let Copying { desk, leased, habits, sure, .. } = self;
        let (plan, provider) = (self.plan.clone(), self.provider.clone());
        Watched { till: &desk.till, desk, leased, plan, provider, habits: *habits, sure: *sure }
    }

    async fn run(self) -> Result<(), StoreError> {
        let (leased, task) = (&self.leased, self.leased.task.id);
        let why = match self.copy().await {
            Ok(copy) => {
                let file = StoredResult { copy: Some(copy), ..self.made.file.clone() };
                return self.watched().complete(&MadeVideo { file, ..self.made.clone() }).await;
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
            return put_back(&self.desk.till, TaskStep { progress: self.progress, ..step }).await;
        }
        tracing::error!(%task, "a video is completed without a copy of our own");
        self.watched().complete(&self.made).await
    }

    /// The name of the copy.
    async fn copy(&self) -> Result<String, Uncopied> {
        let (desk, till) = (&self.desk, &self.desk.till);
        let copies = desk.copies.as_ref().ok_or_else(|| Uncopied::Trouble("no copies are stored here".into()))?;
        let until = Instant::now() + desk.settings.copy_time;
        let cut = async {
            tokio::select! {
                () = till.shutdown.stopping.cancelled() => Uncopied::Stopped,
                () = tokio::time::sleep_until(until) => Uncopied::TooSlow,
            }
        };
        tokio::pin!(cut);
        let serving = till.serving.load_full();
        let trouble = |refusal: crate::refusal::Refusal| Uncopied::Trouble(refusal.message);
        let origin = FileOrigin::of(desk, &serving, &self.leased.task, &self.plan.stored).map_err(trouble)?;
        let opened = tokio::select! {
            opened = origin.open(self.made.file.clone(), FileVariant::Video, None) => opened.map_err(trouble)?,
            why = &mut cut => return Err(why),
        };
        let mut body = opened.body;
        let pieces = stream::poll_fn(move |cx| body.poll_chunk(cx).map(Result::transpose));
        copies.put(self.leased.task.id, pieces, cut).await
    }
}
