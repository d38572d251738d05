//! A realtime session over a WebSocket: order of events, money, turns by silence, faults.

use super::client::sim;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use tollgate_sim::Sim;

pub struct Caller(WebSocketStream<TcpStream>);

impl Caller {
    async fn dial(sim: &Sim, path: &str) -> Result<Caller, Error> {
        let request = format!("ws://{}{path}", sim.addr()).into_client_request()?;
        let stream = TcpStream::connect(sim.addr()).await.expect("a connection");
        Ok(Caller(client_async(request, stream).await?.0))
    }

    /// With the first event taken off.
    async fn open(sim: &Sim, model: &str) -> Caller {
        let mut caller = Caller::dial(sim, &format!("/v1/realtime?model={model}")).await.expect("a session");
        assert_eq!(caller.event().await["type"], "session.created");
        caller
    }

    async fn send(&mut self, event: Value) {
        self.0.send(Message::text(event.to_string())).await.expect("sent");
    }

    async fn event(&mut self) -> Value {
        loop {
            match self.0.next().await.expect("a frame").expect("a whole frame") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            events.push(self.event().await);
            if events.last().is_some_and(|event| event["type"] == kind) {
                return events;
            }
        }
    }

    async fn say(&mut self, text: &str) {
        let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
        self.send(json!({"type": "conversation.item.create", "item": item})).await;
        self.until("conversation.item.done").await;
    }

    async fn answer(&mut self, text: &str) -> Vec<Value> {
        self.say(text).await;
        self.send(json!({"type": "response.create"})).await;
        self.until("response.done").await
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

fn joined(events: &[Value], kind: &str) -> String {
    events.iter().filter(|event| event["type"] == kind).filter_map(|event| event["delta"].as_str()).collect()
}

#[tokio::test]
async fn text_comes_in_the_providers_order_and_is_counted() {
    let sim = sim().await;
    let mut caller = Caller::open(&sim, "gpt-realtime").await;
    let session = json!({"type": "realtime", "output_modalities": ["text"], "instructions": "be brief"});
    caller.send(json!({"type": "session.update", "session": session})).await;
    assert_eq!(caller.event().await["session"]["output_modalities"], json!(["text"]));
    let events = caller.answer("one two three [[sim:tokens=2]]").await;
    assert_eq!(
        kinds(&events),
        [
            "response.created",
            "rate_limits.updated",
            "response.output_item.added",
            "conversation.item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "conversation.item.done",
            "response.output_item.done",
            "response.done"
        ]
    );
    let usage = &events[11]["response"]["usage"];
    assert_eq!([&usage["input_tokens"], &usage["output_tokens"]], [&json!(6), &json!(2)]);
    // The second answer reads all of it again, what it has read before from the cache.
    let again = caller.answer("four [[sim:tokens=1]]").await;
    let details = &again.last().expect("events")["response"]["usage"]["input_token_details"];
    assert_eq!([&details["text_tokens"], &details["cached_tokens"]], [&json!(10), &json!(6)]);
    let sessions = sim.sessions();
    assert_eq!(sessions[0].billed.len(), 2);
    assert_eq!(sessions[0].events_of("response.create").len(), 2);
}

#[tokio::test]
async fn speech_starts_a_response_by_itself_and_interrupts_it() {
    let sim = sim().await;
    let mut caller = Caller::open(&sim, "gpt-realtime+hold+after=2").await;
    let tone: Vec<u8> = (0..2400).flat_map(|at| if at % 2 == 0 { 4_000_i16 } else { -4_000 }.to_le_bytes()).collect();
    let silence = vec![0_u8; 48 * 300];
    caller.send(json!({"type": "input_audio_buffer.append", "audio": STANDARD.encode(&tone)})).await;
    assert_eq!(caller.event().await["type"], "input_audio_buffer.speech_started");
    caller.send(json!({"type": "input_audio_buffer.append", "audio": STANDARD.encode(&silence)})).await;
    let events = caller.until("response.created").await;
    assert_eq!(kinds(&events)[..2], ["input_audio_buffer.speech_stopped", "input_audio_buffer.committed"]);
    let mut played = caller.until("response.output_audio.delta").await;
    played.extend(caller.until("response.output_audio.delta").await);
    let audio = STANDARD.decode(played.last().expect("events")["delta"].as_str().expect("audio")).expect("base64");
    assert_eq!(audio.len(), 4_800, "100 ms at 24 kHz");
    caller.send(json!({"type": "input_audio_buffer.append", "audio": STANDARD.encode(&tone)})).await;
    let events = caller.until("response.done").await;
    let done = &events.last().expect("events")["response"];
    assert_eq!(done["status_details"], json!({"type": "cancelled", "reason": "turn_detected"}));
    assert_eq!(done["usage"]["output_token_details"], json!({"text_tokens": 2, "audio_tokens": 4}));
    assert_eq!(done["usage"]["input_token_details"]["audio_tokens"], 4);
}

#[tokio::test]
async fn a_function_is_called_with_its_arguments() {
    let sim = sim().await;
    let mut caller = Caller::open(&sim, "gpt-realtime").await;
    let tool = json!({"type": "function", "name": "weather", "parameters": {"type": "object"}});
    let session = json!({"type": "realtime", "tools": [tool], "tool_choice": "required"});
    caller.send(json!({"type": "session.update", "session": session})).await;
    caller.until("session.updated").await;
    let events = caller.answer("what is it like?").await;
    let done = events.iter().find(|event| event["type"] == "response.function_call_arguments.done").expect("a call");
    assert_eq!(joined(&events, "response.function_call_arguments.delta"), done["arguments"].as_str().expect("text"));
    assert_eq!(done["name"], "weather");
}

#[tokio::test]
async fn unknown_fields_are_refused_by_name() {
    let sim = sim().await;
    let mut caller = Caller::open(&sim, "gpt-realtime").await;
    let wrong = [
        (json!({"type": "session.update", "session": {"type": "realtime", "voice": "x"}}), "session.voice"),
        (json!({"type": "session.update", "session": {"voice": "x"}}), "session.type"),
        (json!({"type": "response.create", "response": {"modalities": ["text"]}}), "response.modalities"),
        (json!({"type": "input_audio_buffer.commit", "extra": 1}), "extra"),
        (
            json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user",
            "content": [{"type": "text", "text": "x"}]}}),
            "item.content[0].type",
        ),
    ];
    for (event, param) in wrong {
        caller.send(event).await;
        assert_eq!(caller.event().await["error"]["param"], param);
    }
}

