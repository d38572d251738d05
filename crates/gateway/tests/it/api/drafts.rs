//! /api/admin/catalog/draft: what commands would change, published and called; hand-made changes
//! stay; lists of others have bounds. And what could be on sale: shipped models, known providers.

use crate::engine::Engine;
use crate::house::{House, Plan, call_id, chat};
use crate::people::signed_in;
use reqwest::Method;
use serde_json::{Value, json};
use tollgate_store::{Attribution, HouseRole, NewAdminKey};

const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";
const DRAFT: &str = "/api/admin/catalog/draft";
const LOCK: &str = "import.lock.toml";
const PEOPLE: &str = "[people]\nenabled = true\n[people.mail]\nfolder = \"mail\"\n";

async fn house(engine: &Engine, config: &str) -> House {
    let plan = Plan { database: engine.url.clone(), config: config.to_owned(), ..Plan::default() };
    let house = House::with(plan).await;
    let new = NewAdminKey { name: "day shift".to_owned(), expires_at: None, done: Attribution::by("test", "a test") };
    house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
    house
}

async fn in_database(engine: &Engine) -> House {
    house(engine, "catalog_source = \"database\"\n").await
}

async fn ask(house: &House, method: &str, path: &str, body: Option<Value>, seen: Option<&str>) -> (u16, Value) {
    let method: Method = method.parse().expect("a method");
    let request = house.http.request(method, house.url(path)).bearer_auth(ADMIN);
    let request = seen.iter().fold(request, |request, seen| request.header("if-match", *seen));
    let request = body.iter().fold(request, |request, body| request.json(body));
    let reply = request.send().await.expect("a reply");
    let status = reply.status().as_u16();
    (status, reply.json().await.expect("JSON"))
}

async fn get(house: &House, path: &str) -> Value {
    let (status, body) = ask(house, "GET", path, None, None).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

async fn draft(house: &House, body: Value) -> Value {
    let (status, draft) = ask(house, "POST", DRAFT, Some(body.clone()), None).await;
    assert_eq!(status, 200, "{body}: {draft}");
    draft
}

/// Puts the files of a draft on sale, by its own tag.
async fn publish(house: &House, draft: &Value) -> Value {
    put(house, &draft["files"], draft["etag"].as_str().expect("a tag")).await
}

async fn put(house: &House, files: &Value, seen: &str) -> Value {
    let body = json!({ "files": files, "merge": true, "reason": "as drafted" });
    let (status, done) = ask(house, "POST", "/api/admin/catalog/publish", Some(body), Some(seen)).await;
    assert_eq!((status, &done["in_force_here"]), (200, &json!(true)), "{done}");
    done
}

/// Model and what is done to it.
fn steps(draft: &Value) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().expect("text").to_owned();
    draft["steps"].as_array().expect("steps").iter().map(|one| (word(&one["model"]), word(&one["what"]))).collect()
}

async fn call(house: &House, model: &str) -> reqwest::Response {
    let mut body = chat("[[sim:tokens=2]]");
    body["model"] = json!(model);
    let request = house.http.post(house.url("/v1/chat/completions")).bearer_auth(&house.key).json(&body);
    request.send().await.expect("a reply")
}

