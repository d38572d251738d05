//! GET /v1/usage and /v1/usage/{call_id}.

use crate::house::{House, call_id, error_of};
use serde_json::{Value, json};
use tollgate_store::{Limits, NewAccount, NewKey};

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_without_gap_or_overlap() {
    let house = House::new().await;
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(call_id(&house.ask("hi").await).to_string());
    }
    house.quiet().await;
    made.reverse();
    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/v1/usage?limit=3{before}");
        let page: Value = house.get(&path).send().await.expect("a reply").json().await.expect("JSON");
        seen.extend(
            page["data"].as_array().expect("rows").iter().map(|row| row["call_id"].as_str().expect("an id").to_owned()),
        );
        match page["next_before"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    assert_eq!(seen, made);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_carries_its_price_and_no_route() {
    let house = House::new().await;
    let call = call_id(&house.ask("hello there [[sim:tokens=2]]").await);
    house.row(call).await;
    let reply = house.get(&format!("/v1/usage/{call}")).send().await.expect("a reply");
    let text = reply.text().await.expect("text");
    let body: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(body["charge_nano_usd"], 3 * 1_000 + 2 * 2_000);
    assert_eq!(body["usage"]["input"], 3);
    assert_eq!(body["price"]["faces"]["output"], 2_000_000);
    assert!(!text.contains("sim-plain"), "routes are the operator's business: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_accounts_call_is_not_found() {
    let house = House::new().await;
    let call = call_id(&house.ask("mine").await);
    house.row(call).await;
    let store = &house.running().app.store;
    let other = store
        .create_account(NewAccount { name: "other".to_owned(), ..NewAccount::default() })
        .await
        .expect("an account");
    let key = NewKey {
        account: other.id,
        name: String::new(),
        expires_at: None,
        models: None,
        cidrs: None,
        limits: Limits::default(),
    };
    store.create_key(key, "sk-other-accounts-key").await.expect("a key");
    let path = house.url(&format!("/v1/usage/{call}"));
    let reply = house.http.get(path).bearer_auth("sk-other-accounts-key").send().await.expect("a reply");
    let (status, error) = error_of(reply).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("not_found")));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_parameters_are_named() {
    let house = House::new().await;
    for (query, param, code) in [
        ("limit=0", "limit", "invalid_parameter"),
        ("limit=501", "limit", "invalid_parameter"),
        ("limit=x", "limit", "invalid_parameter"),
        ("before=call_zzz", "before", "invalid_parameter"),
        ("offset=3", "offset", "unknown_parameter"),
    ] {
        let (status, error) = error_of(house.get(&format!("/v1/usage?{query}")).send().await.expect("a reply")).await;
        assert_eq!((status, &error["param"], &error["code"]), (400, &json!(param), &json!(code)));
    }
    assert_eq!(house.get("/v1/usage?limit=500").send().await.expect("a reply").status(), 200);
    let (status, _) = error_of(house.get("/v1/usage/nonsense").send().await.expect("a reply")).await;
    assert_eq!(status, 404);
}
