//! `route_health`: from real calls, over replicas and restarts, and of nobody in particular.

use crate::engine::Engine;
use crate::house::{House, Plan, chat, second};
use serde_json::{Value, json};
use tollgate_gateway::routes::traffic::{SeenCall, Traffic};
use tollgate_gateway::start::Running;
use tollgate_store::{AccountId, quarter_of};

const CATALOG: &str = r#"
[model."shaky"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."down"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1, output = 1 }
route = [{ provider = "nobody", upstream_model = "sim-plain" }]
[model."rescued"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1, output = 1 }
route = [{ provider = "nobody", upstream_model = "sim-plain", priority = 1 }, { provider = "sim", upstream_model = "sim-plain", priority = 2 }]
"#;

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

async fn call(house: &House, at: &Running, key: &str, model: &str, text: &str) -> u16 {
    let mut body = chat(text);
    body["model"] = json!(model);
    let url = format!("http://{}/v1/chat/completions", at.address);
    let reply = house.http.post(url).bearer_auth(key).json(&body).send().await.expect("a reply");
    let status = reply.status().as_u16();
    let _ = reply.bytes().await;
    status
}

/// What one replica shows once it has read what all have added.
async fn shown(house: &House, at: &Running, model: &str) -> Value {
    at.app.read_health().await.expect("read");
    let url = format!("http://{}/api/pricing/{model}", at.address);
    let one: Value = house.http.get(url).send().await.expect("a reply").json().await.expect("JSON");
    one["route_health"].clone()
}

