//! Client secrets: made with a key, good for realtime sessions of one model until they expire, on
//! every replica, and for nothing else.

use crate::engine::Engine;
use crate::house::{House, Plan, chat, error_of, second};
use futures_util::StreamExt as _;
use reqwest::Response;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use tollgate_store::{AccountChange, Attribution};

const VOICE: &str = r#"
[model."voice"]
context_window = 32000
max_output_tokens = 4096
supported_endpoint_types = ["realtime"]
price = { input = 4_000_000, output = 16_000_000, audio_input = 32_000_000, audio_output = 64_000_000, image_input = 5_000_000, cache_read = 400_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime" }]

[model."other-voice"]
context_window = 32000
max_output_tokens = 4096
supported_endpoint_types = ["realtime"]
price = { input = 4_000_000, output = 16_000_000, audio_input = 32_000_000, audio_output = 64_000_000, image_input = 5_000_000, cache_read = 400_000 }
route = [{ provider = "sim", upstream_model = "gpt-realtime" }]
"#;
/// Writes down what is said.
const LISTENER: &str = r#"
[model."listener"]
supported_endpoint_types = ["audio-transcription"]
accepted_upload_formats = ["wav"]
billing_unit = "audio_duration"
price = { input = 1_000_000 }
route = [{ provider = "sim", upstream_model = "gpt-transcribe" }]
"#;
const SECRETS: &str = "/v1/realtime/client_secrets";

async fn house(plan: Plan) -> House {
    House::with(Plan { catalog: VOICE, ..plan }).await
}

async fn ask(house: &House, path: &str, body: &Value) -> Response {
    house.http.post(house.url(path)).bearer_auth(&house.key).json(body).send().await.expect("a reply")
}

/// A secret for `voice`, as it was answered.
async fn made(house: &House, more: Value) -> Value {
    let mut session = json!({ "type": "realtime", "model": "voice" });
    for (name, value) in more.as_object().expect("an object") {
        session[name] = value.clone();
    }
    let reply = ask(house, SECRETS, &json!({ "session": session })).await;
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    reply.json().await.expect("JSON")
}

fn value(made: &Value) -> &str {
    made["value"].as_str().expect("a secret")
}

/// A session opened with a secret, by a header or as a browser does it.
async fn open(
    at: SocketAddr,
    query: &str,
    secret: &str,
    browser: bool,
) -> Result<WebSocketStream<TcpStream>, (u16, String)> {
    let mut request = format!("ws://{at}/v1/realtime{query}").into_client_request().expect("a request");
    let (name, text) = match browser {
        true => ("sec-websocket-protocol", format!("realtime, openai-insecure-api-key.{secret}")),
        false => ("authorization", format!("Bearer {secret}")),
    };
    request.headers_mut().insert(name, text.parse().expect("a header"));
    let stream = TcpStream::connect(at).await.expect("a connection");
    match client_async(request, stream).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(reply)) => {
            let body = reply.body().clone().unwrap_or_default();
            Err((reply.status().as_u16(), String::from_utf8_lossy(&body).into_owned()))
        }
        Err(error) => panic!("{error}"),
    }
}

async fn refused(at: SocketAddr, query: &str, secret: &str) -> u16 {
    open(at, query, secret, false).await.expect_err("refused").0
}

/// The next event of this type.
async fn event(socket: &mut WebSocketStream<TcpStream>, kind: &str) -> Value {
    loop {
        let message = socket.next().await.expect("an event").expect("well-formed");
        let Message::Text(text) = message else { continue };
        let event: Value = serde_json::from_str(&text).expect("JSON");
        assert_ne!(event["type"], "error", "{event}");
        if event["type"] == kind {
            return event;
        }
    }
}

