//! SIGTERM with open calls: short ones finish, long ones end with a proper error event, everything
//! is settled before the exit, and the next start has nothing to put right.

use crate::books;
use crate::house::{House, Plan, chat, streamed};
use crate::kinds::Kind;
use crate::postgres::Server;
use crate::seen::{Record, Seen, read};
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    stop_with_open_calls(Plan::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    let server = Server::find();
    let database = server.database("stop").await;
    stop_with_open_calls(Plan { database: &database, ..Plan::default() }).await;
}

/// A database that takes the connection and says nothing: whoever starts that way can be stopped
/// like any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_waits_ends_in_order() {
    let mut house = House::new(Plan::default()).await;
    house.gates[0].kill();
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let database = format!("postgres://nobody@{}/none", silent.local_addr().expect("an address"));
    let process = house.gates[0].spawn_with(&[("TOLLGATE__DATABASE", &database)]);
    let _taken = tokio::time::timeout(Duration::from_secs(20), silent.accept()).await.expect("it asks").expect("taken");
    process.terminate();
    assert!(process.wait().await.success(), "it does not die of the signal");
    house.gates[0].start().await;
}

async fn stop_with_open_calls(plan: Plan<'_>) {
    let patience = ["60s", "60s"];
    let mut house = House::new(Plan { limits: "drain_time = \"20s\"", patience, ..plan }).await;
    let mut open = JoinSet::new();
    for number in 0..12 {
        let (kind, tag) = ([Kind::Stream, Kind::SlowStream, Kind::Whole][number % 3], format!("tag{number}"));
        let ask = match kind {
            Kind::Stream => streamed("plain", &format!("[[sim:tokens=8 delay_ms=80]] {tag}")),
            Kind::SlowStream => streamed("plain", &format!("[[sim:tokens=900 delay_ms=80]] {tag}")),
            _ => chat("plain", &format!("[[sim:think_ms=600]] {tag}")),
        };
        let request = house.post(0, &ask);
        open.spawn(async move {
            let seen = match request.send().await {
                Ok(reply) => read(reply, None).await,
                Err(_) => Seen::NOTHING,
            };
            Record { tag, kind, seen }
        });
    }
    while house.received_count().await < 12 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;

    let process = house.gates[0].process.as_mut().expect("running");
    process.terminate();
    let status = process.wait().await;
    assert_eq!(status.code(), Some(0), "{}", process.last_words());
    let records = open.join_all().await;
    for record in &records {
        match (record.kind, &record.seen) {
            // The end of a stream is the error event: `read` accepts nothing else.
            (Kind::SlowStream, Seen::Failed { status: 200, .. }) => {}
            (Kind::Stream | Kind::Whole, Seen::Answered { .. }) => {}
            other => panic!("{other:?}"),
        }
    }

    // No server is running: the command opens the store itself, and finds no call open.
    let report = house.verified().await;
    assert_eq!(report["usage_rows"], 12);
    let rows = books::usage(&house).await;
    assert!(
        rows.values().all(|row| row["ending"] != "expired" && row["charge_nano_usd"].as_i64() > Some(0)),
        "{rows:?}"
    );
    let cut = rows.values().filter(|row| row["reason"] == "server_draining").count();
    assert_eq!(cut, 4, "{rows:?}");

    house.gates[0].start().await;
    let log = house.gates[0].logged();
    let last = log.lines().rfind(|line| line.contains("\"serving\"")).expect("a line about the start");
    let serving: serde_json::Value = serde_json::from_str(last).expect("JSON");
    let recovered = ["settled", "voided", "dropped"].map(|what| serving[format!("recovered.{what}")].as_u64());
    assert_eq!(recovered, [Some(0); 3], "{last}");
    books::check(&house, &records, books::nano("10")).await;
}
