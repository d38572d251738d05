//! GET /healthz, /readyz, /metrics.

use crate::house::{House, Plan};

#[tokio::test(flavor = "multi_thread")]
async fn alive_and_ready_need_no_key() {
    let house = House::new().await;
    for path in ["/healthz", "/readyz"] {
        let reply = house.http.get(house.url(path)).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_show_the_ledger_and_no_secret() {
    let house = House::new().await;
    house.ask("my-private-prompt").await;
    house.ask("my-private-prompt [[sim:error500]]").await;
    house.quiet().await;
    let page = house.http.get(house.url("/metrics")).send().await.expect("a reply").text().await.expect("text");
    for name in [
        "tollgate_open_holds{age=\"10s\"} 0",
        "tollgate_settle_lag_ms",
        "tollgate_ledger_drift 0",
        "tollgate_calls_answered_total 1",
        "tollgate_calls_ended_total{endpoint=\"/v1/chat/completions\",ending=\"upstream_fault\",reason=\"upstream_error\"} 1",
        "tollgate_provider_faults_total{provider=\"sim\",code=\"upstream_error\"} 1",
        "tollgate_catalog_stale 0",
    ] {
        assert!(page.contains(name), "{name} is missing in\n{page}");
    }
    assert!(!page.contains("my-private-prompt") && !page.contains(&house.key));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_port_of_its_own_metrics_leave_the_main_one() {
    let house = House::with(Plan { config: "metrics_listen = \"127.0.0.1:0\"\n".to_owned(), ..Plan::default() }).await;
    let reply = house.http.get(house.url("/metrics")).send().await.expect("a reply");
    assert_eq!(reply.status(), 404);
}
