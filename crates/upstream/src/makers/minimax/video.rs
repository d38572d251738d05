//! MiniMax: family D, on two ways of one provider. v1 answers 200 to everything and needs a file
//! step; v2 is plainer.

use crate::video::habits::DAY;
use crate::video::judge::{ProviderError, Table, Verdict, judge};
use crate::video::likeness::Comparison;
use crate::video::read::{PAGE, alike, billed, id, next_page, path_part};
use crate::video::{
    Asking, FileLink, Habits, Handle, Job, Likeness, Sought, TaskListPage, VideoFailure, VideoMaker, VideoReport,
    VideoStanding, VideoUsage,
};
use crate::{Fault, Outgoing, WholeReply};
use http::Method;
use serde_json::Value;
use std::time::Duration;
use tollgate_media::video::Api;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MiniMax;

/// The vendor only says that links are limited in time; a day is assumed, and the file step gives a
/// new one.
const V1: Habits = Habits {
    poll_every: Duration::from_secs(10),
    polls_per_second: None,
    remembers: Duration::from_secs(DAY),
    link_lasts: Some(Duration::from_secs(DAY)),
    finds: false,
    reports: false,
};

const V2: Habits = Habits { remembers: Duration::from_secs(7 * DAY), finds: true, reports: true, ..V1 };

const WORDS: &[(&str, VideoStanding)] = &[
    ("Preparing", VideoStanding::Queued),
    ("Queueing", VideoStanding::Queued),
    ("Processing", VideoStanding::Running),
    ("Success", VideoStanding::Succeeded),
    ("Fail", VideoStanding::Ended(VideoFailure::Failed)),
    ("queued", VideoStanding::Queued),
    ("running", VideoStanding::Running),
    ("succeeded", VideoStanding::Succeeded),
    ("failed", VideoStanding::Ended(VideoFailure::Failed)),
    ("cancelled", VideoStanding::Ended(VideoFailure::Cancelled)),
    ("expired", VideoStanding::Ended(VideoFailure::Expired)),
];

pub(super) const CODES: Table = &[
    ("1000", Verdict::Failed),
    ("1001", Verdict::Unsure),
    ("1002", Verdict::Busy),
    ("1004", Verdict::Operator),
    ("1008", Verdict::Operator),
    ("1024", Verdict::Failed),
    ("1026", Verdict::Caller),
    ("1027", Verdict::Caller),
    ("1033", Verdict::Failed),
    ("1039", Verdict::Busy),
    ("1041", Verdict::Busy),
    ("1042", Verdict::Caller),
    ("2013", Verdict::Caller),
    ("2049", Verdict::Operator),
    ("2056", Verdict::Operator),
    ("bad_request_error", Verdict::Caller),
    ("unprocessable_entity_error", Verdict::Caller),
    ("authorized_error", Verdict::Operator),
    ("insufficient_balance_error", Verdict::Operator),
    ("rate_limit_error", Verdict::Busy),
    ("server_error", Verdict::Failed),
];

impl VideoMaker for MiniMax {
    fn speaks(&self, api: Api) -> bool {
        matches!(api, Api::MiniMaxV1 | Api::MiniMaxV2)
    }

