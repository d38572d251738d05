//! `/v1/responses` as a WebSocket: one response after the other, continued without being stored,
//! paid like any call.

use super::{MODELS, house};
use crate::house::House;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use tollgate_store::{Ending, UsagePage};

pub struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    pub async fn open(house: &House) -> Socket {
        Socket::try_open(house, &house.key).await.expect("a socket")
    }

    async fn try_open(house: &House, key: &str) -> Result<Socket, Error> {
        let address = house.running().address;
        let mut request = format!("ws://{address}/v1/responses").into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().expect("a header"));
        let stream = TcpStream::connect(address).await.expect("a connection");
        Ok(Socket(client_async(request, stream).await?.0))
    }

    async fn send(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).await.expect("sent");
    }

    async fn event(&mut self) -> Option<Value> {
        loop {
            match tokio::time::timeout(Duration::from_secs(20), self.0.next()).await.expect("in time")? {
                Ok(Message::Text(text)) => return serde_json::from_str(&text).ok(),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The events of one request up to the one that ends it.
    pub async fn turn(&mut self, message: Value) -> Vec<Value> {
        self.send(&message).await;
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            let over = ["response.completed", "response.failed", "response.incomplete", "error"];
            let ends = over.iter().any(|kind| event["type"] == *kind);
            events.push(event);
            if ends {
                break;
            }
        }
        events
    }
}

pub fn ask(text: &str, previous: Option<&Value>) -> Value {
    let mut message = json!({ "type": "response.create", "model": MODELS[0], "input": text, "store": false });
    if let Some(previous) = previous {
        message["previous_response_id"] = previous.clone();
    }
    message
}

pub fn last(events: &[Value]) -> &Value {
    events.last().expect("an event")
}

/// Opens a socket as a browser does, which can send subprotocols and no headers; what the server
/// took of them.
async fn offering(house: &House, offered: &str) -> Result<(Socket, Option<String>), Error> {
    let address = house.running().address;
    let mut request = format!("ws://{address}/v1/responses").into_client_request()?;
    request.headers_mut().insert("sec-websocket-protocol", offered.parse().expect("a header"));
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (socket, reply) = client_async(request, stream).await?;
    let taken = reply.headers().get("sec-websocket-protocol").map(|taken| taken.to_str().expect("text").to_owned());
    Ok((Socket(socket), taken))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_sends_its_key_as_a_subprotocol() {
    let house = house().await;
    let key = format!("openai-insecure-api-key.{}", house.key);
    for offered in [format!("realtime, {key}"), format!("{key},realtime"), format!("realtime, openai-beta.x, {key}")] {
        let (mut socket, taken) = offering(&house, &offered).await.expect("a socket");
        assert_eq!(taken.as_deref(), Some("realtime"), "never the key");
        assert_eq!(last(&socket.turn(ask("x", None)).await)["type"], "response.completed");
    }
    // Nothing is taken that was not offered: this client sees that its server speaks none of its
    // protocols.
    assert!(matches!(offering(&house, &key).await, Err(Error::Protocol(_))));
    for offered in ["realtime, openai-insecure-api-key.sk-wrong", "realtime"] {
        let Err(Error::Http(refused)) = offering(&house, offered).await else { panic!("{offered}") };
        assert_eq!(refused.status(), 401, "{offered}");
        assert!(!refused.headers().contains_key("sec-websocket-protocol"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_follow_each_other_on_one_connection() {
    let house = house().await;
    let mut socket = Socket::open(&house).await;
    let before = house.available().await;
    let first = socket.turn(ask("cobalt [[sim:tokens=3]]", None)).await;
    let numbers: Vec<_> = first.iter().map(|event| event["sequence_number"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (0..first.len() as u64).collect::<Vec<_>>());
    assert_eq!(
        (&first[0]["type"], &last(&first)["response"]["status"]),
        (&json!("response.created"), &json!("completed"))
    );
    let second = socket.turn(ask("which?", Some(&last(&first)["response"]["id"]))).await;
    assert_eq!(last(&second)["type"], "response.completed", "{second:?}");
    assert_eq!((super::times(&house, "cobalt"), super::times(&house, "the gate")), (1, 1), "continued, and not stored");
    house.quiet().await;
    assert!(house.available().await < before, "each is paid for");
    // Both were said on this connection only.
    let mut other = Socket::open(&house).await;
    let lost = other.turn(ask("x", Some(&last(&second)["response"]["id"]))).await;
    assert_eq!(last(&lost)["error"]["code"], "previous_response_not_found");
    assert_eq!(
        (last(&lost)["status"].as_u64(), last(&lost)["error"]["param"].as_str()),
        (Some(400), Some("previous_response_id"))
    );
    assert_eq!(last(&other.turn(ask("anew", None)).await)["type"], "response.completed", "it goes on after an error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_fails_makes_the_connection_forget() {
    let house = house().await;
    let mut socket = Socket::open(&house).await;
    let first = socket.turn(ask("ember", None)).await;
    let id = last(&first)["response"]["id"].clone();
    let mut orphan = ask("", Some(&id));
    orphan["input"] = json!([{ "type": "function_call_output", "call_id": "call_nobody", "output": "x" }]);
    assert_eq!(last(&socket.turn(orphan).await)["type"], "error");
    assert_eq!(last(&socket.turn(ask("x", Some(&id))).await)["error"]["code"], "previous_response_not_found");
    // What is stored is found again.
    let mut stored = ask("stored", None);
    stored["store"] = json!(true);
    let first = socket.turn(stored).await;
    let mut other = Socket::open(&house).await;
    let second = other.turn(ask("y", Some(&last(&first)["response"]["id"]))).await;
    assert_eq!(last(&second)["type"], "response.completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_message_is_reported_and_a_bad_key_is_refused_before_the_upgrade() {
    let house = house().await;
    let Err(Error::Http(refused)) = Socket::try_open(&house, "sk-wrong").await else { panic!("a wrong key") };
    assert_eq!(refused.status(), 401);
    let plain = house.get("/v1/responses").send().await.expect("a reply");
    assert_eq!(plain.status(), 405, "a plain GET opens nothing");
    let mut socket = Socket::open(&house).await;
    for (message, code, param) in [
        (json!({ "type": "response.create", "input": "x" }), "missing_parameter", "model"),
        (json!({ "type": "other" }), "unsupported_value", "type"),
        (json!({ "type": "response.create", "model": "nobody", "input": "x" }), "model_not_found", "model"),
        (
            json!({ "type": "response.create", "model": MODELS[0], "input": "x", "stream": false }),
            "unsupported_value",
            "stream",
        ),
    ] {
        let events = socket.turn(message).await;
        assert_eq!(
            (last(&events)["error"]["code"].as_str(), last(&events)["error"]["param"].as_str()),
            (Some(code), Some(param))
        );
    }
    socket.0.send(Message::text("not json")).await.expect("sent");
    assert_eq!(socket.event().await.expect("an event")["error"]["code"], "invalid_json");
    socket.0.send(Message::binary(vec![1, 2])).await.expect("sent");
    assert!(socket.event().await.is_none(), "requests are text");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_and_too_large_messages_end_the_connection() {
    let house = house().await;
    let mut socket = Socket::open(&house).await;
    for _ in 0..20 {
        let _ = socket.0.send(Message::text(ask("[[sim:think_ms=300 tokens=1]]", None).to_string())).await;
    }
    let mut seen = 0;
    while let Some(event) = socket.event().await {
        seen += usize::from(event["type"] == "response.completed");
    }
    assert!(seen < 20, "a client that does not wait is cut off: {seen}");
    house.quiet().await;
    let limit = house.running().app.settings.limits.body_bytes;
    let mut socket = Socket::open(&house).await;
    let _ = socket.0.send(Message::text("x".repeat(limit + 1))).await;
    assert!(socket.event().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_pays_for_what_it_got() {
    let house = house().await;
    let mut socket = Socket::open(&house).await;
    house.sim.shut("/_door");
    socket.send(&ask("[[sim:tokens=200 door=12]]", None)).await;
    while let Some(event) = socket.event().await {
        if event["type"] == "response.output_text.delta" {
            break;
        }
    }
    drop(socket);
    house.quiet().await;
    house.sim.open();
    let store = &house.running().app.store;
    let page = UsagePage { limit: 1, ..UsagePage::default() };
    let row = store.usage(Some(house.account), page).await.expect("read").pop().expect("a row");
    assert_eq!((row.ending, row.estimated), (Ending::ClientLeft, true));
    assert!(row.charge.nano() > 0 && row.counters.output < 150, "{row:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_closes_idle_connections() {
    let mut house = house().await;
    let mut socket = Socket::open(&house).await;
    socket.turn(ask("x", None)).await;
    let running = house.running.take().expect("running");
    let stopped = tokio::time::timeout(crate::watch::HANG, running.stop());
    let (stopped, event) = tokio::join!(stopped, socket.event());
    assert!(stopped.is_ok() && event.is_none());
    house.checked = true;
}

/// A stop lets the response that runs come to its end, as it does with any stream, and takes no
/// further one.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_the_response_that_runs() {
    let mut house = house().await;
    let mut socket = Socket::open(&house).await;
    socket.send(&ask("[[sim:tokens=20 delay_ms=300]]", None)).await;
    // It runs; another one waits behind it.
    let first = socket.event().await.expect("an event");
    assert_eq!(first["type"], "response.created", "{first}");
    socket.send(&ask("[[sim:tokens=2]]", None)).await;
    let rest = async {
        let mut events = Vec::new();
        while let Some(event) = socket.event().await {
            events.push(event);
        }
        events
    };
    let (events, ()) = tokio::join!(rest, house.restart());
    let ends: Vec<&str> = events
        .iter()
        .filter(|event| ["response.completed", "response.failed", "error"].iter().any(|kind| event["type"] == *kind))
        .map(|event| event["error"]["code"].as_str().unwrap_or("completed"))
        .collect();
    assert_eq!(ends, ["completed", "server_draining"], "{events:?}");
    assert_eq!(house.running().recovered, Default::default(), "nothing was left for the next start");
    let rows = house.running().app.store.usage(Some(house.account), UsagePage::default()).await.expect("rows");
    let answered: Vec<_> = rows.iter().filter(|row| row.ending == Ending::Answered).collect();
    assert_eq!((answered.len(), answered[0].counters.output), (1, 20), "{rows:?}");
}
