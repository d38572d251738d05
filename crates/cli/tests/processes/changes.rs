//! What operators change about accounts, keys, models and providers: in force on every replica, and
//! in the log.

use crate::house::{House, Plan, chat};
use crate::postgres::Server;
use crate::process::HANG;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CATALOG: &str = "[group.partner]\nmultiplier = \"0.8\"\n";

/// The gate answers so, now or when it has heard of the change.
async fn answers(house: &House, gate: usize, expected: (u16, &str)) {
    let began = Instant::now();
    loop {
        let reply = house.post_as(&house.key, gate, &chat("plain", "hello")).send().await.expect("a reply");
        let status = reply.status().as_u16();
        let page: Value = reply.json().await.expect("JSON");
        let code = page["error"]["code"].as_str().unwrap_or_default();
        if (status, code) == expected {
            return;
        }
        assert!(began.elapsed() < HANG, "gate {gate} still answers {status} {code}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn everywhere(house: &House, expected: (u16, &str)) {
    for gate in 0..house.gates.len() {
        answers(house, gate, expected).await;
    }
}

async fn change_everything(house: &mut House) {
    let (account, key) = (house.account.clone(), house.key_id.clone());
    everywhere(house, (200, "")).await;
    let who = ["--reason", "on purpose", "--actor", "ada"];
    let with = |words: &[&'static str], id: &str| {
        let mut all: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        all.insert(2, id.to_owned());
        all.extend(who.map(str::to_owned));
        all
    };
    for (words, id, refused) in [
        (&["account", "suspend"][..], &account, (403, "account_suspended")),
        (&["account", "reopen"][..], &account, (200, "")),
        (&["key", "update", "--model", "by-the-call"][..], &key, (403, "model_not_allowed")),
        (&["key", "update", "--model", "none"][..], &key, (200, "")),
        (&["key", "update", "--ip", "10.0.0.0/8"][..], &key, (403, "ip_not_allowed")),
        (&["key", "update", "--ip", "none"][..], &key, (200, "")),
        (&["account", "update", "--group", "partner", "--name", "renamed"][..], &account, (404, "model_not_found")),
        (&["account", "update", "--group", "partner", "--group", "default"][..], &account, (200, "")),
        (&["model", "pause"][..], &"plain".to_owned(), (503, "no_route_available")),
        (&["model", "resume"][..], &"plain".to_owned(), (200, "")),
        (&["provider", "pause"][..], &"sim".to_owned(), (503, "no_route_available")),
    ] {
        let words = with(words, id);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        house.cli(&words).await;
        everywhere(house, refused).await;
    }
    // While nothing runs the database is changed itself.
    for gate in &mut house.gates {
        gate.kill();
    }
    let paused = house.cli(&["provider", "list", "--paused"]).await;
    assert_eq!((paused.as_array().map(Vec::len), &paused[0]["name"]), (Some(1), &json!("sim")), "{paused}");
    assert_eq!((&paused[0]["actor"], &paused[0]["reason"]), (&json!("ada"), &json!("on purpose")));
    house.cli(&["provider", "resume", "sim"]).await;
    house.cli(&["account", "suspend", &account, "--reason", "by night"]).await;
    for gate in &mut house.gates {
        gate.start().await;
    }
    everywhere(house, (403, "account_suspended")).await;
    house.cli(&["account", "reopen", &account]).await;
    everywhere(house, (200, "")).await;
    let log = house.cli(&["log"]).await;
    let changes = ["account.update", "account.suspend", "account.reopen", "key.update"];
    let of_changes = |row: &&Value| row["action"].as_str().is_some_and(|action| changes.contains(&action));
    let log: Vec<Value> = log.as_array().expect("rows").iter().filter(of_changes).cloned().collect();
    let actions: Vec<&str> = log.iter().filter_map(|row| row["action"].as_str()).collect();
    let (up, down) = ("account.update", "account.suspend");
    let keys = ["key.update"; 4];
    assert_eq!(actions, [&["account.reopen", down, up, up][..], &keys, &["account.reopen", down]].concat(), "{log:?}");
    assert_eq!(log[3]["detail"], "name: test -> renamed; groups: default -> partner", "{log:?}");
    assert_eq!((&log[3]["actor"], &log[3]["subject"]), (&json!("ada"), &json!(account)));
    house.verified().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_operators_change_is_in_force_and_in_the_log() {
    let mut house = House::new(Plan { catalog: CATALOG, ..Plan::default() }).await;
    change_everything(&mut house).await;
    for (words, expected) in [
        (
            &["account", "create", "x", "--group", "partnr"][..],
            "no group is called \"partnr\"; did you mean \"partner\"?",
        ),
        (&["account", "update", &house.account, "--group", "none"][..], "no group is called \"none\""),
        (&["account", "suspend", &house.account, "--reason", " "][..], "--reason why"),
        (
            &["key", "create", &house.account, "--model", "plian"][..],
            "no model is called \"plian\"; did you mean \"plain\"?",
        ),
        (&["key", "update", &house.key_id, "--model", "plian"][..], "did you mean \"plain\"?"),
        (&["key", "update", &house.key_id, "--ip", "home"][..], "--ip home"),
        (&["model", "pause", "plian"][..], "no model is called \"plian\"; did you mean \"plain\"?"),
        (&["provider", "pause", "smi"][..], "no provider is called \"smi\"; did you mean \"sim\"?"),
    ] {
        let output = house.gates[0].run(words).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(expected), "{words:?}: {errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_operators_change_is_in_force_on_every_replica() {
    let server = Server::find();
    let database = server.database("changes").await;
    let mut house = House::new(Plan { database: &database, gates: 2, catalog: CATALOG, ..Plan::default() }).await;
    change_everything(&mut house).await;
}
