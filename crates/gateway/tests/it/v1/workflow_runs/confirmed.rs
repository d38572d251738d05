//! What must be confirmed, and who may see what: each missing confirmation is 409 and sends
//! nothing.

use super::RunHouse;
use serde_json::{Value, json};
use tollgate_workflows::items_to_confirm;

const SLUG: &str = "article-to-narration";
const RUNS: &str = "/v1/workflows/article-to-narration/runs";

#[tokio::test(flavor = "multi_thread")]
async fn each_missing_confirmation_is_refused_with_the_quote() {
    let house = RunHouse::shipped().await;
    house.verify(SLUG).await;
    let sent = house.house.sim.received().len();
    let inputs = json!({ "article": "Rain.", "writer_model": "demo-fast" });
    let whole = house.confirmed(SLUG, inputs).await;
    let most = whole["confirm"]["max_cost_nano_usd"].as_i64().expect("a sum");
    for (pointer, value, lacks) in [
        ("/confirm/privacy", Value::Null, json!(["privacy"])),
        ("/confirm/privacy", json!("0".repeat(64)), json!(["privacy"])),
        ("/confirm/max_cost_nano_usd", Value::Null, json!(["cost"])),
        ("/confirm/max_cost_nano_usd", json!(most - 1), json!(["cost"])),
        ("/confirm/items", json!([]), json!(["writer_model"])),
        ("/confirm", json!({}), json!(["privacy", "cost", "writer_model"])),
    ] {
        let mut request = whole.clone();
        *request.pointer_mut(pointer).expect("a place") = value;
        let (status, refused) = house.ask(RUNS, &request).await;
        let error = &refused["error"];
        assert_eq!((status, &error["code"]), (409, &json!("confirmation_required")), "{pointer}: {refused}");
        assert_eq!(error["details"]["lacks"], lacks, "{pointer}");
        assert_eq!(error["details"]["quote"]["confirm"], whole["confirm"], "what to confirm comes with it");
    }
    assert_eq!(house.house.sim.received().len(), sent, "nothing is sent");
    let list: Value = house.house.get("/v1/workflows/runs").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1), "no run but that of the fixture");
    let (status, run) = house.ask(RUNS, &whole).await;
    assert_eq!(status, 202);
    house.ended(run["id"].as_str().expect("a run")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_inputs_are_named_and_nothing_is_begun() {
    let house = RunHouse::shipped().await;
    house.verify(SLUG).await;
    for (body, param) in [
        (json!({ "inputs": {} }), "inputs.article"),
        (json!({ "inputs": { "article": 7 } }), "inputs.article"),
        (json!({ "inputs": { "article": "a", "voice": "moon" } }), "inputs.voice"),
        (json!({ "inputs": { "article": "a", "other": 1 } }), "inputs.other"),
        (json!({ "inputs": { "article": "x".repeat(100_001) } }), "inputs.article"),
        (json!({ "inputs": { "article": "a", "writer_model": "moon" } }), "model"),
    ] {
        for path in ["/v1/workflows/article-to-narration/quote", RUNS] {
            let (status, refused) = house.ask(path, &body).await;
            assert!((400..=404).contains(&status), "{refused}");
            assert_eq!(refused["error"]["param"], json!(param), "{path} {refused}");
        }
    }
    for (body, code) in [
        (json!({ "inputs": { "article": "a" }, "confirm": { "moon": 1 } }), "invalid_request"),
        (json!({ "inputs": { "article": "a" }, "confirm": { "max_cost_nano_usd": -1 } }), "invalid_request"),
        (json!([]), "invalid_request"),
    ] {
        let (status, refused) = house.ask(RUNS, &body).await;
        assert_eq!((status, refused["error"]["code"].as_str()), (400, Some(code)), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_verified_is_not_run_and_says_why() {
    let house = RunHouse::shipped().await;
    let body = json!({ "inputs": { "article": "Rain." } });
    let (status, refused) = house.ask(RUNS, &body).await;
    assert_eq!((status, refused["error"]["code"].as_str()), (404, Some("not_found")), "a draft is nobody's");
    house.operate(SLUG, "lock", json!({ "reason": "reviewed" })).await;
    let why = async |expected: &str| {
        let (status, refused) = house.ask(RUNS, &body).await;
        let error = &refused["error"];
        assert_eq!((status, error["code"].as_str()), (409, Some("workflow_not_executable")), "{refused}");
        assert!(error["message"].as_str().expect("text").contains(expected), "{refused}");
        let (status, quote) = house.ask("/v1/workflows/article-to-narration/quote", &body).await;
        assert_eq!((status, &quote["executable"]), (200, &json!(false)), "{quote}");
        for name in ["blocking_code", "blocking_reason"] {
            assert_eq!(error["details"][name], quote[name], "a quote and a refusal say the same");
        }
        assert!(quote["blocking_reason"].as_str().expect("text").contains(expected), "{quote}");
        assert_eq!(error["reason"], quote["blocking_code"]);
        quote["blocking_code"].as_str().expect("a code").to_owned()
    };
    assert_eq!(why("its fixture has not been run").await, "not_verified");
    let run = house.verify_locked(SLUG).await;
    assert_eq!(run["status"], "completed");
    let (status, record) = house.ask_record(SLUG).await;
    let binding = &record["runtime_binding"];
    assert_eq!((status, record["contract_status"].as_str()), (200, Some("verified")));
    assert_eq!((&binding["capability_evidence"], &binding["availability_source"]), (&run["id"], &json!("simulator")));
    assert_eq!((&binding["blocking_reason"], &binding["package_status"]), (&Value::Null, &json!("verified")));

    // An operator takes it back.
    let (status, _) = house.operate(SLUG, "withdraw", json!({ "reason": "it mumbles" })).await;
    assert_eq!(status, 200);
    assert_eq!(why("it was withdrawn: it mumbles").await, "withdrawn");
    house.verify_locked(SLUG).await;
    let quoted = house.confirmed(SLUG, json!({ "article": "Rain." })).await;
    let (status, run) = house.ask(RUNS, &quoted).await;
    assert_eq!(status, 202, "{run}");
    house.ended(run["id"].as_str().expect("a run")).await;
    let (_, quote) = house.ask("/v1/workflows/article-to-narration/quote", &body).await;
    assert_eq!((&quote["executable"], &quote["blocking_code"]), (&json!(true), &Value::Null), "{quote}");

    // One character of the package is another package.
    let file = house.house.dir.join("catalog/workflows/article-to-narration/package.toml");
    let text = std::fs::read_to_string(file).expect("a package").replace("3,000", "3,001");
    house.put("article-to-narration/package.toml", &text).await;
    let stage = house.stage(SLUG).await;
    assert_eq!(stage["stage"], "draft");
    assert!(stage["blocked"].as_str().is_some_and(|why| why.contains("has changed")), "{stage}");
    let sent = house.house.sim.received().len();
    for path in [RUNS, "/v1/workflows/article-to-narration/quote"] {
        let (status, refused) = house.ask(path, &quoted).await;
        assert_eq!((status, refused["error"]["code"].as_str()), (409, Some("contract_changed")), "{refused}");
        assert_eq!(refused["error"]["details"]["blocking_code"], "contract_changed", "{refused}");
    }
    assert_eq!(house.house.sim.received().len(), sent, "nothing is sent");

    // Verified again it can be run, but not by a quote of what it was.
    house.verify(SLUG).await;
    let (status, refused) = house.ask(RUNS, &quoted).await;
    assert_eq!((status, refused["error"]["code"].as_str()), (409, Some("contract_changed")), "{refused}");
    assert_eq!(refused["error"]["param"], "confirm.contract");
    let again = house.confirmed(SLUG, json!({ "article": "Rain." })).await;
    assert_ne!(again["confirm"]["contract"], quoted["confirm"]["contract"]);
    let (status, run) = house.ask(RUNS, &again).await;
    assert_eq!(status, 202, "{run}");
    house.ended(run["id"].as_str().expect("a run")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_rose_after_the_quote_is_confirmed_anew() {
    let house = RunHouse::shipped().await;
    house.verify(SLUG).await;
    let quoted = house.confirmed(SLUG, json!({ "article": "Rain." })).await;
    let before = house.post(RUNS, &quoted).header("idempotency-key", "early").send().await.expect("a reply");
    let before: Value = before.json().await.expect("JSON");
    let first = house.ended(before["id"].as_str().expect("a run")).await;
    assert_eq!(first["status"], "completed", "{first:#}");
    let file = house.house.dir.join("catalog/more.toml");
    let text = std::fs::read_to_string(&file).expect("a catalog");
    let dearer = text.replace("\noutput = ", "\noutput = 1");
    assert_ne!(text, dearer);
    std::fs::write(&file, dearer).expect("written");
    let app = &house.house.running().app;
    tollgate_gateway::workers::reload::reload(app, &house.house.source).await.expect("taken over");
    let sent = house.house.sim.received().len();
    let (status, refused) = house.ask(RUNS, &quoted).await;
    let error = &refused["error"];
    assert_eq!((status, error["code"].as_str()), (409, Some("confirmation_required")), "{refused}");
    assert_eq!(error["details"]["lacks"], json!(["cost"]));
    let most = |confirm: &Value| confirm["max_cost_nano_usd"].as_i64().expect("a sum");
    assert!(most(&error["details"]["quote"]["confirm"]) > most(&quoted["confirm"]), "{refused}");
    assert_eq!(house.house.sim.received().len(), sent, "nothing is sent");
    // Whoever repeats a request that had begun a run gets that run, whatever prices are by now.
    let again = house.post(RUNS, &quoted).header("idempotency-key", "early").send().await.expect("a reply");
    assert_eq!(again.status(), 202);
    assert_eq!(again.json::<Value>().await.expect("JSON")["id"], before["id"]);
    let confirm = error["details"]["quote"]["confirm"].clone();
    let (status, run) = house.ask(RUNS, &json!({ "inputs": quoted["inputs"], "confirm": confirm })).await;
    assert_eq!(status, 202, "{run}");
    house.ended(run["id"].as_str().expect("a run")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_gets_old() {
    let house = RunHouse::shipped().await;
    house.verify(SLUG).await;
    assert_eq!(house.stage(SLUG).await["stage"], "verified");
    house.house.later(31 * 24 * 3_600_000).await;
    let stage = house.stage(SLUG).await;
    assert_eq!(stage["stage"], "locked");
    assert!(stage["blocked"].as_str().is_some_and(|why| why.contains("too old")), "{stage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_accounts_run_and_file_are_not_there() {
    let house = RunHouse::shipped().await;
    house.verify(SLUG).await;
    let id = house.begin(SLUG, json!({ "article": "Rain." })).await;
    house.ended(&id).await;
    let (_, other) = house.house.stranger("5").await;
    for (method, path) in
        [("GET", format!("/v1/workflows/runs/{id}")), ("POST", format!("/v1/workflows/runs/{id}/cancel"))]
    {
        let url = house.house.url(&path);
        let request = if method == "GET" { house.house.http.get(url) } else { house.house.http.post(url) };
        let reply = request.bearer_auth(&other).send().await.expect("a reply");
        assert_eq!(reply.status(), 404, "{method} {path}");
    }
    // A file of ours, named by somebody else.
    let run = house.run(&id).await;
    let link = run["steps"][1]["outputs"]["audio"].as_str().expect("a link");
    let name = link.split('/').next_back().and_then(|rest| rest.split('?').next()).expect("a name");
    house.verify("meeting-to-minutes").await;
    let url = house.house.url("/v1/workflows/meeting-to-minutes/quote");
    let body = json!({ "inputs": { "recording": name } });
    let reply = house.house.http.post(&url).bearer_auth(&other).json(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 404);
    assert_eq!(house.ask("/v1/workflows/meeting-to-minutes/quote", &body).await.0, 200, "its owner may");
    let unsigned = link.split('?').next().expect("a link");
    assert_eq!(house.house.http.get(unsigned).send().await.expect("a reply").status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_begins_one_run() {
    let house = RunHouse::shipped().await;
    house.verify(SLUG).await;
    let request = house.confirmed(SLUG, json!({ "article": "Rain." })).await;
    let again = async |body: &Value| {
        let reply = house.post(RUNS, body).header("idempotency-key", "one").send().await.expect("a reply");
        (reply.status().as_u16(), reply.json::<Value>().await.expect("JSON"))
    };
    let (first, second) = (again(&request).await, again(&request).await);
    assert_eq!((first.0, second.0, &first.1["id"]), (202, 202, &second.1["id"]));
    let other = house.confirmed(SLUG, json!({ "article": "Snow." })).await;
    let (status, refused) = again(&other).await;
    assert_eq!((status, refused["error"]["code"].as_str()), (409, Some("idempotency_conflict")));
    house.ended(first.1["id"].as_str().expect("an id")).await;
    let page = async |query: &str| {
        let reply = house.house.get(&format!("/v1/workflows/runs{query}")).send().await.expect("a reply");
        (reply.status().as_u16(), reply.json::<Value>().await.expect("JSON"))
    };
    let (_, one) = page("?limit=1").await;
    assert_eq!((&one["data"][0]["id"], &one["has_more"]), (&first.1["id"], &json!(true)));
    let (_, two) = page(&format!("?limit=1&after={}", one["last_id"].as_str().expect("an id"))).await;
    assert_eq!((&two["has_more"], two["data"].as_array().map(Vec::len)), (&json!(false), Some(1)));
    for bad in ["?limit=0", "?limit=101", "?after=x", "?moon=1"] {
        assert_eq!(page(bad).await.0, 400, "{bad}");
    }
}

#[test]
fn what_the_shipped_records_want_confirmed_are_inputs_of_theirs() {
    for entry in std::fs::read_dir("../../catalog/workflows").expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let (text, name) = (std::fs::read_to_string(&path).expect("text"), path.file_stem().expect("a name"));
        let read = tollgate_workflows::read_record("x", &text, name.to_str().expect("text"));
        let (record, _) = read.read.expect("a record");
        let items = items_to_confirm(&record, &std::collections::BTreeMap::new());
        assert!(items.iter().all(|item| record.input(item).is_some()), "{items:?}");
    }
}
