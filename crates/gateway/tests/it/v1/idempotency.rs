//! Idempotency-Key on a paid POST.

use crate::house::{House, call_id, chat, error_of, streamed};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_and_body_is_one_call() {
    let house = House::new().await;
    let ask = || house.post(&chat("once [[sim:tokens=3]]")).header("idempotency-key", "k1");
    let first = ask().send().await.expect("a reply");
    let call = call_id(&first);
    let body = first.text().await.expect("text");
    house.row(call).await;
    let again = ask().send().await.expect("a reply");
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(call_id(&again), call);
    assert_eq!(again.text().await.expect("text"), body);
    assert_eq!(house.sim.received().len(), 1);

    let other = house.post(&chat("another body")).header("idempotency-key", "k1").send().await.expect("a reply");
    let (status, error) = error_of(other).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("idempotency_conflict")));
    assert_eq!(house.sim.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_first_runs_the_second_waits() {
    let house = House::new().await;
    let ask = || house.post(&chat("[[sim:think_ms=800]]")).header("idempotency-key", "k2");
    let first = tokio::task::JoinSet::from_iter([ask().send()]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let second = ask().send().await.expect("a reply");
    assert!(second.headers().contains_key("retry-after"));
    let (status, error) = error_of(second).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("idempotency_in_progress")));
    assert_eq!(first.join_all().await.len(), 1);
    house.quiet().await;
    assert_eq!(house.sim.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_call_is_never_charged_twice() {
    let house = House::new().await;
    let ask = || house.post(&streamed("[[sim:tokens=3]]")).header("idempotency-key", "k3");
    let first = ask().send().await.expect("a reply");
    let call = call_id(&first);
    first.bytes().await.expect("a stream");
    house.row(call).await;
    let (status, error) = error_of(ask().send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("idempotency_conflict")));
    assert!(error["message"].as_str().is_some_and(|text| text.contains(&call.to_string())), "{error}");
    assert_eq!(house.sim.received().len(), 1);
}
