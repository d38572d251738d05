//! /api/admin/catalog: candidates are checked, compared and tried out; one is published for all
//! replicas, by whoever looked at what is on sale; and rolled back. On both engines.

use crate::clock::world;
use crate::engine::Engine;
use crate::house::{House, Plan, call_id, chat};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tollgate_gateway::settings::ConfigSource;
use tollgate_gateway::start::{Running, start};
use tollgate_store::{Attribution, CATALOG_TEXTS, NewAdminKey, NewCatalogVersion};

const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";
const DATABASE: &str = "catalog_source = \"database\"\n";

async fn house(engine: &Engine, config: &str) -> House {
    let plan = Plan { database: engine.url.clone(), config: config.to_owned(), ..Plan::default() };
    let house = House::with(plan).await;
    let done = Attribution::by("test", "a test");
    let new = NewAdminKey { name: "day shift".to_owned(), expires_at: None, done };
    house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
    house
}

/// Status and body.
async fn ask(house: &House, method: &str, path: &str, body: Option<Value>, headers: &[(&str, &str)]) -> (u16, Value) {
    let method: Method = method.parse().expect("a method");
    let mut request = house.http.request(method, house.url(path)).bearer_auth(ADMIN);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = body.iter().fold(request, |request, body| request.json(body));
    let reply = request.send().await.expect("a reply");
    let status = reply.status().as_u16();
    let tag = reply.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
    let body: Value = reply.json().await.expect("JSON");
    if status == 200 && !body["etag"].is_null() {
        assert_eq!(tag.as_deref(), body["etag"].as_str(), "the header says it too");
    }
    (status, body)
}

async fn ok(house: &House, method: &str, path: &str, body: Option<Value>, headers: &[(&str, &str)]) -> Value {
    let (status, body) = ask(house, method, path, body, headers).await;
    assert_eq!(status, 200, "{method} {path}: {body}");
    body
}

async fn current(house: &House) -> Value {
    ok(house, "GET", "/api/admin/catalog?texts=true", None, &[]).await
}

/// The file of models with other prices of output.
fn dearer(catalog: &Value, output: &str) -> Value {
    let text = catalog["files"]["models.toml"].as_str().expect("a file");
    json!({ "models.toml": text.replace("output = 2_000_000", &format!("output = {output}")) })
}

async fn publish(house: &House, files: Value, seen: &str, reason: &str) -> (u16, Value) {
    let body = json!({ "files": files, "merge": true, "reason": reason });
    ask(house, "POST", "/api/admin/catalog/publish", Some(body), &[("if-match", seen)]).await
}

fn word(value: &Value) -> &str {
    value.as_str().expect("text")
}

async fn charge(house: &House) -> i64 {
    let row = house.row(call_id(&house.ask("[[sim:tokens=2]]").await)).await;
    assert!(!row.estimated);
    row.charge.nano()
}