async fn leave(mut socket: WebSocketStream<TcpStream>) {
    let _ = socket.close(None).await;
    while let Some(Ok(_)) = socket.next().await {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_opens_the_session_it_was_made_for() {
    let house = house(Plan::default()).await;
    let at = house.running().address;
    let now = house.running().app.world.now_ms() / 1_000;
    let made = made(&house, json!({ "instructions": "Speak like a gatekeeper." })).await;
    let secret = value(&made).to_owned();
    assert!(secret.starts_with("ek_") && secret.len() == 51, "{made}");
    assert!((now + 600..now + 660).contains(&made["expires_at"].as_i64().expect("a time")), "{made}");
    let session = &made["session"];
    assert_eq!((session["model"].as_str(), session["type"].as_str()), (Some("voice"), Some("realtime")), "{made}");
    assert_eq!(session["instructions"], "Speak like a gatekeeper.");
    // Reusable until it expires; the model may be left out or named again.
    for (query, browser) in [("", false), ("?model=voice", false), ("", true), ("?model=voice", true)] {
        let mut socket = open(at, query, &secret, browser).await.expect("a session");
        let updated = event(&mut socket, "session.updated").await;
        assert_eq!(updated["session"]["instructions"], "Speak like a gatekeeper.", "{updated}");
        leave(socket).await;
    }
    assert_eq!(refused(at, "?model=other-voice", &secret).await, 400);
    assert_eq!(refused(at, "?intent=transcription", &secret).await, 400);
    assert_eq!(refused(at, "?model=voice", &format!("{secret}x")).await, 401);
    assert_eq!(house.running().app.metrics.client_secrets.get(), 1);
    // Stored is a hash.
    house.quiet().await;
    for file in std::fs::read_dir(&house.dir).expect("a folder").flatten() {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{:?}", file.path());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_form_makes_the_same() {
    let house = house(Plan::default()).await;
    let body = json!({ "model": "voice", "modalities": ["text"], "instructions": "Be brief." });
    let reply = ask(&house, "/v1/realtime/sessions", &body).await;
    assert_eq!(reply.status(), 200);
    let made: Value = reply.json().await.expect("JSON");
    assert_eq!((made["object"].as_str(), made["model"].as_str()), (Some("realtime.session"), Some("voice")), "{made}");
    let (secret, ends) = (value(&made["client_secret"]), made["client_secret"]["expires_at"].as_i64().expect("a time"));
    let now = house.running().app.world.now_ms() / 1_000;
    assert!((now + 30..=now + 60).contains(&ends), "{made}");
    let mut socket = open(house.running().address, "", secret, true).await.expect("a session");
    let updated = event(&mut socket, "session.updated").await;
    assert_eq!(updated["session"]["output_modalities"], json!(["text"]), "{updated}");
    leave(socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_only_listens_has_its_secrets() {
    let house = House::with(Plan { catalog: LISTENER, ..Plan::default() }).await;
    let at = house.running().address;
    let audio = json!({ "input": { "transcription": { "model": "listener", "language": "en" } } });
    let body = json!({ "session": { "type": "transcription", "audio": audio } });
    let made: Value = ask(&house, SECRETS, &body).await.json().await.expect("JSON");
    assert_eq!(made["session"]["type"], "transcription", "{made}");
    for query in ["", "?intent=transcription", "?intent=transcription&model=listener"] {
        let mut socket = open(at, query, value(&made), true).await.expect("a session");
        let updated = event(&mut socket, "session.updated").await;
        let listens = &updated["session"]["audio"]["input"]["transcription"];
        assert_eq!((&listens["model"], &listens["language"]), (&json!("listener"), &json!("en")), "{updated}");
        leave(socket).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_good_for_nothing_else() {
    let house = house(Plan::default()).await;
    let made = made(&house, json!({})).await;
    let with = |request: reqwest::RequestBuilder| request.bearer_auth(value(&made)).send();
    for request in [
        house.http.post(house.url("/v1/chat/completions")).json(&chat("hi")),
        house.http.get(house.url("/v1/balance")),
        house.http.get(house.url("/v1/models")),
        house.http.post(house.url(SECRETS)).json(&json!({ "session": { "model": "voice" } })),
    ] {
        let (status, error) = error_of(with(request).await.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (401, Some("invalid_api_key")));
        assert!(error["message"].as_str().is_some_and(|text| text.contains("realtime sessions only")), "{error}");
    }
}

pub async fn what_holds_for_the_key_holds_for_its_secrets() {
    let house = house(Plan::default()).await;
    let (app, at) = (house.running().app.clone(), house.running().address);
    let first = made(&house, json!({})).await;
    leave(open(at, "", value(&first), false).await.expect("a session")).await;
    // It expires.
    house.later(300_000).await;
    leave(open(at, "", value(&first), false).await.expect("a session")).await;
    house.later(661_000).await;
    assert_eq!(refused(at, "", value(&first)).await, 401);
    // Its account is suspended, and served again.
    let second = made(&house, json!({})).await;
    let done = || Attribution::by("test".to_owned(), "test".to_owned());
    let suspend = |suspended| AccountChange { suspended: Some(suspended), ..AccountChange::default() };
    app.store.change_account(house.account, suspend(true), done()).await.expect("suspended");
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    assert_eq!(refused(at, "", value(&second)).await, 403);
    let (status, error) = error_of(ask(&house, SECRETS, &json!({ "session": { "model": "voice" } })).await).await;
    assert_eq!((status, error["code"].as_str()), (403, Some("account_suspended")));
    app.store.change_account(house.account, suspend(false), done()).await.expect("reopened");
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    leave(open(at, "", value(&second), false).await.expect("a session")).await;
    // Its key is revoked.
    let key = app.store.keys(house.account).await.expect("keys")[0].id;
    app.store.revoke_key(key).await.expect("revoked");
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    assert_eq!(refused(at, "", value(&second)).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_gets_no_secret() {
    let house = house(Plan { usd: "0", ..Plan::default() }).await;
    let asked = async |body: Value| {
        let (status, error) = error_of(ask(&house, SECRETS, &body).await).await;
        (status, error["code"].as_str().unwrap_or_default().to_owned(), error["param"].as_str().map(str::to_owned))
    };
    let of = |status, code: &str, param: Option<&str>| (status, code.to_owned(), param.map(str::to_owned));
    let voice = json!({ "session": { "model": "voice" } });
    assert_eq!(asked(voice.clone()).await, of(402, "insufficient_balance", None));
    house.top_up("later", "1").await;
    assert_eq!(ask(&house, SECRETS, &voice).await.status(), 200);
    for (session, expected) in [
        (json!({ "model": "voise" }), of(404, "model_not_found", Some("model"))),
        (json!({ "model": "plain" }), of(400, "unsupported_value", Some("model"))),
        (json!({ "model": "voice", "type": "live" }), of(400, "invalid_parameter", Some("session.type"))),
        (
            json!({ "model": "voice", "tools": [{ "type": "mcp", "server_url": "https://example.com" }] }),
            of(400, "unsupported_value", Some("session.tools[0].type")),
        ),
        (
            json!({ "model": "voice", "instructions": "x".repeat(33 << 10) }),
            of(400, "invalid_parameter", Some("session")),
        ),
    ] {
        assert_eq!(asked(json!({ "session": session })).await, expected, "{session}");
    }
    let large = json!({ "session": { "model": "voice", "instructions": "x".repeat(65 << 10) } });
    assert_eq!(asked(large).await.0, 413);
    let limited = house.new_key(|key| key.models = Some(vec!["plain".to_owned()])).await;
    let reply = house.http.post(house.url(SECRETS)).bearer_auth(limited).json(&voice).send().await.expect("a reply");
    assert_eq!(error_of(reply).await.1["code"], "model_not_allowed");
}

pub async fn a_key_has_so_many_secrets_at_a_time() {
    let house = house(Plan::default()).await;
    let body = json!({ "session": { "model": "voice" } });
    for number in 0..500 {
        assert_eq!(ask(&house, SECRETS, &body).await.status(), 200, "{number}");
    }
    let (status, error) = error_of(ask(&house, SECRETS, &body).await).await;
    assert_eq!((status, error["code"].as_str()), (429, Some("rate_limit_exceeded")), "{error}");
    assert_eq!(error["reason"], "client_secrets", "{error}");
    // Another key of the account has its own number.
    let other = house.new_key(|_| {}).await;
    let reply = house.http.post(house.url(SECRETS)).bearer_auth(other).json(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    house.later(661_000).await;
    assert_eq!(ask(&house, SECRETS, &body).await.status(), 200, "those that have expired do not count");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_knows_a_secret_at_once() {
    let [_, engine] = Engine::both().await;
    let house = house(Plan { database: engine.url.clone(), ..Plan::default() }).await;
    let other = second(&house).await;
    let made = made(&house, json!({ "instructions": "Anywhere." })).await;
    for at in [other.address, house.running().address] {
        let mut socket = open(at, "", value(&made), true).await.expect("a session");
        let updated = event(&mut socket, "session.updated").await;
        assert_eq!(updated["session"]["instructions"], "Anywhere.");
        leave(socket).await;
    }
    // Revoked at one: sessions at the other end within seconds, without anybody's help, and no new
    // one begins.
    let mut open_elsewhere = open(other.address, "", value(&made), true).await.expect("a session");
    event(&mut open_elsewhere, "session.updated").await;
    let app = &house.running().app;
    let key = app.store.keys(house.account).await.expect("keys")[0].id;
    app.store.revoke_key(key).await.expect("revoked");
    let (mut said, mut closed) = (Vec::new(), None);
    while let Some(Ok(message)) = open_elsewhere.next().await {
        match message {
            Message::Text(text) => said.push(serde_json::from_str::<Value>(&text).expect("JSON")),
            Message::Close(frame) => closed = frame.map(|frame| u16::from(frame.code)),
            _ => {}
        }
    }
    let last = said.last().expect("an event");
    assert_eq!((&last["type"], &last["error"]["code"]), (&json!("error"), &json!("invalid_api_key")), "{said:?}");
    assert_eq!(closed, Some(1008));
    assert_eq!(refused(other.address, "", value(&made)).await, 401);
    other.stop().await;
}

pub async fn a_client_secret_has_expired() {
    let house = house(Plan::default()).await;
    let at = house.running().address;
    let secret = value(&made(&house, json!({})).await).to_owned();
    leave(open(at, "", &secret, false).await.expect("a session")).await;
    house.quiet().await;
    let before = house.all_rows().await.len();
    house.later(11 * 60_000).await;
    assert_eq!(refused(at, "", &secret).await, 401);
    assert_eq!(house.all_rows().await.len(), before);
}
