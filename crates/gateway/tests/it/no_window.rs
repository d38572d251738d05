//! HTTP/2 clients that keep their connection alive but make no room for a stream: they are taken
//! for gone, and nobody else is.

use crate::house::{House, MODEL, Plan, call_id};
use crate::watch::stands_still;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use serde_json::json;
use std::time::Duration;
use tollgate_store::{CallId, Ending};

/// A connection whose streams may get this many bytes and, unless the test says so, not one more.
async fn connect(house: &House, window: u32) -> SendRequest<Bytes> {
    let socket = tokio::net::TcpStream::connect(house.running().address).await.expect("connected");
    let (send, connection) =
        h2::client::Builder::new().initial_window_size(window).handshake(socket).await.expect("a handshake");
    drive(connection);
    send
}

#[expect(clippy::disallowed_methods, reason = "a client's own connection, gone with the test")]
fn drive(connection: h2::client::Connection<tokio::net::TcpStream, Bytes>) {
    tokio::spawn(connection);
}

async fn post(house: &House, send: &mut SendRequest<Bytes>, text: &str, stream: bool) -> ResponseFuture {
    let body = json!({ "model": MODEL, "stream": stream, "messages": [{ "role": "user", "content": text }] });
    let request = http::Request::post(house.url("/v1/chat/completions"))
        .header("authorization", format!("Bearer {}", house.key))
        .header("content-type", "application/json")
        .body(())
        .expect("a request");
    let mut ready = send.clone().ready().await.expect("room for a stream");
    let (reply, mut sending) = ready.send_request(request, false).expect("sent");
    sending.send_data(Bytes::from(body.to_string()), true).expect("sent");
    reply
}

fn id_of(reply: &http::Response<h2::RecvStream>) -> CallId {
    assert_eq!(reply.status(), 200);
    reply.headers()["x-request-id"].to_str().expect("text").parse().expect("a call id")
}

fn impatient() -> Plan {
    Plan { config: "[limits]\nwrite_time = \"1s\"\n".to_owned(), ..Plan::default() }
}

