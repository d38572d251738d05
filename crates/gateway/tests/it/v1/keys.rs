//! What a key may do: expiry, revocation, models, addresses, spend cap.

use crate::house::{House, call_id, chat, error_of};
use serde_json::json;
use std::time::{Duration, Instant};
use tollgate_catalog::Money;

async fn status_with(house: &House, key: &str) -> (u16, String) {
    let reply = house
        .http
        .post(house.url("/v1/chat/completions"))
        .bearer_auth(key)
        .json(&chat("hi"))
        .send()
        .await
        .expect("a reply");
    let status = reply.status().as_u16();
    if status == 200 {
        return (200, String::new());
    }
    let (_, error) = error_of(reply).await;
    (status, error["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_stops_within_five_seconds() {
    let house = House::new().await;
    let key = house.new_key(|_| {}).await;
    assert_eq!(status_with(&house, &key).await.0, 200);
    let store = &house.running().app.store;
    let keys = store.keys(house.account).await.expect("keys");
    let id = keys
        .iter()
        .find(|one| key.starts_with(&one.prefix) && one.hash == tollgate_gateway::who::key_cache::hash(&key))
        .expect("the key")
        .id;
    store.revoke_key(id).await.expect("revoked");
    let began = Instant::now();
    while status_with(&house, &key).await.0 == 200 {
        assert!(began.elapsed() < crate::watch::HANG, "still works");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(status_with(&house, &key).await, (401, "invalid_api_key".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_is_like_no_key() {
    let house = House::new().await;
    let now = house.running().app.world.now_ms();
    let key = house.new_key(|key| key.expires_at = Some(now - 1)).await;
    assert_eq!(status_with(&house, &key).await, (401, "invalid_api_key".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn models_and_addresses_are_limited() {
    let house = House::new().await;
    let other_model = house.new_key(|key| key.models = Some(vec!["two-routes".to_owned()])).await;
    assert_eq!(status_with(&house, &other_model).await, (403, "model_not_allowed".to_owned()));
    let elsewhere = house.new_key(|key| key.cidrs = Some(vec!["10.0.0.0/8".to_owned()])).await;
    assert_eq!(status_with(&house, &elsewhere).await, (403, "ip_not_allowed".to_owned()));
    let here = house.new_key(|key| key.cidrs = Some(vec!["10.0.0.0/8".to_owned(), "127.0.0.1".to_owned()])).await;
    assert_eq!(status_with(&house, &here).await.0, 200);
    assert_eq!(house.sim.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capped_key_spends_its_cap_and_no_more() {
    let house = House::new().await;
    let mut body = chat("[[sim:tokens=10]]");
    body["max_tokens"] = json!(10);
    let hold = house.row(call_id(&house.post(&body).send().await.expect("a reply"))).await.hold.nano();
    // Room for the hold of one call at a time.
    let key = house.new_key(|key| key.limits.total = Some(Money::from_nano(hold))).await;
    let ask = || house.http.post(house.url("/v1/chat/completions")).bearer_auth(&key).json(&body);
    let first = ask().send().await.expect("a reply");
    assert_eq!(first.status(), 200);
    house.row(call_id(&first)).await;
    house.quiet().await;
    let (status, error) = error_of(ask().send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (402, Some("key_spend_cap_reached")));
    assert_eq!(status_with(&house, &house.key).await.0, 200, "the account itself goes on");
}
