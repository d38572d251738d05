//! GET /v1/usage/{call_id}/receipt, /.well-known/tollgate-receipts and
//! /api/pricing/versions/{price_id}.

use crate::house::{House, call_id, error_of, streamed};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tollgate_catalog::Money;
use tollgate_store::receipt::{PublicKeys, Receipt, verify, verify_price};
use tollgate_store::{CallId, Credit, CreditKind, Limits, NewAccount, NewKey, Pot};

async fn keys(house: &House) -> PublicKeys {
    // Without a key: anybody may verify.
    let reply = house.http.get(house.url("/.well-known/tollgate-receipts")).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.headers()["cache-control"], "public, max-age=60");
    reply.json().await.expect("keys")
}

/// The receipt of a call, verified with the keys that are published at the same moment.
async fn proven(house: &House, call: CallId) -> (Receipt, String) {
    let reply = house.get(&format!("/v1/usage/{call}/receipt")).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.headers()["content-type"], "application/json");
    let text = reply.text().await.expect("text");
    let receipt = verify(&text, &keys(house).await).unwrap_or_else(|why| panic!("{why}: {text}")).receipt;
    (receipt, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_a_receipt_as_soon_as_its_reply_is_read() {
    let house = House::new().await;
    let (call, _) = house.stream("hello there [[sim:tokens=2]]").await;
    let (receipt, text) = proven(&house, call).await;
    assert_eq!((receipt.call_id, receipt.account_id), (call, house.account));
    assert_eq!(receipt.key_prefix, house.key[..7]);
    assert_eq!((receipt.endpoint.as_str(), receipt.model.as_str()), ("/v1/chat/completions", "plain"));
    assert_eq!(receipt.total_nano_usd, 3 * 1_000 + 2 * 2_000);
    let row = house.row(call).await;
    assert_eq!(receipt.charge_nano_usd, row.charge.nano());
    assert!(receipt.raw_usage_sha256.is_some_and(|hash| hash.len() == 64));
    assert!(!text.contains(&house.key) && !text.contains("sim"), "no key, no route: {text}");
    let served: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(text, served.to_string(), "served in the form that is signed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_call_has_none_yet() {
    let house = House::new().await;
    house.sim.shut("/_door");
    let mut running = house.post(&streamed("[[sim:tokens=40 door=2]]")).send().await.expect("a reply");
    let call = call_id(&running);
    running.chunk().await.expect("a piece");
    let early = house.get(&format!("/v1/usage/{call}/receipt")).send().await.expect("a reply");
    assert_eq!(early.headers()["retry-after"], "2");
    let (status, error) = error_of(early).await;
    assert_eq!(
        (status, error["code"].as_str(), error["param"].as_str()),
        (409, Some("call_in_progress"), Some("call_id"))
    );
    house.sim.open();
    while running.chunk().await.expect("a piece").is_some() {}
    proven(&house, call).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_is_in_the_next_receipt() {
    let house = House::new().await;
    let call = call_id(&house.ask("hello [[sim:tokens=2]]").await);
    let (before, _) = proven(&house, call).await;
    let credit = Credit {
        id: "refund".to_owned(),
        account: house.account,
        kind: CreditKind::Refund { call },
        pot: Pot::Paid,
        amount: Money::from_nano(1_000),
        expires_at: None,
        reason: "test".to_owned(),
        actor: "test".to_owned(),
    };
    house.running().app.store.credit(credit).await.expect("refunded");
    let (after, _) = proven(&house, call).await;
    assert_eq!((before.refunded_nano_usd, after.refunded_nano_usd), (0, 1_000));
    assert_eq!(before.charge_nano_usd, after.charge_nano_usd);
}

#[tokio::test(flavor = "multi_thread")]
async fn others_and_nonsense_are_not_found() {
    let house = House::new().await;
    let call = call_id(&house.ask("mine").await);
    house.row(call).await;
    let store = &house.running().app.store;
    let new = NewAccount { name: "other".to_owned(), ..NewAccount::default() };
    let account = store.create_account(new).await.expect("an account").id;
    let key = NewKey {
        account,
        name: String::new(),
        expires_at: None,
        models: None,
        cidrs: None,
        limits: Limits::default(),
        scope: Default::default(),
    };
    store.create_key(key, "sk-other-accounts-key").await.expect("a key");
    let mine = house.key.as_str();
    let unknown = house.running().app.new_call_id().to_string();
    for (id, key) in [(call.to_string().as_str(), "sk-other-accounts-key"), ("nonsense", mine), (&unknown, mine)] {
        let request = house.http.get(house.url(&format!("/v1/usage/{id}/receipt"))).bearer_auth(key);
        let (status, error) = error_of(request.send().await.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (404, Some("not_found")), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_used_and_published_at_once_and_the_old_one_stays() {
    let mut house = House::new().await;
    let call = call_id(&house.ask("hello").await);
    let (old, old_text) = proven(&house, call).await;
    house.running().app.store.rotate_receipt_key().await.expect("a new key");
    let (new, _) = proven(&house, call).await;
    assert_ne!(old.kid, new.kid);
    let published = keys(&house).await;
    verify(&old_text, &published).expect("old receipts go on being valid");
    assert_eq!(published.keys.iter().filter(|key| key.until_ms.is_none()).count(), 1);
    house.restart().await;
    assert_eq!(keys(&house).await, published, "a restart makes no key");
}

/// The price that a receipt names, asked for without a key.
async fn price(house: &House, id: &str) -> reqwest::Response {
    house.http.get(house.url(&format!("/api/pricing/versions/{id}"))).send().await.expect("a reply")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_price_of_a_receipt_is_served_by_its_hash_whatever_the_catalog_says_today() {
    let mut house = House::new().await;
    let call = call_id(&house.ask("hello [[sim:tokens=2]]").await);
    let (receipt, _) = proven(&house, call).await;
    let calculation = receipt.calculation.clone().expect("a calculation");
    let (id, hash) = (calculation.price_id, calculation.price_sha256);
    let served = price(&house, &id).await;
    assert_eq!(
        (served.status().as_u16(), &served.headers()["content-type"]),
        (200, &"application/json".parse().expect("a value"))
    );
    assert_eq!(served.headers()["cache-control"], "public, max-age=86400, immutable");
    let text = served.text().await.expect("text");
    verify_price(&receipt, &text).expect("the price of the receipt");
    let sha256: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sha256, hash, "what is served hashes to what is signed");
    let list: Value =
        house.http.get(house.url("/api/pricing")).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(list["pricing_version"], calculation.pricing_version.as_str(), "the list that was published then");

    // The prices change; what was charged by the old ones can still be checked.
    let file = house.dir.join("catalog/models.toml");
    let dearer = std::fs::read_to_string(&file).expect("the catalog").replace("input = 1_000_000", "input = 9_000_000");
    std::fs::write(&file, dearer).expect("written");
    house.restart().await;
    let later = call_id(&house.ask("hello [[sim:tokens=2]]").await);
    let (later, _) = proven(&house, later).await;
    assert_ne!(later.calculation.expect("a calculation").price_id, id);
    assert_eq!(price(&house, &id).await.text().await.expect("text"), text);
    let (again, _) = proven(&house, call).await;
    verify_price(&again, &text).expect("still the price of the call");

    for unknown in ["00000000000000000000000000000000", "nonsense", &id[1..], &format!("{id}0")] {
        let (status, error) = error_of(price(&house, unknown).await).await;
        assert_eq!(
            (status, error["code"].as_str(), error["param"].as_str()),
            (404, Some("not_found"), Some("price_id"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_changed_is_not_signed() {
    let house = House::new().await;
    let call = call_id(&house.ask("hello [[sim:tokens=2]]").await);
    proven(&house, call).await;
    let file = rusqlite::Connection::open(house.dir.join("data/tollgate.db")).expect("the database");
    let change = |sql: &str| file.execute_batch(sql).expect("changed");
    change("UPDATE usage SET model = 'dearer'");
    let (status, error) =
        error_of(house.get(&format!("/v1/usage/{call}/receipt")).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (500, Some("internal_error")));
    change("UPDATE usage SET model = 'plain'");
    proven(&house, call).await;
}
