//! Video tasks at a provider: create, poll, fetch the file's link, find a lost one, cancel.
//!
//! A maker only writes requests and reads replies; sending is in `exchange`. Creating a task costs
//! money, so its faults say precisely whether the provider may have taken it. Polling never decides
//! a task's fate by failing.

mod exchange;
pub(crate) mod habits;
pub(crate) mod judge;
pub(crate) mod likeness;
mod link;
pub(crate) mod read;
mod report;
mod request;

pub use exchange::{OpenFile, Reach, SendTurn, cancel, create, fetch, file, find, forget, poll, remix};
pub use habits::Habits;
pub use likeness::{Alike, Likeness, Remembers};
pub use link::FileLink;
pub use report::{TaskListPage, VideoFailure, VideoReport, VideoSearch, VideoStanding, VideoUsage};
pub use request::{Asking, Handle, Job, Sought};

use crate::{Fault, Outgoing, WholeReply};
use serde_json::Value;
use tollgate_media::video::Api;

/// Who speaks an API, whether or not such a provider is configured.
pub fn speaker(api: Api) -> Option<&'static dyn VideoMaker> {
    crate::KINDS.iter().filter_map(|kind| kind.video).find(|video| video.speaks(api))
}

/// How one provider makes videos. What a provider does not have is `None`.
pub trait VideoMaker: Sync + std::fmt::Debug {
    fn speaks(&self, api: Api) -> bool;

    fn habits(&self, api: Api) -> &'static Habits;

    fn create(&self, asking: &Asking<'_>, job: &Job<'_>) -> Option<Outgoing>;

    /// The provider's id of the new task, or why there is none.
    fn created(&self, api: Api, reply: &WholeReply) -> Result<String, Fault>;

    /// The same of a remix, whose source may be gone.
    fn remixed(&self, api: Api, reply: &WholeReply) -> Result<String, Fault> {
        self.created(api, reply)
    }

    fn poll(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing>;

    fn polled(&self, task: &Handle<'_>, reply: &WholeReply) -> Result<VideoReport, Fault>;

    /// A further step from a finished task's file id to its link.
    fn file(&self, _asking: &Asking<'_>, _file: &str) -> Option<Outgoing> {
        None
    }

    /// `None` when the provider has no link yet.
    fn filed(&self, _reply: &WholeReply) -> Result<Option<FileLink>, Fault> {
        Ok(None)
    }

    /// Looks for a task whose creation was not answered; `cursor` is where the page before this one
    /// ended.
    fn find(&self, _asking: &Asking<'_>, _sought: &Sought<'_>, _cursor: Option<&str>) -> Option<Outgoing> {
        None
    }

    fn found(&self, _sought: &Sought<'_>, _cursor: Option<&str>, _reply: &WholeReply) -> Result<TaskListPage, Fault> {
        Ok(TaskListPage::default())
    }

    /// How far an entry of its list is like a task whose creation was lost.
    fn likeness(&self, _sought: &Sought<'_>, _entry: &Value) -> Likeness {
        Likeness::None
    }

    fn cancel(&self, _asking: &Asking<'_>, _task: &Handle<'_>) -> Option<Outgoing> {
        None
    }

    /// Deletes a task that has ended, with what it made.
    fn forget(&self, _asking: &Asking<'_>, _task: &Handle<'_>) -> Option<Outgoing> {
        None
    }

    /// Another video from a finished one and a new prompt.
    fn remix(&self, _asking: &Asking<'_>, _task: &Handle<'_>, _prompt: &str) -> Option<Outgoing> {
        None
    }

    /// The bytes of the finished file; the key goes along only where the link is the provider's
    /// own.
    fn content(&self, asking: &Asking<'_>, _task: &Handle<'_>, link: &FileLink) -> Option<Outgoing> {
        asking.plain(&link.url)
    }

    /// What a reply that is not the one hoped for means.
    fn refused(&self, api: Api, reply: &WholeReply) -> Fault;
}
