//! What a session says and does not say.

use super::{Talker, audio, cost, house, house_with, kinds, rows};
use crate::house::{House, Plan};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_in_text_is_one_paid_call() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    let created = talker.until("session.created").await.pop().expect("an event");
    assert_eq!(created["session"]["model"], "voice", "by its public name");
    assert!(created["session"]["id"].as_str().expect("an id").starts_with("sess_0"), "{created}");
    talker.text_only().await;
    talker.ask("hello").await;
    let events = talker.until("response.done").await;
    assert!(!kinds(&events).contains(&"rate_limits.updated"), "the operator's quota is nobody's business");
    assert!(kinds(&events).contains(&"response.output_text.delta"));
    let done = events.last().expect("an event");
    talker.leave().await;
    let rows = rows(&house).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!((row.reason.as_str(), row.estimated, row.status), ("completed", false, 101));
    assert_eq!(row.charge.nano(), cost(&done["response"]["usage"]));
    assert!(row.hold >= row.charge, "{row:?}");
    let raw: Value = serde_json::from_str(row.raw_usage.as_deref().expect("usage")).expect("JSON");
    assert_eq!((&raw["session_id"], &raw["response_id"]), (&created["session"]["id"], &done["response"]["id"]));
    assert_eq!(raw["usage"], done["response"]["usage"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_is_answered_without_being_asked_for() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(600, 600) })).await;
    let events = talker.until("response.done").await;
    assert!(kinds(&events).contains(&"response.output_audio.delta"), "{:?}", kinds(&events));
    let usage = &events.last().expect("an event")["response"]["usage"];
    assert!(usage["input_token_details"]["audio_tokens"].as_u64() > Some(0), "{usage}");
    talker.leave().await;
    let rows = rows(&house).await;
    assert_eq!((rows.len(), rows[0].charge.nano()), (1, cost(usage)));
    assert!(rows[0].hold >= rows[0].charge);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_name_in_the_session_changes_no_price() {
    let catalog = r#"
[model."voice"]
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 2_000_000, audio_input = 10_000_000, audio_output = 20_000_000, cache_read = 500_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime+plain+reply_model=gpt-realtime-2025-12-15" }]
"#;
    let house = House::with(Plan { catalog, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    let created = talker.until("session.created").await.pop().expect("an event");
    assert_eq!(created["session"]["model"], "voice");
    let done = talker.turn("hello").await;
    talker.leave().await;
    assert_eq!(rows(&house).await[0].charge.nano(), cost(&done["response"]["usage"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_allowed_is_told_and_not_passed_on() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    let update = |session: Value| json!({ "type": "session.update", "event_id": "mine", "session": session });
    let listens = |model: &str| {
        update(json!({ "type": "realtime", "audio": { "input": { "transcription": { "model": model } } } }))
    };
    let model = "session.audio.input.transcription.model";
    for (event, param) in [
        (update(json!({ "type": "realtime", "model": "gpt-realtime" })), "session.model"),
        (
            update(json!({ "type": "realtime", "tools": [{ "type": "mcp", "server_label": "x" }] })),
            "session.tools[0].type",
        ),
        (update(json!({ "type": "realtime", "prompt": { "id": "pmpt_1" } })), "session.prompt"),
        (update(json!({ "type": "transcription" })), "session.type"),
        (listens("whisper-9"), model),
        (listens("voice"), model),
        (listens("listener-elsewhere"), model),
        (json!({ "type": "response.create", "response": { "model": "other" } }), "response.model"),
        (json!({ "type": "response.create", "response": { "tools": [{ "type": "mcp" }] } }), "response.tools[0].type"),
        (json!({ "type": "session.start" }), "type"),
        (json!({ "no": "type" }), "type"),
    ] {
        talker.send(event.clone()).await;
        let error = talker.until("error").await.pop().expect("an event");
        assert_eq!(error["error"]["param"], param, "{event}: {error}");
        if event["event_id"] == "mine" {
            assert_eq!(error["error"]["event_id"], "mine");
        }
    }
    // It goes on after all of them.
    assert_eq!(talker.turn("hello").await["response"]["status"], "completed");
    let seen = &house.sim.sessions()[0];
    let types: Vec<_> =
        seen.events().iter().map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(types, ["session.update", "conversation.item.create", "response.create"], "ours, and the turn");
    assert_eq!(seen.events()[0]["session"]["max_output_tokens"], 4_096, "no response without an end");
    talker.leave().await;
    assert_eq!(rows(&house).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn transcripts_are_charged_at_the_price_of_who_listens() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    let input = json!({ "transcription": { "model": "listener" } });
    let session = json!({ "type": "realtime", "audio": { "input": input } });
    talker.send(json!({ "type": "session.update", "session": session })).await;
    let updated = talker.until("session.updated").await.pop().expect("an event");
    assert_eq!(updated["session"]["audio"]["input"]["transcription"]["model"], "listener", "{updated}");
    talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(1_500, 600) })).await;
    let (mut written, mut answered) = (false, false);
    while !(written && answered) {
        let event = talker.event().await.expect("an event");
        written |= event["type"] == "conversation.item.input_audio_transcription.completed";
        answered |= event["type"] == "response.done";
    }
    talker.leave().await;
    let rows = rows(&house).await;
    let listened: Vec<_> = rows.iter().filter(|row| row.model == "listener" && row.reason == "transcribed").collect();
    assert_eq!(listened.len(), 1, "{rows:?}");
    let row = listened[0];
    assert!(row.charge.nano() > 0 && row.hold >= row.charge && row.upstream_model.as_deref() == Some("gpt-transcribe"));
    assert_eq!(rows.iter().filter(|row| row.model == "voice" && row.charge.nano() > 0).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_only_listens_is_charged_by_its_transcripts() {
    let house = house().await;
    let mut talker = Talker::with_key(&house, &house.key, "listener&intent=transcription").await.expect("a session");
    talker.until("session.created").await;
    let input = json!({ "transcription": { "model": "listener", "language": "en" } });
    let session = json!({ "type": "transcription", "audio": { "input": input } });
    talker.send(json!({ "type": "session.update", "session": session })).await;
    let updated = talker.until("session.updated").await.pop().expect("an event");
    assert_eq!(updated["session"]["audio"]["input"]["transcription"]["model"], "listener", "{updated}");
    talker.send(json!({ "type": "response.create" })).await;
    assert_eq!(talker.until("error").await.pop().expect("an event")["error"]["param"], "type");
    for _ in 0..2 {
        talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(1_500, 600) })).await;
        talker.until("conversation.item.input_audio_transcription.completed").await;
    }
    talker.leave().await;
    let rows = rows(&house).await;
    let charged: Vec<_> = rows.iter().filter(|row| row.charge.nano() > 0).collect();
    assert_eq!(charged.len(), 2, "{rows:?}");
    assert!(charged.iter().all(|row| row.model == "listener" && row.hold >= row.charge), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_fails_is_an_http_error() {
    let catalog = ["401", "429", "500"].map(|status| {
        format!(
            "[model.\"error{status}\"]\nsupported_endpoint_types = [\"realtime\"]\n\
             price = {{ input = 1, output = 1, audio_input = 1, audio_output = 1 }}\n\
             route = [{{ provider = \"sim\", upstream_model = \"gpt-realtime+error{status}\" }}]\n"
        )
    });
    let page = "[model.\"page\"]\nsupported_endpoint_types = [\"realtime\"]\n\
         price = { input = 1, output = 1, audio_input = 1, audio_output = 1 }\n\
         route = [{ provider = \"sim\", upstream_model = \"gpt-realtime+not_upgraded\" }]\n";
    let catalog: &'static str = Box::leak(format!("{}{page}", catalog.concat()).into_boxed_str());
    let house = House::with(Plan { catalog, ..Plan::default() }).await;
    for (model, status) in
        [("error401", 502), ("error429", 429), ("error500", 502), ("page", 502), ("plain", 400), ("no-such", 404)]
    {
        let Err(Error::Http(refused)) = Talker::with_key(&house, &house.key, model).await else { panic!("{model}") };
        assert_eq!(refused.status(), status, "{model}");
        let body: Value = serde_json::from_slice(refused.body().as_deref().unwrap_or_default()).expect("JSON");
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    }
    let Err(Error::Http(refused)) = Talker::with_key(&house, "sk-wrong", "error401").await else { panic!("a key") };
    assert_eq!(refused.status(), 401);
    assert_eq!(house.get("/v1/realtime?model=page").send().await.expect("a reply").status(), 405);
    assert_eq!(house.get("/v1/realtime").send().await.expect("a reply").status(), 400);
    for row in rows(&house).await {
        assert_eq!(row.charge.nano(), 0, "{row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_sends_its_key_as_a_subprotocol() {
    let house = house().await;
    let address = house.running().address;
    let offered = format!("realtime, openai-insecure-api-key.{}", house.key);
    let mut request = format!("ws://{address}/v1/realtime?model=voice").into_client_request().expect("a request");
    request.headers_mut().insert("sec-websocket-protocol", offered.parse().expect("a header"));
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (socket, reply) = client_async(request, stream).await.expect("a session");
    assert_eq!(reply.headers()["sec-websocket-protocol"], "realtime");
    assert!(reply.headers().contains_key("x-request-id"));
    let mut talker = Talker { socket, closed: None };
    talker.until("session.created").await;
    talker.leave().await;
    house.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_says_what_the_first_response_may_cost() {
    let config = "[realtime]\nfirst_hold = 3000".to_owned();
    let house = house_with(Plan { config, ..Plan::default() }).await;
    let url = house.url("/v1/quote?endpoint=/v1/realtime");
    let reply = house.http.post(url).bearer_auth(&house.key).json(&json!({ "model": "voice" })).send().await;
    let reply = reply.expect("a reply");
    assert_eq!(reply.status(), 200);
    let quote: Value = reply.json().await.expect("JSON");
    let mut talker = Talker::open(&house).await;
    talker.turn("hello").await;
    talker.leave().await;
    let rows = rows(&house).await;
    assert!(rows[0].charge.nano() > 0 && rows[0].charge.nano() <= rows[0].hold.nano());
    assert_eq!(quote["hold_nano_usd"], rows[0].hold.nano(), "as the operator set it: {quote}");
}
