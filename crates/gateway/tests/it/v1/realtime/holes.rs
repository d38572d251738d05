//! Ways by which a client with little money could let a provider work for nothing. Each is tried;
//! afterwards nothing was written off, and nothing was had that was not held for first.

use super::{Talker, audio, cost, house, house_with, kinds, rows};
use crate::house::{House, Plan};
use serde_json::{Value, json};
use tollgate_store::UsageRow;

/// Little is held for output, so that what is held is for the input.
fn lean() -> Plan {
    Plan { config: "[realtime]\nfirst_hold = 1".to_owned(), ..Plan::default() }
}

/// All rows; none of them cost more than was held for it.
async fn all_held(house: &House) -> Vec<UsageRow> {
    let rows = rows(house).await;
    for row in &rows {
        assert!(row.charge <= row.hold && row.write_off.is_zero(), "{row:?}");
    }
    rows
}

fn item(text: &str) -> Value {
    let content = json!([{ "type": "input_text", "text": text }]);
    json!({ "type": "conversation.item.create", "item": { "type": "message", "role": "user", "content": content } })
}

fn words(count: usize) -> String {
    "toll ".repeat(count)
}

fn update(session: Value) -> Value {
    json!({ "type": "session.update", "session": session })
}

fn listens(model: Value) -> Value {
    let transcription = if model.is_null() { Value::Null } else { json!({ "model": model }) };
    json!({ "type": "realtime", "audio": { "input": { "transcription": transcription } } })
}

fn listened(rows: &[UsageRow]) -> Vec<i64> {
    rows.iter()
        .filter(|row| row.model.starts_with("listener") && row.charge.nano() > 0)
        .map(|row| row.charge.nano())
        .collect()
}

