//! The finished file of a task: from the provider's link to bytes that pass to a client, piece by
//! piece, whatever the file's size.

use super::maker::maker;
use super::{StoredPlan, StoredResult, VideoDesk};
use crate::call::task::TaskHome;
use crate::refusal::Refusal;
use crate::sale::Serving;
use bytes::Bytes;
use http::HeaderValue;
use http_body::{Frame, SizeHint};
use std::future::ready;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tollgate_media::video::Api;
use tollgate_store::{Task, TaskState};
use tollgate_upstream::video::{self, Asking, Handle, OpenFile, Reach, SendTurn, VideoMaker};
use tollgate_upstream::{Fault, Provider, ReplyBody};
use tollgate_wire::error::Code;

/// A provider's storage may be a little behind its word: for so many milliseconds a file that is
/// refused is one that is yet to come.
const YOUNG: i64 = 60_000;
/// Between the times such a file is asked for while its reader waits.
const PAUSES: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];

/// Where the bytes of a task come from.
pub struct FileOrigin<'a> {
    desk: &'a VideoDesk,
    task: &'a Task,
    provider: Arc<Provider>,
    video: &'static dyn VideoMaker,
    handle: Handle<'a>,
    /// The provider is the account the video was made with.
    sure: bool,
    /// It can be asked about the video at all. A link that opens by itself does not need that.
    asks: bool,
}

/// What of a video is wanted; most makers have the video only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileVariant {
    Video,
    Thumbnail,
    Spritesheet,
}

impl FileVariant {
    pub fn named(name: &str) -> Option<FileVariant> {
        match name {
            "video" => Some(FileVariant::Video),
            "thumbnail" => Some(FileVariant::Thumbnail),
            "spritesheet" => Some(FileVariant::Spritesheet),
            _ => None,
        }
    }
}

/// The result of a task that has one; otherwise why there is none.
pub fn result(task: &Task) -> Result<StoredResult, Refusal> {
    match task.state {
        TaskState::Completed => task.result.as_deref().and_then(StoredResult::read).ok_or_else(gone),
        TaskState::Failed | TaskState::Refused => {
            Err(Refusal::about(Code::NotFound, "id", "The task has failed; there is no video."))
        }
        _ => Err(Refusal::about(Code::CallInProgress, "id", "The video is not finished yet.").after(5)),
    }
}

fn gone() -> Refusal {
    Refusal::about(Code::NotFound, "id", "The provider keeps this video no longer.")
}

fn not_yet() -> Refusal {
    let text = "The provider has made the video and does not hand its file out yet; ask again in a moment.";
    Refusal::about(Code::CallInProgress, "id", text).after(5)
}

fn away() -> Refusal {
    Refusal::new(Code::UpstreamError, "The account this video was made with is not part of the configuration.")
}

