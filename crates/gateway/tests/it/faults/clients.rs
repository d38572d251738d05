//! What a client does, and what a stop does to it.

use super::{FUNDED, paid, rows};
use crate::house::{House, Plan, call_id, events, streamed};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate_store::Ending;

pub async fn the_client_leaves_before_the_first_byte() {
    let house = House::new().await;
    house.sim.shut("/v1/chat/completions");
    house.leave(house.post(&streamed("hello"))).await;
    house.quiet().await;
    house.sim.open();
    let rows = rows(&house).await;
    assert_eq!((rows.len(), rows[0].ending, rows[0].charge.nano()), (1, Ending::ClientLeft, 0));
    assert_eq!(house.available().await, FUNDED);
}

pub async fn the_client_leaves_in_mid_stream() {
    let house = House::new().await;
    house.sim.shut("/_door");
    let mut reply = house.post(&streamed("[[sim:tokens=50 door=6]]")).send().await.expect("a reply");
    let call = call_id(&reply);
    let mut words = 0;
    while words < 5 {
        let chunk = reply.chunk().await.expect("a chunk").expect("bytes");
        words += String::from_utf8_lossy(&chunk).matches("\"content\":\"").count();
    }
    drop(reply);
    let row = paid(&house, call).await;
    house.sim.open();
    assert_eq!(row.ending, Ending::ClientLeft);
    assert!(row.counters.output + 1 >= words as u64, "{words} words came, {:?} were counted", row.counters);
    let delivered = i64::try_from(words - 1).expect("few") * 2_000;
    assert!(row.counters.input > 0, "the prompt was read by the provider");
    let input = i64::try_from(row.counters.input).expect("few") * 1_000;
    assert!(row.charge.nano() >= input + delivered, "prompt and what was delivered: {row:?}");
}

pub async fn the_client_says_nothing() {
    let house = House::with(Plan { config: "[limits]\nheader_time = \"200ms\"\n".to_owned(), ..Plan::default() }).await;
    for part in ["", "PRI * HTTP/2.0", "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"] {
        let mut socket = tokio::net::TcpStream::connect(house.running().address).await.expect("connected");
        // On a slow machine it may be closed before.
        let _ = socket.write_all(part.as_bytes()).await;
        let mut said = Vec::new();
        let _ = socket.read_to_end(&mut said).await;
        assert!(said.is_empty(), "{}", String::from_utf8_lossy(&said));
    }
    assert!(rows(&house).await.is_empty());
    assert_eq!(house.available().await, FUNDED);
}

/// The head of a large request, without money: its body never comes, and nobody waits for it.
pub async fn a_large_body_without_money() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    let mut socket = tokio::net::TcpStream::connect(house.running().address).await.expect("connected");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 30000000\r\n\r\n",
        house.key
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    let mut first = [0; 12];
    socket.read_exact(&mut first).await.expect("the status line");
    assert_eq!(&first, b"HTTP/1.1 402");
    assert!(rows(&house).await.is_empty());
    assert_eq!((house.available().await, house.running().app.bodies.used()), (0, 0));
}

pub async fn the_client_never_reads() {
    // Its pieces are long and cheap, and nothing limits how many of them there are.
    let catalog = "[model.\"endless\"]\nprice = { input = 1, output = 1 }\nroute = [{ provider = \"sim\", upstream_model = \"sim-plain\" }]\n";
    let config = "[limits]\nwrite_time = \"1s\"\n".to_owned();
    let house = House::with(Plan { config, catalog, ..Plan::default() }).await;
    let ask = "[[sim:tokens=900 size=60000]]";
    let body =
        json!({ "model": "endless", "stream": true, "messages": [{ "role": "user", "content": ask }] }).to_string();
    let mut socket = tokio::net::TcpStream::connect(house.running().address).await.expect("connected");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        house.key,
        body.len(),
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    let mut first = [0; 15];
    socket.read_exact(&mut first).await.expect("the status line");
    for _ in 0..2_400 {
        if !rows(&house).await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let row = rows(&house).await.remove(0);
    assert_eq!(row.ending, Ending::ClientLeft);
    house.quiet().await;
    // What it got is paid, and that is all that is gone.
    assert!(row.charge.nano() > 0);
    assert_eq!(house.available().await, FUNDED - row.charge.nano());
    drop(socket);
}

pub async fn a_stop_with_streams_open() {
    let mut house =
        House::with(Plan { config: "[limits]\ndrain_time = \"500ms\"\n".to_owned(), ..Plan::default() }).await;
    let mut reply = house.post(&streamed("[[sim:tokens=500 delay_ms=50]]")).send().await.expect("a reply");
    let call = call_id(&reply);
    let mut text = String::new();
    while text.matches("\"content\":\"").count() < 3 {
        text.push_str(&String::from_utf8_lossy(&reply.chunk().await.expect("a chunk").expect("bytes")));
    }
    let rest = async {
        while let Some(chunk) = reply.chunk().await.expect("a proper end") {
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
        text
    };
    let (text, ()) = tokio::join!(rest, house.restart());
    assert_eq!(events(&text).last().expect("events")["error"]["code"], "server_draining", "{text}");
    assert_eq!(house.running().recovered, Default::default(), "the row was final before the exit");
    assert_eq!(paid(&house, call).await.reason, "server_draining");
}
