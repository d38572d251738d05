//! `kill -9` of PostgreSQL under load. While it is away the gateway answers 503, keeps knowing its keys and sends nothing
//! upstream; what it delivered before is charged once the database is back, without a restart of the gateway.

use crate::books;
use crate::experiment::Experiment;
use crate::house::{House, Plan, chat, streamed};
use crate::load::{Kind, Load, Record, Seen, read};
use crate::postgres::Own;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_and_nothing_is_lost() {
    let server = Own::start();
    let database = server.database("away").await;
    let mut house = House::new(Plan { database: &database, usd: "100", ..Plan::default() }).await;
    let load = Load::start(&house, 12);
    tokio::time::sleep(Duration::from_millis(1_500)).await;

    // It ends while the database is away, and must be charged all the same.
    let long = house.ask(0, &streamed("plain", "[[sim:tokens=20 delay_ms=100]] survivor")).await;
    assert_eq!(long.status(), 200);
    server.kill();
    unavailable(&house).await;
    let long = read(long, None).await;
    assert!(matches!(long, Seen::Answered { .. }), "{long:?}");

    let before = house.received_count().await;
    let mut took = Duration::ZERO;
    for _ in 0..20 {
        let began = Instant::now();
        let reply = house.ask(0, &chat("plain", "hello")).await;
        took = took.max(began.elapsed());
        // 503 and not 401: a key that is known stays known.
        assert_eq!(reply.status(), 503);
        assert!(reply.headers().contains_key("retry-after"));
        let body: serde_json::Value = reply.json().await.expect("JSON");
        assert_eq!(body["error"]["code"], "ledger_unavailable", "{body}");
    }
    assert!(took < Duration::from_secs(1), "a refusal took {took:?}");
    let stranger = house.post_as("sk-nobody", 0, &chat("plain", "hello")).send().await.expect("a reply");
    assert_eq!(stranger.status(), 503, "whether a new key is good cannot be told");
    assert_eq!(house.received_count().await, before, "something was sent without a ledger");

    server.restart().await;
    house.gates[0].ready(Duration::from_secs(10)).await;
    let began = Instant::now();
    while house.ask(0, &chat("plain", "hello")).await.status() != 200 {
        assert!(began.elapsed() < Duration::from_secs(20), "calls do not work again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    let mut records = load.stop().await;
    records.push(Record { tag: "survivor".to_owned(), kind: Kind::SlowStream, seen: long });
    let tally = books::tally(&records);
    eprintln!("{} calls: {tally:?}", records.len());
    assert!(tally["unavailable"] > 20 && tally["answered"] > 20, "{tally:?}");
    assert!(!tally.contains_key("lost"), "the gateway never went away: {tally:?}");
    books::check(&house, &records, books::nano("100")).await;
    let mut experiment = Experiment::new("PostgreSQL killed under load");
    for (outcome, count) in tally {
        experiment.count(outcome, count);
    }
    experiment.end();
}

/// Waits until the gateway has seen that its database is gone.
async fn unavailable(house: &House) {
    let began = Instant::now();
    let url = format!("{}/readyz", house.gates[0].url());
    while house.http.get(&url).send().await.expect("a reply").status() != 503 {
        assert!(began.elapsed() < Duration::from_secs(20), "the gateway does not see that the database is gone");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Calls that had their hold by then are on their way already.
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Both die, and the gateway comes back first: it says what is wrong and ends, and a supervisor's later try succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_starts_without_its_database_says_so() {
    let server = Own::start();
    let database = server.database("both_die").await;
    let mut house = House::new(Plan { database: &database, usd: "100", ..Plan::default() }).await;
    let load = Load::start(&house, 12);
    tokio::time::sleep(Duration::from_millis(700)).await;
    server.kill();
    tokio::time::sleep(Duration::from_millis(300)).await;
    house.gates[0].kill();
    let records = load.abandon().await;

    let process = house.gates[0].spawn();
    let status = process.wait(Duration::from_secs(10)).await;
    assert!(!status.success());
    let log = process.logged();
    assert!(log.contains("tollgate: the store: the database is not available"), "{log}");

    server.restart().await;
    house.gates[0].start().await;
    books::check(&house, &records, books::nano("100")).await;
}
