//! `GET /v1/realtime`: sessions over a WebSocket, through the real door and the simulator.

mod attacks;
mod azure;
pub mod closes;
mod holes;
pub mod limits;
pub mod money;
mod talk;
pub mod turns;

use crate::house::{House, Plan};
use crate::watch::Watch;
use base64::Engine as _;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use tollgate_store::UsageRow;

/// A second of audio is 10 tokens heard and 20 said; a token of text costs 1,000 in and 2,000 out,
/// of audio 10,000 and 20,000, a cached one 500.
pub const CATALOG: &str = r#"
[model."voice"]
context_window = 32000
max_output_tokens = 4096
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 2_000_000, audio_input = 10_000_000, audio_output = 20_000_000, cache_read = 500_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime" }]

[model."voice-refused"]
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 2_000_000, audio_input = 10_000_000, audio_output = 20_000_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime+error401" }]

[model."voice-busy"]
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 2_000_000, audio_input = 10_000_000, audio_output = 20_000_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime+error429" }]

[model."listener"]
supported_endpoint_types = ["audio-transcription"]
accepted_upload_formats = ["wav"]
billing_unit = "audio_duration"
price = { input = 1_000_000 }
route = [{ provider = "sim", upstream_model = "gpt-transcribe" }]

[model."listener-two"]
supported_endpoint_types = ["audio-transcription"]
accepted_upload_formats = ["wav"]
billing_unit = "audio_duration"
price = { input = 2_000_000 }
route = [{ provider = "sim", upstream_model = "gpt-transcribe-two" }]

[model."listener-elsewhere"]
supported_endpoint_types = ["audio-transcription"]
accepted_upload_formats = ["wav"]
billing_unit = "audio_duration"
price = { input = 1_000_000 }
route = [{ provider = "stubborn", upstream_model = "gpt-transcribe" }]
"#;

pub async fn house() -> House {
    house_with(Plan::default()).await
}

pub async fn house_with(plan: Plan) -> House {
    House::with(Plan { catalog: CATALOG, ..plan }).await
}

/// A client's end of a session.
pub struct Talker {
    pub socket: WebSocketStream<TcpStream>,
    /// The code and the reason of the close, once there was one.
    pub closed: Option<(u16, String)>,
}

impl Talker {
    pub async fn open(house: &House) -> Talker {
        Talker::with_key(house, &house.key, "voice").await.expect("a session")
    }

    pub async fn with_key(house: &House, key: &str, model: &str) -> Result<Talker, Error> {
        let address = house.running().address;
        let mut request = format!("ws://{address}/v1/realtime?model={model}").into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().expect("a header"));
        let stream = TcpStream::connect(address).await.expect("a connection");
        Ok(Talker { socket: client_async(request, stream).await?.0, closed: None })
    }

    pub async fn send(&mut self, event: Value) {
        self.socket.send(Message::text(event.to_string())).await.expect("sent");
    }

    /// The same, to a session that may be over by now.
    pub async fn try_send(&mut self, event: Value) {
        let _ = self.socket.send(Message::text(event.to_string())).await;
    }

    /// The next event; nothing once the session is closed.
    pub async fn event(&mut self) -> Option<Value> {
        let _watch = Watch::over("a session says nothing".to_owned());
        loop {
            match self.socket.next().await? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).expect("an event")),
                Ok(Message::Close(frame)) => {
                    self.closed = frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                }
                Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// All events up to the first of this type.
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            let found = event["type"] == kind;
            events.push(event);
            if found {
                return events;
            }
        }
        panic!("closed {:?} before {kind}: {:?}", self.closed, kinds(&events));
    }

    /// All events until the session is closed, and the code that it is closed with.
    pub async fn rest(&mut self) -> (Vec<Value>, u16) {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        let code = self.closed.as_ref().map_or(1006, |(code, _)| *code);
        (events, code)
    }

    /// Text is asked for from now on.
    pub async fn text_only(&mut self) {
        let session = json!({ "type": "realtime", "output_modalities": ["text"] });
        self.send(json!({ "type": "session.update", "session": session })).await;
        self.until("session.updated").await;
    }

    /// Says something and asks for a response.
    pub async fn ask(&mut self, text: &str) {
        let content = json!([{ "type": "input_text", "text": text }]);
        let item = json!({ "type": "message", "role": "user", "content": content });
        self.send(json!({ "type": "conversation.item.create", "item": item })).await;
        self.send(json!({ "type": "response.create" })).await;
    }

    /// One whole turn; its `response.done`.
    pub async fn turn(&mut self, text: &str) -> Value {
        self.ask(text).await;
        self.until("response.done").await.pop().expect("an event")
    }

    pub async fn leave(mut self) {
        let _ = self.socket.close(None).await;
    }
}

pub fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect()
}

/// Speech of so many milliseconds and then silence, as a model hears it.
pub fn audio(speech_ms: usize, silence_ms: usize) -> String {
    let mut pcm = Vec::with_capacity((speech_ms + silence_ms) * 48);
    for at in 0..speech_ms * 24 {
        let sample: i16 = if (at / 30).is_multiple_of(2) { 12_000 } else { -12_000 };
        pcm.extend_from_slice(&sample.to_le_bytes());
    }
    pcm.resize((speech_ms + silence_ms) * 48, 0);
    base64::engine::general_purpose::STANDARD.encode(pcm)
}

/// The rows of responses: those for which something was done.
pub async fn rows(house: &House) -> Vec<UsageRow> {
    house.quiet().await;
    house.all_rows().await.into_values().filter(|row| row.reason != "no_response").collect()
}

/// What a usage object costs at the prices of `voice`.
pub fn cost(usage: &Value) -> i64 {
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let (input, output) = (&usage["input_token_details"], &usage["output_token_details"]);
    let cached = &input["cached_tokens_details"];
    let fresh = |name: &str| number(&input[name]) - number(&cached[name]);
    fresh("text_tokens") * 1_000
        + fresh("audio_tokens") * 10_000
        + number(&input["cached_tokens"]) * 500
        + number(&output["text_tokens"]) * 2_000
        + number(&output["audio_tokens"]) * 20_000
}
