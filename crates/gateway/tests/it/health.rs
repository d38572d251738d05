//! GET /healthz, /readyz, /metrics.

use crate::house::{House, Plan};
use tollgate_catalog::Money;
use tollgate_store::{Close, Counters, Ending, Hold, Pot, UsageFacts};

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
        "tollgate_audit_age_seconds ",
        "tollgate_audit_failures_total 0",
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

/// What nobody could pay, and ends that came too late, are on the page with their numbers.
#[tokio::test(flavor = "multi_thread")]
async fn write_offs_and_late_closes_are_counted() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    house.credit("little", Pot::Paid, Money::from_nano(100)).await;
    let app = &house.running().app;
    let (call, at) = (app.new_call_id(), app.world.now_ms());
    let key = app.store.keys(house.account).await.expect("keys").remove(0).id;
    // 1,000 tokens are one nano-USD.
    let price = tollgate_store::testing::price(1);
    let hold = Hold {
        call,
        account: house.account,
        key,
        amount: Money::from_nano(100),
        least: Money::from_nano(100),
        price,
        model: "test".into(),
        endpoint: "/v1/chat/completions",
        paid_only: false,
        topped_up: true,
        expires_at: at + 60_000,
        at,
        idem: None,
    };
    app.store.hold(hold).await.expect("a hold").durable().await.expect("durable");
    let row = UsageFacts {
        key,
        at,
        ended_at: at,
        endpoint: "/v1/chat/completions".into(),
        model: "test".into(),
        provider: None,
        upstream_model: None,
        status: 200,
        counters: Counters { input: 130_000, ..Counters::default() },
        estimated: false,
        raw_usage: None,
        attempts: 1,
        first_byte_ms: None,
        tier: None,
        dropped: None,
        cost: None,
        price: None,
    };
    let close = || Close {
        call,
        account: house.account,
        ending: Ending::Answered,
        reason: String::new(),
        charge: Money::from_nano(130),
        most: None,
        row: row.clone(),
        reply: None,
    };
    for _ in 0..3 {
        app.store.close(close()).await.expect("closed");
    }
    let page = house.http.get(house.url("/metrics")).send().await.expect("a reply").text().await.expect("text");
    for line in ["tollgate_write_off_nano_usd_total 30\n", "tollgate_late_closes_total 2\n"] {
        assert!(page.contains(line), "{line} is missing in\n{page}");
    }
}
