//! Sums on PostgreSQL that are not in their table yet: whatever a call has added is in every answer
//! at once, whoever merges it and whoever writes beside.

use crate::common::{House, ask};
use tollgate_store::testing::{PostgresServer, run_sql};
use tollgate_store::{CreditKind, Pot, SumAsk, SumViewer};

const DAY: i64 = 86_400_000;

/// Requests, charges and refunds of all, and of all groups together.
async fn totals(h: &House, by: &str) -> [i64; 3] {
    let asked = SumAsk { from: Some("2026-01-01".to_owned()), by: Some(by.to_owned()), ..SumAsk::default() };
    let query = asked.checked(SumViewer::Operator, h.clock.now() + DAY).expect("a question");
    let report = h.store.usage_sums(&query).await.expect("an answer");
    let names = ["requests", "charge_nano_usd", "refunded_nano_usd"];
    let of = |row: &serde_json::Value| names.map(|name| row[name].as_i64().expect("a number"));
    let rows = report["data"].as_array().expect("rows").iter().map(of);
    let rows = rows.fold([0; 3], |all, one| [0, 1, 2].map(|n| all[n] + one[n]));
    assert_eq!(rows, of(&report["totals"]), "{by}");
    rows
}

async fn count(url: &str, of: &str) -> i64 {
    ask(url, &format!("SELECT count(*)::text FROM {of}")).await.parse().expect("a number")
}

async fn clean(h: &House) {
    let report = h.store.verify_strictly().await.expect("the audit runs");
    assert!(report.breaches.is_empty(), "{:?}", report.breaches);
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_are_whole_whoever_writes_and_merges() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    let url = server.database("merged").await.expect("a database");
    let houses = [House::open(&url).await, House::open(&url).await];
    let c = houses[0].customer(0, 100_000).await;
    let (mut expected, mut most, mut merged) = ([0; 3], 0, 0);
    for n in 0..60i64 {
        // Two replicas, each of which counts its own calls and merges those of both.
        let h = &houses[usize::try_from(n % 2).expect("a place")];
        let call = h.held(&c, 100).await;
        h.store.close(h.ending(&c, call, 10 + n)).await.expect("closed");
        expected = [expected[0] + 1, expected[1] + 10 + n, expected[2]];
        if n % 7 == 0 {
            let kind = CreditKind::Refund { call };
            h.credit(&c, &format!("refund {n}"), kind, Pot::Paid, 3).await.expect("refunded");
            expected[2] += 3;
        }
        for by in ["account", "day,model,key", "hour,group"] {
            assert_eq!(totals(h, by).await, expected, "{by} after {n}");
        }
        let waiting = count(&url, "usage_unmerged").await;
        most = most.max(waiting);
        merged = count(&url, "ONLY usage_quarter").await.max(merged);
        if n % 20 == 0 {
            clean(h).await;
        }
    }
    // Two replicas that have counted nearly twelve each, refunds, and what came while one merged.
    assert!(most > 3 && merged > 0, "{most} waited at most, {merged} sums are in the table");
    // Nobody is left to merge but who folds.
    let [one, other] = houses;
    other.store.shut().await;
    run_sql(&url, "SET tollgate.merges = 'on'; UPDATE usage SET reason = reason").await.expect("changed");
    assert!(count(&url, "usage_unmerged").await >= 120, "what was and what is");
    assert_eq!(totals(&one, "key").await, expected);
    while one.store.fold_sums().await.expect("a step") {}
    assert_eq!(count(&url, "usage_unmerged").await, 0);
    assert_eq!(totals(&one, "key").await, expected);
    old_versions(&one, &url, expected).await;
    one.close().await;
}

/// Earlier versions say nothing of merging. What they write is merged with it when it is too much,
/// and what they read as the table of sums is whole.
async fn old_versions(h: &House, url: &str, expected: [i64; 3]) {
    let whole = async || ask(url, "SELECT sum(requests) || ' ' || sum(charge) FROM usage_quarter").await;
    let [requests, charge, _] = expected;
    // Each time as many are taken off as are added.
    for _ in 0..40 {
        run_sql(url, "UPDATE usage SET reason = reason").await.expect("changed");
        let waiting = count(url, "usage_unmerged").await;
        assert!(waiting <= 4_000, "{waiting}");
        assert_eq!(whole().await, format!("{requests} {charge}"));
    }
    assert!(count(url, "usage_unmerged").await < 60 * 2 * 40, "some were merged");
    clean(h).await;
    // They fold days without packing them: a touch of theirs is not one of packed days.
    run_sql(url, "UPDATE usage SET charge = charge + 1").await.expect("changed");
    let before = totals(h, "hour,account").await;
    assert_eq!(before, [requests, charge + requests, expected[2]]);
    run_sql(url, "UPDATE usage SET charge = charge - 1").await.expect("as it was");
    assert_eq!(totals(h, "hour,account").await, expected);
}
