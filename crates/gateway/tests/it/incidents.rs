//! What happened to others (docs/incidents.md): the page is held to the code here, and so are the
//! incidents that no other test has.

use crate::house::{House, call_id, chat};
use serde_json::json;
use std::path::Path;
use tollgate_gateway::endpoints::{Access, rows};

const PENDING: [&str; 1] = ["not yet: payments"];

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

/// A function is a test that runs: marked as one and not ignored, named in a list that makes tests
/// of its names, or called by one that is marked.
fn is_run(text: &str, name: &str) -> bool {
    let Some(at) = text.find(&format!("fn {name}(")) else { return false };
    is_marked(text, at) || is_listed(text, name) || callers(text, name).any(|caller| is_marked(text, caller))
}

/// What stands above the function that begins at this place says that it is a test.
fn is_marked(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let above = text[..line].lines().rev().map(str::trim);
    let marks: Vec<&str> = above.take_while(|line| line.starts_with("#[") || line.starts_with("//")).collect();
    let says = |what: &str| marks.iter().any(|mark| mark.starts_with(what));
    (says("#[test]") || says("#[tokio::test")) && !says("#[ignore")
}

/// `cases!` and `suite!` write a test for each name.
fn is_listed(text: &str, name: &str) -> bool {
    ["\ncases!", "\nsuite!"].iter().flat_map(|list| text.match_indices(list)).any(|(at, _)| {
        let names = &text[at..];
        let end = names.find(");").into_iter().chain(names.find(";\n}")).min().unwrap_or(0);
        names[..end].split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name)
    })
}

/// Where the functions begin that call this one.
fn callers(text: &str, name: &str) -> impl Iterator<Item = usize> {
    let calls = text.match_indices(&format!("{name}(")).map(|(at, _)| at).collect::<Vec<_>>().into_iter();
    let calls = calls.filter(|at| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    calls.filter(|at| !text[..*at].ends_with("fn ")).filter_map(|at| text[..at].rfind("fn "))
}

#[test]
fn only_what_runs_is_a_test() {
    let text = "#[test]\nfn yes() {}\n#[tokio::test]\n#[ignore = \"later\"]\nasync fn ignored() {}\nfn nobody() {}\n\
                fn named() {}\ncases!(\n    named,\n);\nfn called() {}\nfn helps() {}\nfn x() { helps() }\n#[test]\nfn y() { called() }\n";
    let found = ["yes", "ignored", "nobody", "named", "called", "helps", "absent"].map(|name| is_run(text, name));
    assert_eq!(found, [true, false, false, true, true, false, false]);
}

/// A row of what happened to others (M1, …; with pictures, voices and vectors MM1, …), or of what
/// strangers found here (S1, …).
fn is_numbered(line: &str) -> bool {
    let name = ["| MM", "| M", "| S"].iter().find_map(|start| line.strip_prefix(start));
    name.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[test]
fn every_incident_has_a_test_that_exists() {
    let page = std::fs::read_to_string("../../docs/incidents.md").expect("docs/incidents.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| is_numbered(line))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let names = rows.iter().map(|row| row[0].to_owned());
    // Each table has all of its collection, in order.
    let own = rows.iter().filter(|row| row[0].starts_with('S')).count();
    let tables = [("M", 42), ("MM", 38), ("S", own)];
    let wanted = tables.into_iter().flat_map(|(name, most)| (1..=most).map(move |number| format!("{name}{number}")));
    assert_eq!(names.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    for row in &rows {
        let [name, _what, tests] = row[..] else { panic!("three columns, not {row:?}") };
        // Only what waits for payments may have no test.
        if name.starts_with("MM") || !PENDING.contains(&tests) {
            all_run(name, tests);
        }
    }
}

/// Each of these tests is in the code and runs.
fn all_run(name: &str, tests: &str) {
    for test in tests.split(", ") {
        let (room, test) = test.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("{name}: {tests}"));
        let mut folders = ["tests", "src"].iter().map(|folder| Path::new("..").join(room).join(folder));
        assert!(folders.any(|folder| is_run(&sources(&folder), test)), "{name}: no test of {room} that runs is {test}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_but_a_paid_one_changes_a_balance() {
    let house = House::new().await;
    assert_eq!(house.ask("[[sim:tokens=2]]").await.status(), 200);
    house.quiet().await;
    let before = house.balance().await;
    let mut asked = 0;
    for row in rows().iter().filter(|row| row.access != Access::Paid) {
        let path = row.path.replace("{id}", "plain").replace("{call_id}", "call_0");
        let request = house.http.request(row.method.clone(), house.url(&path)).bearer_auth(&house.key);
        let old = json!({
            "model": "plain", "available_nano_usd": 1, "paid_available": 1, "balance": "0", "account": { "paid_available": 1 },
            "input": "x", "messages": [{ "role": "user", "content": "x" }], "metadata": { "balance": "1" },
        });
        let with_body = request.try_clone().expect("no stream").json(&old);
        for request in [request, with_body] {
            request.send().await.expect("a reply");
            asked += 1;
        }
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

const FREE_NEIGHBOUR: &str = r#"
[model."gratis"]
price = { input = 0, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

/// A price of zero is a price, of that model and of no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_with_price_zero_makes_no_other_free() {
    let house = House::with(crate::house::Plan { catalog: FREE_NEIGHBOUR, ..Default::default() }).await;
    for (model, free) in [("plain", false), ("gratis", true), ("plain", false), ("gratis", true), ("plain", false)] {
        let mut body = chat("hello [[sim:tokens=3]]");
        body["model"] = json!(model);
        let before = house.available().await;
        let reply = house.post(&body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{model}");
        let row = house.row(call_id(&reply)).await;
        house.quiet().await;
        assert_eq!((row.charge.nano() == 0, row.model.as_str()), (free, model), "{row:?}");
        assert_eq!(before - house.available().await, row.charge.nano());
    }
}

/// A failed task is read by a crowd, again and again: what was held comes back once.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_reads_a_failed_video_is_given_nothing() {
    let plan = crate::house::Plan { videos: true, tasks: "refresh_after = \"0s\"", ..Default::default() };
    let house = House::with(plan).await;
    let before = house.available().await;
    let body = json!({ "model": "kling-v3", "prompt": "[[sim:fail text=no_good]]" });
    let made = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let made: serde_json::Value = made.expect("a reply").json().await.expect("JSON");
    let path = format!("/v1/videos/{}", made["id"].as_str().expect("an id"));
    for _ in 0..10 {
        let crowd: tokio::task::JoinSet<_> = (0..40).map(|_| house.get(&path).send()).collect();
        for reply in crowd.join_all().await {
            assert_eq!(reply.expect("a reply").status(), 200);
        }
    }
    house.quiet().await;
    let shown: serde_json::Value = house.get(&path).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(shown["status"], "failed");
    assert_eq!(house.available().await, before, "all of it, and once");
    let rows = house.all_rows().await;
    assert_eq!(rows.len(), 1);
    let (call, row) = rows.into_iter().next().expect("one");
    assert_eq!((row.charge.nano(), row.refunded.nano()), (0, 0));
    let entries = house.running().app.store.entries_of(house.account, call).await.expect("entries");
    assert_eq!(entries.len(), 2, "held and released: {entries:?}");
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