    fn habits(&self, api: Api) -> &'static Habits {
        if api == Api::MiniMaxV1 { &V1 } else { &V2 }
    }

    fn create(&self, asking: &Asking<'_>, job: &Job<'_>) -> Option<Outgoing> {
        let mut body = job.plan.body.clone();
        body.insert("model".to_owned(), Value::from(job.model));
        let path = if job.plan.api() == Api::MiniMaxV1 { "/v1/video_generation" } else { "/v2/video_generation" };
        asking.bearer(Method::POST, path, Some(&Value::Object(body)))
    }

    fn created(&self, api: Api, reply: &WholeReply) -> Result<String, Fault> {
        let json = reply.json();
        let task = id(&json["task_id"]).filter(|_| reply.is_ok() && base_code(&json).is_none());
        task.ok_or_else(|| self.refused(api, reply))
    }

    fn poll(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        let id = path_part(task.id)?;
        let path = match task.api {
            Api::MiniMaxV1 => format!("/v1/query/video_generation?task_id={id}"),
            _ => format!("/v2/query/video_generation/{id}"),
        };
        asking.bearer(Method::GET, &path, None)
    }

    fn polled(&self, task: &Handle<'_>, reply: &WholeReply) -> Result<VideoReport, Fault> {
        let json = reply.json();
        let report = if task.api == Api::MiniMaxV1 { first(&json) } else { second(&json["task"]) };
        report.filter(|_| reply.is_ok()).ok_or_else(|| self.refused(task.api, reply))
    }

    fn file(&self, asking: &Asking<'_>, file: &str) -> Option<Outgoing> {
        asking.bearer(Method::GET, &format!("/v1/files/retrieve?file_id={}", path_part(file)?), None)
    }

    fn filed(&self, reply: &WholeReply) -> Result<Option<FileLink>, Fault> {
        let json = reply.json();
        if !reply.is_ok() || base_code(&json).is_some() || !json["file"].is_object() {
            return Err(self.refused(Api::MiniMaxV1, reply));
        }
        let link = |name: &str| json["file"][name].as_str().and_then(FileLink::read);
        Ok(link("download_url").or_else(|| link("backup_download_url")))
    }

    fn find(&self, asking: &Asking<'_>, sought: &Sought<'_>, cursor: Option<&str>) -> Option<Outgoing> {
        let page = path_part(cursor.unwrap_or("1"))?;
        let path = format!("/v2/query/video_generation?page_num={page}&page_size={PAGE}");
        if sought.api == Api::MiniMaxV2 { asking.bearer(Method::GET, &path, None) } else { None }
    }

    /// The list has no id of ours: what was asked for and when must do.
    fn found(&self, sought: &Sought<'_>, cursor: Option<&str>, reply: &WholeReply) -> Result<TaskListPage, Fault> {
        let json = reply.json();
        let list = ["tasks", "items", "data"].iter().find_map(|name| json[*name].as_array());
        let Some(list) = list.filter(|_| reply.is_ok()) else {
            return Err(self.refused(sought.api, reply));
        };
        let alike = alike(self, sought, list);
        Ok(TaskListPage { ours: None, alike, next: next_page(cursor, list, sought.sent.0) })
    }

    /// The list tells neither prompt nor model.
    fn likeness(&self, sought: &Sought<'_>, entry: &Value) -> Likeness {
        let asked = sought.body.get("ratio").filter(|ratio| **ratio != "adaptive" && !entry["ratio"].is_null());
        let ratio = asked.map_or(Comparison::Same, |asked| Comparison::measures(asked, &entry["ratio"]));
        sought.compare(entry, &["resolution", "duration"]).max(ratio).likeness(Likeness::Outside)
    }

    fn refused(&self, _api: Api, reply: &WholeReply) -> Fault {
        let json = reply.json();
        if let Some((code, text)) = base_code(&json) {
            return judge(reply, Some(ProviderError { code: &code, text }), CODES);
        }
        let error = &json["error"];
        let text = error["message"].as_str().unwrap_or_default();
        // v2 puts the number of v1 in brackets behind the text, and it says more than the type.
        let number = text.trim_end().strip_suffix(')').and_then(|text| text.rsplit_once('(')).map(|(_, number)| number);
        let number = number.filter(|number| CODES.iter().any(|(code, _)| code == number));
        let said = number.or_else(|| error["type"].as_str()).map(|code| ProviderError { code, text });
        judge(reply, said, CODES)
    }
}

/// The number and text of an answer that is no success.
pub(super) fn base_code(json: &Value) -> Option<(String, &str)> {
    let base = &json["base_resp"];
    let code = base["status_code"].as_i64().filter(|code| *code != 0)?;
    Some((code.to_string(), base["status_msg"].as_str().unwrap_or_default()))
}

fn first(json: &Value) -> Option<VideoReport> {
    let word = json["status"].as_str().filter(|word| !word.is_empty())?;
    let base = base_code(json);
    let code = base.as_ref().map(|(code, _)| code.as_str());
    let mut report = VideoReport::of(word, WORDS).because(code, base.as_ref().map(|(_, text)| *text));
    report.file = id(&json["file_id"]).filter(|_| report.standing == VideoStanding::Succeeded);
    Some(report)
}

fn second(task: &Value) -> Option<VideoReport> {
    let mut report = VideoReport::from_status(task, WORDS)?;
    report.link = task["content"]["url"].as_str().and_then(FileLink::read);
    report.used.millis = billed(&task["usage"]["total_seconds"]);
    report.used.resolution = task["resolution"].as_str().map(str::to_owned);
    report.used.raw = VideoUsage::raw(&task["usage"]);
    report.length = billed(&task["usage"]["output_seconds"]).or_else(|| billed(&task["duration"]));
    Some(report)
}
