//! Kling: family C, on three ways of one provider (v1, its omni operation, and API 2.0).
//!
//! The key is a plain one, or an access key and a secret joined by `|`, of which a signed token is
//! made.

mod image;
mod jwt;

pub(crate) use image::KlingImages;

use crate::video::habits::DAY;
use crate::video::judge::{ProviderError, Table, Verdict, judge};
use crate::video::read::{id, path_part, sold_seconds};
use crate::video::{
    Asking, FileLink, Habits, Handle, Job, Sought, TaskListPage, VideoFailure, VideoMaker, VideoReport, VideoStanding,
    VideoUsage,
};
use crate::{Fault, Outgoing, WholeReply};
use http::Method;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_media::video::Api;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kling;

const HABITS: Habits = Habits {
    poll_every: Duration::from_secs(5),
    polls_per_second: None,
    remembers: Duration::from_secs(30 * DAY),
    link_lasts: Some(Duration::from_secs(30 * DAY)),
    finds: true,
    reports: true,
};

const WORDS: &[(&str, VideoStanding)] = &[
    ("submitted", VideoStanding::Queued),
    ("processing", VideoStanding::Running),
    // Spelt one way in v1, the other in 2.0.
    ("succeed", VideoStanding::Succeeded),
    ("succeeded", VideoStanding::Succeeded),
    ("failed", VideoStanding::Ended(VideoFailure::Failed)),
];

const CODES: Table = &[
    ("1000", Verdict::Operator),
    ("1001", Verdict::Operator),
    ("1002", Verdict::Operator),
    ("1003", Verdict::Operator),
    ("1004", Verdict::Operator),
    // Money, in the dress of a rate limit.
    ("1100", Verdict::Operator),
    ("1101", Verdict::Operator),
    ("1102", Verdict::Operator),
    ("1103", Verdict::Operator),
    ("1200", Verdict::Caller),
    ("1201", Verdict::Caller),
    ("1202", Verdict::Operator),
    ("1203", Verdict::Operator),
    ("1300", Verdict::Caller),
    ("1301", Verdict::Caller),
    ("1302", Verdict::Busy),
    ("1303", Verdict::Busy),
    ("1304", Verdict::Operator),
    ("5000", Verdict::Failed),
    ("5001", Verdict::Busy),
    ("5002", Verdict::Unsure),
];

/// Our id is already taken at the provider: the task exists, whatever the rest of the answer says.
const TAKEN: Table = &[("*", Verdict::Unsure)];

impl Kling {
    fn request(asking: &Asking<'_>, method: Method, path: &str, body: Option<&Value>) -> Option<Outgoing> {
        match asking.provider.secret().and_then(|secret| secret.halves()) {
            Some((access, secret)) => {
                let key = jwt::bearer(access, secret, asking.now)?;
                asking.keyed(method, path, body, Some((AUTHORIZATION, key)))
            }
            None => asking.bearer(method, path, body),
        }
    }
}

impl VideoMaker for Kling {
    fn speaks(&self, api: Api) -> bool {
        matches!(api, Api::KlingV1 | Api::Kling2 | Api::KlingOmni)
    }

