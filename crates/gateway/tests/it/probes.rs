//! Probes of routes without traffic: only where the operator wants them, once over all replicas,
//! within the day's bound, at nobody's cost but his.

use crate::engine::Engine;
use crate::house::{House, Plan, chat, second};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_gateway::app::App;
use tollgate_gateway::workers::probes::round;
use tollgate_store::{PauseChange, PauseKind, RouteCounts};

const HOUR: i64 = 3_600_000;
const NOON: i64 = 1_800_014_400_000;

const CATALOG: &str = r#"
[model."idle"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1_000_000, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "up-idle" }]
[model."half"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1_000_000, output = 1_000_000 }
route = [{ provider = "nobody", upstream_model = "up-half", priority = 1 }, { provider = "sim", upstream_model = "up-half", priority = 2 }]
[model."broken"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1_000_000, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "sim-error500" }]
[model."choosy"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1_000_000, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "sim-error400" }]
[model."vector"]
supported_endpoint_types = ["embeddings"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim", upstream_model = "up-vector" }]
[model."picture"]
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 10_000 }
route = [{ provider = "sim", upstream_model = "sim-image" }]
[model."left-alone"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1_000_000, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "up-alone", probe_every = "0" }]
"#;

/// No rounds but those of the test.
const HOURLY: &str = "[probes]\nevery = \"1h\"\nlook_every = \"100h\"\n";

async fn house(probes: &str, database: &str) -> House {
    let config = probes.to_owned();
    let plan = Plan { catalog: CATALOG, config, now: Some(NOON), database: database.to_owned(), ..Plan::default() };
    let house = House::with(plan).await;
    // The models of every house have routes too.
    for name in ["plain", "sim-plain", "billed-to-the-end", "two-routes", "no-chat", "paid-only"] {
        pause(&house, PauseKind::Model, name, true).await;
    }
    house
}

async fn pause(house: &House, kind: PauseKind, name: &str, paused: bool) {
    let app = &house.running().app;
    let (at, actor) = (app.world.now_ms(), "ada".to_owned());
    let change = PauseChange { kind, name: name.to_owned(), paused, at, actor, reason: String::new() };
    app.store.change_pause(change).await.expect("written");
    app.routes.switches.read(&app.store, &app.metrics).await.expect("read");
}

fn app(house: &House) -> &Arc<App> {
    &house.running().app
}

/// What the provider was sent since the last look, by the names it knows.
fn asked(house: &House, before: &mut usize) -> Vec<String> {
    let all = house.sim.received();
    let new = all[*before..].iter().map(|one| one.json()["model"].as_str().unwrap_or_default().to_owned());
    let mut new: Vec<String> = new.collect();
    *before = all.len();
    new.sort();
    new
}

fn counted(app: &App, model: &str, provider: &str) -> RouteCounts {
    let figures = app.routes.figures.now();
    let found = figures.counted.iter().find(|(route, _)| route.model == model && route.provider == provider);
    found.map(|(_, counts)| *counts).unwrap_or_default()
}

