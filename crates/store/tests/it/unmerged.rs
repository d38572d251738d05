//! Sums on SQLite that are not in their table yet: whatever a group has added is in every answer,
//! also after a crash, and once.

use crate::common::House;
use crate::hand::Hand;
use tollgate_store::{CreditKind, Pot, SumAsk, SumViewer};

const ALL_DAY: i64 = 86_400_000;

fn asked(by: &str, model: Option<&str>) -> SumAsk {
    SumAsk {
        from: Some("2026-01-01".to_owned()),
        by: (!by.is_empty()).then(|| by.to_owned()),
        model: model.map(str::to_owned),
        ..SumAsk::default()
    }
}

/// Requests, charges and refunds of all, and of all groups together.
async fn totals(h: &House, by: &str, model: Option<&str>) -> [i64; 3] {
    let query = asked(by, model).checked(SumViewer::Operator, h.clock.now() + ALL_DAY).expect("a question");
    let report = h.store.usage_sums(&query).await.expect("an answer");
    let names = ["requests", "charge_nano_usd", "refunded_nano_usd"];
    let of = |row: &serde_json::Value| names.map(|name| row[name].as_i64().expect("a number"));
    let rows = report["data"].as_array().expect("rows").iter().map(of);
    let rows = rows.fold([0; 3], |all, one| [0, 1, 2].map(|n| all[n] + one[n]));
    assert_eq!(rows, of(&report["totals"]), "{by}");
    rows
}

fn count(hand: &Hand, table: &str) -> i64 {
    let Hand::File(file) = hand else { panic!("a file") };
    file.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).expect("a count")
}

async fn clean(h: &House) {
    let report = h.store.verify_strictly().await.expect("the audit runs");
    assert!(report.breaches.is_empty(), "{:?}", report.breaches);
}

#[tokio::test]
async fn sums_are_whole_before_and_after_they_are_merged() {
    let h = House::open("sqlite").await;
    let customers = [h.customer(0, 100_000).await, h.customer(0, 100_000).await];
    let hand = Hand::of(&h).await;
    let (mut apart, mut merged, mut expected) = (0, 0, [0; 3]);
    for n in 0..80i64 {
        let c = &customers[usize::try_from(n % 2).expect("a place")];
        let call = h.held(c, 100).await;
        let mut close = h.ending(c, call, 10 + n);
        close.row.model = format!("m{}", n % 3);
        h.store.close(close).await.expect("closed");
        expected = [expected[0] + 1, expected[1] + 10 + n, expected[2]];
        if n % 7 == 0 {
            let kind = CreditKind::Refund { call };
            h.credit(c, &format!("refund {n}"), kind, Pot::Paid, 3).await.expect("refunded");
            expected[2] += 3;
        }
        for by in ["", "account", "day,model,key", "group,ending,endpoint", "hour,route"] {
            assert_eq!(totals(&h, by, None).await, expected, "{by} after {n}");
        }
        let waiting = count(&hand, "usage_unmerged");
        apart = apart.max(waiting);
        merged += i64::from(waiting == 0);
        if n % 9 == 0 {
            clean(&h).await;
            assert_eq!(h.store.charged_since(None, 0).await.expect("read"), expected[1] - expected[2]);
            let own = h.store.charged_since(Some(c.account), 0).await.expect("read");
            assert!(own > 0 && own <= expected[1], "{own}");
            let later = h.store.charged_since(None, h.clock.now() + ALL_DAY).await.expect("read");
            assert_eq!(later, 0, "of a later time");
            let copy = h.crashed_copy().await;
            assert_eq!(totals(&copy, "day,model", None).await, expected, "after a crash");
            clean(&copy).await;
            copy.close().await;
        }
    }
    assert!((5..=12).contains(&apart) && merged > 0, "at most {apart} groups wait, {merged} times none did");
    let each = [totals(&h, "", Some("m0")).await, totals(&h, "", Some("m1")).await, totals(&h, "", Some("m2")).await];
    assert_eq!(each.iter().fold([0; 3], |all, one| [0, 1, 2].map(|n| all[n] + one[n])), expected);
    assert!(each.iter().all(|one| one[0] > 0 && one[0] < expected[0]), "{each:?}");
    let h = h.reopen().await;
    assert_eq!(totals(&h, "key,day", None).await, expected, "after a restart");
    h.close().await;
}

/// What a hand has broken is left out and stands in nobody's way; the audit says so before and
/// after.
#[tokio::test]
async fn damaged_groups_do_not_stop_the_writer() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 100_000).await;
    let close = async |charge| {
        let call = h.held(&c, 100).await;
        h.store.close(h.ending(&c, call, charge)).await.expect("closed");
        h.store.usage(None, tollgate_store::UsagePage { before: None, limit: 1 }).await.expect("written");
    };
    close(7).await;
    let hand = Hand::of(&h).await;
    assert!(count(&hand, "usage_unmerged") > 0);
    hand.change("UPDATE usage_unmerged SET sums = x'0102'").await.expect("damaged");
    let broken = async || h.store.verify().await.expect("the audit runs").breaches.iter().any(|b| b.invariant == "I21");
    assert!(broken().await);
    let query = asked("", None).checked(SumViewer::Operator, h.clock.now() + ALL_DAY).expect("a question");
    assert!(h.store.usage_sums(&query).await.is_err(), "a sum that is too small is not shown");
    for _ in 0..40 {
        close(5).await;
    }
    assert!(broken().await, "what was lost is still missing");
    assert_eq!(totals(&h, "", None).await, [40, 200, 0]);
    h.store.shut().await;
}
