//! OpenAI's own videos. A picture goes as a file, the result comes through the API and needs the
//! key.

use crate::video::habits::DAY;
use crate::video::judge::{ProviderError, Table, Verdict, judge};
use crate::video::likeness::Comparison;
use crate::video::read::{PAGE, alike, billed, id, is_past, path_part, percent};
use crate::video::{
    Asking, FileLink, Habits, Handle, Job, Likeness, Sought, TaskListPage, VideoFailure, VideoMaker, VideoReport,
    VideoStanding, VideoUsage,
};
use crate::{Blame, Fault, Outgoing, WholeReply};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_media::video::{Api, PictureUpload, REMIX};
use tollgate_wire::error::Code;

/// The base address ends in `/v1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sora;

const HABITS: Habits = Habits {
    poll_every: Duration::from_secs(10),
    polls_per_second: None,
    remembers: Duration::from_secs(DAY),
    link_lasts: None,
    finds: true,
    reports: true,
};

const WORDS: &[(&str, VideoStanding)] = &[
    ("queued", VideoStanding::Queued),
    ("in_progress", VideoStanding::Running),
    ("completed", VideoStanding::Succeeded),
    ("failed", VideoStanding::Ended(VideoFailure::Failed)),
    ("cancelled", VideoStanding::Ended(VideoFailure::Cancelled)),
];

const CODES: Table = &[
    ("insufficient_quota", Verdict::Operator),
    ("billing*", Verdict::Operator),
    ("invalid_api_key", Verdict::Operator),
    ("model_not_found", Verdict::Operator),
    ("rate_limit*", Verdict::Busy),
    ("moderation_blocked", Verdict::Caller),
];

impl VideoMaker for Sora {
    fn speaks(&self, api: Api) -> bool {
        api == Api::Sora
    }

    fn habits(&self, _api: Api) -> &'static Habits {
        &HABITS
    }

    fn create(&self, asking: &Asking<'_>, job: &Job<'_>) -> Option<Outgoing> {
        let mut body = job.plan.body.clone();
        if job.plan.call == REMIX {
            let text = |name: &str| body.get(name).and_then(Value::as_str);
            let source = Handle { api: Api::Sora, call: REMIX, id: text("remix_of")? };
            return self.remix(asking, &source, text("prompt")?);
        }
        body.insert("model".to_owned(), Value::from(job.model));
        let Some(upload) = &job.plan.upload else {
            return asking.bearer(Method::POST, "/videos", Some(&Value::Object(body)));
        };
        let mut request = asking.bearer(Method::POST, "/videos", None)?;
        let boundary = boundary(upload);
        let content_type = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}")).ok()?;
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        *request.body_mut() = form(&body, upload, &boundary).into();
        Some(request)
    }

    fn created(&self, api: Api, reply: &WholeReply) -> Result<String, Fault> {
        let task = id(&reply.json()["id"]).filter(|_| reply.is_ok());
        task.ok_or_else(|| self.refused(api, reply))
    }

    /// A source that it has no longer is the caller's, who named it. A model that it does not know
    /// is not.
    fn remixed(&self, api: Api, reply: &WholeReply) -> Result<String, Fault> {
        let error = &reply.json()["error"];
        let gone = reply.status == 404 && error.is_object() && error["code"] != "model_not_found";
        self.created(api, reply).map_err(|fault| if gone { no_source(fault) } else { fault })
    }

    fn poll(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        asking.bearer(Method::GET, &format!("/videos/{}", path_part(task.id)?), None)
    }

    fn polled(&self, task: &Handle<'_>, reply: &WholeReply) -> Result<VideoReport, Fault> {
        let json = reply.json();
        let status = VideoReport::from_status(&json, WORDS).filter(|_| reply.is_ok());
        let mut report = status.ok_or_else(|| self.refused(task.api, reply))?;
        report.progress = percent(&json["progress"]);
        if report.standing == VideoStanding::Succeeded {
            let expires_at = json["expires_at"].as_i64();
            let url = format!("/videos/{}/content", task.id);
            report.link = Some(FileLink { url, expires_at, carries_expires: false, needs_key: true });
            report.used.millis = billed(&json["seconds"]);
            report.length = report.used.millis;
            report.used.raw = VideoUsage::raw(&json!({"seconds": json["seconds"], "size": json["size"]}));
        }
        Ok(report)
    }

    fn find(&self, asking: &Asking<'_>, _sought: &Sought<'_>, cursor: Option<&str>) -> Option<Outgoing> {
        let after = match cursor {
            Some(id) => format!("&after={}", path_part(id)?),
            None => String::new(),
        };
        asking.bearer(Method::GET, &format!("/videos?limit={PAGE}&order=desc{after}"), None)
    }

    fn found(&self, sought: &Sought<'_>, _cursor: Option<&str>, reply: &WholeReply) -> Result<TaskListPage, Fault> {
        let json = reply.json();
        let Some(list) = json["data"].as_array().filter(|_| reply.is_ok()) else {
            return Err(self.refused(sought.api, reply));
        };
        let alike = alike(self, sought, list);
        // That there is no more is believed when it is said, or when a page is empty.
        if is_past(list, sought.sent.0) || json["has_more"] == false {
            return Ok(TaskListPage { ours: None, alike, next: None });
        }
        let last = list.last().and_then(|video| id(&video["id"])).ok_or_else(Fault::garbage)?;
        Ok(TaskListPage { ours: None, alike, next: Some(last) })
    }

    fn likeness(&self, sought: &Sought<'_>, entry: &Value) -> Likeness {
        let source = sought.body.get("remix_of").and_then(Value::as_str);
        let from = &entry["remixed_from_video_id"];
        // A remix has the length and size of its source, and the model.
        let named = match source {
            Some(source) => sought.compare(entry, &[]).max(Comparison::names(source, from)),
            None if from.is_null() => sought.compare(entry, &["seconds", "size"]),
            None => Comparison::Other,
        };
        let model = entry["model"].as_str().unwrap_or_default();
        let (named, words) = match source {
            None if model.is_empty() => (named.max(Comparison::Unclear), sought.by_prompt(&entry["prompt"])),
            None if !is_model(model, sought.model) => (named, Likeness::Otherwise),
            _ => (named, sought.by_prompt(&entry["prompt"])),
        };
        named.likeness(words)
    }

    fn cancel(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        asking.bearer(Method::DELETE, &format!("/videos/{}", path_part(task.id)?), None)
    }

    /// The same request: what it does goes by how the task stands.
    fn forget(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        self.cancel(asking, task)
    }

    fn remix(&self, asking: &Asking<'_>, task: &Handle<'_>, prompt: &str) -> Option<Outgoing> {
        let path = format!("/videos/{}/remix", path_part(task.id)?);
        asking.bearer(Method::POST, &path, Some(&json!({"prompt": prompt})))
    }

    fn content(&self, asking: &Asking<'_>, task: &Handle<'_>, link: &FileLink) -> Option<Outgoing> {
        // Pictures of the video are other variants of its content.
        let variant = link.url.split_once("?variant=").map(|(_, name)| format!("?variant={name}")).unwrap_or_default();
        let path = format!("/videos/{}/content{variant}", path_part(task.id)?);
        let mut request = asking.bearer(Method::GET, &path, None)?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
        Some(request)
    }

    fn refused(&self, _api: Api, reply: &WholeReply) -> Fault {
        let json = reply.json();
        let error = &json["error"];
        let said = error.is_object().then(|| ProviderError {
            code: error["code"].as_str().or_else(|| error["type"].as_str()).unwrap_or_default(),
            text: error["message"].as_str().unwrap_or_default(),
        });
        judge(reply, said, CODES)
    }
}