async fn shown(house: &House, model: &str) -> Value {
    app(house).read_health().await.expect("read");
    let one: Value =
        house.get(&format!("/api/pricing/{model}")).send().await.expect("a reply").json().await.expect("JSON");
    one["route_health"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_asked_unless_the_operator_says_so() {
    let house = house("", "sqlite").await;
    house.later(30 * HOUR).await;
    round(app(&house)).await.expect("a round");
    assert!(house.sim.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_without_traffic_are_asked_once_in_a_while() {
    let house = house(HOURLY, "sqlite").await;
    let mut before = 0;
    let money = house.available().await;
    round(app(&house)).await.expect("a round");
    let all = ["sim-error400", "sim-error500", "up-half", "up-idle", "up-vector"];
    assert_eq!(asked(&house, &mut before), all, "neither pictures, nor what is to be left alone");
    let sent = house.sim.received();
    let of = |name: &str| sent.iter().find(|one| one.json()["model"] == name).expect("sent");
    assert_eq!(of("up-idle").json()["max_completion_tokens"], 16);
    assert_eq!(of("up-vector").path, "/v1/embeddings");
    app(&house).read_health().await.expect("read");
    let probes = |model: &str, provider: &str| {
        let counts = counted(app(&house), model, provider);
        assert_eq!((counts.calls, counts.accounts), (0, 0), "nobody called");
        (counts.probes, counts.good_probes)
    };
    assert_eq!((probes("idle", "sim"), probes("idle", "")), ((1, 1), (1, 1)));
    assert_eq!((probes("half", "sim"), probes("half", "nobody")), ((1, 1), (1, 0)));
    assert_eq!(probes("half", ""), (1, 1), "a customer would have been answered");
    assert_eq!((probes("broken", "sim"), probes("broken", "")), ((1, 0), (1, 0)));
    assert_eq!((probes("choosy", "sim"), probes("choosy", "")), ((0, 0), (0, 0)), "our question was to blame");
    let health = shown(&house, "broken").await;
    assert_eq!((&health["sample_size"], &health["success_ratio"]), (&json!(1), &json!(0)), "{health}");
    assert_eq!(health["last_checked_at"], json!("2027-01-15T12:00:00Z"));

    // Nobody paid for it.
    house.quiet().await;
    let rows: Value = house.get("/v1/usage").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!((house.available().await, &rows["data"]), (money, &json!([])));
    let day = app(&house).store.probe_day(NOON).await.expect("read");
    assert!(day.calls == 6 && (1..1_000_000).contains(&day.nano_usd), "{day:?}");

    round(app(&house)).await.expect("a round");
    house.later(HOUR - 1_000).await;
    round(app(&house)).await.expect("a round");
    assert!(asked(&house, &mut before).is_empty(), "not due yet");
    // A call is as good as a probe.
    let mut body = chat("hello");
    body["model"] = json!("idle");
    assert_eq!(house.post(&body).send().await.expect("a reply").status(), 200);
    house.quiet().await;
    assert_eq!(asked(&house, &mut before), ["up-idle"]);
    house.later(HOUR + 1_000).await;
    round(app(&house)).await.expect("a round");
    assert_eq!(asked(&house, &mut before), ["sim-error400", "sim-error500", "up-half", "up-vector"]);
    house.later(3 * HOUR).await;
    round(app(&house)).await.expect("a round");
    assert_eq!(asked(&house, &mut before), all);
    let health = shown(&house, "idle").await;
    assert_eq!(health["sample_size"], json!(2), "the one call of a customer is not given away");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_is_not_asked() {
    let house = house(HOURLY, "sqlite").await;
    let mut before = 0;
    pause(&house, PauseKind::Model, "idle", true).await;
    round(app(&house)).await.expect("a round");
    assert_eq!(asked(&house, &mut before), ["sim-error400", "sim-error500", "up-half", "up-vector"]);
    pause(&house, PauseKind::Provider, "sim", true).await;
    house.later(2 * HOUR).await;
    round(app(&house)).await.expect("a round");
    assert!(asked(&house, &mut before).is_empty());
    pause(&house, PauseKind::Provider, "sim", false).await;
    pause(&house, PauseKind::Model, "idle", false).await;
    house.later(4 * HOUR).await;
    round(app(&house)).await.expect("a round");
    assert_eq!(asked(&house, &mut before).len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_and_a_route_have_a_word_of_their_own() {
    let plan = Plan {
        catalog: r#"
[model."often"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "up-often", probe_every = "10m" }]
[model."as-the-provider"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "up-provider" }]
"#,
        config: "[probes]\nlook_every = \"100h\"\n".to_owned(),
        sim: "probe_every = \"30m\"",
        now: Some(NOON),
        ..Plan::default()
    };
    let house = House::with(plan).await;
    for name in ["plain", "sim-plain", "billed-to-the-end", "two-routes", "no-chat", "paid-only"] {
        pause(&house, PauseKind::Model, name, true).await;
    }
    let mut before = 0;
    for (minutes, expected) in [
        (0, &["up-often", "up-provider"][..]),
        (9, &[]),
        (10, &["up-often"]),
        (20, &["up-often"]),
        (31, &["up-often", "up-provider"]),
    ] {
        house.later(minutes * 60_000).await;
        round(app(&house)).await.expect("a round");
        assert_eq!(asked(&house, &mut before), expected, "after {minutes} minutes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_has_a_bound_of_calls_and_of_money() {
    let house = house(&format!("{HOURLY}calls_per_day = 3\n"), "sqlite").await;
    let mut before = 0;
    round(app(&house)).await.expect("a round");
    // "broken" and "choosy" by name, then "half" would be two.
    assert_eq!(asked(&house, &mut before), ["sim-error400", "sim-error500", "up-idle"]);
    house.later(2 * HOUR).await;
    round(app(&house)).await.expect("a round");
    assert!(asked(&house, &mut before).is_empty(), "the day is used up");
    house.later(12 * HOUR).await;
    round(app(&house)).await.expect("a round");
    assert_eq!(asked(&house, &mut before).len(), 3, "the next day");
    drop(house);

    let house = self::house(&format!("{HOURLY}usd_per_day = \"0.000001\"\n"), "sqlite").await;
    round(app(&house)).await.expect("a round");
    assert!(house.sim.received().is_empty(), "none is as cheap as that");
    let mut page = String::new();
    app(&house).metrics.write(&mut page);
    assert!(page.contains("tollgate_probes_total{provider=\"\",outcome=\"spent\"} 5"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_ask_once_and_show_the_same() {
    for engine in Engine::both().await {
        let house = house(HOURLY, &engine.url).await;
        let other = if engine.name == "postgres" { Some(second(&house).await) } else { None };
        let there = other.as_ref().map_or(app(&house), |other| &other.app);
        there.routes.switches.read(&there.store, &there.metrics).await.expect("read");
        let mut before = 0;
        for hours in [0, 2, 4] {
            house.later(hours * HOUR).await;
            let (one, two) = tokio::join!(round(app(&house)), round(there));
            assert!(one.is_ok() && two.is_ok(), "{}", engine.name);
            assert_eq!(asked(&house, &mut before).len(), 5, "{} after {hours} hours", engine.name);
        }
        there.read_health().await.expect("read");
        app(&house).read_health().await.expect("read");
        for model in ["idle", "half", "broken"] {
            let counts = counted(app(&house), model, "");
            assert_eq!(counts.probes, 3, "{}", engine.name);
            assert_eq!(counted(there, model, ""), counts, "{}", engine.name);
        }
        if let Some(other) = other {
            other.stop().await;
        }
    }
}