impl<'a> FileOrigin<'a> {
    pub fn of(
        desk: &'a VideoDesk,
        serving: &'a Serving,
        task: &'a Task,
        plan: &'a StoredPlan,
    ) -> Result<FileOrigin<'a>, Refusal> {
        let handle = task.upstream_id.as_deref().and_then(|id| plan.handle(id)).ok_or_else(away)?;
        let named = || task.provider.as_ref().and_then(|name| serving.providers.get(name)).cloned();
        let (provider, sure, asks) = match maker(serving, task, handle.api) {
            TaskHome::Same(provider) => (provider, true, true),
            TaskHome::Stranger(provider) => (provider, false, true),
            TaskHome::Away => (named().ok_or_else(away)?, false, false),
        };
        let video = provider.kind.video.filter(|video| video.speaks(handle.api)).ok_or_else(away)?;
        Ok(FileOrigin { desk, task, provider, video, handle, sure, asks })
    }

    fn now(&self) -> i64 {
        self.desk.till.world.now_ms().div_euclid(1000)
    }

    fn asking(&self) -> Asking<'_> {
        Asking { provider: &self.provider, now: self.now() }
    }

    /// It ended a moment ago, or is about to.
    fn is_young(&self) -> bool {
        self.task.ended_at.is_none_or(|ended| self.desk.till.world.now_ms().saturating_sub(ended) < YOUNG)
    }

    /// There is no such file. Only those who made it can say so, and not before it can have come.
    fn gone(&self) -> Refusal {
        match (self.sure, self.is_young()) {
            (false, _) => away(),
            (true, true) => not_yet(),
            (true, false) => gone(),
        }
    }

    /// Opens the file. A link that has ended is asked for anew, once; one that does not open yet is
    /// tried again for a moment.
    pub async fn open(
        &self,
        result: StoredResult,
        variant: FileVariant,
        range: Option<&HeaderValue>,
    ) -> Result<OpenFile, Refusal> {
        let pictures = match variant {
            FileVariant::Video => None,
            FileVariant::Thumbnail => Some("thumbnail"),
            FileVariant::Spritesheet => Some("spritesheet"),
        };
        if pictures.is_some() && self.handle.api != Api::Sora {
            return Err(Refusal::about(Code::UnsupportedValue, "variant", "This model's provider has the video only."));
        }
        if result.needs_key && !self.asks {
            return Err(away());
        }
        let ended = result.expires_at.is_some_and(|ends| ends <= self.now());
        let mut result = if ended { self.fresh(result).await? } else { result };
        let mut asked = ended;
        let mut pauses = if self.is_young() { PAUSES.iter() } else { [].iter() };
        loop {
            let mut link = result.link();
            if let Some(pictures) = pictures {
                link.url = format!("{}?variant={pictures}", link.url);
            }
            let reach = Reach { client: &self.desk.till.client, public: &self.desk.outside };
            match video::fetch(reach, self.video, &self.asking(), &self.handle, &link, range).await {
                Ok(opened) => return Ok(opened),
                Err(fault) if !link_is_dead(&fault) => return Err(refusal_of(fault)),
                Err(_) if !asked => {
                    asked = true;
                    result = self.fresh(result).await?;
                }
                Err(_) => match pauses.next() {
                    Some(pause) => tokio::time::sleep(*pause).await,
                    None => return Err(self.gone()),
                },
            }
        }
    }

    /// A new link from the provider, stored for those who come next, beside our copy if there is
    /// one.
    async fn fresh(&self, old: StoredResult) -> Result<StoredResult, Refusal> {
        if !self.asks {
            return Err(away());
        }
        let turn: &SendTurn<'_> = &|| Box::pin(ready(true));
        let asked = video::poll(&self.desk.till.client, self.video, &self.asking(), &self.handle, turn).await;
        let report = asked.map_err(refusal_of)?;
        let result = StoredResult { copy: old.copy, ..StoredResult::of(&report).ok_or_else(|| self.gone())? };
        self.desk.till.store.store_result(self.task.id, result.text()).await?;
        Ok(result)
    }
}

/// Asks the provider to delete a video that its owner has deleted here, where the provider has that
/// and made it with the account that is configured. What comes of it changes nothing: it keeps
/// files for days at most.
pub async fn forget(desk: Arc<VideoDesk>, task: Task) {
    let till = &desk.till;
    let plan = StoredPlan::read(&task.plan);
    let serving = till.serving.load_full();
    let origin = plan.as_ref().and_then(|plan| FileOrigin::of(&desk, &serving, &task, plan).ok());
    let Some(origin) = origin.filter(|origin| origin.sure) else { return };
    let asking = origin.asking();
    let asked = video::forget(&till.client, origin.video, &asking, &origin.handle);
    let forgot = tokio::time::timeout(till.tasks.settings.look_time, asked).await;
    tracing::debug!(task = %task.id, forgot = matches!(forgot, Ok(Ok(true))), "a deleted video at its maker");
}

/// The provider answers, and says that this link opens no longer.
fn link_is_dead(fault: &Fault) -> bool {
    matches!(fault.upstream_status, Some(400 | 401 | 403 | 404 | 410))
}

/// Nothing is asked of a caller who fetches: whatever the provider says is between it and us.
fn refusal_of(fault: Fault) -> Refusal {
    let code = if fault.code.status() < 500 { Code::UpstreamError } else { fault.code };
    Refusal::new(code, fault.message)
}

/// Bytes on their way through: the client's reading drives the provider's, one piece at a time.
pub struct PassingFile {
    body: ReplyBody,
    length: Option<u64>,
}

impl PassingFile {
    pub fn new(body: ReplyBody, length: Option<u64>) -> PassingFile {
        PassingFile { body, length }
    }
}

impl http_body::Body for PassingFile {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.body.poll_chunk(cx).map(|piece| match piece {
            Ok(Some(bytes)) => Some(Ok(Frame::data(bytes))),
            Ok(None) => None,
            // A file that breaks off must not look whole: the connection is cut.
            Err(fault) => Some(Err(io::Error::other(fault.message))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
