//! Figures of routes: what is counted is counted once, and probes are nobody's calls.

use super::FUNDED;
use super::ledger::locked;
use crate::house::{House, Plan, chat};
use serde_json::json;
use tollgate_gateway::workers::probes::round;

const CATALOG: &str = r#"
[model."broken"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "sim-error500", probe_every = "1h" }]
[model."choosy"]
max_output_tokens = 100
context_window = 1000
supported_endpoint_types = ["openai"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "sim-error400", probe_every = "1h" }]
"#;

pub async fn health_while_the_ledger_is_down() {
    let house = House::new().await;
    for _ in 0..20 {
        assert_eq!(house.ask("hello").await.status(), 200);
    }
    house.quiet().await;
    let app = house.running().app.clone();
    let blocker = locked(&house);
    let (adding, again) = (app.flush_health(), async {
        tokio::task::yield_now().await;
        drop(blocker);
    });
    let (added, ()) = tokio::join!(adding, again);
    // Whether it waited or gave up: what was counted is there once.
    if added.is_err() {
        app.flush_health().await.expect("added");
    }
    app.flush_health().await.expect("nothing left to add");
    app.read_health().await.expect("read");
    let figures = app.routes.figures.now();
    assert_eq!(figures.models.get("plain").map(|one| (one.sample_size, one.good)), Some((20, 20)));
}

pub async fn a_probe_that_fails() {
    let config = "[probes]\nlook_every = \"100h\"\n".to_owned();
    let house = House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await;
    let app = &house.running().app;
    round(app).await.expect("a round");
    let asked: Vec<String> = house.sim.received().iter().map(|one| one.json()["model"].to_string()).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    app.read_health().await.expect("read");
    let figures = app.routes.figures.now();
    let of = |model: &str| figures.models.get(model).map(|one| (one.sample_size, one.good));
    assert_eq!((of("broken"), of("choosy")), (Some((1, 0)), None));
    assert_eq!(house.available().await, FUNDED);
    let rows: serde_json::Value = house.get("/v1/usage").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(rows["data"], json!([]), "{rows}");
    let mut body = chat("hello");
    body["model"] = json!("plain");
    assert_eq!(house.post(&body).send().await.expect("a reply").status(), 200, "others are served");
}
