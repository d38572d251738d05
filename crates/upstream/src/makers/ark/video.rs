//! Ark (Volcengine and BytePlus): family B.

use crate::video::habits::DAY;
use crate::video::judge::{ProviderError, Table, Verdict, judge};
use crate::video::likeness::Comparison;
use crate::video::read::{PAGE, alike, billed, counted, id, next_page, path_part};
use crate::video::{
    Asking, FileLink, Habits, Handle, Job, Likeness, Sought, TaskListPage, VideoFailure, VideoMaker, VideoReport,
    VideoStanding, VideoUsage,
};
use crate::{Fault, Outgoing, WholeReply};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_media::video::Api;

/// Content generation tasks. The base address ends in `/api/v3`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ark;

const PATH: &str = "/contents/generations/tasks";

const HABITS: Habits = Habits {
    poll_every: Duration::from_secs(10),
    polls_per_second: None,
    remembers: Duration::from_secs(7 * DAY),
    link_lasts: Some(Duration::from_secs(DAY)),
    finds: true,
    reports: true,
};

const WORDS: &[(&str, VideoStanding)] = &[
    ("queued", VideoStanding::Queued),
    ("running", VideoStanding::Running),
    ("succeeded", VideoStanding::Succeeded),
    ("failed", VideoStanding::Ended(VideoFailure::Failed)),
    ("cancelled", VideoStanding::Ended(VideoFailure::Cancelled)),
    ("expired", VideoStanding::Ended(VideoFailure::Expired)),
];

pub(super) const CODES: Table = &[
    ("MissingParameter*", Verdict::Caller),
    ("InvalidParameter*", Verdict::Caller),
    ("Input*", Verdict::Caller),
    ("InvalidEndpoint*", Verdict::Operator),
    ("AuthenticationError", Verdict::Operator),
    ("AccountOverdueError", Verdict::Operator),
    ("AccessDenied*", Verdict::Operator),
    ("OperationDenied*", Verdict::Operator),
    ("ModelNotOpen*", Verdict::Operator),
    ("RateLimitExceeded*", Verdict::Busy),
    ("ModelAccount*", Verdict::Busy),
    ("QuotaExceeded*", Verdict::Busy),
    ("ServerOverloaded*", Verdict::Busy),
    ("InternalServiceError", Verdict::Failed),
];

impl VideoMaker for Ark {
    fn speaks(&self, api: Api) -> bool {
        api == Api::Ark
    }

    fn habits(&self, _api: Api) -> &'static Habits {
        &HABITS
    }

    fn create(&self, asking: &Asking<'_>, job: &Job<'_>) -> Option<Outgoing> {
        let mut body = job.plan.body.clone();
        body.insert("model".to_owned(), Value::from(job.model));
        // The provider has no id of ours but gives this one back, so that a lost task can be found
        // in its list.
        body.entry("safety_identifier").or_insert_with(|| Value::from(job.external_id));
        asking.bearer(Method::POST, PATH, Some(&Value::Object(body)))
    }

    fn created(&self, api: Api, reply: &WholeReply) -> Result<String, Fault> {
        let task = id(&reply.json()["id"]).filter(|_| reply.is_ok());
        task.ok_or_else(|| self.refused(api, reply))
    }

    fn poll(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        asking.bearer(Method::GET, &format!("{PATH}/{}", path_part(task.id)?), None)
    }

    fn polled(&self, task: &Handle<'_>, reply: &WholeReply) -> Result<VideoReport, Fault> {
        let json = reply.json();
        let status = VideoReport::from_status(&json, WORDS).filter(|_| reply.is_ok());
        let mut report = status.ok_or_else(|| self.refused(task.api, reply))?;
        report.link = json["content"]["video_url"].as_str().and_then(FileLink::read);
        if report.standing == VideoStanding::Succeeded {
            report.used = used(&json);
            report.length = billed(&json["duration"]);
        }
        Ok(report)
    }

    /// All that the account has: by which name the list knows a model is the maker's affair, an
    /// endpoint (`ep-…`) above all, and what a filter by another name leaves out would count as
    /// never made.
    fn find(&self, asking: &Asking<'_>, _sought: &Sought<'_>, cursor: Option<&str>) -> Option<Outgoing> {
        let page = path_part(cursor.unwrap_or("1"))?;
        asking.bearer(Method::GET, &format!("{PATH}?page_num={page}&page_size={PAGE}"), None)
    }

    fn found(&self, sought: &Sought<'_>, cursor: Option<&str>, reply: &WholeReply) -> Result<TaskListPage, Fault> {
        let json = reply.json();
        let Some(items) = json["items"].as_array().filter(|_| reply.is_ok()) else {
            return Err(self.refused(sought.api, reply));
        };
        let next = next_page(cursor, items, sought.sent.0);
        // A caller's own identifier took the place of ours; then nothing tells the tasks apart for
        // sure.
        let own = sought.body.get("safety_identifier").is_none();
        let ours = items.iter().find(|item| own && item["safety_identifier"] == sought.external_id);
        Ok(TaskListPage { ours: ours.and_then(|item| id(&item["id"])), alike: alike(self, sought, items), next })
    }

    /// By the identifier, ours or the caller's. Another name of the model speaks against it and is
    /// no proof.
    fn likeness(&self, sought: &Sought<'_>, entry: &Value) -> Likeness {
        let asked = sought.body.get("safety_identifier").and_then(Value::as_str).unwrap_or(sought.external_id);
        let comparison = sought.compare(entry, &[]).max(Comparison::names(asked, &entry["safety_identifier"]));
        match Comparison::names(sought.model, &entry["model"]) {
            Comparison::Other => comparison.likeness(Likeness::Otherwise),
            model => comparison.max(model).likeness(Likeness::Outside),
        }
    }

    /// A waiting task is cancelled, a finished one forgotten; the provider refuses while it runs.
    fn cancel(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        asking.bearer(Method::DELETE, &format!("{PATH}/{}", path_part(task.id)?), None)
    }

    /// The same request: what it does goes by how the task stands.
    fn forget(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        self.cancel(asking, task)
    }

    fn refused(&self, _api: Api, reply: &WholeReply) -> Fault {
        let json = reply.json();
        let error = &json["error"];
        let said = error["code"]
            .as_str()
            .map(|code| ProviderError { code, text: error["message"].as_str().unwrap_or_default() });
        judge(reply, said, CODES)
    }
}

/// Tokens, and the length of what was made, for models that are sold by the second. Seconds of
/// reference clips are in the tokens only.
fn used(task: &Value) -> VideoUsage {
    let (usage, duration) = (&task["usage"], &task["duration"]);
    let tokens = counted(&usage["total_tokens"]).or_else(|| counted(&usage["completion_tokens"]));
    let reported = json!({"duration": duration, "usage": usage});
    let resolution = task["resolution"].as_str().map(str::to_owned);
    VideoUsage { millis: billed(duration), tokens, resolution, raw: VideoUsage::raw(&reported) }
}
