//! Idempotency-Key on a paid POST.

use crate::house::{House, Plan, call_id, chat, error_of, streamed};
use serde_json::Value;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tollgate_store::testing::break_syncs;
use tollgate_store::{Ending, UsagePage};

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
    house.sim.shut("/v1/chat/completions");
    let ask = || house.post(&chat("hello")).header("idempotency-key", "k2");
    let first = tokio::task::JoinSet::from_iter([ask().send()]);
    while house.sim.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let second = ask().send().await.expect("a reply");
    assert!(second.headers().contains_key("retry-after"));
    let (status, error) = error_of(second).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("idempotency_in_progress")));
    house.sim.open();
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

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_1_to_255_characters() {
    let house = House::new().await;
    for (length, status) in [(0, 400), (1, 200), (255, 200), (256, 400)] {
        let reply = house.post(&chat("hello")).header("idempotency-key", "k".repeat(length)).send().await;
        let reply = reply.expect("a reply");
        assert_eq!(reply.status(), status, "{length} characters");
        if status == 400 {
            assert_eq!(error_of(reply).await.1["param"], "Idempotency-Key");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_the_account_and_not_to_the_api_key() {
    let house = House::new().await;
    let body = chat("once [[sim:tokens=3]]");
    let first = house.post(&body).header("idempotency-key", "k4").send().await.expect("a reply");
    let call = call_id(&first);
    house.row(call).await;
    let other = house.new_key(|_| {}).await;
    let request = house.http.post(house.url("/v1/chat/completions")).bearer_auth(&other).json(&body);
    let again = request.header("idempotency-key", "k4").send().await.expect("a reply");
    assert_eq!((call_id(&again), &again.headers()["idempotency-replayed"]), (call, &"true".parse().expect("a value")));
    assert_eq!(house.sim.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_too_large_to_keep_is_not_charged_twice_either() {
    let house = House::new().await;
    let ask = || house.post(&chat("[[sim:tokens=20 size=60000]]")).header("idempotency-key", "k5");
    let first = ask().send().await.expect("a reply");
    let call = call_id(&first);
    let size = first.bytes().await.expect("a body").len();
    assert!(size > 1 << 20, "otherwise this test shows nothing: {size}");
    house.row(call).await;
    let (status, error) = error_of(ask().send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (409, Some("idempotency_conflict")));
    assert!(error["message"].as_str().is_some_and(|text| text.contains(&call.to_string())), "{error}");
    assert_eq!(house.sim.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_failed_for_free_can_be_sent_again() {
    let house = House::new().await;
    let ask = || house.post(&chat("[[sim:error500]]")).header("idempotency-key", "k6");
    let first = ask().send().await.expect("a reply");
    let call = call_id(&first);
    assert_eq!((first.status().as_u16(), house.row(call).await.ending), (502, Ending::UpstreamFault));
    let again = ask().send().await.expect("a reply");
    assert!(again.status() == 502 && call_id(&again) != call, "it ran once more");
    assert_eq!(house.sim.received().len(), 2);
}

/// Its answer is there and its hold not safe yet when the client leaves: it has paid, and its key
/// finds what it paid for.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_paid_for_and_not_fetched_is_stored() {
    let house = House::new().await;
    let file = house.running().app.settings.data_dir.join("tollgate.db");
    let blocker = rusqlite::Connection::open(file).expect("the file");
    blocker.busy_timeout(Duration::from_secs(5)).expect("patience");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    break_syncs(&house.running().app.settings.data_dir);
    let ask = || house.post(&chat("[[sim:tokens=3]]")).header("idempotency-key", "k7");
    let mut leaving = tokio::task::JoinSet::from_iter([ask().send()]);
    while house.sim.counts().finished == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The gateway has read it, and waits for the hold.
    tokio::time::sleep(Duration::from_millis(200)).await;
    leaving.shutdown().await;
    while house.running().app.running.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(blocker);
    house.quiet().await;
    let rows = house.running().app.store.usage(Some(house.account), UsagePage::default()).await.expect("rows");
    assert_eq!((rows.len(), rows[0].ending), (1, Ending::ClientLeft));
    assert!(rows[0].charge.nano() > 0, "{rows:?}");
    let again = ask().send().await.expect("a reply");
    assert_eq!((again.status().as_u16(), again.headers().contains_key("idempotency-replayed")), (200, true));
    let body: Value = again.json().await.expect("JSON");
    assert_eq!(body["usage"]["completion_tokens"], 3, "{body}");
    assert_eq!(house.sim.received().len(), 1, "asked once");
}

/// Whoever has paid for an answer gets it again while the ledger takes nothing new.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_reply_is_given_while_nothing_can_be_held() {
    let house = House::with(Plan::impatient()).await;
    let ask = || house.post(&chat("[[sim:tokens=3]]")).header("idempotency-key", "k8");
    let first = ask().send().await.expect("a reply");
    let call = call_id(&first);
    let body = first.text().await.expect("text");
    house.row(call).await;
    let blocker =
        rusqlite::Connection::open(house.running().app.settings.data_dir.join("tollgate.db")).expect("the file");
    blocker.busy_timeout(Duration::from_secs(5)).expect("patience");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    // Until the database is too far behind the journal.
    while house.ask("[[sim:tokens=3]]").await.status() == 200 {}
    assert_eq!(house.ask("[[sim:tokens=3]]").await.status(), 503, "nothing can be held");
    let again = ask().send().await.expect("a reply");
    assert_eq!((again.status().as_u16(), call_id(&again)), (200, call));
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(again.text().await.expect("text"), body);
    drop(blocker);
    house.quiet().await;
}