/// A prompt of one token and an answer of two, at these prices of a token.
const OLD: i64 = 1_000 + 2 * 2_000;
const NEW: i64 = 1_000 + 2 * 9_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_is_checked_compared_tried_published_and_rolled_back() {
    for engine in Engine::both().await {
        let house = house(&engine, DATABASE).await;
        let first = current(&house).await;
        assert_eq!((&first["source"], &first["version"]), (&json!("database"), &json!(1)), "{first}");
        assert_eq!(first["can_be_published"], true);
        let files = dearer(&first, "9_000_000");

        let check = json!({ "files": files, "merge": true });
        let checked = ok(&house, "POST", "/api/admin/catalog/check", Some(check.clone()), &[]).await;
        assert_eq!((&checked["ok"], &checked["mistakes"]), (&json!(true), &json!([])), "{checked}");
        let diff = ok(&house, "POST", "/api/admin/catalog/diff", Some(check.clone()), &[]).await;
        assert_eq!(diff["files"], json!([{ "name": "models.toml", "what": "changed" }]));
        let plain = diff["changes"].as_array().expect("changes").iter().find(|one| one["model"] == "plain");
        assert_eq!(plain.map(|one| &one["words"]), Some(&json!("output: 2 -> 9 USD per million tokens (+350 %)")));
        let preview = ok(&house, "POST", "/api/admin/catalog/preview", Some(check), &[]).await;
        assert!(preview["dearer"].as_array().is_some_and(|all| all.contains(&json!("plain"))), "{preview}");
        assert_eq!(preview["cheaper"], json!([]));
        let example = preview["examples"].as_array().expect("examples").iter().find(|one| one["model"] == "plain");
        let example = example.expect("one for the model");
        let totals = (&example["before"]["total_nano_usd"], &example["after"]["total_nano_usd"]);
        assert_eq!(totals, (&json!(1_000 * 1_000 + 500 * 2_000), &json!(1_000 * 1_000 + 500 * 9_000)));
        assert_eq!(current(&house).await["hash"], first["hash"], "nothing was changed by looking");
        assert_eq!(charge(&house).await, OLD);

        let (status, done) = publish(&house, files.clone(), word(&first["etag"]), "costs more").await;
        assert_eq!((status, &done["version"], &done["in_force_here"]), (200, &json!(2), &json!(true)), "{done}");
        assert_eq!(charge(&house).await, NEW);
        let (status, again) = publish(&house, files, word(&done["etag"]), "again").await;
        assert_eq!((status, &again["error"]["code"]), (409, &json!("conflict")), "it is on sale already");

        let path = "/api/admin/catalog/versions/1/roll-back";
        let body = Some(json!({ "reason": "too dear" }));
        let seen = [("if-match", word(&done["etag"])), ("idempotency-key", "back")];
        let back = ok(&house, "POST", path, body.clone(), &seen).await;
        assert_eq!((&back["version"], &back["rolled_back_to"], &back["hash"]), (&json!(3), &json!(1), &first["hash"]));
        assert_eq!(ok(&house, "POST", path, body, &seen).await["version"], 3, "repeated, it is the same answer");
        assert_eq!(charge(&house).await, OLD);

        let versions = ok(&house, "GET", "/api/admin/catalog/versions?limit=2", None, &[]).await;
        let shown: Vec<(&Value, &Value)> =
            versions["data"].as_array().expect("rows").iter().map(|row| (&row["version"], &row["reason"])).collect();
        assert_eq!(shown, [(&json!(3), &json!("too dear")), (&json!(2), &json!("costs more"))]);
        let next = format!("/api/admin/catalog/versions?before={}", versions["next_before"]);
        let rest = ok(&house, "GET", &next, None, &[]).await;
        assert_eq!((rest["data"].as_array().map(Vec::len), &rest["data"][0]["actor"]), (Some(1), &json!("start")));
        let one = ok(&house, "GET", "/api/admin/catalog/versions/2", None, &[]).await;
        assert!(word(&one["files"]["models.toml"]).contains("9_000_000"));
        let log = ok(&house, "GET", "/api/admin/audit?action=catalog.publish", None, &[]).await;
        let row = log["data"].as_array().expect("rows").iter().find(|row| row["reason"] == "costs more");
        assert!(row.is_some_and(|row| word(&row["actor"]).contains("day shift")), "{log}");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_listed_and_changes_nothing() {
    let [sqlite, _] = Engine::both().await;
    let house = house(&sqlite, DATABASE).await;
    let first = current(&house).await;
    let tag = word(&first["etag"]);
    let bad = json!({ "more.toml": "[model.\"a\"]\nsupported_endpoint_types = [\"openai\"]\n[model.\"a\".price]\ninput = -5\noutput = 1\n[[model.\"a\".route]]\nprovider = \"simm\"\nupstream_model = \"x\"\n" });
    let (status, refused) = publish(&house, bad.clone(), tag, "no").await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("invalid_catalog")), "{refused}");
    let mistakes = refused["error"]["details"]["mistakes"].as_array().expect("all of them").clone();
    for (line, field) in [(4, "model.a.price.input"), (6, "model.a.route.provider")] {
        let found = mistakes.iter().any(|one| one["line"] == line && one["file"] == "more.toml");
        assert!(found, "{field}: {mistakes:?}");
    }
    let body = Some(json!({ "files": bad, "merge": true }));
    let checked = ok(&house, "POST", "/api/admin/catalog/check", body.clone(), &[]).await;
    assert_eq!((&checked["ok"], checked["mistakes"].as_array()), (&json!(false), Some(&mistakes)));
    assert_eq!(ask(&house, "POST", "/api/admin/catalog/diff", body, &[]).await.0, 400);
    for (path, body, headers, status, field) in [
        ("publish", json!({ "files": {}, "reason": "x" }), vec![], 428, "If-Match"),
        ("publish", json!({ "files": { "a.toml": "" } }), vec![("if-match", tag)], 400, "reason"),
        ("publish", json!({ "reason": "x" }), vec![("if-match", tag)], 400, "files"),
        ("check", json!({ "files": { "../a.toml": "" } }), vec![], 400, "files"),
        ("check", json!({ "files": { "a.toml": 1 } }), vec![], 400, "files"),
        ("check", json!({ "files": {}, "more": 1 }), vec![], 400, "more"),
        ("check", json!({ "version": 99 }), vec![], 404, "version"),
        ("preview", json!({ "files": {}, "calls": 1 }), vec![], 400, "calls"),
        ("preview", json!({ "files": {}, "calls": [{ "endpoint": "/v1/videos" }] }), vec![], 400, "calls"),
    ] {
        let (got, answer) = ask(&house, "POST", &format!("/api/admin/catalog/{path}"), Some(body), &headers).await;
        assert_eq!((got, answer["error"]["param"].as_str()), (status, Some(field)), "{path}: {answer}");
    }
    let large = json!({ "files": { "a.toml": "#".repeat(9 << 20) } });
    assert_eq!(ask(&house, "POST", "/api/admin/catalog/check", Some(large), &[]).await.0, 413);
    assert_eq!(ask(&house, "GET", "/api/admin/catalog?text=1", None, &[]).await.1["error"]["param"], "text");
    assert_eq!(current(&house).await["hash"], first["hash"]);
    assert_eq!(house.running().app.metrics.catalog_stale.get(), 0, "a candidate is no alarm");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_changed_where_they_lie_unless_the_database_has_them() {
    let [sqlite, _] = Engine::both().await;
    let house = house(&sqlite, "").await;
    let first = current(&house).await;
    assert_eq!((&first["source"], &first["version"]), (&json!("file"), &json!(null)));
    let files = dearer(&first, "9_000_000");
    let body = Some(json!({ "files": files, "merge": true }));
    let diff = ok(&house, "POST", "/api/admin/catalog/diff", body, &[]).await;
    assert_eq!(diff["same"], false, "it can be looked at all the same");
    let (status, refused) = publish(&house, files, word(&first["etag"]), "no").await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("conflict")));
    assert!(word(&refused["error"]["message"]).contains("catalog_source"), "{refused}");
}

