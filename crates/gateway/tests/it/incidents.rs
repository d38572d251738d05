//! What happened to others (docs/incidents.md): the page is held to the code here, and so are the incidents that no other test has.

use crate::house::{House, call_id, chat};
use serde_json::json;
use std::path::Path;
use tollgate_gateway::endpoints::table::{Access, PATHS};

const PENDING: [&str; 2] = ["not yet: payments", "not yet: realtime"];

/// All Rust files below a folder, as one text.
fn sources(folder: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(folder) else { return String::new() };
    let mut text = String::new();
    for entry in entries.map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            text.push_str(&sources(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&entry).expect("a source file"));
        }
    }
    text
}

#[test]
fn every_incident_has_a_test_that_exists() {
    let page = std::fs::read_to_string("../../docs/incidents.md").expect("docs/incidents.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| M"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 42);
    for (number, row) in (1..).zip(&rows) {
        let [name, _what, tests] = row[..] else { panic!("three columns, not {row:?}") };
        assert_eq!(name, format!("M{number}"));
        if PENDING.contains(&tests) {
            continue;
        }
        for test in tests.split(", ") {
            let (room, test) = test.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("{row:?}"));
            let text = sources(&Path::new("..").join(room).join("tests"));
            assert!(text.contains(&format!("fn {test}(")), "{name}: there is no test {test} in {room}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_but_a_paid_one_changes_a_balance() {
    let house = House::new().await;
    assert_eq!(house.ask("[[sim:tokens=2]]").await.status(), 200);
    house.quiet().await;
    let before = house.balance().await;
    let mut asked = 0;
    for (method, path, _) in PATHS.iter().filter(|(_, _, access)| *access != Access::Paid) {
        let path = path.replace("{id}", "plain").replace("{call_id}", "call_0");
        let method: reqwest::Method = method.parse().expect("a method");
        house.http.request(method, house.url(&path)).bearer_auth(&house.key).send().await.expect("a reply");
        asked += 1;
    }
    for (method, path) in
        [("PUT", "/v1/balance"), ("PATCH", "/v1/balance"), ("POST", "/v1/balance"), ("DELETE", "/v1/usage")]
    {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let request = house.http.request(method, house.url(path)).bearer_auth(&house.key);
        let reply =
            request.json(&json!({ "available_nano_usd": 1, "paid_available": 1 })).send().await.expect("a reply");
        assert!(reply.status().is_client_error(), "{path}: {}", reply.status());
    }
    house.quiet().await;
    assert_eq!(house.balance().await, before);
    assert!(asked >= 6, "{asked} paths were read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_repeats_its_ids_makes_no_row_less() {
    let house = House::new().await;
    let mut calls = Vec::new();
    for _ in 0..5 {
        let reply = house.ask("[[sim:same_id tokens=3]]").await;
        assert_eq!(reply.status(), 200);
        calls.push(call_id(&reply));
    }
    let mut charged = 0;
    for call in calls {
        let row = house.row(call).await;
        assert!(row.charge.nano() > 0);
        charged += row.charge.nano();
    }
    house.quiet().await;
    assert_eq!(house.available().await, 10_000_000_000 - charged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_limit_holds_a_bounded_amount() {
    let house = House::new().await;
    let row = house.row(call_id(&house.post(&chat("[[sim:tokens=2]]")).send().await.expect("a reply"))).await;
    // The model can say 1,000 tokens; the prompt is a few words.
    assert!(row.hold.nano() < 1_000 * 2_000 + 1_000 * 1_000, "{row:?}");
    let calls: tokio::task::JoinSet<_> =
        (0..600).map(|_| house.post(&chat("[[sim:tokens=1 think_ms=300]]")).send()).collect();
    let refused = calls.join_all().await.into_iter().filter(|reply| reply.as_ref().is_ok_and(|r| r.status() != 200));
    assert_eq!(refused.count(), 0, "600 at once fit into ten dollars");
}

#[test]
fn money_is_held_in_one_place_only() {
    let mut places = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text: String = std::fs::read_to_string(&path).expect("a source file").split_whitespace().collect();
            if text.contains(".store.hold(") || text.contains("store.hold(Hold") {
                places.push(path.display().to_string());
            }
        }
    }
    assert_eq!(places, ["src/call/mod.rs"], "one place where a call gets its hold");
}
