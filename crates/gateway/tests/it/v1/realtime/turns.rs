//! Turns that a provider hears: each is answered behind a hold, and none without money.

use super::money::FIXED;
use super::{Talker, audio, cost, house, house_with, kinds, rows};
use crate::house::{House, Plan};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

/// A response is 100 tokens at a thousandth of a cent each; this is the money of one, and a half.
const FOR_ONE: &str = "0.00015";

/// The same at Gemini, which begins a response whenever it hears a turn end.
const BY_ITSELF: &str = r#"
[model."voice"]
context_window = 32000
supported_endpoint_types = ["realtime"]
price = { input = 0, output = 1_000_000, audio_input = 0, audio_output = 1_000_000, cache_read = 0 }
route = [{ provider = "gemini", upstream_model = "gemini-live-sim+plain+tokens=100" }]
"#;

fn fixed(usd: &'static str) -> Plan {
    let config = "[realtime]\nfirst_hold = 100\nmax_output_tokens = 100\nsessions_per_key = 1000".to_owned();
    Plan { usd, catalog: FIXED, config, ..Plan::default() }
}

fn said(audio: &str) -> Value {
    json!({ "type": "input_audio_buffer.append", "audio": audio })
}

fn turn_detection(detection: Value) -> Value {
    let session = json!({ "type": "realtime", "audio": { "input": { "turn_detection": detection } } });
    json!({ "type": "session.update", "session": session })
}

/// What the provider began, and what of that has a row.
async fn begun_and_charged(house: &House) -> (usize, usize) {
    let rows = rows(house).await;
    for row in &rows {
        assert!(row.charge <= row.hold && row.write_off.is_zero(), "{row:?}");
    }
    let begun = house.sim.sessions().iter().map(|session| session.billed.len()).sum();
    (begun, rows.iter().filter(|row| row.charge.nano() > 0).count())
}

