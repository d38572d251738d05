//! The provider of a simulation: it lives in memory, outside of the gateway's lives, behaves as
//! each request's plan says, and remembers what it was asked and what it gave.

use super::outside::Outside;
use super::{media, runs, sessions, tasks};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tollgate_upstream::Dial;

/// Tokens of every prompt, as this provider counts them.
pub const PROMPT: i64 = 9;

/// What the provider does with a request.
#[derive(Clone, Debug)]
pub struct Plan {
    pub think_ms: u64,
    pub words: u64,
    pub delay_ms: u64,
    pub ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Fine,
    /// All words and no report of what was used.
    NoReport,
    ServerError,
    /// The connection breaks before any answer.
    Reset,
    /// It breaks after half of the words.
    Cut,
    /// Silence after half of the words.
    Silence,
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub call: String,
    pub request: usize,
    pub event: u64,
}

/// Every connection is a new one to somebody who answers by the plans.
pub fn dial(outside: &Arc<Outside>) -> Dial {
    let outside = outside.clone();
    Arc::new(move |_| {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let of_connection = outside.clone();
        let service = service_fn(move |request| answer(of_connection.clone(), request));
        outside.join(async move {
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(theirs), service);
            let _ = connection.with_upgrades().await;
        });
        Ok(ours)
    })
}

async fn answer(outside: Arc<Outside>, request: Request<Incoming>) -> io::Result<Response<Script>> {
    if request.headers()["host"] == media::PAINTER {
        return painter(outside, request).await;
    }
    if request.uri().path().starts_with("/api/") {
        return tasks::maker(outside, request).await;
    }
    let call = request.headers()["x-client-request-id"].to_str().map_err(io::Error::other)?.to_owned();
    let path = request.uri().path().to_owned();
    if path == sessions::PATH {
        return Ok(changed(&outside, call, request));
    }
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let body = media::read(&body);
    let prompt = media::text_of(&body);
    let plan = match runs::received(&outside, prompt, &call) {
        Some(plan) => plan,
        None => taken(&outside, call, prompt).1,
    };
    tokio::time::sleep(Duration::from_millis(plan.think_ms)).await;
    let streams = body["stream"] == true;
    let made = media::reply(&path, &plan);
    let mut kind = None;
    let (status, script) = match plan.ending {
        Ending::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
        Ending::ServerError => (500, Script::of([json!({ "error": { "message": "broken" } }).to_string()])),
        _ if made.is_some() => {
            let (own, script) = made.expect("looked at above");
            kind = Some(own);
            (200, script)
        }
        _ if streams => (200, stream(&plan)),
        Ending::Cut | Ending::Silence => (200, Script { then: plan.ending, ..Script::of(["{\"id\":".to_owned()]) }),
        _ => (200, Script::of([whole(&plan).to_string()])),
    };
    let otherwise = if streams && status == 200 { "text/event-stream" } else { "application/json" };
    let kind = kind.unwrap_or(otherwise);
    Ok(Response::builder().status(status).header("content-type", kind).body(script).expect("a reply"))
}

/// Notes a request of a client; which one it is, and what is to be done with it.
fn taken(outside: &Outside, call: String, prompt: &str) -> (usize, Plan) {
    let number: usize = prompt.rsplit(' ').next().and_then(|tag| tag.parse().ok()).expect("a tagged request");
    outside.received(Received { call, request: number, event: outside.event() });
    (number, outside.requests()[number].plan.clone())
}

/// Who makes pictures as tasks, which are named after their requests.
async fn painter(outside: Arc<Outside>, request: Request<Incoming>) -> io::Result<Response<Script>> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let reply = Response::builder().header("content-type", "application/json");
    if let Some(task) = path.strip_prefix("/v1/images/generations/") {
        let is_over = outside.draw().percent(50);
        return Ok(reply.body(media::looked_at(task, is_over)).expect("a reply"));
    }
    let body = media::read(&body);
    let call = body["external_task_id"].as_str().expect("the call's name").to_owned();
    let (number, plan) = taken(&outside, call, media::text_of(&body));
    tokio::time::sleep(Duration::from_millis(plan.think_ms)).await;
    let (status, script) = match plan.ending {
        Ending::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
        Ending::ServerError => (500, Script::of([json!({ "code": 5000, "message": "broken" }).to_string()])),
        _ => (200, media::painted(number, &plan)),
    };
    Ok(reply.status(status).body(script).expect("a reply"))
}

/// The connection becomes a session's.
fn changed(outside: &Arc<Outside>, call: String, mut request: Request<Incoming>) -> Response<Script> {
    let accept = derive_accept_key(request.headers()["sec-websocket-key"].as_bytes());
    outside.join(sessions::serve(outside.clone(), call, hyper::upgrade::on(&mut request)));
    Response::builder()
        .status(101)
        .header("upgrade", "websocket")
        .header("connection", "upgrade")
        .header("sec-websocket-accept", accept)
        .body(Script::of([]))
        .expect("a reply")
}

fn whole(plan: &Plan) -> Value {
    let text = "word ".repeat(usize::try_from(plan.words).expect("few"));
    let mut reply = json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": "u",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
    });
    if plan.ending == Ending::Fine {
        reply["usage"] = usage(plan);
    }
    reply
}

fn usage(plan: &Plan) -> Value {
    let words = i64::try_from(plan.words).expect("few");
    json!({ "prompt_tokens": PROMPT, "completion_tokens": words, "total_tokens": PROMPT + words })
}

fn stream(plan: &Plan) -> Script {
    let event = |delta: Value, finish: Value| {
        let choice = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        json!({ "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "u", "choices": choice })
    };
    let said = if matches!(plan.ending, Ending::Cut | Ending::Silence) { plan.words / 2 } else { plan.words };
    let mut events: Vec<Value> = (0..said).map(|_| event(json!({ "content": "word " }), Value::Null)).collect();
    if matches!(plan.ending, Ending::Fine | Ending::NoReport) {
        events.push(event(json!({}), json!("stop")));
    }
    if plan.ending == Ending::Fine {
        let mut last = event(Value::Null, Value::Null);
        (last["choices"], last["usage"]) = (json!([]), usage(plan));
        events.push(last);
    }
    let mut texts: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    if matches!(plan.ending, Ending::Fine | Ending::NoReport) {
        texts.push("data: [DONE]\n\n".to_owned());
    }
    Script { delay: Duration::from_millis(plan.delay_ms), then: plan.ending, ..Script::of(texts) }
}

/// A body that comes piece by piece.
pub struct Script {
    pieces: VecDeque<Bytes>,
    delay: Duration,
    then: Ending,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Script {
    pub fn of(pieces: impl IntoIterator<Item = String>) -> Self {
        let pieces = pieces.into_iter().map(Bytes::from).collect();
        Self { pieces, delay: Duration::ZERO, then: Ending::Fine, waiting: None }
    }

    /// With so long before each piece, and this end.
    pub fn paced(self, delay: Duration, then: Ending) -> Self {
        Self { delay, then, ..self }
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        if !this.delay.is_zero() {
            let delay = this.delay;
            ready!(this.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(delay))).as_mut().poll(cx));
            this.waiting = None;
        }
        match (this.pieces.pop_front(), this.then) {
            (Some(piece), _) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            (None, Ending::Cut) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            (None, Ending::Silence) => Poll::Pending,
            (None, _) => Poll::Ready(None),
        }
    }
}
