//! Strangers at the door: sockets that say nothing, bodies nobody wants, and requests that come
//! through a proxy.

use crate::house::{House, Plan, chat, error_of};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn connected(house: &House) -> TcpStream {
    TcpStream::connect(house.running().address).await.expect("connected")
}

fn head(house: &House, path: &str, length: usize, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{more}\r\n",
        house.key
    )
}

/// One reply: its status, its head in lower case, its body.
async fn reply(socket: &mut TcpStream) -> (u16, String, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.expect("a reply"));
    }
    let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).and_then(|n| n.parse().ok());
    let mut body = vec![0; length.expect("a length")];
    socket.read_exact(&mut body).await.expect("a body");
    (status, head, String::from_utf8(body).expect("text"))
}

async fn is_closed(mut socket: TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = socket.read_to_end(&mut rest).await;
}

fn impatient() -> Plan {
    let config = "[limits]\nheader_time = \"200ms\"\nidle_time = \"200ms\"\n";
    Plan { config: config.to_owned(), ..Plan::default() }
}

/// Each of these waits for its end; nothing here is about how long that takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_says_nothing_is_closed() {
    let house = House::with(impatient()).await;
    let metrics = house.running().app.metrics.connections.clone();
    is_closed(connected(&house).await).await;
    for part in [
        &b"PRI * HTTP/2.0\r\n\r"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"G",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\n",
    ] {
        let mut socket = connected(&house).await;
        // On a slow machine it may be closed before.
        let _ = socket.write_all(part).await;
        is_closed(socket).await;
    }
    assert_eq!(metrics.count("silent"), 5);
    // A client of HTTP/2 that answers pings and asks nothing.
    if let Ok((_send, connection)) = h2::client::handshake(connected(&house).await).await {
        let _: Result<(), h2::Error> = connection.await;
    }
    assert_eq!((metrics.count("silent"), metrics.count("idle")), (6, 0));
    // After a request, without a key and with one.
    let key = format!("authorization: Bearer {}\r\n", house.key);
    for (number, authorization) in [(1, ""), (2, key.as_str())] {
        let request = format!("GET /v1/balance HTTP/1.1\r\nhost: x\r\n{authorization}\r\n");
        while metrics.count("idle") < number {
            let mut socket = connected(&house).await;
            let _ = socket.write_all(request.as_bytes()).await;
            is_closed(socket).await;
        }
    }
}

/// Twice as many silent sockets as there are places keep no customer out.
#[tokio::test(flavor = "multi_thread")]
async fn silent_sockets_give_way_to_requests() {
    let house = House::with(Plan { config: "[limits]\nconnections = 20\n".to_owned(), ..Plan::default() }).await;
    let mut crowd = Vec::new();
    for _ in 0..40 {
        crowd.push(connected(&house).await);
        // One at a time, each on a connection of its own.
        if crowd.len() % 4 == 0 {
            let http = reqwest::Client::new();
            let request = http.post(house.url("/v1/chat/completions")).bearer_auth(&house.key).json(&chat("hi"));
            assert_eq!(request.send().await.expect("a reply").status(), 200, "{} silent sockets", crowd.len());
        }
    }
    let metrics = &house.running().app.metrics.connections;
    assert!(metrics.count("evicted") >= 20 && metrics.count("full") == 0);
}

/// A reply may come before the body of its request has: then the body is thrown away, or the reply
/// says that it is the last.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_after_a_reply_that_came_before_the_body() {
    let house = House::new().await;
    let mut socket = connected(&house).await;
    let body = "x".repeat(2_000);
    let (mut answered, mut reconnected) = (0, 0);
    for number in 0..300 {
        let (path, more, expected) = match number % 4 {
            0 => ("/v1/nothing", "", 404),
            1 => ("/v1/chat/completions", "content-encoding: gzip\r\n", 415),
            2 => ("/v1/models", "", 405),
            _ => ("/v1/chat/completions", "x-api-key: another\r\n", 401),
        };
        // The head alone first: whoever answers now has not seen the body.
        socket.write_all(head(&house, path, body.len(), more).as_bytes()).await.expect("sent");
        tokio::task::yield_now().await;
        socket.write_all(body.as_bytes()).await.expect("sent");
        let (status, head, _) = reply(&mut socket).await;
        assert_eq!(status, expected, "{path}");
        answered += 1;
        if head.contains("\r\nconnection: close\r\n") {
            reconnected += 1;
            socket = connected(&house).await;
        }
    }
    assert_eq!((answered, reconnected), (300, 0));
    // Too large to be thrown away.
    socket.write_all(head(&house, "/v1/nothing", 1 << 20, "").as_bytes()).await.expect("sent");
    let (status, said, _) = reply(&mut socket).await;
    assert!(status == 404 && said.contains("\r\nconnection: close\r\n"), "{said}");
    let mut end = [0];
    assert_eq!(socket.read(&mut end).await.expect("closed, not reset"), 0);
    // Whoever waits for a word is not asked to send what nobody wants.
    let mut socket = connected(&house).await;
    socket.write_all(head(&house, "/v1/nothing", 5, "expect: 100-continue\r\n").as_bytes()).await.expect("sent");
    let (status, said, _) = reply(&mut socket).await;
    assert!(status == 404 && said.contains("\r\nconnection: close\r\n"), "{said}");
}

/// The whole body is written before the reply is read: it must not be swept away by a reset.
#[tokio::test(flavor = "multi_thread")]
async fn the_reply_to_a_large_body_can_be_read() {
    let house = House::new().await;
    for _ in 0..20 {
        let mut socket = connected(&house).await;
        let body = vec![b'x'; 4 << 20];
        socket.write_all(head(&house, "/v1/nothing", body.len(), "").as_bytes()).await.expect("sent");
        socket.write_all(&body).await.expect("taken");
        let (status, said, _) = reply(&mut socket).await;
        assert!(status == 404 && said.contains("\r\nconnection: close\r\n"), "{said}");
    }
}