fn no_source(fault: Fault) -> Fault {
    Fault {
        blame: Blame::Caller,
        code: Code::NotFound,
        message: "The provider has no video of this `id` any more, so it makes no remix of it.".to_owned(),
        param: Some("id".to_owned()),
        try_other: false,
        ..fault
    }
}

/// The model that was asked for, or a dated snapshot of it, by which it may be named.
fn is_model(named: &str, asked: &str) -> bool {
    named.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with("-2"))
}

/// A line that does not stand in the picture.
fn boundary(upload: &PictureUpload) -> String {
    let mut number = 0u64;
    loop {
        let boundary = format!("tollgate-{number:016x}");
        if !upload.bytes.windows(boundary.len()).any(|window| window == boundary.as_bytes()) {
            return boundary;
        }
        number += 1;
    }
}

fn form(fields: &serde_json::Map<String, Value>, upload: &PictureUpload, boundary: &str) -> Bytes {
    let mut out = Vec::with_capacity(upload.bytes.len() + 2048);
    for (name, value) in fields {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
        out.extend_from_slice(head.as_bytes());
    }
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"input_reference\"; filename=\"{}\"\r\nContent-Type: {}\r\n\r\n",
        upload.file_name, upload.content_type
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(&upload.bytes);
    out.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    #[test]
    fn snapshots_are_their_model() {
        assert!(is_model("sora-2", "sora-2") && is_model("sora-2-2025-10-06", "sora-2"));
        assert!(
            !is_model("sora-2-pro", "sora-2")
                && !is_model("sora-2-pro-2025-10-06", "sora-2")
                && !is_model("", "sora-2")
        );
    }

    /// Whose fault it is that there is no remix, or no video.
    #[test]
    fn a_source_that_is_gone_is_the_callers() {
        let error = |code: Value| json!({"error": {"message": "m", "type": "invalid_request_error", "code": code}});
        for (status, body, caller) in [
            (404, error(json!("not_found")).to_string(), true),
            (404, error(Value::Null).to_string(), true),
            (404, error(json!("model_not_found")).to_string(), false),
            (401, error(json!("invalid_api_key")).to_string(), false),
            (404, "<html>no such page</html>".to_owned(), false),
        ] {
            let reply = WholeReply { status, headers: HeaderMap::new(), body: Bytes::from(body) };
            let fault = Sora.remixed(Api::Sora, &reply).expect_err("refused");
            let expected = if caller { (Blame::Caller, Some("id")) } else { (Blame::Operator, None) };
            assert_eq!((fault.blame, fault.param.as_deref()), expected, "{reply:?}");
            assert!(!fault.maybe_charged);
            let fault = Sora.created(Api::Sora, &reply).expect_err("refused");
            assert_eq!(fault.blame, Blame::Operator, "what is no remix has no source: {reply:?}");
        }
    }
}
