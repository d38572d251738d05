//! `kill -9` of the gateway under many realtime sessions: idle ones, ones in the middle of a
//! response, ones whose hold is being extended, and ones that finish a response after the other.
//! Afterwards nothing is held, every response that ended is paid exactly, every one that was cut
//! off is paid by its last mark, and none is paid twice.

use crate::books;
use crate::experiment::{Experiment, long};
use crate::house::{House, Plan, text};
use crate::postgres::Server;
use crate::process::HANG;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

/// A token of text costs 1,000 and 2,000 nano-USD, of audio 10,000 and 20,000.
const CATALOG: &str = r#"
[model."talker"]
context_window = 32_000
max_output_tokens = 4_096
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 2_000_000, audio_input = 10_000_000, audio_output = 20_000_000, cache_read = 500_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime" }]
"#;
/// Four tenths of a second of audio: a response that goes on asks for more all the time.
const SETTINGS: &str = "\n[realtime]\nfirst_hold = 8\nsessions_per_key = 1_000\n";
const USD: &str = "100000";
/// Kills of a test run.
const KILLS: usize = 3;

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Says nothing.
    Idle,
    /// Has a response that stands still in the middle.
    Midway,
    /// Has one that goes on and on.
    Extended,
    /// Has one whole response after the other.
    Turns,
}

const MANNERS: [Manner; 4] = [Manner::Idle, Manner::Midway, Manner::Extended, Manner::Turns];

impl Manner {
    fn asks(self) -> Option<&'static str> {
        match self {
            Manner::Idle => None,
            Manner::Midway => Some("[[sim:hold after=4 ms=4000]]"),
            Manner::Extended => Some("[[sim:plain ms=120000 delay_ms=40]]"),
            Manner::Turns => Some("[[sim:plain ms=300 delay_ms=5]]"),
        }
    }

    /// It has come to where a kill is to meet it.
    fn is_there(self, now: &Now) -> bool {
        match self {
            Manner::Idle => now.open,
            Manner::Midway => now.pieces >= 4,
            // Eight tokens are four pieces: it was extended at least twice.
            Manner::Extended => now.pieces >= 10,
            Manner::Turns => now.turns >= 2,
        }
    }
}

/// Where a session is.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    open: bool,
    pieces: usize,
    turns: usize,
}

/// A response as its client saw it: pieces of audio, and what it used if it came to its end.
#[derive(Clone, Debug)]
struct Said {
    id: String,
    pieces: usize,
    usage: Option<Value>,
}

struct Crowd {
    gates: Vec<u16>,
    key: String,
    now: Mutex<Vec<Now>>,
    said: Mutex<Vec<Said>>,
    opened: AtomicUsize,
    over: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    let mut experiment = Experiment::new("kill -9 under realtime sessions, SQLite");
    survive(plan(), &mut experiment).await;
    experiment.end();
}

/// Two replicas: each kill hits one while the other goes on.
#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    let server = Server::find();
    let database = server.database("sessions").await;
    let mut experiment = Experiment::new("kill -9 under realtime sessions, two replicas on PostgreSQL");
    survive(Plan { database: &database, gates: 2, ..plan() }, &mut experiment).await;
    experiment.end();
}

fn plan() -> Plan<'static> {
    Plan { usd: USD, catalog: CATALOG, limits: SETTINGS, patience: ["30s", "30s"], ..Plan::default() }
}

async fn survive(plan: Plan<'_>, experiment: &mut Experiment) {
    let mut house = House::new(plan).await;
    let sessions = if long() { 200 } else { 40 };
    let crowd = Arc::new(Crowd::new(&house, sessions));
    let talkers: JoinSet<()> = (0..sessions).map(|number| talk(crowd.clone(), number)).collect();
    let mut kills = 0;
    while experiment.more() {
        for _ in 0..KILLS {
            // In a test run a kill waits for what it is to meet; in a long one the clock decides.
            if long() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            } else {
                crowd.all_there().await;
            }
            let gates = house.gates.len();
            let gate = &mut house.gates[kills % gates];
            gate.kill();
            gate.start().await;
            kills += 1;
        }
    }
    crowd.all_there().await;
    crowd.over.store(true, Ordering::Relaxed);
    talkers.join_all().await;
    experiment.count("kills", kills);
    experiment.count("sessions", crowd.opened.load(Ordering::Relaxed));
    let said = std::mem::take(&mut *lock(&crowd.said));
    check(&house, &said, experiment).await;
}

