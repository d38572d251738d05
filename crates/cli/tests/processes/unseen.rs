//! Accounts with a cent of trial credit send calls at once whose provider reads far more than
//! stands in them: a video behind a link, a file by its id, a stored thread, a cache. What the
//! operator pays for more than was charged stays below what was paid.

use crate::books;
use crate::experiment::{Experiment, long};
use crate::house::{House, Plan, text};
use crate::postgres::Server;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Of each account, at once.
const CALLS: usize = 40;
/// What the provider reports of each: 0.09 USD at the price of `plain`.
const READ: u64 = 90_000;

#[tokio::test(flavor = "multi_thread")]
async fn unseen_content_sqlite() {
    unseen_content("unseen content, SQLite", Plan::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unseen_content_postgres() {
    let server = Server::find();
    let database = server.database("unseen").await;
    let plan = Plan { database: &database, gates: 2, ..Plan::default() };
    unseen_content("unseen content, two replicas on PostgreSQL", plan).await;
}

/// The same question with something in it that only the provider sees.
fn hidden(number: usize) -> Value {
    let said = format!("[[sim:prompt={READ} tokens=2]] tag{number}");
    let link = "https://files.example/film.mp4";
    let mut ask =
        json!({"model": "plain", "messages": [{"role": "user", "content": [{"type": "text", "text": said}]}]});
    let part = match number % 5 {
        0 => json!({"type": "video_url", "video_url": {"url": link}}),
        1 => json!({"type": "file", "file": {"file_id": "file-1"}}),
        2 => json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0xLjQ="}}),
        3 => {
            ask["thread"] = json!({"id": "thread-1"});
            return ask;
        }
        _ => {
            ask["cached_content"] = json!("cachedContents/1");
            return ask;
        }
    };
    ask["messages"][0]["content"].as_array_mut().expect("parts").push(part);
    ask
}

async fn unseen_content(name: &'static str, plan: Plan<'_>) {
    let mut experiment = Experiment::new(name);
    let house = Arc::new(House::new(plan).await);
    // Some have a cent, some have enough for a call or two.
    let accounts = if long() { 40 } else { 4 };
    let (mut given, mut served) = (0, 0);
    let mut storm = JoinSet::new();
    for number in 0..accounts {
        let credit = if number % 2 == 0 { "0.01" } else { "0.25" };
        given += books::nano(credit);
        let account = text(&house.cli(&["account", "create", &format!("attacker-{number}")]).await["account_id"]);
        house.cli(&["account", "topup", &account, credit, "--trial", "--id", &format!("trial-{number}")]).await;
        let key = text(&house.cli(&["key", "create", &account]).await["secret"]);
        for call in 0..CALLS {
            let (house, key) = (house.clone(), key.clone());
            storm.spawn(async move {
                let reply = house.post_as(&key, call % house.gates.len(), &hidden(call)).send().await.expect("a reply");
                let status = reply.status().as_u16();
                let body = reply.text().await.expect("a body");
                assert!(status == 200 || status == 402 && body.contains("insufficient_balance"), "{status}: {body}");
                (number, status)
            });
        }
    }
    for (number, status) in storm.join_all().await {
        assert!(status == 402 || number % 2 == 1, "a cent does not pay for what may be read");
        served += u64::from(status == 200);
    }
    house.quiet().await;
    house.verified().await;
    assert_eq!(house.received_count().await, served, "nothing is sent without a hold");
    let rows = books::usage(&house).await;
    let sum = |field: &str| -> i64 { rows.values().map(|row| books::amount(row, field)).sum() };
    let (paid, lost) = (sum("charge_nano_usd"), sum("write_off_nano_usd"));
    let worth = i64::try_from(served * (READ * 1_000 + 2 * 2_000)).expect("an amount");
    assert!(served > 0 && paid + lost == worth, "{served} served: {paid} paid and {lost} lost of {worth}");
    assert!(lost < paid && paid <= given, "{lost} lost, {paid} paid of {given}");
    experiment.count("accounts", accounts as u64);
    experiment.count("calls at once", (accounts * CALLS) as u64);
    experiment.count("served", served);
    experiment.count("nano-USD paid", u64::try_from(paid).expect("an amount"));
    experiment.count("nano-USD lost", u64::try_from(lost).expect("an amount"));
    experiment.end();
}