/// A request that is refused with 404 when it has been read.
fn large(bytes: usize) -> serde_json::Value {
    json!({ "model": "none", "messages": [{ "role": "user", "content": "x".repeat(bytes) }] })
}

/// Somebody without money gets the refusal before a large body is read, wherever it is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_is_read_for_those_who_can_pay() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    for path in [
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/responses",
        "/v1/responses/compact",
        "/v1beta/models/plain:generateContent",
        "/v1/videos",
        "/v1/conversations",
        "/v1/quote?endpoint=/v1/chat/completions",
        "/v1/messages/count_tokens",
    ] {
        let mut socket = connected(&house).await;
        // Nothing follows: whoever waited for it would wait for ever.
        socket.write_all(head(&house, path, 31 << 20, "").as_bytes()).await.expect("sent");
        let (status, said, body) = reply(&mut socket).await;
        assert!(status == 402 && said.contains("\r\nconnection: close\r\n"), "{path}: {status} {said} {body}");
    }
    // Without a length it is noticed on the way.
    let mut socket = connected(&house).await;
    let chunked =
        head(&house, "/v1/chat/completions", 0, "").replace("content-length: 0", "transfer-encoding: chunked");
    socket.write_all(chunked.as_bytes()).await.expect("sent");
    socket.write_all(format!("{:x}\r\n{}\r\n", 80_000, "x".repeat(80_000)).as_bytes()).await.expect("sent");
    assert_eq!(reply(&mut socket).await.0, 402);
    assert_eq!(house.running().app.bodies.used(), 0);
    // A small one is read: it may be wrong in another way, or cost nothing.
    let small = house.post(&json!({ "model": "none", "messages": [] })).send().await.expect("a reply");
    assert_ne!(small.status(), 402);
    house.top_up("later", "1").await;
    assert_eq!(house.post(&large(100_000)).send().await.expect("a reply").status(), 404, "it is read");
}

/// An account that has spent all it had is without money too, though its key was read when it had
/// some.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_could_not_pay_is_looked_at_again() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    house.top_up("little", "0.000001").await;
    let (status, error) = error_of(house.ask("far too dear").await).await;
    assert_eq!((status, error["code"].as_str()), (402, Some("insufficient_balance")));
    // It has something still, so large bodies are read.
    assert_eq!(house.post(&large(100_000)).send().await.expect("a reply").status(), 404);
}

const FREE: &str = r#"
[model."gratis"]
context_window = 1_000_000
price = { input = 0, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn where_something_is_free_nobody_is_asked_for_money_first() {
    let house = House::with(Plan { usd: "0", catalog: FREE, ..Plan::default() }).await;
    let mut body = large(100_000);
    body["model"] = json!("gratis");
    assert_eq!(house.post(&body).send().await.expect("a reply").status(), 200);
}

/// One account has its part of the budget and others theirs; what is under way gives its room back.
#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_share_one_budget() {
    let config = "[limits]\nbody_bytes = \"1MiB\"\nbodies_bytes = \"4MiB\"\n";
    let house = House::with(Plan { config: config.to_owned(), ..Plan::default() }).await;
    let app = house.running().app.clone();
    let mut senders = Vec::new();
    let length = 1 << 20;
    // The head of a body that fills the account's part, and no more of it.
    let mut socket = connected(&house).await;
    socket.write_all(head(&house, "/v1/chat/completions", length, "").as_bytes()).await.expect("sent");
    while app.bodies.used() < length {
        tokio::task::yield_now().await;
    }
    senders.push(socket);
    // Another account is not concerned, nor a small body of the same one.
    let (_, other) = house.stranger("10").await;
    let theirs = house.http.post(house.url("/v1/chat/completions")).bearer_auth(&other).json(&large(100_000));
    assert_eq!(theirs.send().await.expect("a reply").status(), 404, "it is read");
    assert_eq!(house.ask("small").await.status(), 200);
    // A second one of this account waits, and is read when the first has gone.
    let second = house.post(&large(100_000)).send();
    let (second, ()) = tokio::join!(second, async { senders.clear() });
    assert_eq!(second.expect("a reply").status(), 404);
    while app.bodies.used() > 0 {
        tokio::task::yield_now().await;
    }
}

/// `/metrics` is for this machine: not for whoever comes through a proxy on it.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_not_passed_on_by_a_proxy() {
    let house = House::new().await;
    let page = || house.http.get(house.url("/metrics"));
    assert_eq!(page().send().await.expect("a reply").status(), 200);
    for (name, value) in [
        ("x-forwarded-for", "198.51.100.7"),
        ("x-forwarded-for", "127.0.0.1"),
        ("forwarded", "for=198.51.100.7"),
        ("x-real-ip", "198.51.100.7"),
        ("x-forwarded-host", "gateway.example.com"),
        ("x-forwarded-proto", "https"),
        ("via", "1.1 proxy"),
    ] {
        let reply = page().header(name, value).send().await.expect("a reply");
        assert_eq!(reply.status(), 404, "{name}: {value}");
    }
    let config = "trusted_proxies = [\"127.0.0.0/8\"]\n".to_owned();
    let house = House::with(Plan { config, ..Plan::default() }).await;
    let reply = house.http.get(house.url("/metrics")).send().await.expect("a reply");
    assert_eq!(reply.status(), 404, "what comes from there comes through a proxy");
}
