//! Clients that leave: at every chunk, before the first one, without ever reading.

use crate::house::{House, Plan, call_id, streamed};
use crate::watch::HANG;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate_store::Ending;

/// Disconnect at every chunk index: never free once something was delivered, never more than the
/// whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_at_any_chunk_pays_for_what_it_got() {
    let house = House::new().await;
    for leave_after in 1..=7 {
        // The provider goes on when the leaving has been noticed.
        house.sim.shut("/_door");
        let ask = streamed(&format!("[[sim:tokens=8 door={leave_after}]]"));
        let mut reply = house.post(&ask).send().await.expect("a reply");
        let call = call_id(&reply);
        let mut words = 0;
        while words < leave_after {
            let chunk = reply.chunk().await.expect("a chunk").expect("not the end");
            words += String::from_utf8_lossy(&chunk).matches("\"content\":\"").count();
        }
        drop(reply);
        let row = house.row(call).await;
        house.sim.open();
        assert_eq!(row.ending, Ending::ClientLeft, "after {leave_after}");
        if words > 1 {
            assert!(row.counters.output >= words as u64 - 1, "after {leave_after}: {words} words, {:?}", row.counters);
            assert!(row.charge.nano() > 0 && row.estimated);
            // The prompt is paid as well: a token in costs 1,000, one out 2,000.
            let (input, output) = (row.counters.input, row.counters.output);
            assert!(input > 0, "after {leave_after}: {row:?}");
            assert_eq!(row.charge.nano(), i64::try_from(input * 1_000 + output * 2_000).expect("small"));
        }
        assert!(row.charge <= row.hold);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_sees_the_close() {
    let house = House::new().await;
    let mut reply = house.post(&streamed("[[sim:tokens=100 delay_ms=100]]")).send().await.expect("a reply");
    reply.chunk().await.expect("a chunk");
    drop(reply);
    let left = tokio::time::Instant::now();
    loop {
        if house.sim.received()[0].client_closed_at_ms.is_some() {
            break;
        }
        assert!(left.elapsed() < HANG, "the provider still generates");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_before_the_first_byte_is_free() {
    let house = House::new().await;
    house.sim.shut("/v1/chat/completions");
    house.leave(house.post(&streamed("hello"))).await;
    house.quiet().await;
    house.sim.open();
    assert_eq!(house.available().await, 10_000_000_000);
    let rows = house.running().app.store.usage(Some(house.account), Default::default()).await.expect("rows");
    assert_eq!((rows.len(), rows[0].ending, rows[0].charge.nano()), (1, Ending::ClientLeft, 0));
}

/// A provider that bills to the end is read to its end: the charge is the true one.
#[tokio::test(flavor = "multi_thread")]
async fn with_bill_on_cancel_the_true_usage_is_learnt() {
    let house = House::new().await;
    let mut body = streamed("[[sim:tokens=12 delay_ms=300]]");
    body["model"] = json!("billed-to-the-end");
    let mut reply = house.post(&body).send().await.expect("a reply");
    let call = call_id(&reply);
    reply.chunk().await.expect("a chunk");
    drop(reply);
    let row = house.row(call).await;
    assert_eq!((row.ending, row.estimated, row.counters.output), (Ending::ClientLeft, false, 12));
    // The same for a call that is not streamed.
    let mut body = streamed("[[sim:tokens=12 think_ms=500]]");
    body["model"] = json!("billed-to-the-end");
    body["stream"] = json!(false);
    house.leave(house.post(&body)).await;
    house.quiet().await;
    let rows = house.running().app.store.usage(Some(house.account), Default::default()).await.expect("rows");
    assert_eq!((rows[0].counters.output, rows[0].charge.nano()), (12, 2 * 1_000 + 12 * 2_000));
}

/// One of the routes bills to the end, and it is the one that the call came to in the end.
#[tokio::test(flavor = "multi_thread")]
async fn bill_on_cancel_counts_whichever_route_answers() {
    const CATALOG: &str = r#"
[model."second-bills"]
price = { input = 1_000_000, output = 2_000_000 }
route = [
  { provider = "nobody", upstream_model = "sim-plain", priority = 0 },
  { provider = "stubborn", upstream_model = "sim-plain", priority = 1 },
]
"#;
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    for (at, streams) in [false, true].into_iter().enumerate() {
        let mut body = streamed("[[sim:tokens=12 think_ms=600]]");
        body["model"] = json!("second-bills");
        body["stream"] = json!(streams);
        // Gone before the first byte.
        house.leave(house.post(&body)).await;
        house.quiet().await;
        let rows = house.running().app.store.usage(Some(house.account), Default::default()).await.expect("rows");
        assert_eq!(rows.len(), at + 1);
        assert_eq!((rows[0].attempts, rows[0].provider.as_deref()), (2, Some("stubborn")));
        assert_eq!((rows[0].counters.output, rows[0].charge.nano()), (12, 2 * 1_000 + 12 * 2_000), "streams={streams}");
    }
}

/// A client that never reads is cut off after the write limit and pays for what was produced.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_is_let_go() {
    // Its pieces are long and cheap, and nothing limits how many of them there are.
    let catalog = "[model.\"endless\"]\nprice = { input = 1, output = 1 }\nroute = [{ provider = \"sim\", upstream_model = \"sim-plain\" }]\n";
    let plan = Plan { config: "[limits]\nwrite_time = \"1s\"\n".to_owned(), catalog, ..Plan::default() };
    let house = House::with(plan).await;
    let body = json!({ "model": "endless", "stream": true, "messages": [{ "role": "user", "content": "[[sim:tokens=900 size=60000]]" }] });
    let body = body.to_string();
    let mut socket = tokio::net::TcpStream::connect(house.running().address).await.expect("connected");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        house.key,
        body.len(),
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    let mut first = [0; 15];
    socket.read_exact(&mut first).await.expect("the status line");
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    house.quiet().await;
    let rows = house.running().app.store.usage(Some(house.account), Default::default()).await.expect("rows");
    assert_eq!(rows[0].ending, Ending::ClientLeft);
    assert!(rows[0].charge.nano() > 0);
    drop(socket);
}

/// A provider that bills to the end is read on only for so long, and so much.
#[tokio::test(flavor = "multi_thread")]
async fn reading_on_has_limits_of_time_and_size() {
    let defaults = tollgate_upstream::ProviderSettings::default();
    assert_eq!((defaults.drain_time, defaults.drain_bytes), (Duration::from_secs(60), 1 << 20));
    for (limit, text) in [
        ("drain_time = \"300ms\"", "[[sim:hang_midstream after=3 tokens=9]]"),
        ("drain_bytes = 4096", "[[sim:tokens=900 size=200 delay_ms=1]]"),
    ] {
        let house = House::new().await;
        let file = house.dir.join("tollgate.toml");
        let config = std::fs::read_to_string(&file).expect("read");
        std::fs::write(&file, config.replace("bill_on_cancel = true", &format!("bill_on_cancel = true\n{limit}")))
            .expect("written");
        for _ in 0..2_400 {
            if house.running().app.metrics.catalog_loads.get() > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut body = streamed(text);
        body["model"] = json!("billed-to-the-end");
        let mut reply = house.post(&body).send().await.expect("a reply");
        let call = call_id(&reply);
        reply.chunk().await.expect("a chunk");
        drop(reply);
        let left = tokio::time::Instant::now();
        let row = house.row(call).await;
        // Without a limit of its own it would be a minute.
        assert!(left.elapsed() < Duration::from_secs(45), "{limit}: {:?}", left.elapsed());
        assert_eq!((row.ending, row.reason.as_str()), (Ending::ClientLeft, "client_gone_read_on"), "{limit}");
        assert!(row.estimated && row.charge.nano() > 0 && row.counters.output < 900, "{limit}: {:?}", row.counters);
    }
}
