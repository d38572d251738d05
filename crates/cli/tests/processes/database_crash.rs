//! `kill -9` of PostgreSQL under load. While it is away the gateway answers 503, keeps knowing its
//! keys and sends nothing upstream; what it delivered before is charged once the database is back,
//! without a restart of the gateway.

use crate::books;
use crate::experiment::Experiment;
use crate::house::{House, Plan, chat, streamed};
use crate::kinds::{self, Kind};
use crate::load::Load;
use crate::postgres::Own;
use crate::process::HANG;
use crate::seen::{Record, Seen, count, read};
use std::time::{Duration, Instant};

/// How long a hold may take; a refusal that does not wait for it is quicker.
const HOLD_TIME: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_and_nothing_is_lost() {
    const REFUSED: u32 = 20;
    let mut experiment = Experiment::new("PostgreSQL killed under load");
    let server = Own::start();
    let database = server.database("away").await;
    let mut house = House::new(Plan { database: &database, ledger_time: "2s", ..kinds::plan() }).await;
    let load = Load::start(&house, 12);
    let seen = load.until(0, |records| count(records, "answered") >= 40).await;

    // It ends while the database is away, and must be charged all the same.
    let long = house.ask(0, &streamed("plain", "[[sim:tokens=20 delay_ms=100]] survivor")).await;
    assert_eq!(long.status(), 200);
    server.kill();
    unavailable(&house).await;
    let long = read(long, None).await;
    assert!(matches!(long, Seen::Answered { .. }), "{long:?}");

    let began = Instant::now();
    for _ in 0..REFUSED {
        let reply = house.ask(0, &chat("plain", "refused")).await;
        // 503 and not 401: a key that is known stays known.
        assert_eq!(reply.status(), 503);
        assert!(reply.headers().contains_key("retry-after"));
        let body: serde_json::Value = reply.json().await.expect("JSON");
        assert_eq!(body["error"]["code"], "ledger_unavailable", "{body}");
    }
    assert!(began.elapsed() < HOLD_TIME * REFUSED, "refusals wait for the database: {:?}", began.elapsed());
    let stranger = house.post_as("sk-nobody", 0, &chat("plain", "refused")).send().await.expect("a reply");
    assert_eq!(stranger.status(), 503, "whether a new key is good cannot be known");
    let sent = house.received().await.into_iter().find(|one| one["body"].to_string().contains("refused"));
    assert_eq!(sent, None, "something was sent without a ledger");
    let seen = load.until(seen, |records| count(records, "unavailable") >= 20).await;

    server.restart().await;
    house.gates[0].ready().await;
    load.until(seen, |records| count(records, "answered") >= 40).await;
    let mut records = load.stop().await;
    records.push(Record { tag: "survivor".to_owned(), kind: Kind::SlowStream, seen: long });
    // Audio that its provider breaks off has no other end than a lost connection.
    let broken_off = |kind| matches!(kind, Kind::SpeechCut | Kind::SongCut);
    let cut_off = |record: &&Record| record.seen.outcome() == "lost" && !broken_off(record.kind);
    let lost: Vec<&Record> = records.iter().filter(cut_off).collect();
    assert!(lost.is_empty(), "the gateway never went away: {lost:?}");
    let ends = books::check(&house, &records, books::nano(kinds::USD)).await;
    experiment.seen(&records, ends);
    experiment.end();
}

/// Waits until the gateway has seen that its database is gone.
async fn unavailable(house: &House) {
    let began = Instant::now();
    let url = format!("{}/readyz", house.gates[0].url());
    while house.http.get(&url).send().await.expect("a reply").status() != 503 {
        assert!(began.elapsed() < HANG, "the gateway does not see that the database is gone");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Both die, and the gateway comes back first: it says what is wrong and ends, and a supervisor's
/// later try succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_starts_without_its_database_says_so() {
    let server = Own::start();
    let database = server.database("both_die").await;
    let mut house = House::new(Plan { database: &database, ledger_time: "2s", ..kinds::plan() }).await;
    let load = Load::start(&house, 12);
    let seen = load.until(0, |records| count(records, "answered") >= 20).await;
    server.kill();
    load.until(seen, |records| count(records, "unavailable") >= 1).await;
    house.gates[0].kill();
    let records = load.abandon().await;

    let process = house.gates[0].spawn();
    let status = process.wait().await;
    assert!(!status.success());
    let log = process.logged();
    assert!(log.contains("tollgate: the database is not available"), "{log}");

    server.restart().await;
    house.gates[0].start().await;
    books::check(&house, &records, books::nano(kinds::USD)).await;
}
