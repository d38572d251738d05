//! A provider that stops reporting usage is not asked again until it reports.

use crate::house::{House, Plan, call_id, chat, error_of, streamed};
use serde_json::json;
use tollgate_store::Ending;

/// The same upstream model over two providers: `sim`, and `stubborn`, which is the same simulator
/// under another name.
const CATALOG: &str = r#"
[model."two-ways"]
price = { input = 1_000_000, output = 2_000_000 }
route = [
  { provider = "sim", upstream_model = "sim-plain", priority = 0 },
  { provider = "stubborn", upstream_model = "sim-plain", priority = 1 },
]
[model."by-the-call"]
billing_unit = "per_call"
price = { per_call = 5 }
route = [{ provider = "sim", upstream_model = "sim-plain-4" }]
"#;

async fn house(sim: &'static str) -> House {
    House::with(Plan { sim, catalog: CATALOG, ..Plan::default() }).await
}

async fn metric(house: &House, line: &str) -> bool {
    let page = house.get("/metrics").send().await.expect("a page").text().await.expect("text");
    page.lines().any(|one| one == line)
}

/// So much later, with the keys read in between, as they are every second.
async fn later(house: &House, ms: i64) {
    house.clock.pass(ms);
    let app = &house.running().app;
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
}

const PAUSED: &str = r#"tollgate_route_paused{provider="sim",model="sim-plain"} "#;

#[tokio::test(flavor = "multi_thread")]
async fn a_pair_without_usage_is_paused_shown_and_taken_back_after_a_probe() {
    let house = house("estimated_rows = 5\npause_time = \"10m\"").await;
    for at in 0..5 {
        let body = if at % 2 == 0 { chat("[[sim:no_usage tokens=2]]") } else { streamed("[[sim:no_usage tokens=2]]") };
        let reply = house.post(&body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "call {at}");
        reply.bytes().await.expect("the whole of it");
    }
    house.quiet().await;
    let sent = house.sim.received().len();
    let reply = house.ask("hello").await;
    let call = call_id(&reply);
    assert!(reply.headers().contains_key("retry-after"));
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["code"]), (503, &json!("no_route_available")));
    let row = house.row(call).await;
    assert_eq!((row.ending, row.attempts, row.charge.nano()), (Ending::UpstreamFault, 0, 0));
    assert_eq!(house.sim.received().len(), sent, "nothing was sent");
    assert!(metric(&house, &format!("{PAUSED}1")).await);
    // Another route to the same model is taken instead.
    let mut body = chat("hello");
    body["model"] = json!("two-ways");
    let reply = house.post(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    assert_eq!(house.row(call_id(&reply)).await.provider.as_deref(), Some("stubborn"));
    later(&house, 601_000).await;
    // The probe reports nothing: paused again. The next one does report.
    assert_eq!(house.ask("[[sim:no_usage]]").await.status(), 200);
    assert_eq!(house.ask("hello").await.status(), 503);
    later(&house, 1_202_000).await;
    assert_eq!(house.ask("hello").await.status(), 200);
    assert_eq!(house.ask("hello").await.status(), 200);
    assert!(metric(&house, &format!("{PAUSED}0")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_faults_and_empty_answers_do_not_count() {
    let house = house("estimated_rows = 3").await;
    for _ in 0..4 {
        let mut reply = house.post(&streamed("[[sim:tokens=50 delay_ms=20]]")).send().await.expect("a reply");
        reply.chunk().await.expect("a chunk");
        drop(reply);
        house.stream("[[sim:error_midstream after=3 tokens=9]]").await;
        house.stream("[[sim:empty]]").await;
    }
    house.quiet().await;
    assert_eq!(house.ask("hello").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_sold_by_tokens_needs_no_report_and_zero_turns_the_rule_off() {
    let house = house("estimated_rows = 3").await;
    let mut body = chat("[[sim:no_usage tokens=2]]");
    body["model"] = json!("by-the-call");
    for _ in 0..5 {
        assert_eq!(house.post(&body).send().await.expect("a reply").status(), 200);
    }
    drop(house);
    let house = self::house("estimated_rows = 3\nestimated_percent = 0").await;
    for _ in 0..5 {
        assert_eq!(house.ask("[[sim:no_usage tokens=2]]").await.status(), 200);
    }
}