/// A price without a provider behind it, in calls of an operator's own.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_the_operators_own_are_priced_before_and_after() {
    let [sqlite, _] = Engine::both().await;
    let house = house(&sqlite, DATABASE).await;
    let first = current(&house).await;
    let call =
        json!({ "endpoint": "/v1/chat/completions", "body": chat("hello"), "use": { "input": 10, "output": 3 } });
    let gone = json!({ "endpoint": "/v1/chat/completions", "body": { "model": "nobody", "messages": [] } });
    let body = json!({ "files": dearer(&first, "4_000_000"), "merge": true, "calls": [call, gone] });
    let preview = ok(&house, "POST", "/api/admin/catalog/preview", Some(body), &[]).await;
    let totals = |at: usize| {
        (&preview["examples"][at]["before"]["total_nano_usd"], &preview["examples"][at]["after"]["total_nano_usd"])
    };
    assert_eq!(totals(0), (&json!(16_000), &json!(22_000)), "{preview}");
    assert_eq!(totals(1), (&json!(null), &json!(null)));
    assert!(!word(&preview["examples"][1]["after"]["why"]).is_empty());
}

/// Another gateway over the same database, which follows what is published.
async fn another(house: &House) -> Running {
    let dir = house.dir.join("another");
    std::fs::create_dir_all(dir.join("catalog")).expect("a folder");
    for name in ["tollgate.toml", "sim.key", "access.key", "secret.key"] {
        std::fs::copy(house.dir.join(name), dir.join(name)).expect("copied");
    }
    // Its folder has nothing to say: the database has a version.
    std::fs::write(dir.join("catalog/broken.toml"), "[model.\"broken\"]\nprice = 1\n").expect("written");
    let source = ConfigSource { file: dir.join("tollgate.toml"), environment: Arc::new(BTreeMap::new()) };
    let loaded = source.load().unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    start(loaded, Some(source), world(&house.clock)).await.expect("started")
}

