//! One request to a maker of videos: key, scenario, record, answer; and the ways an answer gets
//! lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::{Either, Full};
use serde_json::Value;

use super::file::{self, Signing};
use super::rate::Rates;
use super::scenario::Choice;
use super::tasks::{Drawer, New, Phase, Signs, Task};
use super::{ark, dashscope, jwt, kling, minimax, openai, veo};
use crate::fault::response;
use crate::record::Received;
use crate::reply::Outgoing;
use crate::script::{Ending, Script, Step};
use crate::server::{Reset, World};

/// What arrived.
pub(super) struct Call<'a> {
    pub book: Drawer<'a>,
    pub method: &'a str,
    /// Below the maker's base.
    pub path: &'a str,
    pub query: &'a str,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    pub host: &'a str,
    /// The key this simulator insists on, if it does.
    pub require_key: Option<&'a str>,
}

/// What goes back, and what is noted about it.
pub(super) struct Answer {
    pub status: u16,
    pub body: Bytes,
    pub content_type: &'static str,
    pub headers: Vec<(&'static str, String)>,
    /// A task was taken on.
    pub task: Option<Box<Task>>,
    pub scenario: &'static str,
    pub model: String,
}

impl Answer {
    pub fn json(status: u16, value: &Value) -> Answer {
        Answer {
            status,
            body: value.to_string().into(),
            content_type: "application/json",
            headers: Vec::new(),
            task: None,
            scenario: "",
            model: String::new(),
        }
    }

    /// The answer to a submission that was taken on.
    pub fn took(task: &Task, value: &Value) -> Answer {
        let mut answer = Answer::json(200, value);
        answer.scenario = task.choice.name;
        answer.model.clone_from(&task.model);
        answer.task = Some(Box::new(task.clone()));
        answer
    }

    pub fn whole(response: Response<Bytes>) -> Answer {
        let (head, body) = response.into_parts();
        let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_string);
        let content_type = match text("content-type").as_deref() {
            Some("video/mp4") => "video/mp4",
            _ => "application/xml",
        };
        let passed = ["content-range", "accept-ranges"];
        let headers = passed.into_iter().filter_map(|name| Some((name, text(name)?))).collect();
        Answer { status: head.status.as_u16(), body, content_type, headers, ..Answer::json(200, &Value::Null) }
    }
}