async fn flushed(house: &House) {
    house.quiet().await;
    house.running().app.flush_health().await.expect("added");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_providers_count_and_those_of_callers_do_not() {
    let house = house().await;
    let here = house.running();
    for _ in 0..15 {
        assert_eq!(call(&house, here, &house.key, "shaky", "hello").await, 200);
    }
    for _ in 0..5 {
        assert!(call(&house, here, &house.key, "shaky", "[[sim:error500]]").await >= 500);
    }
    flushed(&house).await;
    let health = shown(&house, here, "shaky").await;
    assert_eq!((&health["window_hours"], &health["sample_size"]), (&json!(24), &json!(20)));
    assert_eq!(health["success_ratio"], json!(0.75));
    assert!(health["last_checked_at"].as_str().is_some_and(|at| at.ends_with('Z') && at.len() == 20), "{health}");
    // What a provider refuses because of the request, and what we refuse ourselves, says nothing
    // of it.
    for text in ["[[sim:error400]]", "[[sim:error422]]"] {
        let status = call(&house, here, &house.key, "shaky", text).await;
        assert!((400..500).contains(&status), "{text}: {status}");
    }
    let body = json!({"model": "shaky", "messages": "no list"});
    assert_eq!(house.post(&body).send().await.expect("a reply").status(), 400);
    flushed(&house).await;
    assert_eq!(shown(&house, here, "shaky").await, health);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_another_route_rescued_is_answered() {
    let house = house().await;
    let here = house.running();
    for _ in 0..20 {
        assert_eq!(call(&house, here, &house.key, "rescued", "hello").await, 200);
        assert!(call(&house, here, &house.key, "down", "hello").await >= 500);
    }
    flushed(&house).await;
    assert_eq!(shown(&house, here, "rescued").await["success_ratio"], json!(1));
    assert_eq!(shown(&house, here, "down").await["success_ratio"], json!(0));
    let figures = here.app.routes.figures.now();
    let of = |model: &str, provider: &str| {
        let found = figures.counted.iter().find(|(route, _)| route.model == model && route.provider == provider);
        found.map(|(_, counts)| (counts.calls, counts.good))
    };
    assert_eq!(of("rescued", "nobody"), Some((20, 0)), "operators see each route");
    assert_eq!(of("rescued", "sim"), Some((20, 20)));
    assert_eq!(of("rescued", ""), Some((20, 20)));
}

#[tokio::test(flavor = "multi_thread")]
async fn few_calls_of_two_accounts_are_nobodys_business() {
    let house = house().await;
    let here = house.running();
    let (_, second_key) = house.stranger("1").await;
    for n in 0..19 {
        let key = if n % 2 == 0 { &house.key } else { &second_key };
        assert_eq!(call(&house, here, key, "shaky", "hello").await, 200);
    }
    flushed(&house).await;
    assert_eq!(shown(&house, here, "shaky").await, Value::Null);
    let counted = here.app.routes.figures.now().counted.len();
    assert_eq!(counted, 2, "the model and its route, for operators");
    assert_eq!(call(&house, here, &house.key, "shaky", "hello").await, 200);
    flushed(&house).await;
    assert_eq!(shown(&house, here, "shaky").await["sample_size"], json!(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_agree_and_a_restart_remembers() {
    for engine in Engine::both().await {
        let plan = Plan { catalog: CATALOG, database: engine.url.clone(), ..Plan::default() };
        let mut house = House::with(plan).await;
        let other = if engine.name == "postgres" { Some(second(&house).await) } else { None };
        for n in 0..40 {
            let at = other.as_ref().filter(|_| n % 2 == 0).unwrap_or(house.running());
            let text = if n % 10 < 2 { "[[sim:error500]]" } else { "hello" };
            call(&house, at, &house.key, "shaky", text).await;
        }
        flushed(&house).await;
        if let Some(other) = &other {
            other.app.flush_health().await.expect("added");
        }
        let here = shown(&house, house.running(), "shaky").await;
        assert_eq!((&here["sample_size"], &here["success_ratio"]), (&json!(40), &json!(0.8)), "{}", engine.name);
        if let Some(other) = other {
            assert_eq!(shown(&house, &other, "shaky").await, here, "{}", engine.name);
            other.stop().await;
        }
        call(&house, house.running(), &house.key, "shaky", "hello").await;
        house.restart().await;
        let after = shown(&house, house.running(), "shaky").await;
        assert_eq!(after["sample_size"], json!(41), "{}: what was not stored yet is stored at the stop", engine.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_window_moves_on() {
    let house = house().await;
    let here = house.running();
    for _ in 0..20 {
        assert_eq!(call(&house, here, &house.key, "shaky", "hello").await, 200);
    }
    flushed(&house).await;
    assert_eq!(shown(&house, here, "shaky").await["sample_size"], json!(20));
    let hour = 3_600_000;
    house.later(23 * hour).await;
    assert_eq!(shown(&house, here, "shaky").await["sample_size"], json!(20), "within the day");
    house.later(25 * hour).await;
    assert_eq!(shown(&house, here, "shaky").await, Value::Null);
    assert!(here.app.routes.figures.now().counted.is_empty());
}

/// 100,000 calls, counted by two replicas: as many rows as there are routes, and one figure.
#[tokio::test(flavor = "multi_thread")]
async fn many_calls_are_few_rows_and_one_figure() {
    const MODELS: usize = 40;
    const CALLS: usize = 100_000;
    for engine in Engine::both().await {
        let plan = Plan { database: engine.url.clone(), now: Some(1_800_000_300_000), ..Plan::default() };
        let house = House::with(plan).await;
        let other = if engine.name == "postgres" { Some(second(&house).await) } else { None };
        let here = house.running();
        // What the second one counts is counted beside it, so that nobody else takes it away.
        let there = &Traffic::default();
        let second = other.as_ref().unwrap_or(here);
        let now = here.app.world.now_ms();
        for n in 0..CALLS {
            let traffic = if n % 2 == 0 { &here.app.routes.traffic } else { there };
            let seen = SeenCall { account: AccountId([n as u8; 16]), good: n % 10 != 0, first_byte_ms: 7, at: now - 5 };
            let model = format!("m{}", n / 2 % MODELS);
            traffic.call(&model, seen);
            traffic.attempt(&model, ["one", "two", "three"][n % 3], "up", seen);
        }
        let store = &here.app.store;
        let taken = there.take();
        assert_eq!(taken.len(), MODELS * 4, "what waits is as much as there are routes, not calls");
        there.give_back(taken);
        let adds = second.app.routes.figures.flush(there, &second.app.store, now);
        let (one, two) = tokio::join!(here.app.flush_health(), adds);
        assert!(one.is_ok() && two.is_ok(), "{}", engine.name);
        let stored = async || {
            let mut rows = store.route_health(quarter_of(now)..quarter_of(now) + 1).await.expect("read");
            rows.sort_by(|(a, _), (b, _)| a.cmp(b));
            rows
        };
        let rows = stored().await;
        assert_eq!(rows.len(), MODELS * 4, "{}", engine.name);
        // Nothing new is nothing to write.
        here.app.flush_health().await.expect("added");
        assert_eq!(stored().await, rows, "{}", engine.name);
        here.app.read_health().await.expect("read");
        let figures = here.app.routes.figures.now();
        let all = figures.models.values().fold((0, 0), |(n, good), one| (n + one.sample_size, good + one.good));
        assert_eq!((figures.models.len(), all), (MODELS, (CALLS as u64, CALLS as u64 / 10 * 9)), "{}", engine.name);
        if let Some(other) = other {
            other.app.read_health().await.expect("read");
            assert_eq!(other.app.routes.figures.now().models, figures.models, "{}", engine.name);
            other.stop().await;
        }
    }
}
