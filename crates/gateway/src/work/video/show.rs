//! A task as its owner sees it. One place turns a row into either shape, so that both say the same,
//! and decides which link is handed out: the provider's where it opens by itself and carries
//! `Expires`, otherwise one of ours.

use super::{StoredPlan, StoredResult, VideoDesk, links};
use bytes::Bytes;
use tollgate_media::video::{self, Api, Failure, VideoState, Warning, Warnings};
use tollgate_store::{Task, TaskState};

/// A provider's link that ends sooner than this is of no use to somebody who reads about it now.
const ABOUT_TO_END: i64 = 60;

/// The parts of a task that are shown, read once.
pub struct ShownTask {
    id: String,
    model: String,
    state: VideoState,
    progress: Option<u8>,
    created_at: i64,
    completed_at: Option<i64>,
    link: Option<(String, Option<i64>)>,
    failure: Option<Failure>,
    effective: Vec<(String, String)>,
    made_seconds: Option<u32>,
    left: &'static str,
    remixed_from: Option<String>,
    warnings: Vec<Warning>,
}

impl ShownTask {
    /// `base` is where the reader reaches us, if that is known.
    pub fn of(desk: &VideoDesk, base: Option<&str>, task: &Task) -> ShownTask {
        let plan = StoredPlan::read(&task.plan);
        let api = plan.as_ref().and_then(StoredPlan::api);
        let left = api.map_or("0", Api::left_length);
        let made_seconds = task.result.as_deref().and_then(StoredResult::read).and_then(|result| result.seconds());
        let (effective, remixed_from, warnings) =
            plan.map(|plan| (plan.effective, plan.remixed_from, Warnings::bounded(plan.warnings))).unwrap_or_default();
        ShownTask {
            id: task.id.to_string(),
            model: task.model.clone(),
            state: state(task),
            progress: task.progress,
            created_at: task.created_at.div_euclid(1000),
            completed_at: task.ended_at.map(|at| at.div_euclid(1000)),
            link: link(desk, base, task, api),
            failure: task
                .failure
                .as_ref()
                .map(|failure| Failure { code: failure.code.clone(), message: failure.message.clone() }),
            effective,
            made_seconds,
            left,
            remixed_from,
            warnings,
        }
    }

    /// As its creator sees it: what was accepted is queued, also while its provider's answer
    /// is being looked for.
    pub fn begun(self) -> ShownTask {
        let state = if self.state == VideoState::Unknown { VideoState::Queued } else { self.state };
        ShownTask { state, ..self }
    }

    fn with<T>(&self, show: impl FnOnce(&video::TaskView<'_>) -> T) -> T {
        let effective: Vec<(&str, &str)> =
            self.effective.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        show(&video::TaskView {
            id: &self.id,
            model: &self.model,
            state: self.state,
            progress: self.progress,
            created_at: self.created_at,
            completed_at: self.completed_at,
            expires_at: self.link.as_ref().and_then(|(_, ends)| *ends),
            url: self.link.as_ref().map(|(url, _)| url.as_str()),
            failure: self.failure.as_ref(),
            effective: &effective,
            made_seconds: self.made_seconds,
            left: self.left,
            remixed_from: self.remixed_from.as_deref(),
            warnings: &self.warnings,
        })
    }

    /// OpenAI's shape.
    pub fn openai(&self) -> Bytes {
        self.with(video::openai)
    }

    /// The legacy shape.
    pub fn legacy(&self) -> Bytes {
        self.with(video::legacy)
    }
}

/// A page of tasks in OpenAI's shape.
pub fn page(tasks: &[ShownTask], has_more: bool) -> Bytes {
    video::list_of(tasks.iter().map(ShownTask::openai), has_more)
}

/// What is unknown to us stays for its reader where its provider last said it was.
fn state(task: &Task) -> VideoState {
    let stands = if task.state == TaskState::Unknown { task.heard.unwrap_or(task.state) } else { task.state };
    match stands {
        TaskState::Held => VideoState::Accepted,
        TaskState::Queued => VideoState::Queued,
        TaskState::Running => VideoState::Running,
        TaskState::Submitting | TaskState::Unknown => VideoState::Unknown,
        TaskState::Completed => VideoState::Completed,
        TaskState::Failed | TaskState::Refused => VideoState::Failed,
    }
}

/// The link that is handed out, and when it ends.
fn link(desk: &VideoDesk, base: Option<&str>, task: &Task, api: Option<Api>) -> Option<(String, Option<i64>)> {
    if task.state != TaskState::Completed {
        return None;
    }
    let result = task.result.as_deref().and_then(StoredResult::read)?;
    let now = desk.till.world.now_ms().div_euclid(1000);
    let theirs = result.ends(api, task.ended_at);
    let lasts = theirs.is_none_or(|ends| ends > now + ABOUT_TO_END);
    let copies = desk.copies.as_ref().filter(|_| result.copy.is_some());
    let swept = copies.and_then(|copies| copies.ends(task.ended_at?));
    // Once it is taken away, the provider's file is what there is.
    let copied = copies.is_some() && swept.is_none_or(|gone| gone > now);
    if result.public && lasts && !copied && !desk.settings.own_links {
        return Some((result.url, result.expires_at));
    }
    // No link is better than one that leads nowhere.
    let base = base?;
    let mut ends = now + i64::try_from(desk.settings.link_time.as_secs()).unwrap_or(i64::MAX);
    if let (Some(gone), true) = (swept, copied) {
        ends = ends.min(gone);
    }
    if let (Some(theirs), false, true) = (theirs, copied, lasts) {
        // Ours would lead to nothing once theirs has ended; where a fresh one can be had, a fresh
        // link of ours can be too.
        ends = ends.min(theirs);
    }
    Some((links::sign(&desk.secrets, base, task.id, ends), Some(ends)))
}
