//! Mixed load: well-behaved calls, slow streams, tools, provider errors, hangs, and clients that leave. Each call carries a
//! tag in its prompt, and what its client saw is kept, to be compared with the books afterwards.

use crate::house::{House, chat};
use reqwest::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// How one call ended for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A whole 200, or a stream up to `[DONE]`. The charge where a header told it.
    Answered { call: String, charge: Option<String> },
    /// A refusal or a provider's fault, as a status or as the last event of a stream.
    Failed { call: String, status: u16 },
    /// The client hung up, as it had planned; so many words had come in by then.
    Left { call: String, words: usize },
    /// The connection broke; so many words had come in by then.
    Lost { call: Option<String>, words: usize },
}

#[derive(Clone, Debug)]
pub struct Record {
    pub tag: String,
    pub kind: Kind,
    pub seen: Seen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Whole,
    Stream,
    SlowStream,
    Tools,
    ServerError,
    BadRequest,
    Cut,
    Leaver,
    LeaverBilledOn,
    Hang,
    LeftHanging,
    /// Repeated with its Idempotency-Key until there is an answer.
    Persistent,
}

const MIX: [Kind; 16] = [
    Kind::Whole,
    Kind::SlowStream,
    Kind::Stream,
    Kind::Leaver,
    Kind::Persistent,
    Kind::SlowStream,
    Kind::Tools,
    Kind::Whole,
    Kind::ServerError,
    Kind::LeaverBilledOn,
    Kind::LeftHanging,
    Kind::Persistent,
    Kind::Cut,
    Kind::Stream,
    Kind::BadRequest,
    Kind::Hang,
];

pub struct Load {
    over: Arc<AtomicBool>,
    given_up: Arc<AtomicBool>,
    workers: JoinSet<Vec<Record>>,
}

/// What a worker needs; the processes belong to the test.
struct Client {
    urls: Vec<String>,
    key: String,
    http: reqwest::Client,
    next: AtomicUsize,
    over: Arc<AtomicBool>,
    given_up: Arc<AtomicBool>,
}

