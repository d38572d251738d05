//! Sessions whose two sides speak differently: OpenAI's clients at Gemini Live and DashScope,
//! clients of the beta interface, and Gemini's clients at either.

use crate::house::{House, Plan};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};
use tollgate_store::{Ending, UsageRow};

/// The models as they are shipped, and a Gemini that is none.
const CATALOG: &str = concat!(
    include_str!("../../../../../catalog/realtime.toml"),
    r#"
[model."gemini-by-openai"]
description = "A provider of OpenAI's interface under a name of Gemini's."
context_window = 32_000
max_output_tokens = 4_096
input_modalities = ["text", "audio"]
output_modalities = ["text", "audio"]
supported_endpoint_types = ["realtime"]
price = { input = 4_000_000, output = 24_000_000, audio_input = 32_000_000, audio_output = 64_000_000, image_input = 5_000_000, cache_read = 400_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime" }]
"#
);
const GEMINI: &str = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

struct Caller(WebSocketStream<TcpStream>);

impl Caller {
    async fn dial(house: &House, path: &str, headers: &[(&'static str, &str)]) -> Caller {
        let address = house.running().address;
        let mut request = format!("ws://{address}{path}").into_client_request().expect("an address");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        let stream = TcpStream::connect(address).await.expect("a connection");
        Caller(client_async(request, stream).await.expect("a session").0)
    }

    async fn openai(house: &House, model: &str, headers: &[(&'static str, &str)]) -> Caller {
        let key = format!("Bearer {}", house.key);
        let headers = [&[("authorization", key.as_str())], headers].concat();
        let mut caller = Caller::dial(house, &format!("/v1/realtime?model={model}"), &headers).await;
        let created = caller.event().await;
        assert_eq!(created["type"], "session.created", "{created}");
        caller
    }

    async fn gemini(house: &House, setup: Value) -> Caller {
        let mut caller = Caller::dial(house, GEMINI, &[("x-goog-api-key", &house.key)]).await;
        caller.send(json!({"setup": setup})).await;
        let ready = caller.event().await;
        assert_eq!(ready, json!({"setupComplete": {}}));
        caller
    }

    async fn send(&mut self, event: Value) {
        self.0.send(Message::text(event.to_string())).await.expect("sent");
    }

    /// The next event, or how the session was closed.
    async fn event(&mut self) -> Value {
        loop {
            let frame = tokio::time::timeout(Duration::from_secs(60), self.0.next()).await.expect("in time");
            match frame.expect("a frame").expect("a whole frame") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Binary(bytes) => return serde_json::from_slice(&bytes).expect("JSON"),
                Message::Close(frame) => {
                    let (code, reason) = frame.map_or((1005, String::new()), |f| (f.code.into(), f.reason.to_string()));
                    return json!({"type": "closed", "code": code, "reason": reason});
                }
                _ => {}
            }
        }
    }

    async fn until(&mut self, ends: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await;
            assert_ne!(event["type"], "closed", "{event} after {events:?}");
            events.push(event);
            if events.last().is_some_and(&ends) {
                return events;
            }
        }
    }

    async fn until_type(&mut self, kind: &str) -> Vec<Value> {
        self.until(|event| event["type"] == kind).await
    }

    async fn update(&mut self, session: Value) -> Value {
        self.send(json!({"type": "session.update", "session": session})).await;
        self.until_type("session.updated").await.pop().expect("an event")
    }

    async fn ask(&mut self, text: &str) -> Vec<Value> {
        let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
        self.send(json!({"type": "conversation.item.create", "item": item})).await;
        self.send(json!({"type": "response.create"})).await;
        self.until_type("response.done").await
    }

    async fn turn(&mut self) -> Vec<Value> {
        self.until(|message| message["serverContent"]["turnComplete"] == true).await
    }

    async fn leave(mut self) {
        self.0.close(None).await.expect("closed");
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

fn joined(events: &[Value], kind: &str) -> String {
    events.iter().filter(|event| event["type"] == kind).filter_map(|event| event["delta"].as_str()).collect()
}

fn tone(ms: usize, rate: usize) -> String {
    let level = |at: usize| if (at / 20).is_multiple_of(2) { 4_000_i16 } else { -4_000 };
    STANDARD.encode((0..ms * rate / 1000).flat_map(|at| level(at).to_le_bytes()).collect::<Vec<u8>>())
}

fn silence(ms: usize, rate: usize) -> String {
    STANDARD.encode(vec![0_u8; ms * rate / 500])
}

/// The rows of all responses that were charged, oldest first.
async fn charged(house: &House) -> Vec<UsageRow> {
    house.check().await;
    let mut rows: Vec<UsageRow> = house.all_rows().await.into_values().collect();
    rows.retain(|row| row.charge > tollgate_catalog::Money::ZERO);
    rows.sort_by_key(|row| row.ended_at);
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn an_openai_client_talks_to_gemini_live() {
    let house = house().await;
    let mut caller = Caller::openai(&house, "gemini-demo-live", &[]).await;
    let updated = caller
        .update(json!({
            "type": "realtime", "instructions": "be brief", "output_modalities": ["text"], "tracing": "auto",
            "audio": {"output": {"voice": "marin"}},
        }))
        .await;
    let warnings = updated["session"]["warnings"].to_string();
    assert!(warnings.contains("session.tracing") && warnings.contains("audio.output.voice"), "{updated}");
    assert_eq!(updated["session"]["model"], "gemini-demo-live");
    let events = caller.ask("hello there [[sim:tokens=3]]").await;
    assert_eq!(joined(&events, "response.output_text.delta"), "the toll is");
    let usage = &events.last().expect("events")["response"]["usage"];
    assert_eq!([&usage["input_tokens"], &usage["output_tokens"]], [&json!(5), &json!(3)]);
    caller.leave().await;
    let rows = charged(&house).await;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].counters.input, rows[0].counters.output, rows[0].estimated), (5, 3, false), "{:?}", rows[0]);
    let seen = house.sim.sessions();
    let setup = &seen[0].events()[0]["setup"];
    assert_eq!(
        (&setup["model"], &setup["systemInstruction"]["parts"][0]["text"]),
        (&json!("models/gemini-live-sim"), &json!("be brief"))
    );
    assert!(setup["generationConfig"]["maxOutputTokens"].is_u64(), "no response without an end: {setup}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_gemini_is_answered_and_interrupts() {
    let house = house().await;
    let mut caller = Caller::openai(&house, "gemini-demo-live", &[]).await;
    caller.update(json!({"type": "realtime", "instructions": "[[sim:hold after=2]]"})).await;
    for audio in [tone(300, 24_000), silence(600, 24_000)] {
        caller.send(json!({"type": "input_audio_buffer.append", "audio": audio})).await;
    }
    let events = caller.until_type("response.output_audio.delta").await;
    assert!(kinds(&events).contains(&"input_audio_buffer.committed"), "{events:?}");
    caller.until_type("response.output_audio.delta").await;
    caller.send(json!({"type": "input_audio_buffer.append", "audio": tone(300, 24_000)})).await;
    let events = caller.until_type("response.done").await;
    assert!(kinds(&events).contains(&"input_audio_buffer.speech_started"), "{events:?}");
    let response = &events.last().expect("events")["response"];
    assert_eq!(response["status_details"]["reason"], "turn_detected");
    caller.leave().await;
    let rows = charged(&house).await;
    assert_eq!((rows.len(), rows[0].counters.audio_output, rows[0].estimated), (1, 4, false), "{rows:?}");
    assert_eq!(rows[0].ending, Ending::Answered);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_gemini_is_written_down_by_itself() {
    let house = house().await;
    let mut caller = Caller::openai(&house, "gemini-demo-live", &[]).await;
    let transcription = json!({"model": "gpt-4o-transcribe"});
    let updated =
        caller.update(json!({"type": "realtime", "audio": {"input": {"transcription": transcription}}})).await;
    assert!(updated["session"]["warnings"].to_string().contains("transcription.model"), "{updated}");
    for audio in [tone(300, 24_000), silence(600, 24_000)] {
        caller.send(json!({"type": "input_audio_buffer.append", "audio": audio})).await;
    }
    let events = caller.until_type("response.done").await;
    let written = "conversation.item.input_audio_transcription.completed";
    let completed = events.iter().find(|event| event["type"] == written).expect("a transcript");
    assert_eq!(completed["transcript"], "hello toll", "{completed}");
    let committed = events.iter().find(|event| event["type"] == "input_audio_buffer.committed").expect("an item");
    assert_eq!(completed["item_id"], committed["item_id"]);
    caller.leave().await;
    let setup = &house.sim.sessions()[0].events()[0]["setup"];
    assert!(setup["inputAudioTranscription"].is_object(), "{setup}");
    assert_eq!(charged(&house).await.len(), 1, "it is part of the response");
}

/// Whether reports add up is the provider's habit, and a setting of it.
#[tokio::test(flavor = "multi_thread")]
async fn reports_of_gemini_are_read_as_the_provider_is_set() {
    let tool = json!({"type": "function", "name": "weather", "parameters": {"type": "object"}});
    let mut sums = Vec::new();
    for setting in ["response", "turn"] {
        let config = format!(
            "[provider.live]\nkind = \"gemini\"\nbase_url = \"{{host}}/video/gemini\"\nsecret_file = \"sim.key\"\n\
             live_usage = \"{setting}\"\n"
        );
        let catalog = r#"
[model."gemini-live-set"]
supported_endpoint_types = ["realtime"]
price = { input = 500_000, output = 2_000_000, audio_input = 3_000_000, audio_output = 12_000_000, image_input = 3_000_000, cache_read = 500_000 }
route = [{ provider = "live", upstream_model = "gemini-live-sim" }]
"#;
        let house = House::with(Plan { catalog, config, ..Plan::default() }).await;
        let mut caller = Caller::openai(&house, "gemini-live-set", &[]).await;
        let session = json!({
            "type": "realtime", "output_modalities": ["text"], "tools": [tool], "instructions": "[[sim:cumulative=1]]",
        });
        caller.update(session).await;
        let events = caller.ask("what is it like? [[sim:tool cumulative=1]]").await;
        let call =
            events.iter().find(|event| event["type"] == "response.function_call_arguments.done").expect("a call");
        let item = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "{}"});
        caller.send(json!({"type": "conversation.item.create", "item": item})).await;
        caller.send(json!({"type": "response.create"})).await;
        caller.until_type("response.done").await;
        caller.leave().await;
        let rows = charged(&house).await;
        assert_eq!(rows.len(), 2, "{rows:?}");
        sums.push(rows.iter().map(|row| row.charge.nano()).sum::<i64>());
    }
    assert!(sums[1] < sums[0], "what was billed for the call is not billed again: {sums:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_calls_functions_of_an_openai_client() {
    let house = house().await;
    let mut caller = Caller::openai(&house, "gemini-demo-live", &[]).await;
    let tool = json!({"type": "function", "name": "weather", "parameters": {"type": "object"}});
    caller.update(json!({"type": "realtime", "output_modalities": ["text"], "tools": [tool]})).await;
    let events = caller.ask("what is it like? [[sim:tool]]").await;
    let call = events.iter().find(|event| event["type"] == "response.function_call_arguments.done").expect("a call");
    assert_eq!((&call["name"], &call["arguments"]), (&json!("weather"), &json!(r#"{"city":"Oslo"}"#)));
    let item = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "{\"sun\":true}"});
    caller.send(json!({"type": "conversation.item.create", "item": item})).await;
    caller.send(json!({"type": "response.create"})).await;
    let events = caller.until_type("response.done").await;
    assert_eq!(joined(&events, "response.output_text.delta"), "the toll is paid and the gate opens");
    caller.leave().await;
    assert_eq!(charged(&house).await.len(), 2, "each response is a call");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_openai_client_talks_to_dashscope() {
    let house = house().await;
    let mut caller = Caller::openai(&house, "demo-omni", &[]).await;
    let updated = caller.update(json!({"type": "realtime", "audio": {"output": {"voice": "Cherry"}}})).await;
    assert_eq!(updated["session"]["audio"]["output"]["voice"], "Cherry");
    assert_eq!(updated["session"]["audio"]["input"]["format"], json!({"type": "audio/pcm", "rate": 24_000}));
    for audio in [tone(300, 24_000), silence(400, 24_000)] {
        caller.send(json!({"type": "input_audio_buffer.append", "audio": audio})).await;
    }
    let events = caller.until_type("response.done").await;
    let names = kinds(&events);
    for wanted in ["input_audio_buffer.speech_started", "conversation.item.done", "response.output_audio.delta"] {
        assert!(names.contains(&wanted), "{wanted}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.starts_with("response.audio") || *name == "conversation.item.created"));
    let usage = &events.last().expect("events")["response"]["usage"];
    assert!(usage["input_token_details"]["audio_tokens"].as_u64().expect("tokens") >= 5, "{usage}");
    caller.leave().await;
    let rows = charged(&house).await;
    assert_eq!((rows.len(), rows[0].counters.audio_output, rows[0].estimated), (1, 16, false), "{rows:?}");
    let heard = house.sim.sessions()[0].audio_ms;
    assert!((690..=701).contains(&heard), "it hears 16 kHz: {heard} ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beta_client_is_served_in_its_words() {
    let house = house().await;
    let mut caller = Caller::openai(&house, "demo-realtime", &[("openai-beta", "realtime=v1")]).await;
    caller
        .send(json!({"type": "session.update", "session": {
            "modalities": ["audio", "text"], "voice": "verse", "input_audio_format": "pcm16", "temperature": 0.7,
        }}))
        .await;
    let updated = caller.until_type("session.updated").await.pop().expect("an event");
    assert_eq!(
        (&updated["session"]["voice"], &updated["session"]["modalities"]),
        (&json!("verse"), &json!(["audio", "text"]))
    );
    let events = caller.ask("hello [[sim:ms=200]]").await;
    let names = kinds(&events);
    for wanted in ["conversation.item.created", "response.audio.delta", "response.audio_transcript.done"] {
        assert!(names.contains(&wanted), "{wanted}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("output_audio") || *name == "conversation.item.done"), "{names:?}");
    caller.leave().await;
    assert_eq!(charged(&house).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gemini_client_talks_to_gemini_as_it_is() {
    let house = house().await;
    let setup = json!({
        "model": "models/gemini-demo-live",
        "generation_config": {"response_modalities": ["TEXT"], "temperature": 0.4}, "session_resumption": {},
    });
    let mut caller = Caller::gemini(&house, setup).await;
    let turns = json!([{"role": "user", "parts": [{"text": "hi [[sim:tokens=2]]"}]}]);
    caller.send(json!({"client_content": {"turns": turns, "turn_complete": true}})).await;
    let messages = caller.turn().await;
    let said: String =
        messages.iter().filter_map(|one| one["serverContent"]["modelTurn"]["parts"][0]["text"].as_str()).collect();
    assert_eq!(said, "the toll");
    assert_eq!(messages.last().expect("messages")["usageMetadata"]["responseTokenCount"], 2);
    caller.leave().await;
    let rows = charged(&house).await;
    assert_eq!((rows.len(), rows[0].counters.output, rows[0].estimated), (1, 2, false), "{rows:?}");
    let sent = house.sim.sessions()[0].events();
    assert_eq!(sent[0]["setup"]["generationConfig"]["temperature"], 0.4);
    assert_eq!(sent[0]["setup"]["model"], "models/gemini-live-sim");
    assert_eq!(sent[1], json!({"client_content": {"turns": turns, "turn_complete": true}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gemini_client_talks_to_a_provider_of_openai_s_interface() {
    let house = house().await;
    let declared = json!([{"functionDeclarations": [{"name": "weather", "parameters": {"type": "OBJECT"}}]}]);
    let setup = json!({
        "model": "models/gemini-by-openai", "generationConfig": {"responseModalities": ["AUDIO"]}, "tools": declared,
        "outputAudioTranscription": {},
    });
    let mut caller = Caller::gemini(&house, setup).await;
    for data in [tone(300, 16_000), silence(700, 16_000)] {
        let audio = json!({"data": data, "mimeType": "audio/pcm;rate=16000"});
        caller.send(json!({"realtimeInput": {"audio": audio}})).await;
    }
    let messages = caller.turn().await;
    let pieces =
        messages.iter().filter_map(|one| one["serverContent"]["modelTurn"]["parts"][0]["inlineData"]["data"].as_str());
    let audio: usize = pieces.map(|piece| STANDARD.decode(piece).expect("base64").len()).sum();
    assert_eq!(audio, 800 * 48, "800 ms at 24 kHz");
    let words: String =
        messages.iter().filter_map(|one| one["serverContent"]["outputTranscription"]["text"].as_str()).collect();
    assert_eq!(words, "the toll is paid and the gate opens");
    let turns = json!([{"role": "user", "parts": [{"text": "weather? [[sim:tool]]"}]}]);
    caller.send(json!({"clientContent": {"turns": turns, "turnComplete": true}})).await;
    let messages = caller.until(|message| message["toolCall"].is_object()).await;
    let call = &messages.last().expect("messages")["toolCall"]["functionCalls"][0];
    assert_eq!((&call["name"], &call["args"]), (&json!("weather"), &json!({"city": "Oslo"})));
    let answer = json!([{"id": call["id"], "name": "weather", "response": {"output": "sunny [[sim:plain]]"}}]);
    caller.send(json!({"toolResponse": {"functionResponses": answer}})).await;
    caller.until(|message| message["toolCall"].is_object() || message["serverContent"]["turnComplete"] == true).await;
    caller.leave().await;
    let rows = charged(&house).await;
    assert!(rows.len() >= 3 && rows.iter().all(|row| !row.estimated), "{rows:?}");
    let billed = house.sim.sessions()[0].billed.len();
    assert_eq!(rows.len(), billed, "what the provider bills is what is charged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gemini_client_is_turned_away_with_a_reason() {
    let house = house().await;
    for (setup, code, reason) in [
        (json!({"model": "models/nobody"}), 1008, "nobody"),
        (json!({}), 1007, "setup.model"),
        (json!({"model": "models/gemini-by-openai", "generationConfig": {"temperature": 1}}), 1007, "temperature"),
        (json!({"model": "models/gemini-demo-live", "tools": [{"googleSearch": {}}]}), 1007, "googleSearch"),
    ] {
        let mut caller = Caller::dial(&house, GEMINI, &[("x-goog-api-key", &house.key)]).await;
        caller.send(json!({"setup": setup})).await;
        let closed = caller.event().await;
        assert_eq!(closed["code"], code, "{closed}");
        assert!(closed["reason"].as_str().expect("a reason").contains(reason), "{closed}");
    }
    house.check().await;
    assert_eq!(charged(&house).await.len(), 0);
}
