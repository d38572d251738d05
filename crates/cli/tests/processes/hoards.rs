//! Accounts that store, and make others store: conversations until the disk is full, refusals
//! without end, videos with a hundred thousand unknown fields. Whoever pays is served all the
//! while.

use crate::books;
use crate::experiment::{Experiment, long};
use crate::house::{House, Plan, chat, text};
use crate::postgres::Server;
use crate::tasks;
use reqwest::{Method, Response};
use serde_json::{Map, Value, json};

/// A small disk with room for the journal and some twenty MiB of what customers store.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says what cannot be tested here")]
pub fn mounted(disk: &std::path::Path) -> bool {
    let mount =
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=96m", "tollgate-test"]).arg(disk).output();
    if mount.as_ref().is_ok_and(|done| done.status.success()) {
        return true;
    }
    let knows = std::env::var("TOLLGATE_NO_MOUNT").is_ok_and(|said| said == "1");
    assert!(knows, "a small disk cannot be mounted here; TOLLGATE_NO_MOUNT=1 goes without: {mount:?}");
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn hoards_on_a_small_disk_sqlite() {
    let disk = tempfile::tempdir().expect("a folder");
    if !mounted(disk.path()) {
        return;
    }
    let top = format!("data_dir = \"{}\"\n[storage]\ndisk_reserve = \"48MiB\"\n", disk.path().join("data").display());
    let house =
        conversations_that_would_fill_the_disk("hoards on a small disk, SQLite", Plan { top: &top, ..Plan::default() })
            .await;
    drop(house);
    let lazily = std::process::Command::new("umount").arg("-l").arg(disk.path()).status();
    assert!(lazily.is_ok_and(|status| status.success()), "the disk is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn hoards_postgres() {
    let server = Server::find();
    let database = server.database("hoards").await;
    let plan = Plan { database: &database, gates: 2, top: "[storage]\ntotal_bytes = \"24MiB\"\n", ..Plan::default() };
    conversations_that_would_fill_the_disk("hoards, two replicas on PostgreSQL", plan).await;
}

async fn ask(house: &House, key: &str, gate: usize, method: Method, path: &str, body: Option<&Value>) -> Response {
    let request = house.http.request(method, format!("{}{path}", house.gates[gate].url())).bearer_auth(key);
    let request = body.map_or(request.try_clone().expect("no stream"), |body| request.json(body));
    request.send().await.expect("a reply")
}

async fn code(reply: Response) -> String {
    let body: Value = reply.json().await.expect("JSON");
    text(&body["error"]["code"])
}

async fn conversations_that_would_fill_the_disk(name: &'static str, plan: Plan<'_>) -> House {
    let mut experiment = Experiment::new(name);
    let house = House::new(plan).await;
    let poor = text(&house.cli(&["account", "create", "poor"]).await["account_id"]);
    let poor = text(&house.cli(&["key", "create", &poor]).await["secret"]);
    let items: Vec<Value> = (0..4).map(|_| json!({ "role": "user", "content": "x".repeat(512 << 10) })).collect();
    let large = json!({ "items": items });
    let tries = if long() { 200 } else { 20 };
    for n in 0..tries {
        let gate = n % house.gates.len();
        // Without money nothing is stored; each wish for a call is refused, and noted within a
        // bound.
        let reply = ask(&house, &poor, gate, Method::POST, "/v1/conversations", Some(&large)).await;
        assert_eq!(code(reply).await, "insufficient_balance");
        for _ in 0..10 {
            assert_eq!(house.post_as(&poor, gate, &chat("plain", "x")).send().await.expect("a reply").status(), 402);
            experiment.count("calls refused", 1u64);
        }
        experiment.count("conversations refused without money", 1u64);
    }
    // With money as much as there is room for, and others are served.
    let mut made = Vec::new();
    let full = loop {
        let reply = ask(&house, &house.key, 0, Method::POST, "/v1/conversations", Some(&large)).await;
        if reply.status() != 200 {
            break code(reply).await;
        }
        made.push(text(&reply.json::<Value>().await.expect("JSON")["id"]));
        assert!(made.len() < 100, "there is an end to it");
    };
    assert_eq!(full, "storage_full");
    assert!(!made.is_empty());
    for _ in 0..20 {
        assert_eq!(house.ask(0, &chat("plain", "[[sim:tokens=2]] x")).await.status(), 200, "who pays is served");
        experiment.count("paid calls served", 1u64);
    }
    for id in &made {
        let path = format!("/v1/conversations/{id}");
        assert_eq!(ask(&house, &house.key, 0, Method::DELETE, &path, None).await.status(), 200);
    }
    let storage = house.balance(0).await["storage"].clone();
    assert_eq!((&storage["bytes"], &storage["objects"]), (&json!(0), &json!(0)), "all of it is counted back");
    experiment.count("conversations stored and erased", made.len());
    house.quiet().await;
    house.verified().await;
    let rows: Vec<Value> = books::usage(&house).await.into_values().collect();
    let refused = rows.iter().filter(|row| row["ending"] == "refused").count();
    // The minutes that passed meanwhile, each with its sixty and a sum.
    assert!(refused <= 61 * 10 * house.gates.len(), "{refused} rows of refused calls");
    experiment.count("rows of refused calls", refused);
    experiment.end();
    house
}

#[tokio::test(flavor = "multi_thread")]
async fn videos_with_very_many_unknown_fields() {
    let mut experiment = Experiment::new("videos with very many unknown fields");
    let plan = Plan { usd: "100", top: tasks::TASKS, catalog: tasks::CATALOG, ..Plan::default() };
    let house = House::new(plan).await;
    let body = |fields: usize| {
        let mut body: Map<String, Value> = (0..fields).map(|n| (format!("field_{n}"), json!(1))).collect();
        body.extend([("model".to_owned(), json!("kling-v3")), ("prompt".to_owned(), json!("p"))]);
        Value::Object(body)
    };
    // As many as fit into what a body may have beside its texts; a hundred thousand do not.
    let fields = 10_000;
    let (fits, too_many) = (body(fields), body(100_000));
    let times = if long() { 100 } else { 10 };
    for _ in 0..times {
        let reply = ask(&house, &house.key, 0, Method::POST, "/v1/videos", Some(&fits)).await;
        let status = reply.status();
        let text = reply.text().await.expect("text");
        assert_eq!(status, 200, "{text}");
        assert!(text.len() < 16 << 10, "{} bytes", text.len());
        experiment.count("unknown fields", fields);
        experiment.count("bytes answered", text.len());
        let reply = ask(&house, &house.key, 0, Method::POST, "/v1/videos", Some(&too_many)).await;
        let status = reply.status();
        let text = reply.text().await.expect("text");
        assert!(status == 400 && text.contains("invalid_json") && text.len() < 1 << 10, "{status}: {text}");
        experiment.count("bodies refused", 1);
    }
    let list = ask(&house, &house.key, 0, Method::GET, "/v1/videos?limit=100", None).await.text().await.expect("text");
    assert!(list.len() < times * (16 << 10), "{} bytes", list.len());
    experiment.count("bytes listed", list.len());
    experiment.end();
}
