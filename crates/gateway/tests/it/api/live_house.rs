//! Live events of what a round finds: alerts, runs, health of routes, providers that are not asked.

use super::live::{ADMIN, HOUSE, OWN, admin, fits, get, house, manage_key, shapes, watch};
use super::watcher::open;
use crate::engine::Engine;
use crate::house::{House, Plan, chat};
use crate::people::test;
use crate::v1::workflow_runs::RunHouse;
use serde_json::{Value, json};
use tollgate_gateway::workers::alerts::look;
use tollgate_store::NewAdminKey;

const USD: i64 = 1_000_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_is_seen_when_it_fires_and_when_it_clears() {
    for engine in Engine::both().await {
        let house = house(&engine.url, "").await;
        let app = &house.running().app;
        let (account, name) = (house.account.to_string(), "poor");
        let rule = json!({
            "name": name, "kind": "balance", "accounts": [account], "amount_nano_usd": 15 * USD, "places": null, "reason": "a test",
        });
        let mut events = watch(&house, ADMIN, HOUSE).await;
        let rule = admin(&house, "POST", "/api/admin/alerts/rules", rule).await;
        look(app).await.expect("looked");
        let raised = events.find("alert.raised", |_| true).await;
        assert_eq!((&raised["subject"], &raised["what"]), (&json!(account), &json!("firing")), "{raised}");
        assert_eq!(raised["rule"], rule["name"], "{raised}");
        house.top_up("enough", "20").await;
        look(app).await.expect("looked");
        let cleared = events.find("alert.cleared", |_| true).await;
        assert_eq!((&cleared["subject"], &cleared["rule"]), (&raised["subject"], &raised["rule"]), "{cleared}");
        assert_ne!(cleared["alert_id"], raised["alert_id"]);
        let shapes = shapes(&house, "AdminLiveEvent").await;
        [raised, cleared].iter().for_each(|event| fits(&shapes, event));
        let said = events.seen.iter().filter(|event| event.kind.starts_with("alert.")).count();
        assert_eq!(said, 2, "each once: {:?}", events.seen);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_seen_on_its_way() {
    for engine in Engine::both().await {
        let runs = RunHouse::with(Plan { database: engine.url.clone(), ..Plan::default() }).await;
        let slug = "social-search-digest";
        assert_eq!(runs.verify(slug).await["status"], "completed");
        let key = manage_key(&runs.house).await;
        let mut events = watch(&runs.house, &key, OWN).await;
        let id = runs.begin(slug, json!({ "keyword": "tea", "platform": "tiktok" })).await;
        let own = |data: &Value| data["run_id"] == id.as_str();
        let ended = events.find("run.changed", |data| own(data) && data["status"] == "completed").await;
        assert_eq!(ended["workflow"], slug, "{ended}");
        assert!(ended["ended_at_ms"].is_i64(), "{ended}");
        // What it bought is listed as every call is, once.
        let run = runs.run(&id).await;
        for step in run["steps"].as_array().expect("steps") {
            let closed = events.find_any("usage.closed", |data| data["call_id"] == step["call_id"]).await;
            assert_eq!(closed["charge_nano_usd"], step["charged_nano_usd"]);
        }
        let last = events.seen.iter().rfind(|event| event.kind == "run.changed").expect("one").data.clone();
        assert_eq!(last["status"], "completed", "nothing comes after its end");
        fits(&shapes(&runs.house, "AccountLiveEvent").await, &ended);
        // Who was away hears of it too.
        let first = events.seen.iter().find_map(|event| event.id.clone()).expect("an id");
        let mut again = open(get(&runs.house, OWN, &key).header("last-event-id", first)).await;
        let greeted = again.next().await.expect("an event");
        match greeted.data["resumed"].as_bool() {
            Some(true) => drop(again.find("run.changed", |data| own(data) && data["status"] == "completed").await),
            _ => assert_eq!(again.next().await.expect("an event").kind, "reset", "a slow machine: said, not lost"),
        }
        runs.house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn how_routes_are_doing_is_seen_when_it_changes() {
    for engine in Engine::both().await {
        let house = house(&engine.url, "").await;
        let app = &house.running().app;
        let mut events = watch(&house, ADMIN, HOUSE).await;
        assert_eq!(house.ask("[[sim:tokens=2]]").await.status(), 200);
        house.quiet().await;
        app.flush_health().await.expect("written");
        app.read_health().await.expect("read");
        let of = |data: &Value, model: &str| {
            let routes = data["routes"].as_array().expect("routes");
            routes.iter().find(|route| route["model"] == model && route["provider"] == "sim").cloned()
        };
        let changed = events.find("health.changed", |data| of(data, "plain").is_some()).await;
        let route = of(&changed, "plain").expect("the route");
        assert!(route["health"].is_object(), "{changed}");
        assert_eq!(
            (of(&changed, "two-routes"), &changed["more"]),
            (None, &json!(false)),
            "only what changed: {changed}"
        );
        fits(&shapes(&house, "AdminLiveEvent").await, &changed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_not_asked_any_more_is_seen_and_its_return_too() {
    for engine in Engine::both().await {
        let plan =
            Plan { sim: "estimated_rows = 3\npause_time = \"10m\"", database: engine.url.clone(), ..Plan::default() };
        let house = House::with(plan).await;
        let new = NewAdminKey { name: "day".to_owned(), expires_at: None, done: test() };
        house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
        let mut events = watch(&house, ADMIN, HOUSE).await;
        for _ in 0..3 {
            let reply = house.post(&chat("[[sim:no_usage tokens=2]]")).send().await.expect("a reply");
            assert_eq!(reply.status(), 200);
        }
        house.quiet().await;
        let paused = events.find("route.paused", |_| true).await;
        let pair = (&paused["provider"], &paused["model"], &paused["paused"]);
        assert_eq!(pair, (&json!("sim"), &json!("sim-plain"), &json!(true)), "{paused}");
        assert_eq!(paused["replica"], house.running().app.store.replica_name());
        house.later(601_000).await;
        assert_eq!(house.ask("hello").await.status(), 200, "it reports again");
        let back = events.find("route.paused", |data| data["paused"] == false).await;
        assert_eq!((&back["provider"], &back["model"]), (&paused["provider"], &paused["model"]));
        let shapes = shapes(&house, "AdminLiveEvent").await;
        [paused, back].iter().for_each(|event| fits(&shapes, event));
    }
}
