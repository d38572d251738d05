//! Realtime sessions in a simulation: a client that asks for one response after the other and may
//! leave, a provider that says words and may break off, and what each response may have cost in
//! the end. The session itself is the gateway's, one more part that goes on by chance.

use super::actors::pause;
use super::oracle::{INPUT, OUTPUT, Rows};
use super::outside::{Fate, Outside, lock};
use super::provider::{Ending, PROMPT};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tollgate_gateway::app::App;
use tollgate_gateway::who::key_cache::KeyLookup;
use tollgate_gateway::work::realtime::Opening;
use tollgate_store::testing::Crash;

pub const PATH: &str = "/v1/realtime";
/// A mark is at most this old: it is looked for every second.
const MARK_MS: i64 = 6_500;

/// How a session goes.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    customer: usize,
    turns: Vec<Turn>,
    /// The client goes without a word in the last turn, after so many words.
    leaves_after: Option<u64>,
    wait_ms: u64,
}

#[derive(Clone, Debug)]
struct Turn {
    think_ms: u64,
    words: u64,
    delay_ms: u64,
    ending: Ending,
    /// The client stops it after so many words.
    cancels_after: Option<u64>,
}

/// A response as its client learned of it.
#[derive(Clone, Debug)]
pub struct Said {
    response: String,
    /// When each of its words came.
    words: Vec<i64>,
    /// What it used, and when that was said; nothing used is nothing reported.
    done: Option<(Value, u64)>,
    status: String,
    fate: Fate,
}

/// What all sessions have left behind outside of the gateway.
#[derive(Default)]
pub struct Sessions {
    plans: BTreeMap<String, SessionPlan>,
    /// First calls of sessions that were dialled.
    dialled: Vec<String>,
    /// Responses that the provider has begun, with the words that it has said.
    begun: BTreeMap<String, u64>,
    said: Vec<Said>,
}

pub fn plan(outside: &Outside) -> SessionPlan {
    use Ending::{Cut, Fine, NoReport, ServerError, Silence};
    let mut draw = outside.draw();
    let count = draw.between(1, 4);
    let turns: Vec<Turn> = (0..count)
        .map(|_| {
            let words = draw.between(1, 60);
            Turn {
                think_ms: draw.one(&[0, 1, 5, 300, 2_500]),
                words,
                delay_ms: draw.one(&[0, 1, 10, 200, 900]),
                ending: draw.one(&[Fine, Fine, Fine, Fine, NoReport, ServerError, Cut, Silence]),
                cancels_after: draw.percent(20).then(|| draw.below(words)),
            }
        })
        .collect();
    let leaves_after = draw.percent(30).then(|| draw.below(40));
    SessionPlan { customer: usize::from(draw.percent(35)), turns, leaves_after, wait_ms: draw.below(3_000) }
}

/// Opens a session and talks until its plan, its money or the session is over.
pub async fn client(outside: Arc<Outside>, app: Arc<App>, plan: SessionPlan) {
    pause(plan.wait_ms).await;
    let secret = outside.customers[plan.customer].secret.clone();
    let KeyLookup::Known(caller) = app.keys.find(&app.store, &secret, &app.world).await else { return };
    let id = app.new_call_id();
    lock(&outside.sessions).plans.insert(id.to_string(), plan.clone());
    let model = "talker".to_owned();
    let opening = Opening { caller, model, transcription: false, configured: None, longest: None, form: None };
    let Ok(session) = app.realtime.open(id, opening).await else { return };
    let (ours, theirs) = tokio::io::duplex(16 << 10);
    outside.join(session.run(theirs));
    let mut socket = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
    for (at, turn) in plan.turns.iter().enumerate() {
        if send(&mut socket, json!({ "type": "response.create" })).await.is_none() {
            return;
        }
        let leaves_after = plan.leaves_after.filter(|_| at + 1 == plan.turns.len());
        if response(&outside, &mut socket, turn, leaves_after).await.is_none() {
            return;
        }
    }
    let _ = socket.close(None).await;
    while let Some(Ok(_)) = socket.next().await {}
}

async fn send<T: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<T>, event: Value) -> Option<()> {
    socket.send(Message::text(event.to_string())).await.ok()
}