fn served(running: &Running) -> (Option<i64>, String) {
    let serving = running.app.serving.load();
    (serving.text.version, serving.text.hash.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_sells_the_same_also_after_a_restart() {
    let [_, postgres] = Engine::both().await;
    let mut house = house(&postgres, DATABASE).await;
    let other = another(&house).await;
    assert_eq!(served(&other), served(house.running()), "what the first one found in its folder");
    let first = current(&house).await;
    let (status, done) = publish(&house, dearer(&first, "9_000_000"), word(&first["etag"]), "costs more").await;
    assert_eq!(status, 200, "{done}");
    while served(&other).0 != Some(2) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(served(&other), served(house.running()));
    other.stop().await;
    house.restart().await;
    assert_eq!(served(house.running()), (Some(2), word(&done["hash"]).to_owned()));
    assert_eq!(charge(&house).await, NEW);
}

pub async fn two_operators_do_not_overwrite_each_other() {
    for engine in Engine::both().await {
        let house = house(&engine, DATABASE).await;
        let first = current(&house).await;
        let prices = ["3_000_000", "4_000_000", "5_000_000", "6_000_000"];
        // Two candidates are read at a time; the others are told to come again.
        let publishing = prices.map(|price| {
            let (house, files, tag) = (&house, dearer(&first, price), word(&first["etag"]).to_owned());
            async move {
                loop {
                    let (status, body) = publish(house, files.clone(), &tag, "mine").await;
                    if status != 503 {
                        return (status, body);
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        });
        let done = futures_util::future::join_all(publishing).await;
        let statuses: Vec<u16> = done.iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{}: {statuses:?}", engine.name);
        assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 3, "{}: {statuses:?}", engine.name);
        let (_, won) = done.iter().find(|(status, _)| *status == 200).expect("one");
        let now = current(&house).await;
        assert_eq!((&now["version"], &now["hash"]), (&json!(2), &won["hash"]));
        house.quiet().await;
    }
}

pub async fn a_call_keeps_its_price_when_another_catalog_is_published() {
    for engine in Engine::both().await {
        let house = house(&engine, DATABASE).await;
        let first = current(&house).await;
        house.sim.shut("/v1/chat/completions");
        let running = house.post(&chat("[[sim:tokens=2]]")).send();
        let change = async {
            while house.sim.waited() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let (status, done) = publish(&house, dearer(&first, "9_000_000"), word(&first["etag"]), "dearer").await;
            assert_eq!((status, &done["in_force_here"]), (200, &json!(true)), "{done}");
            house.sim.open();
        };
        let (reply, ()) = tokio::join!(running, change);
        let row = house.row(call_id(&reply.expect("a reply"))).await;
        assert_eq!(row.charge.nano(), OLD, "{}", engine.name);
        assert_eq!(charge(&house).await, NEW);
        // What both calls were charged follows from the prices that are stored with them.
        let report = house.running().app.store.verify_strictly().await.expect("an audit");
        assert_eq!(report.breaches, []);
        house.quiet().await;
    }
}

/// The row is there, and whoever wrote it is gone before anybody was told.
pub async fn a_catalog_whose_publisher_died_is_on_sale_at_the_next_start() {
    for engine in Engine::both().await {
        let mut house = house(&engine, DATABASE).await;
        let first = current(&house).await;
        let mut files = first["files"].clone();
        files["models.toml"] = dearer(&first, "9_000_000")["models.toml"].clone();
        let texts: BTreeMap<String, String> = serde_json::from_value(files.clone()).expect("texts");
        let text = tollgate_gateway::sale::CatalogText::new(texts.into_iter().collect());
        let new = NewCatalogVersion {
            hash: text.hash.clone(),
            files: text.to_json().to_string(),
            pricing_version: "x".to_owned(),
            models: 1,
            rolled_back_to: None,
        };
        let seen = Some(word(&first["hash"]).to_owned());
        let done = Attribution::by("test", "a test");
        let store = &house.running().app.store;
        store.publish_catalog(new, seen, done).await.expect("written").expect("published");
        house.restart().await;
        assert_eq!(served(house.running()), (Some(2), text.hash), "{}", engine.name);
        assert_eq!(charge(&house).await, NEW);
    }
}

/// Texts of old versions go; what was charged is computed from prices that stay.
#[tokio::test(flavor = "multi_thread")]
async fn old_texts_go_and_charges_are_computed_all_the_same() {
    for engine in Engine::both().await {
        let house = house(&engine, DATABASE).await;
        let paid = house.row(call_id(&house.ask("[[sim:tokens=2]]").await)).await;
        let store = &house.running().app.store;
        let mut seen = word(&current(&house).await["hash"]).to_owned();
        for number in 0..=CATALOG_TEXTS {
            let text = tollgate_gateway::sale::CatalogText::new(vec![("a.toml".to_owned(), format!("# {number}\n"))]);
            let new = NewCatalogVersion {
                hash: text.hash.clone(),
                files: text.to_json().to_string(),
                pricing_version: "x".to_owned(),
                models: 0,
                rolled_back_to: None,
            };
            let done = Attribution::by("test", "a test");
            store.publish_catalog(new, Some(seen), done).await.expect("written").expect("published");
            seen = text.hash;
        }
        let first = ok(&house, "GET", "/api/admin/catalog/versions/1", None, &[]).await;
        assert_eq!((&first["files"], &first["bytes"]), (&json!(null), &json!(null)), "its row stays, its text is gone");
        let (status, gone) = ask(
            &house,
            "POST",
            "/api/admin/catalog/versions/1/roll-back",
            Some(json!({ "reason": "x" })),
            &[("if-match", "*")],
        )
        .await;
        assert_eq!((status, &gone["error"]["code"]), (409, &json!("conflict")), "{gone}");
        assert!(store.catalog_text(&seen).await.expect("read").is_some(), "what is on sale stays");
        let path = format!("/v1/usage/{}/receipt", paid.call);
        let receipt = house.get(&path).send().await.expect("a reply");
        assert_eq!(receipt.status(), 200, "{}", engine.name);
        assert_eq!(store.verify_strictly().await.expect("an audit").breaches, []);
        house.quiet().await;
    }
}
