//! The fake makers of pictures, each written from its maker's documents: OpenAI at `/v1/images/…`,
//! the others below `/video/<maker>` as their videos are. Strict about what they take; the pictures
//! open. How they come out is said in the prompt: see [`scenarios`].

mod makers;
mod openai;
mod png;
mod scenario;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{Either, Full};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Mutex;
use std::time::Duration;

use crate::fault::response;
use crate::record::Received;
use crate::reply::Outgoing;
use crate::script::{Ending, Script, Step};
use crate::server::{Reset, World};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use scenario::Choice;

/// Every picture scenario with a line about it.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    scenario::TABLE.iter().copied()
}

/// A picture for whoever draws beside talking.
pub(crate) fn pixel() -> Vec<u8> {
    png::png(7, 0)
}

/// Tasks of makers that take their time, and how often each prompt with turns was asked for.
#[derive(Default)]
pub(crate) struct Shelf {
    tasks: Mutex<HashMap<String, ShelfTask>>,
    turns: Mutex<HashMap<String, usize>>,
}

#[derive(Clone)]
struct ShelfTask {
    job: Job,
    polls: u64,
}

/// What is to be made.
#[derive(Clone, Debug)]
struct Job {
    pub model: String,
    pub prompt: String,
    pub n: u64,
    pub choice: Choice,
    /// As the maker calls it.
    pub format: String,
    pub stream: bool,
    pub edit: bool,
    /// Bytes of pictures that came along.
    pub sources: Vec<usize>,
    pub partials: u64,
}

/// What goes back.
enum Answer {
    Whole(Response<Bytes>),
    /// Pictures are made; the answer may still go wrong on its way.
    Made(Job, Value),
    Events(Job, String),
}

/// What arrived.
struct Call<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a http::HeaderMap,
    pub body: &'a Bytes,
    pub host: &'a str,
    pub shelf: &'a Shelf,
}

/// Whether a path may be one of a maker of pictures: what is sent decides.
pub(crate) fn may_be_ours(path: &str) -> bool {
    ["/v1/images/", "/image/", "/video/"].iter().any(|start| path.starts_with(start))
}

/// Whether this is asked of a maker of pictures: some paths make other things too.
pub(crate) fn is_ours(path: &str, body: &[u8]) -> bool {
    let has = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
    path.starts_with("/v1/images/")
        || path.starts_with("/image/files/")
        || path == "/video/minimax/v1/image_generation"
        || path == "/video/ark/api/v3/images/generations"
        || path.starts_with("/video/kling/v1/images/")
        || path.starts_with("/video/dashscope/api/v1/tasks/img-")
        || (path.starts_with("/video/dashscope/") && path.ends_with("/image-synthesis"))
        || (path.starts_with("/video/dashscope/") && path.ends_with("/generation") && has(b"\"messages\""))
        || (path.starts_with("/video/gemini/") && path.ends_with(":predict"))
        || (path.starts_with("/video/gemini/") && has(b"\"IMAGE\""))
}

