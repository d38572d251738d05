//! An Idempotency-Key of a GET, and a HEAD of what costs something.

use super::{address, cell, house, plain};
use crate::house::{call_id, error_of};
use reqwest::Method;
use serde_json::json;
use tollgate_gateway::endpoints::{Access, rows};

#[tokio::test(flavor = "multi_thread")]
async fn a_head_of_a_paid_path_neither_fetches_nor_charges() {
    let house = house("").await;
    let cell = cell(&house, "douyin", "comments");
    let (before, sent) = (house.available().await, house.sim.received().len());
    let path = address(&cell, &plain(&cell));
    let reply = house.http.head(house.url(&path)).bearer_auth(&house.key).send().await.expect("a reply");
    assert_eq!((reply.status().as_u16(), reply.headers()["allow"].to_str().ok()), (405, Some("GET")));
    for row in rows().iter().filter(|row| row.method == Method::GET && row.access == Access::Paid) {
        let path = row.path.replace("{platform}", "douyin").replace("{capability}", "comments");
        let head = house.http.request(Method::HEAD, house.url(&path)).bearer_auth(&house.key).send().await;
        assert_eq!(head.expect("a reply").status(), 405, "{path}");
    }
    house.quiet().await;
    assert_eq!((house.available().await, house.sim.received().len()), (before, sent));
    // Of what is free, HEAD is GET without its body.
    let reply = house.http.head(house.url("/v1/balance")).bearer_auth(&house.key).send().await.expect("a reply");
    assert_eq!((reply.status().as_u16(), reply.text().await.expect("nothing").len()), (200, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_a_get_happen_once() {
    let house = house("").await;
    let cell = cell(&house, "douyin", "comments");
    let mut params = plain(&cell);
    params.push(("cursor".to_owned(), "20".to_owned()));
    let ask = async |params: &[(String, String)], key: &str| {
        house.get(&address(&cell, params)).header("idempotency-key", key).send().await.expect("a reply")
    };
    let before = house.available().await;
    let first = ask(&params, "one").await;
    let id = call_id(&first);
    let body = first.text().await.expect("text");
    let charged = house.row(id).await.charge.nano();
    house.quiet().await;
    assert!(charged > 0);
    let sent = house.sim.received().len();
    params.reverse();
    for _ in 0..9 {
        let again = ask(&params, "one").await;
        assert_eq!((call_id(&again), again.headers()["idempotency-replayed"].to_str().ok()), (id, Some("true")));
        assert!(again.text().await.expect("text") == body, "the first result, in whatever order it is asked for");
    }
    assert_eq!((before - house.available().await, house.sim.received().len()), (charged, sent), "charged once");
    // Other parameters, or another path, under the same key.
    let other: Vec<_> = params.iter().filter(|(name, _)| name != "cursor").cloned().collect();
    let (status, error) = error_of(ask(&other, "one").await).await;
    assert_eq!((status, &error["code"]), (409, &json!("idempotency_conflict")), "{error}");
    let elsewhere = super::cell(&house, "weibo", "post");
    let path = address(&elsewhere, &plain(&elsewhere));
    let reply = house.get(&path).header("idempotency-key", "one").send().await.expect("a reply");
    assert_eq!(error_of(reply).await.0, 409);
    assert_eq!(ask(&other, "two").await.status(), 200, "a new key is a new call");
    let long = house.get(&path).header("idempotency-key", "x".repeat(256)).send().await.expect("a reply");
    assert_eq!(error_of(long).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_get_still_runs_waits_and_a_large_answer_is_not_stored() {
    let house = house("").await;
    let cell = cell(&house, "douyin", "comments");
    let path = address(&cell, &plain(&cell));
    let ask = || house.get(&path).header("idempotency-key", "one").send();
    house.sim.shut("/api/");
    let first = tokio::task::JoinSet::from_iter([ask()]);
    while house.sim.waited() == 0 {
        tokio::task::yield_now().await;
    }
    let second = ask().await.expect("a reply");
    assert!(second.headers().contains_key("retry-after"));
    let (status, error) = error_of(second).await;
    assert_eq!((status, &error["code"]), (409, &json!("idempotency_in_progress")), "{error}");
    house.sim.open();
    let first = first.join_all().await.remove(0).expect("a reply");
    assert_eq!(first.status(), 200);
    first.text().await.expect("all of it");
    house.sim.social_order("", "huge mib=5");
    let large = || house.get(&path).header("idempotency-key", "large").send();
    large().await.expect("a reply").text().await.expect("all of it");
    house.quiet().await;
    let (status, error) = error_of(large().await.expect("a reply")).await;
    assert_eq!(
        (status, &error["code"]),
        (409, &json!("idempotency_conflict")),
        "charged once, and not stored: {error}"
    );
}