impl Load {
    pub fn start(house: &House, workers: usize) -> Load {
        let (over, given_up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let client = Arc::new(Client {
            urls: house.gates.iter().map(|gate| format!("{}/v1/chat/completions", gate.url())).collect(),
            key: house.key.clone(),
            http: house.http.clone(),
            next: AtomicUsize::new(0),
            over: over.clone(),
            given_up: given_up.clone(),
        });
        let mut set = JoinSet::new();
        for _ in 0..workers {
            set.spawn(work(client.clone()));
        }
        Load { over, given_up, workers: set }
    }

    /// Ends where nobody is there to answer any more: who goes on asking gives up.
    pub async fn abandon(self) -> Vec<Record> {
        self.given_up.store(true, Ordering::Relaxed);
        self.stop().await
    }

    /// Lets running calls end and returns everything that was seen.
    pub async fn stop(self) -> Vec<Record> {
        self.over.store(true, Ordering::Relaxed);
        self.workers.join_all().await.into_iter().flatten().collect()
    }
}

async fn work(client: Arc<Client>) -> Vec<Record> {
    let mut records = Vec::new();
    while !client.over.load(Ordering::Relaxed) {
        let number = client.next.fetch_add(1, Ordering::Relaxed);
        let kind = MIX[number % MIX.len()];
        let tag = format!("tag{number}");
        let gate = number / MIX.len() % client.urls.len();
        let seen = match kind {
            Kind::Persistent => persist(&client, gate, &tag).await,
            _ => once(&client, gate, kind, &tag).await,
        };
        let pause = if matches!(seen, Seen::Lost { .. } | Seen::Failed { status: 503, .. }) { 20 } else { 1 };
        records.push(Record { tag, kind, seen });
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    records
}

async fn once(client: &Client, gate: usize, kind: Kind, tag: &str) -> Seen {
    let body = body(kind, tag);
    let ask = send(client, gate, &body, None);
    let reply = match kind {
        Kind::LeftHanging => match tokio::time::timeout(Duration::from_millis(150), ask).await {
            Ok(reply) => reply,
            Err(_) => return Seen::Left { call: String::new(), words: 0 },
        },
        _ => ask.await,
    };
    let Some(reply) = reply else { return Seen::Lost { call: None, words: 0 } };
    let leave_after = matches!(kind, Kind::Leaver | Kind::LeaverBilledOn).then_some(3);
    read(reply, leave_after).await
}

/// How long a client goes on asking: longer than anything is away in an experiment.
const PERSISTENCE: Duration = Duration::from_secs(60);

/// The same request again and again until it is answered, which it is in the end.
async fn persist(client: &Client, gate: usize, tag: &str) -> Seen {
    let mut last = Seen::Lost { call: None, words: 0 };
    let began = std::time::Instant::now();
    for attempt in 0.. {
        let gate = (gate + attempt) % client.urls.len();
        match send(client, gate, &body(Kind::Persistent, tag), Some(tag)).await {
            Some(reply) => last = read(reply, None).await,
            None => last = Seen::Lost { call: None, words: 0 },
        }
        let again = matches!(last, Seen::Lost { .. } | Seen::Failed { status: 409 | 503, .. });
        if !again || began.elapsed() > PERSISTENCE {
            break;
        }
        if client.given_up.load(Ordering::Relaxed) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert!(matches!(last, Seen::Answered { .. }), "{tag} asked {PERSISTENCE:?} and got no answer: {last:?}");
    last
}

async fn send(client: &Client, gate: usize, body: &Value, idempotency_key: Option<&str>) -> Option<Response> {
    let mut request = client.http.post(&client.urls[gate]).bearer_auth(&client.key).json(body);
    if let Some(key) = idempotency_key {
        request = request.header("idempotency-key", key);
    }
    request.send().await.ok()
}

fn body(kind: Kind, tag: &str) -> Value {
    let (model, marker, streams) = match kind {
        Kind::Whole => ("plain", "tokens=5", false),
        Kind::Persistent => ("plain", "tokens=5 think_ms=40", false),
        Kind::Stream => ("plain", "tokens=6", true),
        Kind::SlowStream => ("plain", "tokens=12 think_ms=20 delay_ms=25", true),
        Kind::Tools => ("plain", "tools", true),
        Kind::ServerError => ("plain", "error500", false),
        Kind::BadRequest => ("plain", "error400", true),
        Kind::Cut => ("plain", "cut_midstream after=3 cut=reset delay_ms=10", true),
        Kind::Leaver => ("plain", "tokens=40 delay_ms=20", true),
        Kind::LeaverBilledOn => ("billed-to-the-end", "tokens=15 delay_ms=20", true),
        Kind::Hang | Kind::LeftHanging => ("plain", "hang", false),
    };
    let mut body = chat(model, &format!("[[sim:{marker}]] {tag}"));
    body["max_tokens"] = json!(50);
    if streams {
        body["stream"] = json!(true);
    }
    if kind == Kind::SlowStream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if kind == Kind::Tools {
        let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        body["tools"] = json!([{ "type": "function", "function": { "name": "weather", "parameters": parameters } }]);
    }
    body
}

/// Reads a reply to its end, or leaves after so many pieces.
pub async fn read(mut reply: Response, leave_after: Option<usize>) -> Seen {
    let header = |name: &str| reply.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let status = reply.status().as_u16();
    let (call, charge) = (header("x-request-id").unwrap_or_default(), header("x-tollgate-charge-usd"));
    let streams = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut text = Vec::new();
    for pieces in 0.. {
        if streams && leave_after.is_some_and(|limit| pieces >= limit) {
            return Seen::Left { call, words: words(&String::from_utf8_lossy(&text)) };
        }
        match reply.chunk().await {
            Ok(Some(piece)) => text.extend_from_slice(&piece),
            Ok(None) => break,
            Err(_) => {
                return Seen::Lost { call: Some(call), words: words(&String::from_utf8_lossy(&text)) };
            }
        }
    }
    let text = String::from_utf8_lossy(&text);
    if status != 200 {
        return Seen::Failed { call, status };
    }
    if !streams {
        let whole: Value = serde_json::from_str(&text).expect("a whole body is JSON");
        assert_eq!(whole["object"], "chat.completion", "{whole}");
        return Seen::Answered { call, charge };
    }
    let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
    match last.trim() {
        "data: [DONE]" => Seen::Answered { call, charge },
        event if event.contains("\"error\"") => Seen::Failed { call, status },
        other => panic!("{call} ended without [DONE] and without an error: {other:?}"),
    }
}

/// Events that say something; the first of a stream only names the speaker.
fn words(text: &str) -> usize {
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    events.filter(|event| event["choices"][0]["delta"]["content"].as_str().is_some_and(|word| !word.is_empty())).count()
}
