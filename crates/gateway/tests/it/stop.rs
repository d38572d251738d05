//! Graceful stop: streams may finish up to a limit, then end with a proper error event; everything
//! is settled before exit.

use crate::house::{House, Plan, call_id, events, streamed};
use crate::watch::stands_still;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate_store::Ending;

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_can_finish_finishes() {
    let mut house = House::new().await;
    let mut reply = house.post(&streamed("[[sim:tokens=5 delay_ms=150]]")).send().await.expect("a reply");
    let call = call_id(&reply);
    let mut text = String::from_utf8_lossy(&reply.chunk().await.expect("a chunk").expect("bytes")).into_owned();
    let rest = async {
        while let Some(chunk) = reply.chunk().await.expect("a chunk") {
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
        text
    };
    let (text, ()) = tokio::join!(rest, house.restart());
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(house.row(call).await.ending, Ending::Answered);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_finish_ends_with_an_error_event_and_is_settled() {
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
    let events = events(&text);
    assert_eq!(events.last().expect("events")["error"]["code"], "server_draining", "{text}");
    // The restarted gateway found nothing to recover: it had been settled before the exit.
    assert_eq!(house.running().recovered, Default::default());
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str()), (Ending::UpstreamFault, "server_draining"));
    assert!(row.charge.nano() > 0 && row.charge <= row.hold);
}

fn hurried() -> Plan {
    Plan { config: "[limits]\ndrain_time = \"300ms\"\n".to_owned(), ..Plan::default() }
}

/// The last event cannot be sent to a client that reads nothing. The stop ends all the same, with
/// everything settled.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_does_not_hold_up_the_stop() {
    // Its pieces are long and cheap, and nothing limits how many of them there are.
    let catalog = "[model.\"endless\"]\nprice = { input = 1, output = 1 }\nroute = [{ provider = \"sim\", upstream_model = \"sim-plain\" }]\n";
    // A write has an hour: what ends this stream can only be the stop.
    let config = "[limits]\ndrain_time = \"300ms\"\nwrite_time = \"1h\"\n".to_owned();
    let mut house = House::with(Plan { catalog, config, ..Plan::default() }).await;
    let mut body = streamed("[[sim:tokens=900 size=60000]]");
    body["model"] = "endless".into();
    let body = body.to_string();
    // With little room on our side it stands still soon, on a slow machine too.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4 << 10).expect("a small window");
    let mut socket = socket.connect(house.running().address).await.expect("connected");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        house.key,
        body.len(),
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    let mut first = [0; 15];
    socket.read_exact(&mut first).await.expect("the status line");
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    stands_still(&house.sim).await;
    house.restart().await;
    assert_eq!(house.running().recovered, Default::default(), "nothing was left for the next start");
    let rows = house.running().app.store.usage(Some(house.account), Default::default()).await.expect("rows");
    assert_eq!(rows.len(), 1);
    // Buffers of the kernel decide whether the stream is asked once more before it is dropped.
    let ended = (rows[0].ending, rows[0].reason.as_str());
    assert!(ended.0 == Ending::ClientLeft || ended == (Ending::UpstreamFault, "server_draining"), "{ended:?}");
    assert!(rows[0].charge.nano() > 0);
}

/// A stream that is read on for its usage, after its client left, gives way to a stop.
#[tokio::test(flavor = "multi_thread")]
async fn reading_on_for_the_usage_gives_way_to_a_stop() {
    let mut house = House::with(hurried()).await;
    let mut body = streamed("[[sim:hang_midstream after=5 tokens=9]]");
    body["model"] = json!("billed-to-the-end");
    let mut reply = house.post(&body).send().await.expect("a reply");
    let call = call_id(&reply);
    reply.chunk().await.expect("a chunk");
    drop(reply);
    // Its leaving is noticed when its connection is gone.
    while house.running().app.metrics.connections.open.get() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let began = std::time::Instant::now();
    house.restart().await;
    // Reading on may take sixty seconds.
    assert!(began.elapsed() < Duration::from_secs(55), "{:?}", began.elapsed());
    assert_eq!(house.running().recovered, Default::default());
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str()), (Ending::ClientLeft, "client_gone_read_on"));
    assert!(row.counters.output >= 5 && row.charge.nano() > 0, "{:?}", row.counters);
}
