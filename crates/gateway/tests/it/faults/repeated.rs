//! What comes twice: requests with the same key, refunds, top-ups.

use super::{FUNDED, answered, paid, rows};
use crate::house::{House, call_id, chat, error_of, streamed};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_store::admin::{AdminCommand, Refund};
use tollgate_store::{Credit, CreditKind, Pot};

pub async fn the_first_is_still_running() {
    let house = House::new().await;
    house.sim.shut("/v1/chat/completions");
    let ask = || house.post(&chat("[[sim:tokens=2]]")).header("idempotency-key", "k");
    let first = tokio::task::JoinSet::from_iter([ask().send()]);
    while house.sim.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let second = ask().send().await.expect("a reply");
    assert!(second.headers().contains_key("retry-after"));
    let (status, error) = error_of(second).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("idempotency_in_progress")));
    house.sim.open();
    let reply = first.join_all().await.remove(0).expect("a reply");
    let call = call_id(&reply).to_string();
    assert!(error["message"].as_str().is_some_and(|text| text.contains(&call)), "it names the call: {error}");
    answered(&house, reply).await;
    assert_eq!((house.sim.received().len(), rows(&house).await.len()), (1, 1));
}

pub async fn the_first_is_finished() {
    let mut house = House::new().await;
    let ask = |house: &House| house.post(&chat("[[sim:tokens=3]]")).header("idempotency-key", "k");
    let first = ask(&house).send().await.expect("a reply");
    let (call, body) = (call_id(&first), first.text().await.expect("text"));
    paid(&house, call).await;
    // Also after a restart: what was answered is stored with the ledger.
    for _ in 0..2 {
        let again = ask(&house).send().await.expect("a reply");
        assert_eq!((again.status().as_u16(), call_id(&again)), (200, call));
        assert_eq!(again.headers()["idempotency-replayed"], "true");
        assert_eq!(again.text().await.expect("text"), body);
        house.restart().await;
    }
    paid(&house, call).await;
    // A streamed call has no reply to give again, and is not charged again either.
    let ask = || house.post(&streamed("[[sim:tokens=3]]")).header("idempotency-key", "s");
    ask().send().await.expect("a reply").bytes().await.expect("a stream");
    house.quiet().await;
    let before = house.available().await;
    let (status, error) = error_of(ask().send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("idempotency_conflict")));
    assert_eq!((house.available().await, house.sim.received().len()), (before, 2));
}

pub async fn another_body() {
    let house = House::new().await;
    let ask = |text: &str| house.post(&chat(text)).header("idempotency-key", "k");
    let row = answered(&house, ask("[[sim:tokens=3]]").send().await.expect("a reply")).await;
    let (status, error) = error_of(ask("[[sim:tokens=4]]").send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("idempotency_conflict")));
    assert_eq!(rows(&house).await.iter().map(|row| row.call).collect::<Vec<_>>(), [row.call]);
    assert_eq!(house.available().await, FUNDED - row.charge.nano());
    assert_eq!(house.sim.received().len(), 1);
}

pub async fn after_the_retention() {
    let house = House::new().await;
    let ask = || house.post(&chat("[[sim:tokens=3]]")).header("idempotency-key", "k").send();
    let first = answered(&house, ask().await.expect("a reply")).await;
    let app = &house.running().app;
    let sweep = async |hours: i64| {
        house.later(hours * 3_600_000).await;
        app.store.sweep(app.world.steady_ms()).await.expect("a sweep")
    };
    assert_eq!(sweep(23).await.forgotten, 0);
    assert_eq!(ask().await.expect("a reply").headers()["idempotency-replayed"], "true");
    assert_eq!(sweep(25).await.forgotten, 1);
    let again = ask().await.expect("a reply");
    assert!(!again.headers().contains_key("idempotency-replayed"), "a new call");
    assert_ne!(call_id(&again), first.call);
    house.quiet().await;
    let rows = rows(&house).await;
    assert_eq!((rows.len(), house.sim.received().len()), (2, 2));
    assert_eq!(house.available().await, FUNDED - rows.iter().map(|row| row.charge.nano()).sum::<i64>());
}

pub async fn a_refund_twice() {
    let house = House::new().await;
    let row = answered(&house, house.ask("[[sim:tokens=3]]").await).await;
    let store = house.running().app.store.clone();
    let refund =
        |reason: &str| Refund { call: row.call, amount: None, reason: reason.to_owned(), actor: "test".to_owned() };
    let tasks: tokio::task::JoinSet<_> = (0..20)
        .map(|n| {
            let (store, refund) = (store.clone(), refund(&format!("number {n}")));
            async move {
                store.execute(AdminCommand::Refund { refund, request: None }).await.expect("the same answer")["applied"]
                    == true
            }
        })
        .collect();
    let applied = tasks.join_all().await.into_iter().filter(|applied| *applied).count();
    assert_eq!(applied, 1);
    assert_eq!(house.available().await, FUNDED);
    assert_eq!(house.row(row.call).await.refunded, row.charge, "the row shows it");
}

pub async fn a_top_up_delivered_five_times_at_once() {
    let house = House::new().await;
    let store = house.running().app.store.clone();
    let credit = Credit {
        id: "payment".to_owned(),
        account: house.account,
        kind: CreditKind::TopUp,
        pot: Pot::Paid,
        amount: Money::from_nano(500),
        expires_at: None,
        reason: "paid".to_owned(),
        actor: "provider".to_owned(),
    };
    let tasks: tokio::task::JoinSet<_> = (0..5)
        .map(|_| {
            let (store, credit) = (store.clone(), credit.clone());
            async move { store.credit(credit).await.expect("each gets a success").applied }
        })
        .collect();
    assert_eq!(tasks.join_all().await.into_iter().filter(|applied| *applied).count(), 1);
    assert_eq!(house.available().await, FUNDED + 500);
    assert_eq!(house.running().app.running.load(Ordering::Relaxed), 0);
}