#[tokio::test]
async fn faults_are_played() {
    let sim = sim().await;
    for (status, name) in [(401, "error401"), (429, "error429"), (500, "error500")] {
        let refused = Caller::dial(&sim, &format!("/v1/realtime?model=gpt-realtime%2B{name}")).await;
        assert!(matches!(refused.err(), Some(Error::Http(reply)) if reply.status() == status), "{name}");
    }
    for code in [1000, 1001, 1008, 1011, 1013, 4000] {
        let mut caller = Caller::open(&sim, "gpt-realtime").await;
        caller.say(&format!("[[sim:close code={code}]]")).await;
        caller.send(json!({"type": "response.create"})).await;
        let closed = loop {
            if let Message::Close(frame) = caller.0.next().await.expect("a frame").expect("a whole frame") {
                break frame.map(|frame| u16::from(frame.code));
            }
        };
        assert_eq!(closed, Some(code));
    }
    let mut caller = Caller::open(&sim, "gpt-realtime").await;
    caller.say("[[sim:cut after=1]]").await;
    caller.send(json!({"type": "response.create"})).await;
    let mut last = None;
    while let Some(frame) = caller.0.next().await {
        last = Some(frame);
    }
    assert!(matches!(last, Some(Err(_))), "the connection was reset");
    let no_usage = Caller::open(&sim, "sim-no_usage").await.answer("x").await;
    assert_eq!(no_usage.last().expect("events")["response"]["usage"], Value::Null);
}

#[tokio::test]
async fn what_was_heard_is_billed_by_tokens_or_by_time() {
    let sim = sim().await;
    for (model, kind) in [("gpt-4o-transcribe", "tokens"), ("whisper-1", "duration")] {
        let mut caller = Caller::dial(&sim, "/v1/realtime?intent=transcription").await.expect("a session");
        assert_eq!(caller.event().await["session"]["type"], "transcription");
        let input = json!({"transcription": {"model": model}, "turn_detection": null});
        let session = json!({"type": "transcription", "audio": {"input": input}});
        caller.send(json!({"type": "session.update", "session": session})).await;
        caller.until("session.updated").await;
        let audio = STANDARD.encode(vec![0_u8; 48 * 500]);
        caller.send(json!({"type": "input_audio_buffer.append", "audio": audio})).await;
        caller.send(json!({"type": "input_audio_buffer.commit"})).await;
        let events = caller.until("conversation.item.input_audio_transcription.completed").await;
        assert_eq!(events.last().expect("events")["usage"]["type"], kind);
    }
}