    fn habits(&self, _api: Api) -> &'static Habits {
        &HABITS
    }

    fn create(&self, asking: &Asking<'_>, job: &Job<'_>) -> Option<Outgoing> {
        let mut body = job.plan.body.clone();
        let path = if job.plan.api() == Api::Kling2 {
            let options = body.entry("options").or_insert_with(|| json!({}));
            options["external_task_id"] = json!(job.external_id);
            format!("/{}/{}", job.plan.call, path_part(job.model)?)
        } else {
            body.insert("model_name".to_owned(), json!(job.model));
            body.insert("external_task_id".to_owned(), json!(job.external_id));
            format!("/v1/videos/{}", job.plan.call)
        };
        Kling::request(asking, Method::POST, &path, Some(&Value::Object(body)))
    }

    fn created(&self, api: Api, reply: &WholeReply) -> Result<String, Fault> {
        let json = reply.json();
        let data = &json["data"];
        let task = if api == Api::Kling2 { id(&data["id"]) } else { id(&data["task_id"]) };
        task.filter(|_| succeeds(reply, &json)).ok_or_else(|| self.refused(api, reply))
    }

    fn poll(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        let id = path_part(task.id)?;
        let path = match task.api {
            Api::Kling2 => format!("/tasks?task_ids={id}"),
            _ => format!("/v1/videos/{}/{id}", path_part(task.call)?),
        };
        Kling::request(asking, Method::GET, &path, None)
    }

    fn polled(&self, task: &Handle<'_>, reply: &WholeReply) -> Result<VideoReport, Fault> {
        let json = reply.json();
        if !succeeds(reply, &json) {
            return Err(self.refused(task.api, reply));
        }
        let report = if task.api == Api::Kling2 {
            let list = json["data"].as_array();
            list.into_iter().flatten().find(|one| one["id"] == task.id).and_then(newer)
        } else {
            older(&json["data"])
        };
        report.ok_or_else(Fault::garbage)
    }

    /// The one provider that keeps our id and can be asked by it.
    fn find(&self, asking: &Asking<'_>, sought: &Sought<'_>, _cursor: Option<&str>) -> Option<Outgoing> {
        let id = path_part(sought.external_id)?;
        let path = match sought.api {
            Api::Kling2 => format!("/tasks?external_task_ids={id}"),
            _ => format!("/v1/videos/{}/{id}", path_part(sought.call)?),
        };
        Kling::request(asking, Method::GET, &path, None)
    }

    fn found(&self, sought: &Sought<'_>, _cursor: Option<&str>, reply: &WholeReply) -> Result<TaskListPage, Fault> {
        let json = reply.json();
        if !succeeds(reply, &json) {
            return if is_absent(&json) { Ok(TaskListPage::default()) } else { Err(self.refused(sought.api, reply)) };
        }
        let data = &json["data"];
        // A list without an entry is an answer too.
        if sought.api == Api::Kling2 && data.as_array().is_some_and(Vec::is_empty) {
            return Ok(TaskListPage::default());
        }
        let ours = match sought.api {
            Api::Kling2 => {
                let tasks = data.as_array().into_iter().flatten();
                tasks.filter(|task| task["external_id"] == sought.external_id).find_map(|task| id(&task["id"]))
            }
            _ => id(&data["task_id"]).filter(|_| data["task_info"]["external_task_id"] == sought.external_id),
        };
        // Whatever else it tells is neither ours nor the word that ours is not there.
        Ok(TaskListPage { ours: Some(ours.ok_or_else(Fault::garbage)?), ..TaskListPage::default() })
    }

    fn refused(&self, _api: Api, reply: &WholeReply) -> Fault {
        let json = reply.json();
        let code = json["code"].as_i64().filter(|code| *code != 0).map(|code| code.to_string());
        let text = json["message"].as_str().unwrap_or_default();
        let table = if text.contains("external_task_id") { TAKEN } else { CODES };
        judge(reply, code.as_deref().map(|code| ProviderError { code, text }), table)
    }
}

/// Its own word that it has no such task. A page of somebody's that says 404 is none, and neither
/// is a wrong path.
fn is_absent(json: &Value) -> bool {
    let text = json["message"].as_str().unwrap_or_default().to_ascii_lowercase();
    match json["code"].as_i64() {
        Some(1203) => true,
        Some(1201) => ["not found", "not exist"].iter().any(|words| text.contains(words)),
        _ => false,
    }
}

fn succeeds(reply: &WholeReply, json: &Value) -> bool {
    reply.is_ok() && json["code"] == 0
}

fn older(data: &Value) -> Option<VideoReport> {
    // The envelope says SUCCEED for failed tasks too; only this text tells.
    let mut report =
        VideoReport::of(data["task_status"].as_str()?, WORDS).because(None, data["task_status_msg"].as_str());
    let video = &data["task_result"]["videos"][0];
    report.link = video["url"].as_str().and_then(FileLink::read);
    let reported = json!({"duration": video["duration"], "final_unit_deduction": data["final_unit_deduction"]});
    if report.standing == VideoStanding::Succeeded {
        report.used = VideoUsage {
            millis: sold_seconds(&video["duration"]),
            raw: VideoUsage::raw(&reported),
            ..VideoUsage::default()
        };
        report.length = report.used.millis;
    }
    Some(report)
}

fn newer(task: &Value) -> Option<VideoReport> {
    let mut report = VideoReport::of(task["status"].as_str()?, WORDS).because(None, task["message"].as_str());
    let video = task["outputs"].as_array().into_iter().flatten().find(|output| output["type"] == "video");
    report.link = video.and_then(|video| video["url"].as_str()).and_then(FileLink::read);
    if report.standing == VideoStanding::Succeeded {
        let reported = json!({"duration": video.map(|video| &video["duration"]), "billing": task["billing"]});
        let millis = video.and_then(|video| sold_seconds(&video["duration"]));
        report.used = VideoUsage { millis, raw: VideoUsage::raw(&reported), ..VideoUsage::default() };
        report.length = millis;
    }
    Some(report)
}
