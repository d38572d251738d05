//! Ephemeral tokens of Gemini Live: client secrets in Google's words. Made with a key, good for so
//! many sessions until they expire, with what was fixed of their setup.

use crate::house::{House, Plan, chat, error_of};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use tollgate_store::{AccountChange, Attribution, UsagePage};

const CATALOG: &str = include_str!("../../../../../catalog/realtime.toml");
const MODEL: &str = "gemini-demo-live";
const TOKENS: &str = "/v1alpha/auth_tokens";
const CONSTRAINED: &str = "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContentConstrained";

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

async fn ask(house: &House, body: &Value) -> reqwest::Response {
    house.http.post(house.url(TOKENS)).header("x-goog-api-key", &house.key).json(body).send().await.expect("a reply")
}

async fn token(house: &House, body: Value) -> String {
    let reply = ask(house, &body).await;
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    let made: Value = reply.json().await.expect("JSON");
    made["name"].as_str().expect("a token").to_owned()
}

type Socket = WebSocketStream<TcpStream>;

/// A connection; its first frame is not sent yet.
async fn dial(house: &House, path: &str, header: Option<(&'static str, &str)>) -> Result<Socket, u16> {
    let at = house.running().address;
    let mut request = format!("ws://{at}{path}").into_client_request().expect("a request");
    if let Some((name, value)) = header {
        request.headers_mut().insert(name, value.parse().expect("a header"));
    }
    match client_async(request, TcpStream::connect(at).await.expect("a connection")).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(reply)) => Err(reply.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

async fn with(house: &House, token: &str) -> Result<Socket, u16> {
    dial(house, CONSTRAINED, Some(("authorization", &format!("Token {token}")))).await
}

/// The next message, or code and reason of the close.
async fn next(socket: &mut Socket) -> Result<Value, (u16, String)> {
    loop {
        match socket.next().await.expect("a frame").expect("a whole frame") {
            Message::Text(text) => return Ok(serde_json::from_str(&text).expect("JSON")),
            Message::Binary(bytes) => return Ok(serde_json::from_slice(&bytes).expect("JSON")),
            Message::Close(frame) => {
                let frame = frame.expect("a reason");
                return Err((frame.code.into(), frame.reason.to_string()));
            }
            _ => {}
        }
    }
}

/// Sets a session up and says something: whether text was said, not audio.
async fn writes(mut socket: Socket, setup: &Value) -> Result<bool, (u16, String)> {
    socket.send(Message::text(json!({ "setup": setup }).to_string())).await.expect("sent");
    assert_eq!(next(&mut socket).await?, json!({ "setupComplete": {} }));
    let turn =
        json!({ "turns": [{ "role": "user", "parts": [{ "text": "hi [[sim:tokens=2]]" }] }], "turnComplete": true });
    socket.send(Message::text(json!({ "clientContent": turn }).to_string())).await.expect("sent");
    let mut written = false;
    loop {
        let message = next(&mut socket).await?;
        let content = &message["serverContent"];
        written |= content["modelTurn"]["parts"][0]["text"].is_string();
        if content["turnComplete"] == true {
            break;
        }
    }
    let _ = socket.close(None).await;
    while let Some(Ok(_)) = socket.next().await {}
    Ok(written)
}

fn speaking(model: &str) -> Value {
    json!({ "model": format!("models/{model}"), "generationConfig": { "responseModalities": ["AUDIO"] } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_the_sessions_it_was_made_for() {
    let house = house().await;
    let fixed = json!({ "model": format!("models/{MODEL}"), "generationConfig": { "responseModalities": ["TEXT"] } });
    let token = token(&house, json!({ "uses": 0, "bidiGenerateContentSetup": fixed })).await;
    assert!(token.starts_with("auth_tokens/ek_"), "{token}");
    let header = format!("Token {token}");
    // What the client says of its setup is ignored; every way to send the token is good.
    for (query, header) in [
        (String::new(), Some(("authorization", header.as_str()))),
        (String::new(), Some(("x-goog-api-key", token.as_str()))),
        (format!("?access_token={token}"), None),
        (format!("?access_token={}", token.replace('/', "%2F")), None),
        (format!("?key={token}"), None),
    ] {
        let socket = dial(&house, &format!("{CONSTRAINED}{query}"), header).await.expect("a session");
        assert_eq!(writes(socket, &speaking(MODEL)).await, Ok(true), "{query} {header:?}");
    }
    let other = with(&house, &token).await.expect("a connection");
    let (code, reason) = writes(other, &speaking("gemini-else")).await.expect_err("another model");
    assert!(code == 1008 && reason.contains(MODEL), "{code} {reason}");
    assert_eq!(with(&house, &format!("{token}x")).await.err(), Some(401));
    // Whoever opens them, they are calls of the account that made the token.
    house.quiet().await;
    let rows = house.running().app.store.usage(Some(house.account), UsagePage::default()).await.expect("rows");
    assert_eq!(rows.iter().filter(|row| row.charge.nano() > 0).count(), 5);
}

/// Named fields are fixed, the others are the client's; without a setup all are.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_fixes_what_it_names() {
    let house = house().await;
    let text = json!({ "generationConfig": { "responseModalities": ["TEXT"] } });
    for (setup, mask, expected) in [
        (text.clone(), json!("generationConfig.responseModalities"), true),
        (text.clone(), json!("generationConfig.response_modalities,systemInstruction"), true),
        (text, json!("systemInstruction"), false),
        (Value::Null, Value::Null, false),
    ] {
        let body = json!({ "uses": 1, "bidiGenerateContentSetup": setup, "fieldMask": mask });
        let socket = with(&house, &token(&house, body).await).await.expect("a session");
        assert_eq!(writes(socket, &speaking(MODEL)).await, Ok(expected), "{mask}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_so_many_sessions() {
    let house = house().await;
    // Without a number it is one.
    let once = token(&house, json!({})).await;
    assert_eq!(writes(with(&house, &once).await.expect("a session"), &speaking(MODEL)).await, Ok(false));
    assert_eq!(with(&house, &once).await.err(), Some(401));
    // However many ask at the same time: all are connected before the first one names its model.
    let thrice = token(&house, json!({ "uses": 3 })).await;
    let mut sockets = Vec::new();
    for _ in 0..8 {
        sockets.push(with(&house, &thrice).await.expect("a connection"));
    }
    let model = speaking(MODEL);
    let ends = futures_util::future::join_all(sockets.into_iter().map(|socket| writes(socket, &model))).await;
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 3, "{ends:?}");
    let refused: Vec<_> = ends.iter().filter_map(|end| end.as_ref().err()).collect();
    assert!(refused.iter().all(|(code, reason)| *code == 1008 && reason.contains("used up")), "{refused:?}");
    // A session that names another model takes no use.
    let fixed = json!({ "bidiGenerateContentSetup": { "model": MODEL } });
    let bound = token(&house, fixed).await;
    for (model, expected) in [("gemini-else", false), (MODEL, true)] {
        let socket = with(&house, &bound).await.expect("a connection");
        assert_eq!(writes(socket, &speaking(model)).await.is_ok(), expected, "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_ends_and_its_sessions_with_it() {
    let house = house().await;
    let app = house.running().app.clone();
    // Longer on a slow machine: then the next token is tried.
    let closed = loop {
        let ends = jiff_text(app.world.now_ms() + 3_000);
        let token = token(&house, json!({ "expireTime": ends })).await;
        let Ok(mut socket) = with(&house, &token).await else { continue };
        let setup = json!({ "setup": speaking(MODEL) });
        socket.send(Message::text(setup.to_string())).await.expect("sent");
        if next(&mut socket).await.is_ok() {
            break next(&mut socket).await;
        }
    };
    assert_eq!(closed.expect_err("its end").0, 1001);
    let token = token(&house, json!({ "uses": 0 })).await;
    assert!(with(&house, &token).await.is_ok());
    house.later(61_000).await;
    assert_eq!(with(&house, &token).await.err(), Some(401));
}

/// As RFC 3339 writes it.
fn jiff_text(at: i64) -> String {
    jiff::Timestamp::from_millisecond(at).expect("a time").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_for_the_key_holds_for_its_tokens() {
    let house = house().await;
    let app = house.running().app.clone();
    let token = token(&house, json!({ "uses": 0 })).await;
    let done = || Attribution::by("test".to_owned(), "test".to_owned());
    for (suspended, expected) in [(true, Err(1008)), (false, Ok(false))] {
        let change = AccountChange { suspended: Some(suspended), ..AccountChange::default() };
        app.store.change_account(house.account, change, done()).await.expect("changed");
        app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
        let socket = with(&house, &token).await.expect("a connection");
        assert_eq!(writes(socket, &speaking(MODEL)).await.map_err(|(code, _)| code), expected);
    }
    // A key that may not use a model makes no token for it, and none that opens it.
    let limited = house.new_key(|key| key.models = Some(vec!["plain".to_owned()])).await;
    let asked = |body: Value| house.http.post(house.url(TOKENS)).bearer_auth(&limited).json(&body).send();
    let named = json!({ "bidiGenerateContentSetup": { "model": MODEL } });
    assert_eq!(asked(named).await.expect("a reply").status(), 403);
    let made: Value = asked(json!({})).await.expect("a reply").json().await.expect("JSON");
    let socket = with(&house, made["name"].as_str().expect("a token")).await.expect("a connection");
    assert_eq!(writes(socket, &speaking(MODEL)).await.expect_err("refused").0, 1008);
    // A session that is open is closed when the key is revoked.
    let mut open = with(&house, &token).await.expect("a connection");
    open.send(Message::text(json!({ "setup": speaking(MODEL) }).to_string())).await.expect("sent");
    assert_eq!(next(&mut open).await, Ok(json!({ "setupComplete": {} })));
    let key = app.store.keys(house.account).await.expect("keys").into_iter().find(|key| key.models.is_none());
    app.store.revoke_key(key.expect("the first").id).await.expect("revoked");
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    assert_eq!(next(&mut open).await.expect_err("closed").0, 1008);
    assert_eq!(with(&house, &token).await.err(), Some(401));
}

/// Neither kind of secret opens the sessions of the other, nor anything else.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_for_nothing_else() {
    let house = house().await;
    let token = token(&house, json!({ "uses": 0 })).await;
    let bare = token.trim_start_matches("auth_tokens/");
    let path = format!("/v1/realtime?model={MODEL}");
    for key in [token.as_str(), bare] {
        assert_eq!(dial(&house, &path, Some(("authorization", &format!("Bearer {key}")))).await.err(), Some(401));
        let calls = house.http.post(house.url("/v1/chat/completions")).bearer_auth(key).json(&chat("hi"));
        let (status, error) = error_of(calls.send().await.expect("a reply")).await;
        assert_eq!((status, error["reason"].as_str()), (401, Some("client_secret")), "{error}");
    }
    let secret = json!({ "session": { "type": "realtime", "model": "demo-realtime" } });
    let made = house.http.post(house.url("/v1/realtime/client_secrets")).bearer_auth(&house.key).json(&secret);
    let made: Value = made.send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(with(&house, made["value"].as_str().expect("a secret")).await.err(), Some(401));
    // A key of its own opens the constrained path too, and what cannot be had gets no token.
    let socket = dial(&house, CONSTRAINED, Some(("x-goog-api-key", &house.key))).await.expect("a session");
    assert_eq!(writes(socket, &speaking(MODEL)).await, Ok(false));
    for (body, status, says) in [
        (json!({ "uses": -1 }), 400, "uses"),
        (json!({ "bidiGenerateContentSetup": { "model": "models/none" } }), 404, "none"),
        (json!({ "bidiGenerateContentSetup": { "systemInstruction": "x".repeat(33 << 10) } }), 400, "bytes"),
    ] {
        let reply = ask(&house, &body).await;
        let (got, text) = (reply.status().as_u16(), reply.text().await.expect("text"));
        assert!(got == status && text.contains(says) && text.contains("\"status\""), "{got} {text}");
    }
}