impl Call<'_> {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The bearer key, if it is one this simulator takes. `Err` says whether there was any.
    pub fn bearer(&self) -> Result<&str, bool> {
        let key = self.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        self.takes(key)
    }

    pub fn takes<'k>(&self, key: &'k str) -> Result<&'k str, bool> {
        let wrong = key.is_empty() || key.starts_with("wrong") || self.require_key.is_some_and(|wanted| wanted != key);
        if wrong { Err(!key.is_empty()) } else { Ok(key) }
    }

    /// A value of the query string.
    pub fn asked(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// `page_num` and `page_size` as how many to skip and to take.
    pub fn page(&self) -> (usize, usize) {
        let number =
            |name: &str, otherwise: usize| self.asked(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
        let size = number("page_size", 10).min(500);
        (number("page_num", 1).saturating_sub(1) * size, size)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(self.body).unwrap_or_default()
    }

    pub fn add(&self, new: New, id: impl FnOnce(u64) -> String) -> Task {
        self.book.add(new, file::now(), id)
    }

    pub fn link(&self, task: &Task, signing: Signing) -> String {
        let name = format!("{}-{}", task.seconds, task.kilobytes());
        file::link(self.host, &task.id, &name, signing, task.choice.is("dead_link"))
    }

    /// Whether a submission of this scenario meets trouble before it is looked at.
    pub fn trouble(&self, choice: &Choice, prompt: &str) -> Option<Phase> {
        match choice.name {
            "limited" => Some(Phase::Limited),
            "broken_once" if self.book.tried(prompt) == 1 => Some(Phase::Broken),
            "vanished_once" if self.book.tried(prompt) == 1 => {
                self.book.signs.vanished.store(true, Ordering::SeqCst);
                Some(Phase::Broken)
            }
            _ => None,
        }
    }
}

pub(crate) async fn answer(
    world: &World,
    reset: Reset,
    parts: &http::request::Parts,
    body: Bytes,
) -> Response<Outgoing> {
    let mut received = Received::new(parts, body.clone());
    let host = parts.headers.get("host").and_then(|value| value.to_str().ok());
    let host = host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str)).unwrap_or("sim");
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    // Whoever makes something never has to wait.
    if parts.method == http::Method::GET {
        world.gate.pass(path).await;
    }
    let owner = owner(&parts.headers);
    let signs = Signs::default();
    let call = Call {
        book: world.videos.of(&owner, &signs),
        method: parts.method.as_str(),
        path,
        query,
        headers: &parts.headers,
        body: &body,
        host,
        require_key: world.require_key.as_deref(),
    };
    let answer = route(&call, &world.asked);
    received.status = answer.status;
    received.accepted = answer.task.is_some();
    received.scenario = answer.scenario.to_string();
    received.model.clone_from(&answer.model);
    let mut watch = world.records.add(received);
    if let Some(time) = world.videos.slowness(path).filter(|_| call.method == "GET") {
        tokio::time::sleep(time).await;
    }
    let task = answer.task.clone();
    let choice = task.as_ref().map(|task| &task.choice);
    if let Some(choice) = choice.filter(|choice| choice.is("slow")) {
        tokio::time::sleep(Duration::from_millis(u64::from(choice.number("ms", 2000)))).await;
    }
    if signs.vanished.load(Ordering::SeqCst) || choice.is_some_and(|choice| choice.is("lost")) {
        let script = Script::new(vec![Step::Cut { reset: true }], Ending::Broken, Some(watch), reset);
        let mut response = Response::new(Either::Right(script));
        // The head must not go out before the cut.
        response.headers_mut().insert("content-length", 1.into());
        return response;
    }
    watch.over(true);
    let packed = signs.packed.load(Ordering::SeqCst) || choice.is_some_and(|choice| choice.is("packed"));
    let whole = match choice.map(|choice| choice.name) {
        Some("page") => response(502, "text/html", Bytes::from_static(b"<html>502 edge-3.internal</html>")),
        _ if packed => crate::fault::packed(answer.status),
        Some("garbage") => response(200, "text/html", Bytes::from_static(b"<html>ok</html>")),
        _ => {
            let mut whole = response(answer.status, answer.content_type, answer.body);
            for (name, value) in answer.headers {
                if let Ok(value) = http::HeaderValue::try_from(value) {
                    whole.headers_mut().insert(name, value);
                }
            }
            whole
        }
    };
    whole.map(|body| Either::Left(Full::new(body)))
}

/// The account a key belongs to: what stands before a `#`, behind which the account's keys are
/// distinguished; a signed token names its own.
fn owner(headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let key = bearer.or_else(|| text("x-goog-api-key")).unwrap_or_default();
    jwt::issuer(key).unwrap_or_else(|| key.split('#').next().unwrap_or_default().to_string())
}

type Maker = fn(&Call<'_>) -> Answer;

fn route(call: &Call<'_>, asked: &Rates) -> Answer {
    if call.path.starts_with("/video/files/") {
        if call.book.is_early(call.path) {
            return Answer::whole(file::early());
        }
        if let Some(status) = call.book.file_status(call.path) {
            return Answer::whole(file::none(status));
        }
        return Answer::whole(file::answer(call.path, call.query, call.headers));
    }
    let below = |prefix: &str| call.path.strip_prefix(prefix).filter(|rest| rest.starts_with('/'));
    let makers: [(&str, &'static str, Maker); 6] = [
        ("/video/dashscope", "dashscope", dashscope::answer),
        ("/video/ark/api/v3", "ark", ark::answer),
        ("/video/kling", "kling", kling::answer),
        ("/video/minimax", "minimax", minimax::answer),
        ("/video/gemini", "gemini", veo::answer),
        ("/v1", "openai", openai::answer),
    ];
    for (prefix, name, maker) in makers {
        if let Some(path) = below(prefix) {
            // Whatever is not read makes, or ends, something.
            if call.method == "GET" {
                asked.arrived(name, crate::record::now_ms());
            }
            return maker(&Call { path, ..*call });
        }
    }
    Answer::json(404, &serde_json::json!({"message": "no such maker of videos"}))
}