fn enable(margin: &str) -> Value {
    json!({ "action": "enable", "provider": "openai", "route": "sim", "models": ["gpt-4.1*"], "margin": margin })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_published_and_its_models_are_called() {
    for engine in Engine::both().await {
        let mut house = in_database(&engine).await;
        let first = get(&house, "/api/admin/catalog").await;
        let enabled = draft(&house, enable("10%")).await;
        assert!(steps(&enabled).contains(&("gpt-4.1".to_owned(), "add".to_owned())), "{enabled}");
        assert_eq!(
            (&enabled["same"], &enabled["etag"], &enabled["stops"]),
            (&json!(false), &first["etag"], &json!([]))
        );
        let names: Vec<&String> = enabled["files"].as_object().expect("files").keys().collect();
        assert_eq!(names, [LOCK, "openai.toml", "vendors.toml"]);
        assert!(enabled["changes"].as_array().is_some_and(|all| all.iter().any(|one| one["what"] == "model_added")));
        assert_eq!(get(&house, "/api/admin/catalog").await["hash"], first["hash"], "nothing was changed by it");

        let diff = json!({ "files": enabled["files"], "merge": true });
        let (status, diff) = ask(&house, "POST", "/api/admin/catalog/diff", Some(diff), None).await;
        assert_eq!((status, &diff["count"]), (200, &enabled["counts"]["changes"]), "{diff}");
        publish(&house, &enabled).await;
        let reply = call(&house, "gpt-4.1").await;
        assert_eq!(reply.status(), 200);
        let charged = house.row(call_id(&reply)).await.charge.nano();
        assert_eq!(charged, 2_200 + 2 * 8_800, "a tenth above the list");
        assert_eq!(house.sim.received().last().expect("one").json()["model"], "gpt-4.1");
        assert_eq!(draft(&house, enable("10%")).await["same"], true, "it is on sale already");

        // What an operator changes by hand is his, whatever is drafted.
        let on_sale = get(&house, "/api/admin/catalog?texts=true").await;
        let text = on_sale["files"]["openai.toml"].as_str().expect("a file");
        let by_hand = text.replacen("input = 440_000", "input = 999_000", 1);
        assert_ne!(text, by_hand, "the price of gpt-4.1-mini");
        put(&house, &json!({ "openai.toml": by_hand }), on_sale["etag"].as_str().expect("a tag")).await;
        let updated = draft(&house, json!({ "action": "update" })).await;
        assert_eq!(steps(&updated), [("gpt-4.1-mini".to_owned(), "yours".to_owned())], "{updated}");
        let dearer = draft(&house, enable("20%")).await;
        assert!(steps(&dearer).contains(&("gpt-4.1".to_owned(), "change".to_owned())));
        assert!(steps(&dearer).contains(&("gpt-4.1-mini".to_owned(), "yours".to_owned())));

        // What commands remember is in the database, so a restart forgets nothing.
        house.restart().await;
        let off = draft(&house, json!({ "action": "disable", "provider": "openai" })).await;
        assert!(steps(&off).contains(&("gpt-4.1".to_owned(), "remove".to_owned())), "{off}");
        publish(&house, &off).await;
        assert_eq!(call(&house, "gpt-4.1").await.status(), 404);
        assert_eq!(call(&house, "gpt-4.1-mini").await.status(), 200, "it stays");
        let tidied = draft(&house, json!({ "action": "tidy" })).await;
        assert_eq!((&tidied["folded"], &tidied["same"]), (&json!([]), &json!(true)));
        let (status, stale) = ask(
            &house,
            "POST",
            "/api/admin/catalog/publish",
            Some(json!({ "files": enabled["files"], "merge": true, "reason": "late" })),
            enabled["etag"].as_str(),
        )
        .await;
        assert_eq!((status, &stale["error"]["code"]), (412, &json!("precondition_failed")), "{stale}");
        house.quiet().await;
    }
}

fn listed(entries: &[(&str, &str, &str)]) -> String {
    let one = |(name, input, output): &(&str, &str, &str)| {
        format!(
            r#""acme/{name}": {{"litellm_provider": "acme", "mode": "chat", "max_input_tokens": 8000, "max_output_tokens": 1000, "input_cost_per_token": {input}, "output_cost_per_token": {output}}}"#
        )
    };
    format!("{{{}}}", entries.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn import(text: &str, more: Value) -> Value {
    let mut body = json!({
        "action": "import", "lists": [{ "form": "litellm", "text": text, "provider": "acme" }], "route": "sim",
        "margin": "10%", "file": "acme.toml",
    });
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_others_are_imported_and_what_needs_a_look_stops_them() {
    for engine in Engine::both().await {
        let house = in_database(&engine).await;
        let list = listed(&[("m", "1e-06", "2e-06"), ("free", "0", "2e-06")]);
        let stopped = draft(&house, import(&list, json!({}))).await;
        assert_eq!((&stopped["files"], &stopped["stops"][0]["model"]), (&json!({}), &json!("free")), "{stopped}");
        let accepted = draft(&house, import(&list, json!({ "accept": ["free"] }))).await;
        assert_eq!(steps(&accepted).len(), 2, "{accepted}");
        let only = draft(&house, import(&list, json!({ "models": ["m"], "prefix": "acme/" }))).await;
        assert_eq!(steps(&only), [("acme/m".to_owned(), "add".to_owned())], "{only}");
        publish(&house, &only).await;
        let reply = call(&house, "acme/m").await;
        assert_eq!(reply.status(), 200);
        assert_eq!(house.row(call_id(&reply)).await.charge.nano(), 1_100 + 2 * 2_200);

        // The vendor's price moves: a little is a change, much of it stops until somebody looks.
        let update = |input: &str, accept: Value| {
            let list = listed(&[("m", input, "2e-06")]);
            let lists = json!([{ "form": "litellm", "text": list }]);
            json!({ "action": "update", "files": ["acme"], "lists": lists, "prefix": "acme/", "accept": accept })
        };
        let little = draft(&house, update("1.1e-06", json!([]))).await;
        assert_eq!(steps(&little), [("acme/m".to_owned(), "change".to_owned())], "{little}");
        let large = draft(&house, update("9e-06", json!([]))).await;
        assert_eq!((large["stops"].as_array().map(Vec::len), &large["files"]), (Some(1), &json!({})), "{large}");
        let looked = draft(&house, update("9e-06", json!(["acme/m"]))).await;
        publish(&house, &looked).await;
        let reply = call(&house, "acme/m").await;
        assert_eq!(house.row(call_id(&reply)).await.charge.nano(), 9_900 + 2 * 2_200);
        let noted = draft(&house, json!({ "action": "update" })).await;
        assert!(noted["notes"][0].as_str().is_some_and(|note| note.contains("imported from litellm")), "{noted}");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_drafted_is_refused_by_name() {
    let [sqlite, _] = Engine::both().await;
    let house = house(&sqlite, "").await;
    let good = listed(&[("m", "1e-06", "2e-06")]);
    let with = |more: Value| import(&good, more);
    let lists = |lists: Value| with(json!({ "lists": lists }));
    let many = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("m{number}")).collect();
        listed(&names.iter().map(|name| (name.as_str(), "1e-06", "2e-06")).collect::<Vec<_>>())
    };
    for (body, field) in [
        (json!({}), "action"),
        (json!({ "action": "sell" }), "action"),
        (json!({ "action": 1 }), "action"),
        (json!({ "action": "enable" }), "provider"),
        (json!({ "action": "enable", "provider": "opanai" }), "provider"),
        (json!({ "action": "enable", "provider": "openai", "route": "none" }), "route"),
        (json!({ "action": "enable", "provider": "openai", "route": "sim", "margin": "10" }), "margin"),
        (json!({ "action": "enable", "provider": "openai", "route": "sim", "models": ["nothing*"] }), "models"),
        (json!({ "action": "enable", "provider": "openai", "route": "sim", "models": "gpt" }), "models"),
        (json!({ "action": "enable", "provider": "openai", "route": "sim", "models": vec!["a"; 201] }), "models"),
        (json!({ "action": "enable", "provider": "openai", "lists": [] }), "lists"),
        (json!({ "action": "disable", "provider": "openai" }), "provider"),
        (json!({ "action": "update" }), "files"),
        (json!({ "action": "tidy", "provider": "openai" }), "provider"),
        (json!({ "action": "import", "file": "a.toml" }), "lists"),
        (with(json!({ "file": "../a.toml" })), "file"),
        (with(json!({ "file": LOCK })), "file"),
        (with(json!({ "file": null })), "file"),
        (with(json!({ "facts": ["[model"] })), "facts"),
        (lists(json!([{ "form": "csv", "text": "" }])), "form"),
        (lists(json!([{ "form": "litellm", "text": 1 }])), "lists"),
        (lists(json!([{ "form": "litellm", "text": "{\"a\": " }])), "lists"),
        (lists(json!([{ "form": "litellm", "text": good }, { "form": "litellm", "text": good }])), "lists"),
        (lists(json!([{ "form": "litellm", "text": "[".repeat(100_000) }])), "lists"),
        (import(&many(10_001), json!({})), "lists"),
        // As many as there may be, which is more than a catalog may have.
        (import(&many(10_000), json!({})), "models"),
    ] {
        let (status, answer) = ask(&house, "POST", DRAFT, Some(body), None).await;
        assert_eq!((status, answer["error"]["param"].as_str()), (400, Some(field)), "{answer}");
    }
    let huge = with(json!({ "lists": [{ "form": "litellm", "text": " ".repeat(33 << 20) }] }));
    assert_eq!(ask(&house, "POST", DRAFT, Some(huge), None).await.0, 413);
    let (status, wrong) =
        ask(&house, "POST", "/api/admin/catalog/check", Some(json!({ "files": { LOCK: "file = " } })), None).await;
    assert_eq!((status, &wrong["ok"], &wrong["mistakes"][0]["file"]), (200, &json!(false), &json!(LOCK)), "{wrong}");

    // Of a folder the same can be drafted; somebody else puts it there.
    let drafted = draft(&house, enable("0%")).await;
    let body = json!({ "files": drafted["files"], "merge": true, "reason": "no" });
    let (status, _) = ask(&house, "POST", "/api/admin/catalog/publish", Some(body), drafted["etag"].as_str()).await;
    assert_eq!(status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_be_on_sale_is_shown_to_auditors_too() {
    let [sqlite, _] = Engine::both().await;
    let known = "[provider.deepseek-2]\npreset = \"deepseek\"\nsecret_file = \"sim.key\"\n";
    let house = house(&sqlite, &format!("{PEOPLE}{known}")).await;
    let shipped = get(&house, "/api/admin/catalog/shipped").await;
    let openai = shipped["data"].as_array().expect("rows").iter().find(|row| row["provider"] == "openai");
    let count = openai.expect("a row")["models"].as_u64();
    let models = get(&house, "/api/admin/catalog/shipped/openai?stale_after=36500").await;
    assert_eq!(models["data"].as_array().map(|all| all.len() as u64), count);
    let few = get(&house, "/api/admin/catalog/shipped/openai?model=gpt-4.1").await;
    assert_eq!((few["data"].as_array().map(Vec::len), &few["data"][0]["input_usd"]), (Some(1), &json!("2")), "{few}");
    for (path, status, field) in [
        ("/api/admin/catalog/shipped/opanai", 404, "provider"),
        ("/api/admin/catalog/shipped?stale_after=-1", 400, "stale_after"),
        ("/api/admin/provider-presets/deepsek", 404, "name"),
        ("/api/admin/provider-presets?endpoint=smells", 400, "endpoint"),
    ] {
        let (got, answer) = ask(&house, "GET", path, None, None).await;
        assert_eq!((got, answer["error"]["param"].as_str()), (status, Some(field)), "{path}: {answer}");
    }
    let all = get(&house, "/api/admin/provider-presets").await;
    assert!(all["data"].as_array().is_some_and(|rows| rows.len() >= 90));
    let chats = get(&house, "/api/admin/provider-presets?endpoint=rerank").await;
    assert!(chats["data"].as_array().is_some_and(|rows| !rows.is_empty() && rows.len() < 90));
    let one = get(&house, "/api/admin/provider-presets/deepseek").await;
    assert_eq!((&one["configured"], &one["key_env"]), (&json!(["deepseek-2"]), &json!("DEEPSEEK_API_KEY")), "{one}");
    let key = std::fs::read_to_string(house.dir.join("sim.key")).expect("a key");
    assert!(!all.to_string().contains(key.trim()), "no secret is shown");

    let mut auditor = signed_in(&house, "auditor@example.com", Some(HouseRole::Auditor), None).await;
    for path in
        ["/api/admin/catalog/shipped", "/api/admin/catalog/shipped/openai", "/api/admin/provider-presets/deepseek"]
    {
        assert_eq!(auditor.get(path).await.status, 200, "{path}");
    }
    assert_eq!(auditor.post(DRAFT, json!({ "action": "tidy" })).await.code, "role_required");
    let test = json!({ "kind": "provider_test", "provider": "sim", "reason": "curious" });
    assert_eq!(auditor.post("/api/admin/jobs", test).await.code, "role_required");
    assert!(house.sim.received().is_empty(), "nothing was sent");
}