const WRITTEN: &str = "conversation.item.input_audio_transcription.completed";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stopped_response_has_said_is_not_told() {
    let config = "[realtime]\nfirst_hold = 20".to_owned();
    let house = house_with(Plan { usd: "0.01", config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.ask("[[sim:plain ms=100000]]").await;
    let (events, code) = talker.rest().await;
    assert_eq!(code, 1008, "{:?}", kinds(&events));
    let last = events.iter().rposition(|event| event["type"] == "response.output_audio.delta").expect("output");
    let done: Vec<_> = events[last..].iter().filter(|event| event["type"] == "response.done").collect();
    assert_eq!(done[0]["response"]["output"], json!([]), "{:?}", kinds(&events[last..]));
    let told = |event: &&Value| event["item"]["role"] == "assistant" || event["transcript"].is_string();
    assert_eq!(events[last..].iter().filter(told).count(), 0, "{:?}", kinds(&events[last..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_something_else_make_no_hold_smaller() {
    let house = house_with(lean()).await;
    let mut talker = Talker::open(&house).await;
    talker.text_only().await;
    talker.send(item(&words(8_000))).await;
    talker.send(json!({ "type": "response.create" })).await;
    talker.until("response.done").await;
    let instructions = "[[sim:plain text_in=5 cached_text=0 tokens=2]]";
    for _ in 0..3 {
        let response = json!({ "conversation": "none", "input": [], "instructions": instructions });
        talker.send(json!({ "type": "response.create", "response": response })).await;
        talker.until("response.done").await;
    }
    let response = json!({ "instructions": "[[sim:plain cached_text=0 tokens=2]]" });
    talker.send(json!({ "type": "response.create", "response": response })).await;
    let done = talker.until("response.done").await.pop().expect("an event");
    assert!(done["response"]["usage"]["input_tokens"].as_u64() > Some(8_000), "{done}");
    talker.leave().await;
    assert_eq!(all_held(&house).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_a_response_reads_is_held_for() {
    let tool = json!({ "type": "function", "name": "f", "description": words(8_000) });
    let output = json!([{ "type": "input_text", "text": words(8_000) }]);
    for (session, before, response) in [
        (json!({ "tools": [tool] }), None, json!({})),
        (json!({ "instructions": words(8_000) }), None, json!({})),
        (json!({}), None, json!({ "tools": [tool] })),
        (json!({}), None, json!({ "instructions": words(8_000) })),
        (json!({}), Some(item(&words(8_000))), json!({})),
        (
            json!({}),
            Some(json!({ "type": "conversation.item.create", "item": { "type": "nested", "output": output } })),
            json!({}),
        ),
    ] {
        let house = house_with(lean()).await;
        let mut talker = Talker::open(&house).await;
        let mut session = session;
        (session["type"], session["output_modalities"]) = (json!("realtime"), json!(["text"]));
        talker.send(update(session)).await;
        talker.until("session.updated").await;
        let held = |house: &House| {
            let store = house.running().app.store.clone();
            let account = house.account;
            async move { store.account(account).await.expect("read").expect("an account").paid_held.nano() }
        };
        if let Some(event) = before {
            talker.send(event).await;
        }
        talker.send(json!({ "type": "response.create", "response": response })).await;
        talker.until("response.done").await;
        // 8,000 words are so many tokens at least, at the price of the dearest that can be read.
        assert!(held(&house).await >= 8_000 * 10_000, "{response}");
        talker.leave().await;
        all_held(&house).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_format_that_the_provider_refuses_shortens_nothing() {
    let house = house_with(lean()).await;
    let mut talker = Talker::open(&house).await;
    let format = json!({ "type": "audio/pcm", "rate": 96_000 });
    let sides = json!({ "input": { "format": format }, "output": { "format": format } });
    talker.send(update(json!({ "type": "realtime", "audio": sides }))).await;
    talker.until("error").await;
    talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(119_000, 1_000) })).await;
    let done = talker.until("response.done").await.pop().expect("an event");
    assert!(done["response"]["usage"]["input_token_details"]["audio_tokens"].as_u64() >= Some(1_200), "{done}");
    talker.leave().await;
    all_held(&house).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_in_one_burst_are_each_held_for_and_written_down_at_their_price() {
    let house = house_with(lean()).await;
    let mut talker = Talker::open(&house).await;
    talker.send(update(listens(json!("listener")))).await;
    talker.until("session.updated").await;
    for seconds in [40_000, 30_000, 20_000] {
        talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(seconds, 1_000) })).await;
    }
    for _ in 0..3 {
        talker.until(WRITTEN).await;
    }
    talker.leave().await;
    let mut paid = listened(&all_held(&house).await);
    paid.sort_unstable();
    // Whole seconds at 1 USD for a million: the pieces are paid as long as they were.
    let (first, last) = (paid.first().copied().unwrap_or(0), paid.last().copied().unwrap_or(0));
    assert_eq!(paid.len(), 3, "{paid:?}");
    assert!(first > 0 && last * 10 < first * 25 && last > first, "{paid:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buffer_that_is_cleared_too_late_is_written_down_at_its_price() {
    let house = house().await;
    let mut talker = Talker::with_key(&house, &house.key, "listener&intent=transcription").await.expect("a session");
    talker.until("session.created").await;
    talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(20_000, 1_000) })).await;
    talker.send(json!({ "type": "input_audio_buffer.clear" })).await;
    talker.until(WRITTEN).await;
    talker.until("input_audio_buffer.cleared").await;
    talker.leave().await;
    assert_eq!(listened(&all_held(&house).await).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_is_paid_until_the_provider_has_stopped() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.send(update(listens(json!("listener")))).await;
    talker.until("session.updated").await;
    // The provider refuses this for its second half.
    let mut refused = listens(Value::Null);
    refused["audio"]["output"] = json!({ "format": { "type": "audio/none" } });
    talker.send(update(refused)).await;
    talker.until("error").await;
    talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(2_000, 600) })).await;
    talker.until(WRITTEN).await;
    talker.send(update(listens(json!("listener-two")))).await;
    let error = talker.until("error").await.pop().expect("an event");
    assert_eq!(error["error"]["param"], "session.audio.input.transcription.model", "{error}");
    talker.send(update(listens(Value::Null))).await;
    talker.until("session.updated").await;
    talker.send(update(listens(json!("listener-two")))).await;
    talker.until("session.updated").await;
    talker.leave().await;
    assert_eq!(listened(&all_held(&house).await).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_response_has_read_is_paid_though_it_is_stopped_at_once() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.text_only().await;
    for _ in 0..3 {
        talker.ask(&format!("{} [[sim:hold after=0]]", words(1_000))).await;
        talker.until("response.created").await;
        talker.send(json!({ "type": "response.cancel" })).await;
        let done = talker.until("response.done").await.pop().expect("an event");
        assert_eq!(done["response"]["usage"]["output_tokens"], 0, "{done}");
    }
    talker.leave().await;
    let billed: i64 = house.sim.sessions()[0].billed.iter().map(cost).sum();
    let rows = all_held(&house).await;
    assert_eq!(rows.iter().map(|row| row.charge.nano()).sum::<i64>(), billed);
    assert!(billed >= 3 * 1_000 * 500 && rows.iter().all(|row| !row.estimated), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_are_not_written_into_the_operators_account() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.send(update(json!({ "type": "realtime", "tracing": { "workflow_name": "mine" } }))).await;
    let updated = talker.until("session.updated").await.pop().expect("an event");
    assert!(updated["session"]["warnings"].to_string().contains("session.tracing"), "{updated}");
    talker.leave().await;
    house.quiet().await;
    assert!(house.sim.sessions()[0].events().iter().all(|event| event["session"].get("tracing").is_none()));
}
