//! Videos: a long-running operation, and a link that opens with the key.

use crate::video::habits::DAY;
use crate::video::judge::{ProviderError, Table, Verdict, judge};
use crate::video::read::{id, path_part};
use crate::video::{Asking, FileLink, Habits, Handle, Job, VideoFailure, VideoMaker, VideoReport, VideoStanding};
use crate::{Fault, Outgoing, WholeReply};
use http::header::ACCEPT;
use http::{HeaderName, HeaderValue, Method};
use serde_json::Value;
use std::time::Duration;
use tollgate_media::video::Api;

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Veo;

const HABITS: Habits = Habits {
    poll_every: Duration::from_secs(10),
    polls_per_second: None,
    remembers: Duration::from_secs(2 * DAY),
    link_lasts: None,
    finds: false,
    reports: false,
};

const KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

const CODES: Table = &[
    ("INVALID_ARGUMENT", Verdict::Caller),
    ("OUT_OF_RANGE", Verdict::Caller),
    ("UNAUTHENTICATED", Verdict::Operator),
    ("PERMISSION_DENIED", Verdict::Operator),
    ("FAILED_PRECONDITION", Verdict::Operator),
    ("NOT_FOUND", Verdict::Operator),
    ("RESOURCE_EXHAUSTED", Verdict::Busy),
    // Overloaded or down, and what went to it may have been begun.
    ("UNAVAILABLE", Verdict::Failed),
    ("DEADLINE_EXCEEDED", Verdict::Unsure),
    ("INTERNAL", Verdict::Failed),
];

/// A bad key comes as a bad argument.
const KEY_TROUBLE: Table = &[("*", Verdict::Operator)];

fn request(asking: &Asking<'_>, method: Method, path: &str, body: Option<&Value>) -> Option<Outgoing> {
    asking.keyed(method, path, body, key(asking))
}

fn key(asking: &Asking<'_>) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::try_from(asking.provider.secret()?.expose()).ok()?;
    value.set_sensitive(true);
    Some((KEY, value))
}

/// An operation's name is a path of its own.
fn operation(name: &str) -> Option<&str> {
    name.split('/').all(|part| path_part(part).is_some()).then_some(name)
}

impl VideoMaker for Veo {
    fn speaks(&self, api: Api) -> bool {
        api == Api::Veo
    }

    fn habits(&self, _api: Api) -> &'static Habits {
        &HABITS
    }

    fn create(&self, asking: &Asking<'_>, job: &Job<'_>) -> Option<Outgoing> {
        let path = format!("/v1beta/models/{}:{}", path_part(job.model)?, job.plan.call);
        request(asking, Method::POST, &path, Some(&Value::Object(job.plan.body.clone())))
    }

    fn created(&self, api: Api, reply: &WholeReply) -> Result<String, Fault> {
        let name = id(&reply.json()["name"]).filter(|_| reply.is_ok());
        name.ok_or_else(|| self.refused(api, reply))
    }

    fn poll(&self, asking: &Asking<'_>, task: &Handle<'_>) -> Option<Outgoing> {
        request(asking, Method::GET, &format!("/v1beta/{}", operation(task.id)?), None)
    }

    fn polled(&self, task: &Handle<'_>, reply: &WholeReply) -> Result<VideoReport, Fault> {
        let json = reply.json();
        if !reply.is_ok() || json["name"].as_str().is_none() {
            return Err(self.refused(task.api, reply));
        }
        if json["done"] != true {
            return Ok(VideoReport::of("running", &[("running", VideoStanding::Running)]));
        }
        let ended = || VideoReport::of("failed", &[("failed", VideoStanding::Ended(VideoFailure::Failed))]);
        let error = &json["error"];
        if error.is_object() {
            let code = error["status"].as_str().map(str::to_owned).or_else(|| id(&error["code"]));
            return Ok(ended().because(code.as_deref(), error["message"].as_str()));
        }
        let made = &json["response"]["generateVideoResponse"];
        let uri = made["generatedSamples"][0]["video"]["uri"].as_str();
        // All samples filtered is a failure, and only this number says so.
        if uri.is_none() && made["raiMediaFilteredCount"].as_u64().is_some_and(|count| count > 0) {
            return Ok(ended().because(Some("content_filtered"), made["raiMediaFilteredReasons"][0].as_str()));
        }
        let mut report = VideoReport::of("done", &[("done", VideoStanding::Succeeded)]);
        report.link = uri.and_then(FileLink::read).map(|link| FileLink { needs_key: true, ..link });
        Ok(report)
    }

    fn content(&self, asking: &Asking<'_>, _task: &Handle<'_>, link: &FileLink) -> Option<Outgoing> {
        let mut request = asking.plain(&link.url)?;
        // The key never goes to another host.
        if asking.is_own(&link.url) {
            let (name, value) = key(asking)?;
            request.headers_mut().insert(name, value);
        }
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
        Some(request)
    }

    fn refused(&self, _api: Api, reply: &WholeReply) -> Fault {
        let json = reply.json();
        let error = &json["error"];
        let text = error["message"].as_str().unwrap_or_default();
        let table = if text.contains("API key") { KEY_TROUBLE } else { CODES };
        judge(reply, error["status"].as_str().map(|code| ProviderError { code, text }), table)
    }
}
