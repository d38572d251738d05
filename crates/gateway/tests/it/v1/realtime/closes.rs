//! How sessions end: with a code that tells SDKs whether to come back, and leaving nothing behind.

use super::{Talker, audio, house, house_with, kinds, rows};
use crate::house::Plan;
use crate::watch::Watch;
use futures_util::SinkExt as _;
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

pub async fn the_close_of_a_provider_reaches_the_client() {
    let house = house().await;
    for code in [1000, 1001, 1008, 1011, 1013, 4000] {
        let mut talker = Talker::open(&house).await;
        talker.ask(&format!("[[sim:close code={code} after=1 ms=500]]")).await;
        let (events, closed) = talker.rest().await;
        assert_eq!(closed, code);
        let last = events.last().expect("an event");
        assert_eq!((last["type"].as_str(), last["error"]["code"].as_str()), (Some("error"), Some("upstream_error")));
        assert!(!last.to_string().contains("sim-edge-7"), "{last}");
        assert!(talker.closed.is_some_and(|(_, reason)| !reason.contains("sim-edge-7")));
    }
}

pub async fn garbage_of_a_provider_ends_the_session_by_name() {
    for kind in ["text", "json", "binary", "utf8", "type", "empty"] {
        let house = house().await;
        let mut talker = Talker::open(&house).await;
        talker.ask(&format!("[[sim:garbage kind={kind} after=1 ms=500]]")).await;
        let (events, code) = talker.rest().await;
        assert_eq!(code, 1011, "{kind}: {:?}", kinds(&events));
        assert_eq!(events.last().expect("an event")["error"]["code"], "upstream_invalid_reply", "{kind}");
        assert!(rows(&house).await[0].charge.nano() > 0, "{kind}: what came before is paid for");
    }
}

pub async fn an_endless_frame_of_a_provider_is_cut() {
    let config = "[realtime]\nprovider_message_bytes = \"1MiB\"".to_owned();
    let house = house_with(Plan { config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.ask("[[sim:huge mib=4 after=1 ms=500]]").await;
    let (events, code) = talker.rest().await;
    assert_eq!(
        (code, events.last().expect("an event")["error"]["code"].as_str()),
        (1011, Some("upstream_invalid_reply"))
    );
}

pub async fn what_a_client_may_not_send_has_its_code() {
    let config = "[realtime]\nmessage_bytes = \"64KiB\"".to_owned();
    let house = house_with(Plan { config, ..Plan::default() }).await;
    let mut large = Talker::open(&house).await;
    let _ = large.socket.send(Message::text("x".repeat(65_537))).await;
    assert_eq!(large.rest().await.1, 1009);
    let mut binary = Talker::open(&house).await;
    let _ = binary.socket.send(Message::binary(vec![1, 2, 3])).await;
    assert_eq!(binary.rest().await.1, 1003);
    let mut garbage = Talker::open(&house).await;
    for _ in 0..300 {
        if garbage.socket.send(Message::text("no event")).await.is_err() {
            break;
        }
    }
    let (events, code) = garbage.rest().await;
    assert_eq!(code, 1008);
    assert!(events.iter().filter(|event| event["error"]["code"] == "invalid_json").count() > 100);
    assert_eq!(house.sim.sessions().iter().map(|seen| seen.frames.len()).max(), Some(1), "none of it was passed on");
}

pub async fn a_message_may_come_in_pieces() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    let event = json!({ "type": "input_audio_buffer.append", "audio": audio(600, 600) }).to_string();
    let (first, rest) = event.as_bytes().split_at(1_000);
    let (second, third) = rest.split_at(rest.len() / 2);
    for (data, code, last) in [
        (first, OpCode::Data(Data::Text), false),
        (second, OpCode::Data(Data::Continue), false),
        (third, OpCode::Data(Data::Continue), true),
    ] {
        let frame = Frame::message(data.to_vec(), code, last);
        talker.socket.send(Message::Frame(frame)).await.expect("sent");
    }
    let events = talker.until("response.done").await;
    assert!(kinds(&events).contains(&"input_audio_buffer.committed"));
    talker.leave().await;
    house.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_of_a_provider_are_answered_between_turns() {
    let catalog = r#"
[model."voice"]
supported_endpoint_types = ["realtime"]
price = { input = 1, output = 1, audio_input = 1, audio_output = 1 }
route = [{ provider = "sim", upstream_model = "gpt-realtime+ping_only+ping_ms=50" }]
"#;
    let house = crate::house::House::with(Plan { catalog, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    let _watch = Watch::over("pings are not answered".to_owned());
    while house.sim.sessions()[0].pongs < 20 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!house.sim.sessions()[0].over, "alive");
    talker.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_are_pinged_and_a_silent_provider_is_left() {
    let catalog = r#"
[model."voice"]
supported_endpoint_types = ["realtime"]
price = { input = 1, output = 1, audio_input = 1, audio_output = 1 }
route = [{ provider = "sim", upstream_model = "gpt-realtime+silent" }]
"#;
    let config = "[realtime]\nping_every = \"1s\"\nidle_time = \"3s\"".to_owned();
    let house = crate::house::House::with(Plan { catalog, config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    let (events, code) = talker.rest().await;
    assert_eq!((code, kinds(&events)), (1001, vec!["error"]), "nobody said anything");
    assert_eq!(talker.closed.expect("closed").1, "session_idle");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_opened_and_cut_leave_nothing() {
    let house = std::sync::Arc::new(house().await);
    let mut all = JoinSet::new();
    for at in 0..200 {
        let house = house.clone();
        all.spawn(async move {
            let Ok(mut talker) = Talker::with_key(&house, &house.key, "voice").await else { return };
            match at % 4 {
                0 => {}
                1 => talker.send(json!({ "type": "response.create" })).await,
                2 => drop(talker.turn("[[sim:plain tokens=2]]").await),
                _ => return talker.leave().await,
            }
            drop(talker);
        });
    }
    while let Some(one) = all.join_next().await {
        one.expect("a session");
    }
    let _watch = Watch::over("sessions are left".to_owned());
    while house.running().app.realtime.places.open() + house.sim.open_sessions() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    house.quiet().await;
}

pub async fn a_slow_reader_stops_its_provider() {
    let catalog = r#"
[model."voice"]
supported_endpoint_types = ["realtime"]
price = { input = 1, output = 1, audio_input = 1, audio_output = 1 }
route = [{ provider = "sim", upstream_model = "gpt-realtime" }]
"#;
    let config = "[realtime]\nmax_output_tokens = 100000".to_owned();
    let house = crate::house::House::with(Plan { catalog, config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    // 20,000 pieces of audio, 128 MB on the wire; nobody reads.
    talker.ask("[[sim:plain ms=2000000]]").await;
    let sent = || house.sim.received().iter().filter(|seen| seen.method == "WS").map(|seen| seen.sent).sum::<u64>();
    let _watch = Watch::over("the provider is not stopped".to_owned());
    let (mut before, mut still) = (0, 0);
    while still < 10 || before == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = sent();
        still = if now == before { still + 1 } else { 0 };
        before = now;
    }
    assert!(before < 30_000, "it was stopped on the way: {before} events of 40,000");
    let waiting = house.running().app.bodies.used();
    assert!(waiting > 0 && waiting < 4 << 20, "what waits is counted, and is a queue: {waiting}");
    let events = talker.until("response.output_audio.delta").await;
    assert!(!events.is_empty(), "what was sent is there for one who reads");
    drop(talker);
    assert!(rows(&house).await[0].charge.nano() > 0);
}
