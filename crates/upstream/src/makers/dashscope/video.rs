//! DashScope: families A and E.

use crate::video::habits::DAY;
use crate::video::judge::{ProviderError, Table, Verdict, judge};
use crate::video::read::{billed, id, path_part};
use crate::video::{
    Asking, FileLink, Habits, Handle, Job, VideoFailure, VideoMaker, VideoReport, VideoStanding, VideoUsage,
};
use crate::{Fault, Outgoing, WholeReply};
use http::{HeaderValue, Method};
use serde_json::Value;
use std::time::Duration;
use tollgate_media::video::Api;

/// The asynchronous tasks of DashScope. The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DashScope;

const HABITS: Habits = Habits {
    poll_every: Duration::from_secs(15),
    polls_per_second: Some(20),
    remembers: Duration::from_secs(DAY),
    link_lasts: Some(Duration::from_secs(DAY)),
    finds: false,
    reports: true,
};

const WORDS: &[(&str, VideoStanding)] = &[
    ("PENDING", VideoStanding::Queued),
    ("SUSPENDED", VideoStanding::Queued),
    ("RUNNING", VideoStanding::Running),
    ("SUCCEEDED", VideoStanding::Succeeded),
    ("FAILED", VideoStanding::Ended(VideoFailure::Failed)),
    ("CANCELED", VideoStanding::Ended(VideoFailure::Cancelled)),
    // An old or foreign id; it does not recover.
    ("UNKNOWN", VideoStanding::Ended(VideoFailure::Forgotten)),
];

pub(super) const CODES: Table = &[
    ("InvalidApiKey", Verdict::Operator),
    ("Arrearage", Verdict::Operator),
    ("AccessDenied*", Verdict::Operator),
    ("Model.AccessDenied", Verdict::Operator),
    ("ModelNotFound", Verdict::Operator),
    ("insufficient_quota", Verdict::Operator),
    ("InvalidParameter*", Verdict::Caller),
    ("InvalidURL", Verdict::Caller),
    ("DataInspectionFailed", Verdict::Caller),
    ("Throttling*", Verdict::Busy),
    ("ModelUnavailable", Verdict::Busy),
    ("RequestTimeOut", Verdict::Unsure),
    ("InternalError*", Verdict::Failed),
];

impl VideoMaker for DashScope {
    fn speaks(&self, api: Api) -> bool {
        api == Api::DashScope
    }

    fn habits(&self, _api: Api) -> &'static Habits {
        &HABITS
    }

    fn create(&self, asking: &Asking<'_>, job: &Job<'_>) -> Option<Outgoing> {
        let mut body = job.plan.body.clone();
        body.insert("model".to_owned(), Value::from(job.model));
        let stored = media(&body).any(|url| url.starts_with("oss://"));
        let path = "/api/v1/services/aigc/video-generation/video-synthesis";
        let mut request = asking.bearer(Method::POST, path, Some(&Value::Object(body)))?;
        let enable = HeaderValue::from_static("enable");
        request.headers_mut().insert("x-dashscope-async", enable.clone());
        if stored {
            request.headers_mut().insert("x-dashscope-ossresourceresolve", enable);
        }
        Some(request)
    }

    fn created(&self, api: Api, reply: &WholeReply) -> Result<String, Fault> {
        let task = id(&reply.json()["output"]["task_id"]).filter(|_| reply.is_ok());
        task.ok_or_else(|| self.refused(api, reply))
    }

    fn poll(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        asking.bearer(Method::GET, &format!("/api/v1/tasks/{}", path_part(task.id)?), None)
    }

    fn polled(&self, task: &Handle<'_>, reply: &WholeReply) -> Result<VideoReport, Fault> {
        let json = reply.json();
        let output = &json["output"];
        let Some(word) = output["task_status"].as_str().filter(|_| reply.is_ok()) else {
            return Err(self.refused(task.api, reply));
        };
        let mut report = VideoReport::of(word, WORDS).because(output["code"].as_str(), output["message"].as_str());
        report.link = output["video_url"].as_str().and_then(FileLink::read);
        let usage = &json["usage"];
        report.used.millis = billed(&usage["duration"]).or_else(|| billed(&usage["video_duration"]));
        report.used.resolution = id(&usage["SR"]);
        report.used.raw = VideoUsage::raw(usage);
        let alone = || report.used.millis.filter(|_| usage["input_video_duration"].is_null());
        report.length = billed(&usage["output_video_duration"]).or_else(alone);
        Ok(report)
    }

    /// Only a waiting task can be cancelled.
    fn cancel(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        asking.bearer(Method::POST, &format!("/api/v1/tasks/{}/cancel", path_part(task.id)?), None)
    }

    fn refused(&self, _api: Api, reply: &WholeReply) -> Fault {
        let json = reply.json();
        let said = json["code"]
            .as_str()
            .map(|code| ProviderError { code, text: json["message"].as_str().unwrap_or_default() });
        judge(reply, said, CODES)
    }
}

/// Every link of a body: its media, and what stands beside them, such as `audio_url`.
fn media(body: &serde_json::Map<String, Value>) -> impl Iterator<Item = &str> {
    let input = body.get("input");
    let list = input.and_then(|input| input["media"].as_array()).into_iter().flatten().map(|one| &one["url"]);
    let beside = input.and_then(Value::as_object).into_iter().flatten().filter(|(name, _)| name.ends_with("_url"));
    list.chain(beside.map(|(_, link)| link)).filter_map(Value::as_str)
}