/// Reads until the stream is reset; how many bytes came.
async fn until_reset(mut body: h2::RecvStream) -> usize {
    let mut got = 0;
    while let Some(data) = body.data().await {
        match data {
            Ok(data) => got += data.len(),
            Err(error) => {
                assert_eq!(error.reason(), Some(h2::Reason::CANCEL), "{error}");
                return got;
            }
        }
    }
    panic!("the stream ended properly after {got} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_room_is_reset_and_its_call_settled() {
    let house = House::with(impatient()).await;
    let mut send = connect(&house, 4_000).await;
    let reply = post(&house, &mut send, "[[sim:tokens=900 delay_ms=5]]", true).await.await.expect("headers");
    let call = id_of(&reply);
    // The data that came is read, but its room is never given back.
    let got = tokio::time::timeout(Duration::from_secs(20), until_reset(reply.into_body())).await.expect("let go");
    assert!(got <= 4_000 && got > 3_000, "{got}");
    house.quiet().await;
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str()), (Ending::ClientLeft, "client_gone"));
    assert!(row.charge.nano() > 0 && row.counters.output < 200, "{:?}", row.counters);
    assert!(house.sim.received().iter().all(|one| !one.finished), "the provider was let go");
    // The connection is as good as before.
    let reply = post(&house, &mut send, "[[sim:tokens=2]]", true).await.await.expect("headers");
    assert_eq!(reply.status(), 200);
    let mut body = reply.into_body();
    while let Some(data) = body.data().await {
        let length = data.expect("data").len();
        body.flow_control().release_capacity(length).expect("released");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_no_room_from_the_beginning_is_reset_too() {
    let house = House::with(impatient()).await;
    let mut send = connect(&house, 0).await;
    let reply = post(&house, &mut send, "[[sim:tokens=20]]", true).await.await.expect("headers");
    let call = id_of(&reply);
    let got = tokio::time::timeout(Duration::from_secs(20), until_reset(reply.into_body())).await.expect("let go");
    assert_eq!(got, 0);
    assert_eq!(house.row(call).await.ending, Ending::ClientLeft);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_reply_is_not_held_for_ever_either() {
    let house = House::with(impatient()).await;
    let mut send = connect(&house, 100_000).await;
    let reply = post(&house, &mut send, "[[sim:tokens=100 size=10000]]", false).await.await.expect("headers");
    let call = id_of(&reply);
    let got = tokio::time::timeout(Duration::from_secs(20), until_reset(reply.into_body())).await.expect("let go");
    assert!(got <= 100_000, "{got}");
    // The call itself was answered before.
    assert_eq!(house.row(call).await.ending, Ending::Answered);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_its_time_but_makes_room_is_left_alone() {
    let config = "[limits]\nwrite_time = \"6s\"\n".to_owned();
    let house = House::with(Plan { config, ..Plan::default() }).await;
    let mut send = connect(&house, 2_000).await;
    let reply = post(&house, &mut send, "[[sim:tokens=10]]", true).await.await.expect("headers");
    let call = id_of(&reply);
    let mut body = reply.into_body();
    while let Some(data) = body.data().await {
        let length = data.expect("not reset").len();
        tokio::time::sleep(Duration::from_millis(800)).await;
        body.flow_control().release_capacity(length).expect("released");
    }
    assert_eq!(house.row(call).await.ending, Ending::Answered);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_provider_is_no_reason_to_pull_a_stream() {
    let house = House::with(impatient()).await;
    let client = reqwest::Client::builder().http2_prior_knowledge().build().expect("a client");
    let body = json!({ "model": MODEL, "stream": true, "messages": [{ "role": "user", "content": "[[sim:tokens=2 delay_ms=2500]]" }] });
    let reply = client.post(house.url("/v1/chat/completions")).bearer_auth(&house.key).json(&body).send().await;
    let reply = reply.expect("a reply");
    let call = call_id(&reply);
    assert!(reply.text().await.expect("the whole stream").ends_with("data: [DONE]\n\n"));
    assert_eq!(house.row(call).await.ending, Ending::Answered);
}

/// A stop does not wait for room either: what cannot be sent is settled all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_settles_a_stream_without_room() {
    let plan = Plan { config: "[limits]\ndrain_time = \"300ms\"\n".to_owned(), ..Plan::default() };
    let mut house = House::with(plan).await;
    let mut send = connect(&house, 4_000).await;
    let reply = post(&house, &mut send, "[[sim:tokens=900 delay_ms=2]]", true).await.await.expect("headers");
    let call = id_of(&reply);
    stands_still(&house.sim).await;
    house.restart().await;
    assert_eq!(house.running().recovered, Default::default(), "nothing was left for the next start");
    assert_eq!(house.row(call).await.ending, Ending::ClientLeft);
}

/// One connection has so many streams at once and no more: the next waits for one to end.
#[tokio::test(flavor = "multi_thread")]
async fn the_streams_of_a_connection_are_limited() {
    let house = House::with(Plan { config: "[limits]\nh2_streams = 2\n".to_owned(), ..Plan::default() }).await;
    let mut send = connect(&house, 1 << 20).await;
    // The first answer has brought the server's settings along.
    let reply = post(&house, &mut send, "hello", false).await.await.expect("a reply");
    assert_eq!(reply.status(), 200);
    assert_eq!(send.current_max_send_streams(), 2);
    house.sim.shut("/v1/chat/completions");
    let slow = [post(&house, &mut send, "first", false).await, post(&house, &mut send, "second", false).await];
    while house.sim.waited() < 2 {
        tokio::task::yield_now().await;
    }
    let third = post(&house, &mut send, "hello", false).await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(house.sim.received().len(), 3, "two are open: the third has not left");
    house.sim.open();
    for reply in slow {
        assert_eq!(reply.await.expect("a reply").status(), 200);
    }
    assert_eq!(third.await.expect("a reply").status(), 200);
    house.quiet().await;
    let closed: Vec<_> = house.sim.received().iter().map(|one| one.finished).collect();
    assert_eq!(closed, [true; 4]);
}