pub(crate) async fn answer(
    world: &World,
    reset: Reset,
    parts: &http::request::Parts,
    body: Bytes,
) -> Response<Outgoing> {
    let host = parts.headers.get("host").and_then(|value| value.to_str().ok()).unwrap_or("sim");
    let path = parts.uri.path();
    let shelf = &world.pictures;
    let call = Call { method: parts.method.as_str(), path, headers: &parts.headers, body: &body, host, shelf };
    if let Some(name) = path.strip_prefix("/image/files/") {
        world.gate.pass(path).await;
        tokio::time::sleep(wait_of(name)).await;
        return file(name).map(|body| Either::Left(Full::new(body)));
    }
    let mut received = Received::new(parts, body.clone());
    let answer = if path.starts_with("/v1/images/") { openai::answer(&call) } else { makers::answer(&call) };
    let (job, body, content_type) = match answer {
        Answer::Whole(whole) => {
            received.status = whole.status().as_u16();
            world.records.add(received).over(true);
            return whole.map(|body| Either::Left(Full::new(body)));
        }
        Answer::Made(job, value) => (job, value.to_string(), "application/json"),
        Answer::Events(job, text) => (job, text, "text/event-stream"),
    };
    let body = if job.choice.is("escaped") { escaped(&body) } else { body };
    received.status = 200;
    received.accepted = true;
    received.scenario = job.choice.name.to_string();
    received.model.clone_from(&job.model);
    received.stream = job.stream;
    let mut watch = world.records.add(received);
    if call.method == "POST" {
        world.gate.pass(path).await;
    }
    let half = || Bytes::copy_from_slice(&body.as_bytes()[..body.len() / 2]);
    let steps = match job.choice.name {
        "hang" => return std::future::pending().await,
        "huge" => much(&body, job.choice.number("mib", 20)),
        "lost" => vec![Step::Cut { reset: true }],
        "slow" => {
            let (wait, middle) = (Step::Wait(job.wait()), job.choice.raw("at") == "middle");
            let (begin, end) = body.split_at(if middle { body.len() / 2 } else { 0 });
            if !middle {
                // The head of the answer waits too.
                tokio::time::sleep(job.wait()).await;
            }
            let piece = |text: &str| Step::Send(Bytes::copy_from_slice(text.as_bytes()));
            if middle { vec![piece(begin), wait, piece(end)] } else { vec![piece(end)] }
        }
        "cut" => {
            let most = usize::try_from(job.choice.number("kb", 1)).unwrap_or(0) * 1024;
            let begin = Bytes::copy_from_slice(&body.as_bytes()[..most.min(body.len() / 2)]);
            vec![Step::Send(begin), Step::Cut { reset: job.choice.raw("cut") != "fin" }]
        }
        "garbage" => {
            watch.over(true);
            return response(200, content_type, half()).map(|body| Either::Left(Full::new(body)));
        }
        "packed" => {
            watch.over(true);
            return crate::fault::packed(200).map(|body| Either::Left(Full::new(body)));
        }
        _ => {
            // Events come one by one, as a provider flushes them.
            let pieces: Vec<Bytes> = match content_type {
                "text/event-stream" => body.split_inclusive("\n\n").map(|one| Bytes::from(one.to_string())).collect(),
                _ => vec![Bytes::from(body.clone())],
            };
            pieces.into_iter().map(Step::Send).collect()
        }
    };
    let broken = matches!(job.choice.name, "lost" | "cut");
    let ending = if broken { Ending::Broken } else { Ending::Proper };
    let mut reply = Response::new(Either::Right(Script::new(steps, ending, Some(watch), reset)));
    reply.headers_mut().insert("content-type", http::HeaderValue::from_static(content_type));
    if broken {
        // More is announced than comes.
        reply.headers_mut().insert("content-length", (body.len() as u64).into());
    }
    reply
}

/// An answer whose first picture is so long. Nobody holds all of it: its middle is one piece, sent
/// again and again.
fn much(body: &str, mib: u64) -> Vec<Step> {
    static LETTERS: [u8; 64 << 10] = [b'x'; 64 << 10];
    // Behind letters that say what kind of picture it is, and as many as whole bytes have.
    let place = body.find(LETTERS_BEGIN).map_or(0, |at| at + LETTERS_BEGIN.len() + 64);
    let (begin, end) = body.split_at(place.min(body.len()));
    let piece = |text: &str| Step::Send(Bytes::copy_from_slice(text.as_bytes()));
    vec![piece(begin), Step::Repeat(Bytes::from_static(&LETTERS), mib << 4), piece(end)]
}

/// The same JSON as others write it.
fn escaped(body: &str) -> String {
    body.replace('/', "\\/").replace('+', "\\u002b")
}

/// What the letters of a picture stand behind.
const LETTERS_BEGIN: &str = "\"b64_json\":\"";

impl Job {
    /// What a prompt asks for, at its turn.
    pub fn read(prompt: &str, shelf: &Shelf) -> Result<Job, String> {
        Ok(Job {
            model: String::new(),
            prompt: prompt.to_string(),
            n: 1,
            choice: shelf.turn(prompt, Choice::of(prompt)?)?,
            format: String::new(),
            stream: false,
            edit: false,
            sources: Vec::new(),
            partials: 0,
        })
    }