async fn next<T: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<T>) -> Option<Value> {
    loop {
        match socket.next().await?.ok()? {
            Message::Text(text) => return Some(serde_json::from_str(&text).expect("an event")),
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

/// Listens to one response up to its end; nothing where the session has none, or the client leaves.
async fn response<T: AsyncRead + AsyncWrite + Unpin>(
    outside: &Outside,
    socket: &mut WebSocketStream<T>,
    turn: &Turn,
    leaves_after: Option<u64>,
) -> Option<()> {
    let mut slot = None;
    loop {
        let event = next(socket).await?;
        match event["type"].as_str().unwrap_or_default() {
            "response.created" => {
                let response = event["response"]["id"].as_str().expect("an id").to_owned();
                let (words, done, status, fate) = (Vec::new(), None, String::new(), Fate::Whole);
                let said = &mut lock(&outside.sessions).said;
                said.push(Said { response, words, done, status, fate });
                slot = Some(said.len() - 1);
            }
            "response.output_text.delta" => {
                let (id, words) = heard(outside, slot.expect("output of a response"));
                if leaves_after.is_some_and(|limit| words > limit) {
                    return None;
                }
                if turn.cancels_after.is_some_and(|limit| words == limit + 1) {
                    send(socket, json!({ "type": "response.cancel", "response_id": id })).await?;
                }
            }
            "response.done" => {
                let at = outside.event();
                let said = &mut lock(&outside.sessions).said[slot.expect("the end of a response")];
                said.status = event["response"]["status"].as_str().unwrap_or_default().to_owned();
                said.done = Some((event["response"]["usage"].clone(), at));
                return Some(());
            }
            _ => {}
        }
    }
}

/// One more word of a response: its name, and how many there are.
fn heard(outside: &Outside, slot: usize) -> (String, u64) {
    let now = outside.now();
    let said = &mut lock(&outside.sessions).said[slot];
    said.words.push(now);
    (said.response.clone(), said.words.len() as u64)
}

/// The provider's side of a session, from the moment its connection is changed.
pub async fn serve(outside: Arc<Outside>, call: String, upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let plan = {
        let mut sessions = lock(&outside.sessions);
        sessions.dialled.push(call.clone());
        sessions.plans[&call].clone()
    };
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
    let session = json!({ "type": "realtime", "model": "u", "max_output_tokens": 4_096 });
    if send(&mut socket, json!({ "type": "session.created", "session": session })).await.is_none() {
        return;
    }
    let mut turns = plan.turns.into_iter().enumerate();
    while let Some(event) = next(&mut socket).await {
        let goes = match event["type"].as_str().unwrap_or_default() {
            "session.update" => send(&mut socket, json!({ "type": "session.updated", "session": session })).await,
            "response.create" => match turns.next() {
                Some((at, turn)) => answer(&outside, &mut socket, &format!("resp_{call}_{at}"), &turn).await,
                None => None,
            },
            _ => Some(()),
        };
        if goes.is_none() {
            return;
        }
    }
}

/// One response. Nothing where the connection is over.
async fn answer<T: AsyncRead + AsyncWrite + Unpin>(
    outside: &Outside,
    socket: &mut WebSocketStream<T>,
    id: &str,
    turn: &Turn,
) -> Option<()> {
    pause(turn.think_ms).await;
    let object = |status: &str, usage: Value| json!({ "id": id, "status": status, "conversation_id": "conv_1", "max_output_tokens": 4_096, "usage": usage });
    let created = object("in_progress", Value::Null);
    lock(&outside.sessions).begun.insert(id.to_owned(), 0);
    send(socket, json!({ "type": "response.created", "response": created })).await?;
    let breaks = matches!(turn.ending, Ending::Cut | Ending::Silence);
    let words = if breaks { turn.words / 2 } else { turn.words };
    let (mut said, mut status) = (0, "completed");
    if turn.ending == Ending::ServerError {
        status = "failed";
    } else {
        while said < words {
            tokio::select! {
                biased;
                event = next(socket) => {
                    if event?["type"] == "response.cancel" {
                        status = "cancelled";
                        break;
                    }
                }
                () = pause(turn.delay_ms) => {
                    said += 1;
                    lock(&outside.sessions).begun.insert(id.to_owned(), said);
                    let delta = json!({ "type": "response.output_text.delta", "response_id": id, "delta": "word " });
                    send(socket, delta).await?;
                }
            }
        }
    }
    if breaks && status == "completed" {
        match turn.ending {
            Ending::Cut => return None,
            // Until the gateway has had enough of it.
            _ => loop {
                next(socket).await?;
            },
        }
    }
    let usage = match turn.ending {
        Ending::NoReport => Value::Null,
        _ => json!({ "input_tokens": PROMPT, "output_tokens": said, "total_tokens": PROMPT.unsigned_abs() + said }),
    };
    send(socket, json!({ "type": "response.done", "response": object(status, usage) })).await
}

/// What a crash has done to what clients learned.
pub fn crashed(outside: &Outside, how: Crash, safe: u64) {
    let now = outside.now();
    for said in lock(&outside.sessions).said.iter_mut().filter(|said| said.fate == Fate::Whole) {
        match &said.done {
            None => said.fate = Fate::CutOff(how, now),
            Some((_, at)) if how == Crash::PowerCut && *at >= safe => said.fate = Fate::InDoubt,
            Some(_) => {}
        }
    }
}

pub async fn check(outside: &Outside, app: &App, rows: &Rows, when: &str) {
    let mut charged: BTreeMap<String, (i64, bool)> = BTreeMap::new();
    for row in rows.values().filter(|row| row.endpoint == PATH) {
        // What was on its way when the money ran out is lost, and nothing else.
        let all = row.write_off.is_zero() || row.charge == row.hold;
        assert!(row.charge <= row.hold && all, "{when}: {row:#?}");
        if row.charge.is_zero() {
            continue;
        }
        let whole = app.store.usage_of(row.account, row.call).await.expect("read").expect("the row");
        let raw: Value = serde_json::from_str(whole.raw_usage.as_deref().unwrap_or_default()).expect("usage");
        let response = raw["response_id"].as_str().expect("a paid response has a name").to_owned();
        let twice = charged.insert(response, (row.charge.nano() + row.write_off.nano(), row.estimated));
        assert!(twice.is_none(), "{when}: a response was paid twice: {row:#?}");
    }
    check_said(&lock(&outside.sessions), rows, &charged, when);
}

fn check_said(sessions: &Sessions, rows: &Rows, charged: &BTreeMap<String, (i64, bool)>, when: &str) {
    for call in &sessions.dialled {
        assert!(rows.contains_key(call), "{when}: {call} was dialled and is in no log");
    }
    for response in charged.keys() {
        let words = sessions.begun.get(response).copied();
        assert!(words.is_some(), "{when}: {response} was paid and nobody has made it");
    }
    for said in &sessions.said {
        let paid = charged.get(&said.response).copied();
        let wrong = wrong(said, paid);
        assert!(wrong.is_none(), "{when}: {} {paid:?}\n{said:#?}", wrong.unwrap_or_default());
    }
}

fn wrong(said: &Said, paid: Option<(i64, bool)>) -> Option<&'static str> {
    let charge = paid.map_or(0, |(charge, _)| charge);
    let words = i64::try_from(said.words.len()).expect("few");
    match (&said.fate, &said.done) {
        (Fate::InDoubt | Fate::CutOff(Crash::PowerCut, _), _) => None,
        (_, Some(_)) if said.status == "failed" => (charge != 0).then_some("it failed and was paid"),
        (_, Some((usage, _))) if usage.is_null() => {
            let right = words == 0 || (charge >= words * OUTPUT && paid.is_some_and(|(_, estimated)| estimated));
            (!right).then_some("it was not reported, and not counted either")
        }
        (_, Some((usage, _))) => {
            let cost = |name: &str, price: i64| usage[name].as_i64().unwrap_or(0) * price;
            let due = cost("input_tokens", INPUT) + cost("output_tokens", OUTPUT);
            (charge != due).then_some("it was not paid as reported")
        }
        (Fate::CutOff(Crash::Killed, at), None) => {
            let old = said.words.iter().filter(|arrived| at - **arrived > MARK_MS).count();
            let least = i64::try_from(old).expect("few") * OUTPUT;
            let right = said.words.is_empty() || (charge > 0 && charge >= least);
            (!right).then_some("what was delivered before a crash was not paid")
        }
        (Fate::Whole, None) => {
            (words > 0 && charge < OUTPUT).then_some("the client left, and what it had heard was not paid")
        }
    }
}
