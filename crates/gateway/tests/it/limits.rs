//! Limits of connections: slow headers, slow bodies, too many calls.

use crate::house::{House, Plan, chat, error_of};
use crate::watch::HANG;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test(flavor = "multi_thread")]
async fn slow_headers_are_cut_off() {
    let house = House::with(Plan { config: "[limits]\nheader_time = \"500ms\"\n".to_owned(), ..Plan::default() }).await;
    let mut socket = tokio::net::TcpStream::connect(house.running().address).await.expect("connected");
    socket.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n").await.expect("sent");
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(HANG, socket.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the connection stays open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_is_a_408() {
    let house = House::with(Plan { config: "[limits]\nbody_time = \"500ms\"\n".to_owned(), ..Plan::default() }).await;
    let mut socket = tokio::net::TcpStream::connect(house.running().address).await.expect("connected");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        house.key
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    let mut reply = [0; 12];
    tokio::time::timeout(HANG, socket.read_exact(&mut reply)).await.expect("in time").expect("a reply");
    assert_eq!(&reply, b"HTTP/1.1 408");
}

#[tokio::test(flavor = "multi_thread")]
async fn above_the_number_of_calls_new_ones_get_a_retry_after() {
    let house = House::with(Plan { config: "[limits]\ncalls = 1\n".to_owned(), ..Plan::default() }).await;
    house.sim.shut("/v1/chat/completions");
    let first = tokio::task::JoinSet::from_iter([house.post(&chat("first")).send()]);
    while house.sim.waited() == 0 {
        tokio::task::yield_now().await;
    }
    let reply = house.ask("second").await;
    assert!(reply.headers().contains_key("retry-after"));
    let (status, error) = error_of(reply).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("overloaded")));
    house.sim.open();
    first.join_all().await;
    assert_eq!(house.ask("third").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_works_without_tls() {
    let house = House::new().await;
    let http2 = reqwest::Client::builder().http2_prior_knowledge().build().expect("a client");
    let request = http2.post(house.url("/v1/chat/completions")).bearer_auth(&house.key).json(&chat("hi"));
    let reply = request.send().await.expect("a reply");
    assert_eq!((reply.version(), reply.status().as_u16()), (reqwest::Version::HTTP_2, 200));
}

const SLOW_THEN_FINE: &str = r#"
[model."slow-then-fine"]
price = { input = 1_000_000, output = 2_000_000 }
route = [
  { provider = "sim", upstream_model = "sim-error500", priority = 0 },
  { provider = "sim", upstream_model = "sim-plain", priority = 1 },
]
"#;

/// The time of a call is counted from its hold: what a route took, or the first byte, is part of
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_one_deadline_from_its_hold_on() {
    let config = "[limits]\nstream_time = \"10s\"\n".to_owned();
    let house = House::with(Plan { config, catalog: SLOW_THEN_FINE, ..Plan::default() }).await;
    let (call, text) = house.stream("[[sim:tokens=100 think_ms=4000 delay_ms=500]]").await;
    let events = crate::house::events(&text);
    assert_eq!(events.last().expect("events")["error"]["code"], "upstream_timeout");
    let row = house.row(call).await;
    assert_eq!(row.reason, "stream_too_long");
    // Twelve events fit into what the first byte left; twenty would fit into ten seconds of their
    // own.
    assert!(row.counters.output > 0 && row.counters.output < 15, "{:?}", row.counters);
    // A route that took the whole time leaves none for a second one.
    let mut body = crate::house::chat("[[sim:think_ms=11000]]");
    body["model"] = serde_json::json!("slow-then-fine");
    let reply = house.post(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 502);
    let row = house.row(crate::house::call_id(&reply)).await;
    assert_eq!((row.attempts, row.charge.nano()), (1, 0));
    // With time left the second one is asked.
    let mut body = crate::house::chat("hello");
    body["model"] = serde_json::json!("slow-then-fine");
    let reply = house.post(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    assert_eq!(house.row(crate::house::call_id(&reply)).await.attempts, 2);
}