    /// Which picture it is.
    fn seed(&self, at: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.prompt, at).hash(&mut hasher);
        hasher.finish()
    }

    /// How many are made.
    pub fn made(&self) -> u64 {
        match self.choice.name {
            "partial" => self.n.saturating_sub(self.choice.number("fail", 1)),
            "none" => 0,
            "surplus" => self.choice.number("made", self.n + 4),
            _ => self.n,
        }
    }

    pub fn picture(&self, at: u64) -> Vec<u8> {
        let kilobytes = match self.choice.name {
            // There its `kb` says how much comes before the cut.
            "cut" => 64,
            "escaped" => self.choice.number("kb", 1),
            _ => self.choice.number("kb", 0),
        };
        match self.choice.name {
            "svg" => svg(self.seed(at), usize::try_from(kilobytes).unwrap_or(0)),
            "foreign" => b"This is a text, and no picture at all, whatever it is called.".to_vec(),
            "jpeg" => png::jpeg(self.seed(at)),
            _ => png::png(self.seed(at), usize::try_from(kilobytes).unwrap_or(0)),
        }
    }

    pub fn letters(&self, at: u64) -> String {
        let mut letters = BASE64_STANDARD.encode(self.picture(at));
        if self.choice.is("broken") && at < self.choice.number("fail", 1) {
            letters.truncate(letters.len() / 2 + 1);
        }
        letters
    }

    /// How long a slow one takes.
    fn wait(&self) -> Duration {
        Duration::from_millis(self.choice.number("ms", 1_000))
    }

    /// The link of a picture; what it answers is in its name.
    pub fn link(&self, host: &str, at: u64) -> String {
        let mode = match self.choice.name {
            "link" => self.choice.raw("code"),
            "svg" => "svg",
            _ => "ok",
        };
        let kilobytes = self.choice.number("kb", 0);
        let ms = if self.choice.is("slow") { self.choice.number("ms", 1_000) } else { 0 };
        format!("http://{host}/image/files/{mode}-{}-{kilobytes}-{ms}.png?Expires=4000000000", self.seed(at))
    }
}

/// A drawing of its own, so many kilobytes longer.
fn svg(seed: u64, kilobytes: usize) -> Vec<u8> {
    let more = " ".repeat(kilobytes * 1024);
    format!("<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><path d=\"M0 {seed}h9\"/>{more}</svg>\n")
        .into_bytes()
}

/// How long what a link leads to takes.
fn wait_of(name: &str) -> Duration {
    let ms = name.trim_end_matches(".png").split('-').nth(3).and_then(|text| text.parse().ok());
    Duration::from_millis(ms.unwrap_or(0))
}

/// What a link leads to.
fn file(name: &str) -> Response<Bytes> {
    let mut words = name.trim_end_matches(".png").split('-');
    let (mode, seed, kilobytes) = (words.next().unwrap_or_default(), words.next(), words.next());
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    match mode {
        "404" | "403" => {
            let status = if mode == "404" { StatusCode::NOT_FOUND } else { StatusCode::FORBIDDEN };
            response(status.as_u16(), "application/xml", Bytes::from_static(b"<Error/>"))
        }
        "html" => response(
            200,
            "text/html",
            Bytes::from_static(b"<html>This picture has moved, please come again later.</html>"),
        ),
        "huge" => response(200, "image/png", png::png(0, 66 << 10).into()),
        "svg" => response(200, "image/svg+xml", svg(number(seed), 0).into()),
        _ => {
            let kilobytes = usize::try_from(number(kilobytes)).unwrap_or(0);
            response(200, "image/png", png::png(number(seed), kilobytes).into())
        }
    }
}

impl Shelf {
    /// What a request with turns is: the next of them with each request of the same prompt.
    fn turn(&self, prompt: &str, choice: Choice) -> Result<Choice, String> {
        if !choice.is("turns") {
            return Ok(choice);
        }
        let mut all = self.turns.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let turn = all.entry(prompt.to_string()).or_default();
        *turn += 1;
        choice.turn(*turn - 1)
    }

    fn put(&self, job: Job) -> String {
        let mut all = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let id = format!("img-{}", all.len() + 1);
        all.insert(id.clone(), ShelfTask { job, polls: 0 });
        id
    }

    /// A task that is asked for, and how often it was before.
    fn ask(&self, id: &str) -> Option<(Job, u64)> {
        let mut all = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let task = all.get_mut(id)?;
        task.polls += 1;
        Some((task.job.clone(), task.polls - 1))
    }
}

/// An error as OpenAI and its copies tell it.
fn error(status: u16, code: &str, text: &str, param: Option<&str>) -> Answer {
    let kind = if status >= 500 { "server_error" } else { "invalid_request_error" };
    let body = json!({"error": {"message": text, "type": kind, "param": param, "code": code}});
    Answer::Whole(response(status, "application/json", body.to_string().into()))
}

/// The troubles that all makers have in common.
fn trouble(job: &Job) -> Option<Answer> {
    match job.choice.name {
        "page" => {
            Some(Answer::Whole(response(502, "text/html", Bytes::from_static(b"<html>502 edge-3.internal</html>"))))
        }
        _ => None,
    }
}
