//! What a client may send too much of: it is priced before it is passed on, bounded, or refused by
//! name.

use super::{Talker, audio, house_with, kinds, rows};
use crate::house::{House, Plan};
use futures_util::SinkExt as _;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// Each face has a price of its own.
const FACES: &str = r#"
[model."voice"]
context_window = 128000
max_output_tokens = 4096
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 2_000_000, audio_input = 10_000_000, audio_output = 20_000_000, image_input = 3_000_000, cache_read = 500_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime" }]
"#;

fn item(content: Value) -> Value {
    json!({ "type": "conversation.item.create", "item": { "type": "message", "role": "user", "content": content } })
}

/// The session ends for want of money, and the provider has heard nothing of this kind.
async fn is_not_passed_on(events: &[Value], event: &str) {
    let house = house_with(Plan { usd: "0.05", ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    for event in events {
        talker.try_send(event.clone()).await;
    }
    let (said, code) = talker.rest().await;
    let last = said.last().expect("an event");
    assert_eq!((last["error"]["code"].as_str(), code), (Some("insufficient_balance"), 1008), "{event}");
    house.quiet().await;
    let passed = house.sim.sessions()[0].events().iter().filter(|one| one["type"] == event).count();
    // Ours is a `session.update`, too.
    let ours = usize::from(event == "session.update");
    assert!(passed < events.len() + ours, "{event}: {passed} of {}", events.len());
    assert_eq!(rows(&house).await.iter().filter(|row| row.charge.nano() > 0).count(), 0, "{event}");
    assert_eq!(house.available().await, 50_000_000, "{event}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_money_can_pay_for_is_not_passed_on() {
    let update = |session: Value| json!({ "type": "session.update", "session": session });
    let megabyte = "toll ".repeat(200_000);
    is_not_passed_on(&[update(json!({ "type": "realtime", "instructions": megabyte }))], "session.update").await;
    let tool = json!({ "type": "function", "name": "f", "description": megabyte });
    is_not_passed_on(&[update(json!({ "type": "realtime", "tools": [tool] }))], "session.update").await;
    let response = json!({ "type": "response.create", "response": { "instructions": megabyte } });
    is_not_passed_on(&[response], "response.create").await;
    let text = item(json!([{ "type": "input_text", "text": "toll ".repeat(40) }]));
    is_not_passed_on(&vec![text; 2_000], "conversation.item.create").await;
    let picture = json!({ "type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=" });
    is_not_passed_on(&[item(Value::Array(vec![picture; 40]))], "conversation.item.create").await;
    let long = json!({ "type": "input_audio_buffer.append", "audio": audio(0, 60_000) });
    is_not_passed_on(&vec![long; 20], "input_audio_buffer.append").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_or_cut_makes_no_hold_smaller() {
    let house = house_with(Plan::default()).await;
    let mut talker = Talker::open(&house).await;
    talker.text_only().await;
    let held = async |house: &House| {
        let store = house.running().app.store.clone();
        store.account(house.account).await.expect("read").expect("an account").paid_held.nano()
    };
    talker.send(item(json!([{ "type": "input_text", "text": "toll ".repeat(4_000) }]))).await;
    let added = talker.until("conversation.item.added").await.pop().expect("an event");
    let before = held(&house).await;
    talker.send(json!({ "type": "conversation.item.delete", "item_id": added["item"]["id"] })).await;
    talker.until("conversation.item.deleted").await;
    assert!(held(&house).await >= before, "until a response says what it has read");
    talker.turn("[[sim:plain tokens=1]]").await;
    talker.leave().await;
    for row in rows(&house).await {
        assert!(row.charge <= row.hold && row.write_off.is_zero(), "{row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_are_called_for_ever_are_paid_one_by_one() {
    let config = "[realtime]\nfirst_hold = 100".to_owned();
    let house = house_with(Plan { usd: "0.05", config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    let tool = json!({ "type": "function", "name": "f", "parameters": { "type": "object" } });
    let session = json!({
        "type": "realtime", "output_modalities": ["text"], "tools": [tool], "max_output_tokens": 100,
        "instructions": "[[sim:tool tool=f]]",
    });
    talker.send(json!({ "type": "session.update", "session": session })).await;
    let mut said = Vec::new();
    talker.ask("go on").await;
    while let Some(event) = talker.event().await {
        if event["type"] == "response.done" && talker.closed.is_none() {
            let asked = item(json!([{ "type": "input_text", "text": "again [[sim:tool tool=f]]" }]));
            for event in [asked, json!({ "type": "response.create" })] {
                talker.try_send(event).await;
            }
        }
        said.push(event);
    }
    assert_eq!(said.last().expect("an event")["error"]["code"], "insufficient_balance", "{:?}", kinds(&said));
    let rows = rows(&house).await;
    let charged = rows.iter().filter(|row| row.charge.nano() > 0).count();
    assert_eq!(charged, house.sim.sessions()[0].billed.len());
    assert!(charged > 1 && rows.iter().all(|row| row.charge <= row.hold && row.write_off.is_zero()));
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_that_are_asked_for_at_once_begin_one_after_the_other() {
    let house = house_with(Plan::default()).await;
    let mut talker = Talker::open(&house).await;
    talker.text_only().await;
    house.sim.shut("/v1/realtime");
    let aside = json!({ "conversation": "none", "input": [] });
    for at in 0..8 {
        let event = json!({ "type": "response.create", "event_id": format!("mine_{at}"), "response": aside });
        talker.send(event).await;
    }
    talker.until("response.created").await;
    for at in 1..8 {
        let refused = talker.until("error").await.pop().expect("an event");
        assert_eq!(
            (refused["error"]["code"].as_str(), refused["error"]["event_id"].as_str()),
            (Some("conversation_already_has_active_response"), Some(format!("mine_{at}").as_str())),
            "by the client's own name for it"
        );
    }
    house.sim.open();
    talker.until("response.done").await;
    talker.leave().await;
    let begun = house.sim.sessions()[0].billed.len();
    assert_eq!(rows(&house).await.iter().filter(|row| row.charge.nano() > 0).count(), begun);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_face_is_charged_at_its_price() {
    let house = House::with(Plan { catalog: FACES, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    let picture = json!({ "type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=" });
    let said = "look [[sim:plain text_in=700 audio_in=50 image_in=300 cached_text=400 cached_audio=20 cached_image=100 \
                text_out=30 audio_out=40]]";
    talker.send(item(json!([picture, { "type": "input_text", "text": said }]))).await;
    talker.send(json!({ "type": "response.create" })).await;
    let done = talker.until("response.done").await.pop().expect("an event");
    talker.leave().await;
    let row = rows(&house).await.remove(0);
    let used = row.counters;
    assert_eq!((used.input, used.audio_input, used.image_input, used.cache_read), (300, 30, 200, 520), "{done}");
    assert_eq!((used.output, used.audio_output, row.estimated), (30, 40, false), "{row:?}");
    let nano = 300 * 1_000 + 30 * 10_000 + 200 * 3_000 + 520 * 500 + 30 * 2_000 + 40 * 20_000;
    assert_eq!(row.charge.nano(), nano);
    assert!(row.charge <= row.hold);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_remembered_has_a_length() {
    let house = house_with(Plan::default()).await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    let update = |session: Value| json!({ "type": "session.update", "session": session });
    let long = "x".repeat(600);
    let mut named = update(json!({ "type": "realtime" }));
    named["event_id"] = json!(long);
    let asked = json!({ "type": "response.create", "event_id": long });
    let settings = update(json!({ "type": "realtime", "instructions": "x".repeat(1 << 20) }));
    let notes = json!({ "type": "response.create", "response": { "metadata": { "note": "x".repeat(20_000) } } });
    for (event, param) in
        [(named, "event_id"), (asked, "event_id"), (settings, "session"), (notes, "response.metadata")]
    {
        talker.send(event).await;
        let refused = talker.until("error").await.pop().expect("an event");
        assert_eq!(refused["error"]["param"], param, "{refused}");
    }
    // Ours is the only one that came through.
    assert_eq!(house.sim.sessions()[0].frames.len(), 1);
    talker.leave().await;
    house.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_recording_that_waits_is_counted_among_all_bodies() {
    let catalog = r#"
[model."voice"]
supported_endpoint_types = ["realtime"]
price = { input = 1, output = 1, audio_input = 1, audio_output = 1 }
route = [{ provider = "gemini", upstream_model = "gemini-live-sim" }]
"#;
    let house = House::with(Plan { catalog, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    let minutes = audio(0, 120_000);
    talker.send(json!({ "type": "input_audio_buffer.append", "audio": minutes })).await;
    // It is passed on as it is spoken: nearly all of it waits, for two minutes.
    let _watch = crate::watch::Watch::over("it is not counted".to_owned());
    while house.sim.sessions()[0].audio_ms == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(house.running().app.bodies.used() >= minutes.len(), "{}", house.running().app.bodies.used());
    drop(talker);
    while house.running().app.bodies.used() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_without_end_are_read_at_a_pace() {
    let config = "[realtime]\nevents_per_second = 1".to_owned();
    let house = house_with(Plan { config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    // A burst of twenty is read at once, and then one in a second: what is sent behind them cannot
    // be read before that time, however slow all else is.
    let begun = std::time::Instant::now();
    for _ in 0..23 {
        talker.socket.send(Message::Ping(Vec::new().into())).await.expect("sent");
    }
    talker.send(json!({ "type": "input_audio_buffer.clear" })).await;
    talker.until("input_audio_buffer.cleared").await;
    assert!(begun.elapsed() >= std::time::Duration::from_millis(2_900), "{:?}", begun.elapsed());
    drop(talker);
    house.quiet().await;
}
