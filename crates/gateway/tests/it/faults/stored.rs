//! An answer that is to be stored and cannot be: its answer does not say that it is.

use super::ledger::locked_file;
use super::{FUNDED, paid};
use crate::dialects::CATALOG;
use crate::house::{House, Plan, call_id, error_of, events};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_store::Ending;

/// Over a provider of another dialect and over one of its own.
const MODELS: [&str; 2] = ["gemini-on-openai", "gemini-on-openai-response"];

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::impatient() }).await
}

fn ask(house: &House, body: &Value) -> reqwest::RequestBuilder {
    house.http.post(house.url("/v1/responses")).bearer_auth(&house.key).json(body)
}

/// A streamed call whose database goes away once its first event is here; its reply, its last
/// event, and the database again.
async fn cut_off(house: &House, body: &Value) -> (tollgate_store::CallId, Vec<Value>) {
    house.sim.shut("/_door");
    let mut reply = ask(house, body).send().await.expect("a reply");
    let call = call_id(&reply);
    let mut text = String::new();
    text.push_str(std::str::from_utf8(&reply.chunk().await.expect("a piece").expect("an event")).expect("text"));
    let blocker = locked_file(house, "kept.db");
    house.sim.open();
    while let Some(piece) = reply.chunk().await.expect("a piece") {
        text.push_str(std::str::from_utf8(&piece).expect("text"));
    }
    drop(blocker);
    (call, events(&text))
}

/// A call in one piece whose database goes away while its provider thinks, with its hold written;
/// its reply, and the database again.
async fn cut_off_whole(house: &House, body: &Value) -> reqwest::Response {
    // Both calls in one piece are of this path.
    house.sim.shut("/v1/chat/completions");
    let lock = async {
        while house.sim.received().is_empty() || house.running().app.store.gauges().queue_len > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let blocker = locked_file(house, "kept.db");
        house.sim.open();
        blocker
    };
    let (reply, blocker) = tokio::join!(ask(house, body).send(), lock);
    drop(blocker);
    reply.expect("a reply")
}

/// The database is back, and whatever was still to be written is written.
async fn recovered(house: &House) {
    for _ in 0..6_000 {
        if house.running().app.store.ready() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    house.quiet().await;
}

pub async fn an_answer_cannot_be_stored() {
    for model in MODELS {
        let house = house().await;
        let body = json!({ "model": model, "input": "[[sim:tokens=20 door=8]]", "stream": true });
        let (call, events) = cut_off(&house, &body).await;
        let last = &events.last().expect("events");
        assert_eq!(
            (&last["type"], &last["response"]["store"]),
            (&json!("response.completed"), &json!(false)),
            "{model}: {last}"
        );
        assert_eq!(events[0]["response"]["store"], true, "{model}: what was hoped for at the start");
        recovered(&house).await;
        let row = paid(&house, call).await;
        assert_eq!(
            (row.ending, row.counters.output),
            (Ending::Answered, 20),
            "{model}: it is the client's, and paid for"
        );
        let path = format!("/v1/responses/{}", last["response"]["id"].as_str().expect("an id"));
        let mut gone = 0;
        for _ in 0..6_000 {
            gone = house.get(&path).send().await.expect("a reply").status().as_u16();
            if gone == 404 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(gone, 404, "{model}: what is said not to be stored is not there later either");
    }
    // In one piece.
    let house = house().await;
    let body = json!({ "model": MODELS[0], "input": "[[sim:tokens=3]]" });
    let reply = cut_off_whole(&house, &body).await;
    assert_eq!(reply.status(), 200);
    let call = call_id(&reply);
    assert_eq!(reply.json::<Value>().await.expect("JSON")["store"], false);
    recovered(&house).await;
    paid(&house, call).await;
}

pub async fn a_conversation_cannot_be_added_to() {
    for (model, stream) in [(MODELS[0], true), (MODELS[1], true), (MODELS[0], false)] {
        let house = house().await;
        let made: Value = {
            let ask = house.http.post(house.url("/v1/conversations")).bearer_auth(&house.key).json(&json!({}));
            ask.send().await.expect("a reply").json().await.expect("JSON")
        };
        let text = if stream { "[[sim:tokens=20 door=8]]" } else { "[[sim:tokens=3]]" };
        let body = json!({ "model": model, "input": text, "stream": stream, "conversation": made["id"] });
        if stream {
            let (call, events) = cut_off(&house, &body).await;
            let last = &events.last().expect("events");
            assert_eq!(
                (&last["type"], &last["response"]["status"]),
                (&json!("response.failed"), &json!("failed")),
                "{model}: {last}"
            );
            assert!(!events.iter().any(|event| event["type"] == "response.completed"), "{model}");
            let numbers: Vec<_> =
                events.iter().map(|event| event["sequence_number"].as_u64().expect("a number")).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{model}: {numbers:?}");
            recovered(&house).await;
            let row = paid(&house, call).await;
            assert_eq!(
                (row.ending, row.reason.as_str()),
                (Ending::UpstreamFault, "not_kept"),
                "{model}: the client had it all"
            );
        } else {
            let reply = cut_off_whole(&house, &body).await;
            let call = call_id(&reply);
            let (status, error) = error_of(reply).await;
            assert_eq!((status, error["code"].as_str()), (503, Some("ledger_unavailable")), "{error}");
            recovered(&house).await;
            let row = house.row(call).await;
            assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::UpstreamFault, "not_kept", 0));
            assert_eq!(house.available().await, FUNDED, "nothing was given, nothing is charged");
        }
        let path = format!("/v1/conversations/{}/items", made["id"].as_str().expect("an id"));
        let mut left = Value::Null;
        for _ in 0..6_000 {
            left = house.get(&path).send().await.expect("a reply").json().await.expect("JSON");
            if left["data"] == json!([]) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(left["data"], json!([]), "{model}: the conversation is as it was");
    }
}

/// The account stores as much as it may: an answer is given and not stored, and none is asked for
/// that must be stored.
pub async fn there_is_no_room_for_an_answer() {
    let config = "[storage]\naccount_objects = 1\n".to_owned();
    let house = House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await;
    let made = house.http.post(house.url("/v1/conversations")).bearer_auth(&house.key).json(&json!({}));
    let made: Value = made.send().await.expect("a reply").json().await.expect("JSON");
    for model in MODELS {
        let body = json!({ "model": model, "input": "[[sim:tokens=3]]" });
        let reply = ask(&house, &body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200);
        let call = call_id(&reply);
        assert_eq!(reply.json::<Value>().await.expect("JSON")["store"], false, "{model}");
        let row = house.row(call).await;
        assert_eq!((row.ending, row.counters.output), (Ending::Answered, 3), "{model}: given, and paid for");
    }
    house.quiet().await;
    let (left, sent) = (house.available().await, house.sim.received().len());
    let body = json!({ "model": MODELS[0], "input": "x", "conversation": made["id"] });
    let (status, error) = error_of(ask(&house, &body).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (403, Some("storage_quota_exceeded")), "{error}");
    assert_eq!((house.available().await, house.sim.received().len()), (left, sent), "nothing was held or sent");
}