pub async fn money_for_one_response_answers_one_turn() {
    let house = House::with(fixed(FOR_ONE)).await;
    let mut talker = Talker::open(&house).await;
    talker.text_only().await;
    // Five turns in one message: the provider has them all before it hears of anything.
    talker.send(said(&audio(300, 400).repeat(5))).await;
    let (events, code) = talker.rest().await;
    let last = events.last().expect("an event");
    assert_eq!((last["error"]["code"].as_str(), code), (Some("insufficient_balance"), 1008));
    let of = |kind: &str| kinds(&events).into_iter().filter(|found| *found == kind).count();
    assert_eq!((of("response.created"), of("response.done")), (1, 1), "{:?}", kinds(&events));
    assert_eq!(begun_and_charged(&house).await, (1, 1));
    assert_eq!(house.available().await, 50_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn money_for_ten_answers_ten_turns_of_five_hundred_sessions() {
    let house = Arc::new(House::with(fixed("0.001")).await);
    let mut all = JoinSet::new();
    for _ in 0..500 {
        let house = house.clone();
        all.spawn(async move {
            let Ok(mut talker) = Talker::with_key(&house, &house.key, "voice").await else { return };
            let session = json!({ "type": "realtime", "output_modalities": ["text"] });
            talker.send(json!({ "type": "session.update", "session": session })).await;
            talker.send(said(&audio(300, 400))).await;
            while let Some(event) = talker.event().await {
                if event["type"] == "response.done" {
                    talker.try_send(said(&audio(300, 400))).await;
                }
            }
        });
    }
    while let Some(done) = all.join_next().await {
        done.expect("a session");
    }
    assert_eq!(begun_and_charged(&house).await, (10, 10));
    assert_eq!(house.available().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_answered_as_if_the_provider_did_it() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    let created = talker.until("session.created").await.pop().expect("an event");
    assert_eq!(created["session"]["audio"]["input"]["turn_detection"]["create_response"], true, "{created}");
    talker.send(turn_detection(json!({ "type": "server_vad", "silence_duration_ms": 300 }))).await;
    let updated = talker.until("session.updated").await.pop().expect("an event");
    let shown = &updated["session"]["audio"]["input"]["turn_detection"];
    assert_eq!((&shown["create_response"], &shown["silence_duration_ms"]), (&json!(true), &json!(300)));
    for _ in 0..2 {
        talker.send(said(&audio(500, 600))).await;
        let events = talker.until("response.done").await;
        let mut order = kinds(&events).into_iter().filter(|kind| kind.starts_with("input_audio_buffer"));
        assert_eq!(order.next(), Some("input_audio_buffer.speech_started"), "{:?}", kinds(&events));
        assert!(kinds(&events).contains(&"response.created") && !kinds(&events).contains(&"error"));
    }
    talker.leave().await;
    assert_eq!(begun_and_charged(&house).await, (2, 2));
    let heard = house.sim.sessions()[0].events();
    let detections = heard.iter().filter_map(|event| event.pointer("/session/audio/input/turn_detection"));
    assert!(detections.into_iter().all(|detection| detection["create_response"] == false), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_answered_when_the_client_wants_it() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    talker.send(turn_detection(json!({ "type": "server_vad", "create_response": false }))).await;
    let updated = talker.until("session.updated").await.pop().expect("an event");
    assert_eq!(updated["session"]["audio"]["input"]["turn_detection"]["create_response"], false);
    talker.send(said(&audio(500, 600))).await;
    talker.until("conversation.item.done").await;
    // Nobody listens for turns, and then somebody does.
    talker.send(turn_detection(Value::Null)).await;
    let updated = talker.until("session.updated").await.pop().expect("an event");
    assert_eq!(updated["session"]["audio"]["input"]["turn_detection"], Value::Null);
    talker.send(said(&audio(500, 600))).await;
    talker.send(json!({ "type": "input_audio_buffer.commit" })).await;
    talker.until("conversation.item.done").await;
    assert_eq!(house.sim.sessions()[0].billed.len(), 0, "nobody asked for a response");
    talker.send(turn_detection(json!({ "type": "server_vad" }))).await;
    talker.until("session.updated").await;
    talker.send(said(&audio(500, 600))).await;
    talker.until("response.done").await;
    // An update that the provider refuses changes nothing.
    let refused = turn_detection(json!({ "type": "no_vad", "create_response": false }));
    talker.send(refused).await;
    talker.until("error").await;
    talker.send(said(&audio(500, 600))).await;
    talker.until("response.done").await;
    talker.leave().await;
    assert_eq!(begun_and_charged(&house).await, (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_while_the_model_does_interrupts_and_is_answered() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    let session = json!({ "type": "realtime", "instructions": "[[sim:hold after=2 ms=2000]]" });
    talker.send(json!({ "type": "session.update", "session": session })).await;
    talker.until("session.updated").await;
    talker.send(said(&audio(500, 600))).await;
    talker.until("response.output_audio.delta").await;
    talker.send(said(&audio(500, 600))).await;
    let done = talker.until("response.done").await.pop().expect("an event");
    assert_eq!(done["response"]["status_details"]["reason"], "turn_detected", "{done}");
    let begun = talker.until("response.created").await;
    assert!(!kinds(&begun).contains(&"error"), "{begun:?}");
    talker.leave().await;
    assert_eq!(begun_and_charged(&house).await, (2, 2));
}

pub async fn a_quiet_session_gives_its_hold_back() {
    let config = "[realtime]\nhold_time = \"1s\"".to_owned();
    let house = house_with(Plan { config, ..Plan::default() }).await;
    let before = house.available().await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    let given_back = async {
        while house.available().await < before {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    given_back.await;
    talker.send(said(&audio(500, 600))).await;
    talker.until("response.done").await;
    assert!(house.available().await < before, "there is a hold again");
    talker.turn("and in words").await;
    talker.leave().await;
    assert_eq!(begun_and_charged(&house).await, (2, 2));
    let charged: i64 = rows(&house).await.iter().map(|row| row.charge.nano()).sum();
    assert_eq!(house.available().await, before - charged);
}

pub async fn nothing_reaches_who_answers_by_itself_without_a_hold() {
    let plan = |usd| Plan { catalog: BY_ITSELF, ..fixed(usd) };
    // There is a hold for a response, and none for what the audio on its way might begin.
    let house = House::with(plan("0.00012")).await;
    let mut talker = Talker::open(&house).await;
    talker.send(said(&audio(100, 600).repeat(2))).await;
    let (events, code) = talker.rest().await;
    assert_eq!(events.last().expect("an event")["error"]["code"], "insufficient_balance");
    assert_eq!((code, house.sim.sessions()[0].audio_ms), (1008, 0));
    assert_eq!(begun_and_charged(&house).await, (0, 0));
    assert_eq!(house.available().await, 120_000);

    // There are both. Two turns at once: the second is stopped, and nothing is unpaid.
    let house = House::with(plan("0.00017")).await;
    let mut talker = Talker::open(&house).await;
    talker.send(said(&audio(100, 600).repeat(2))).await;
    let (events, code) = talker.rest().await;
    assert_eq!(
        (events.last().expect("an event")["error"]["code"].as_str(), code),
        (Some("insufficient_balance"), 1008)
    );
    let (begun, _) = begun_and_charged(&house).await;
    // Each had a hold; whether the stopped one still told its usage depends on who was quicker.
    let rows = rows(&house).await;
    let settled = rows.iter().filter(|row| row.raw_usage.is_some()).count();
    assert!(settled >= 1 && begun <= rows.len(), "{begun} of {}: {:?}", rows.len(), kinds(&events));
}

/// Each token costs a thousandth of a cent, whatever it is.
const EAGER: &str = r#"
[model."voice"]
context_window = 32000
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 1_000_000, audio_input = 1_000_000, audio_output = 1_000_000, cache_read = 1_000_000 }
route = [{ provider = "eager", upstream_model = "qwen" }]
"#;

/// A provider that cannot be told to leave turns to others, and hears three at once. What it is
/// told to stop it stops, after it has read ten tokens. Gives what it was told.
async fn begins_three(listener: TcpListener) -> Vec<Value> {
    let (socket, _) = listener.accept().await.expect("a connection");
    let mut socket = accept_async(socket).await.expect("a session");
    let response = |id: &str, status: &str, usage: Value| json!({ "id": id, "status": status, "usage": usage });
    let used = |output: u64| json!({ "input_tokens": 10, "output_tokens": output, "total_tokens": 10 + output });
    let mut heard: Vec<Value> = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let event: Value = serde_json::from_str(&text).expect("an event");
        let mut answers = Vec::new();
        match event["type"].as_str() {
            Some("session.update") => answers.push(json!({ "type": "session.updated", "session": {} })),
            Some("input_audio_buffer.append") if heard.iter().all(|before| before["type"] != event["type"]) => {
                for id in ["resp_1", "resp_2", "resp_3"] {
                    let begun = response(id, "in_progress", Value::Null);
                    answers.push(json!({ "type": "response.created", "response": begun }));
                }
                answers.push(json!({ "type": "response.done", "response": response("resp_1", "completed", used(5)) }));
            }
            Some("response.cancel") => {
                let id = event["response_id"].as_str().unwrap_or_default();
                answers.push(json!({ "type": "response.done", "response": response(id, "cancelled", used(0)) }));
            }
            _ => {}
        }
        heard.push(event);
        for answer in answers {
            let _ = socket.send(Message::text(answer.to_string())).await;
        }
    }
    heard
}

/// Speaks to it with so much money: what each row cost, what it was told, and what the client
/// heard.
async fn three_at_once(usd: &'static str) -> (Vec<i64>, Vec<Value>, Vec<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut provider = JoinSet::new();
    provider.spawn(begins_three(listener));
    let Plan { config, .. } = fixed(usd);
    let config = format!(
        "{config}\n[provider.eager]\nkind = \"dashscope\"\nbase_url = \"http://127.0.0.1:{port}\"\nsecret_file = \"sim.key\"\n"
    );
    let house = House::with(Plan { usd, catalog: EAGER, config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.send(said(&audio(100, 100))).await;
    let (events, code) = talker.rest().await;
    assert_eq!(code, 1008, "{:?}", kinds(&events));
    let rows = rows(&house).await;
    for row in &rows {
        assert!(row.charge <= row.hold && row.write_off.is_zero(), "{row:?}");
    }
    let mut charges: Vec<i64> = rows.iter().map(|row| row.charge.nano()).filter(|charge| *charge > 0).collect();
    charges.sort_unstable();
    let heard = provider.join_next().await.expect("a provider").expect("it ended");
    (charges, heard, events)
}

pub async fn a_third_turn_is_paid_or_stopped_while_the_second_is() {
    let stopped = |heard: &[Value]| -> Vec<String> {
        let cancels = heard.iter().filter(|event| event["type"] == "response.cancel");
        cancels.map(|event| event["response_id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let begun = |events: &[Value]| kinds(events).into_iter().filter(|kind| *kind == "response.created").count();
    // There is a hold for a response, and one for what is stopped; the third has what is left.
    let (charges, heard, events) = three_at_once("0.0012").await;
    assert_eq!(charges, [10_000, 10_000, 15_000], "what the stopped ones have read is paid");
    assert_eq!((stopped(&heard), begun(&events)), (vec!["resp_2".to_owned(), "resp_3".to_owned()], 3));
    // Nothing is left for the third: nothing of it is heard, and the session ends.
    let (charges, heard, events) = three_at_once("0.00095").await;
    assert_eq!(charges, [10_000, 15_000], "those that had a hold are paid");
    assert_eq!((stopped(&heard), begun(&events)), (vec!["resp_2".to_owned(), "resp_3".to_owned()], 2));
    assert_eq!(events.last().expect("an event")["error"]["code"], "insufficient_balance");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_and_leaves_at_once_pays_for_what_was_read() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.text_only().await;
    talker.ask(&format!("{} [[sim:hold after=0]]", "toll ".repeat(1_000))).await;
    talker.socket.close(None).await.expect("a close");
    let rows = rows(&house).await;
    let billed = house.sim.sessions()[0].billed.clone();
    let paid: i64 = rows.iter().map(|row| row.charge.nano()).sum();
    assert_eq!((billed.len(), paid), (1, billed.iter().map(cost).sum::<i64>()), "{rows:?}");
    assert!(paid >= 1_000 * 500 && rows.iter().all(|row| !row.estimated), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn audio_is_not_lost_where_it_goes_as_it_is_spoken() {
    let house = House::with(Plan { catalog: BY_ITSELF, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.send(said(&audio(1_500, 500))).await;
    talker.until("response.done").await;
    talker.leave().await;
    assert_eq!(begun_and_charged(&house).await, (1, 1));
    assert_eq!(house.sim.sessions()[0].audio_ms, 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_about_something_else_frees_no_hold() {
    let house = House::with(fixed(FOR_ONE)).await;
    let mut talker = Talker::open(&house).await;
    talker.text_only().await;
    let name = "event_of_mine";
    talker.send(json!({ "type": "response.create", "event_id": name })).await;
    for _ in 0..3 {
        talker.send(json!({ "type": "conversation.item.delete", "event_id": name, "item_id": "nothing" })).await;
        let aside = json!({ "conversation": "none", "input": [] });
        talker.send(json!({ "type": "response.create", "event_id": name, "response": aside })).await;
    }
    let (events, _) = talker.rest().await;
    assert!(kinds(&events).contains(&"response.done"), "{:?}", kinds(&events));
    assert_eq!(begun_and_charged(&house).await, (1, 1));
}