/// A case of the table of faults: one session of each kind, and one kill.
pub async fn killed_with_sessions_open() {
    let mut house = House::new(plan()).await;
    let crowd = Arc::new(Crowd::new(&house, MANNERS.len()));
    let talkers: JoinSet<()> = (0..MANNERS.len()).map(|number| talk(crowd.clone(), number)).collect();
    crowd.all_there().await;
    house.gates[0].kill();
    crowd.over.store(true, Ordering::Relaxed);
    talkers.join_all().await;
    house.gates[0].start().await;
    let said = std::mem::take(&mut *lock(&crowd.said));
    check(&house, &said, &mut Experiment::new("")).await;
}

impl Crowd {
    fn new(house: &House, sessions: usize) -> Crowd {
        Crowd {
            gates: house.gates.iter().map(|gate| gate.port).collect(),
            key: house.key.clone(),
            now: Mutex::new(vec![Now::default(); sessions]),
            said: Mutex::default(),
            opened: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Waits until every session is where its manner takes it. Then all begin to count anew.
    async fn all_there(&self) {
        let began = Instant::now();
        loop {
            let missing = {
                let mut now = lock(&self.now);
                let away = now.iter().enumerate().filter(|(at, now)| !MANNERS[at % 4].is_there(now)).map(|(at, _)| at);
                let missing: Vec<usize> = away.collect();
                if missing.is_empty() {
                    now.iter_mut().for_each(|now| now.turns = 0);
                    return;
                }
                missing
            };
            assert!(began.elapsed() < HANG, "these sessions do nothing: {missing:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn note(&self, number: usize, change: impl FnOnce(&mut Now)) {
        change(&mut lock(&self.now)[number]);
    }
}

/// One session after the other, until all is over.
async fn talk(crowd: Arc<Crowd>, number: usize) {
    let mut tries = number;
    while !crowd.is_over() {
        let port = crowd.gates[tries % crowd.gates.len()];
        tries += 1;
        match open(port, &crowd.key).await {
            Some(socket) => session(&crowd, number, socket).await,
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        crowd.note(number, |now| *now = Now { turns: now.turns, ..Now::default() });
    }
}

async fn open(port: u16, key: &str) -> Option<WebSocketStream<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let address = format!("ws://127.0.0.1:{port}/v1/realtime?model=talker");
    let mut request = address.into_client_request().expect("a request");
    request.headers_mut().insert("authorization", format!("Bearer {key}").parse().expect("a header"));
    Some(client_async(request, stream).await.ok()?.0)
}

/// Until the connection breaks or all is over. A client that leaves does so without a word.
async fn session(crowd: &Crowd, number: usize, mut socket: WebSocketStream<TcpStream>) {
    let manner = MANNERS[number % 4];
    let mut saying: Option<Said> = None;
    while !crowd.is_over() {
        // A silent session has to notice the end, too.
        let Ok(next) = tokio::time::timeout(Duration::from_millis(50), socket.next()).await else { continue };
        let Some(Ok(message)) = next else { break };
        let Message::Text(said) = message else { continue };
        let event: Value = serde_json::from_str(&said).expect("an event");
        match event["type"].as_str().unwrap_or_default() {
            "session.created" => {
                crowd.opened.fetch_add(1, Ordering::Relaxed);
                crowd.note(number, |now| now.open = true);
                if !ask(&mut socket, manner).await {
                    break;
                }
            }
            "response.created" => {
                let id = event["response"]["id"].as_str().expect("an id").to_owned();
                saying = Some(Said { id, pieces: 0, usage: None });
            }
            "response.output_audio.delta" => {
                let said = saying.as_mut().expect("a response");
                assert_eq!(event["response_id"], said.id.as_str());
                said.pieces += 1;
                crowd.note(number, |now| now.pieces += 1);
            }
            "response.done" => {
                let mut said = saying.take().expect("a response");
                said.usage = Some(event["response"]["usage"].clone());
                lock(&crowd.said).push(said);
                crowd.note(number, |now| now.turns += 1);
                if !ask(&mut socket, manner).await {
                    break;
                }
            }
            _ => {}
        }
    }
    lock(&crowd.said).extend(saying);
}

/// Asks for a response; false where nobody is there any more.
async fn ask(socket: &mut WebSocketStream<TcpStream>, manner: Manner) -> bool {
    let Some(text) = manner.asks() else { return true };
    let content = json!([{ "type": "input_text", "text": text }]);
    let item = json!({ "type": "message", "role": "user", "content": content });
    for event in [json!({ "type": "conversation.item.create", "item": item }), json!({ "type": "response.create" })] {
        if socket.send(Message::text(event.to_string())).await.is_err() {
            return false;
        }
    }
    true
}

/// What a usage report costs.
fn cost(usage: &Value) -> i64 {
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let (input, output) = (&usage["input_token_details"], &usage["output_token_details"]);
    let fresh = |name: &str| number(&input[name]) - number(&input["cached_tokens_details"][name]);
    fresh("text_tokens") * 1_000
        + fresh("audio_tokens") * 10_000
        + number(&input["cached_tokens"]) * 500
        + number(&output["text_tokens"]) * 2_000
        + number(&output["audio_tokens"]) * 20_000
}

/// The response that a call was for.
async fn response_of(house: &House, call: &str) -> String {
    let url = format!("{}/v1/usage/{call}", house.gates[0].url());
    let reply = house.http.get(url).bearer_auth(&house.key).send().await.expect("a reply");
    let row: Value = reply.json().await.expect("JSON");
    let raw = match &row["raw_usage"] {
        Value::String(text) => serde_json::from_str(text).expect("JSON"),
        other => other.clone(),
    };
    text(&raw["response_id"])
}

async fn check(house: &House, said: &[Said], experiment: &mut Experiment) {
    house.quiet().await;
    house.verified().await;
    let rows = books::usage(house).await;
    let mut by_response: HashMap<String, &Value> = HashMap::new();
    for (call, row) in &rows {
        let (charge, hold) = (books::amount(row, "charge_nano_usd"), books::amount(row, "hold_nano_usd"));
        assert!(charge <= hold && books::amount(row, "write_off_nano_usd") == 0, "{row}");
        if charge > 0 {
            let id = response_of(house, call).await;
            let before = by_response.insert(id.clone(), row);
            assert!(before.is_none(), "{id} was paid twice: {row} {before:?}");
        }
    }
    let (mut ended, mut cut_off) = (0, 0);
    for one in said {
        let row = by_response.get(&one.id);
        let charge = row.map_or(0, |row| books::amount(row, "charge_nano_usd"));
        match &one.usage {
            Some(usage) => {
                ended += 1;
                assert_eq!(charge, cost(usage), "{one:?}: {row:?}");
                assert_eq!(row.map(|row| &row["estimated"]), Some(&json!(false)), "{one:?}: {row:?}");
            }
            // The first piece is marked before it is handed out.
            None if one.pieces > 0 => {
                cut_off += 1;
                assert!(charge >= 2_000, "{one:?} was made and not paid: {row:?}");
            }
            None => {}
        }
    }
    let charged: i64 = rows.values().map(|row| books::amount(row, "charge_nano_usd")).sum();
    let balance = house.balance(0).await;
    assert_eq!(balance["available_nano_usd"].as_i64(), Some(books::nano(USD) - charged), "{balance}");
    assert!(ended > 0 && cut_off > 0, "{ended} ended and {cut_off} were cut off: nothing was tried");
    experiment.count("responses ended", ended);
    experiment.count("responses cut off", cut_off);
    experiment.count("usage rows", rows.len());
}
