//! Keys of people: a member changes those they made, and the playground has one for an hour.

use super::{Browser, house, signed_in};
use crate::engine::Engine;
use serde_json::{Value, json};
use tollgate_store::{AccountRole, HouseRole};

fn id(answer: &Value) -> String {
    answer["key_id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_changes_the_keys_they_made_and_owners_all() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let account = house.account;
        let mut ada = signed_in(&house, "ada@example.com", None, Some((account, AccountRole::Owner))).await;
        let mut bob = signed_in(&house, "bob@example.com", None, Some((account, AccountRole::Member))).await;
        let mut eve = signed_in(&house, "eve@example.com", None, Some((account, AccountRole::Viewer))).await;
        let bob_id = bob.get("/api/session").await.body["person"]["person_id"].clone();
        let made = bob.post("/api/account/keys", json!({ "name": "bob's" })).await;
        assert_eq!((made.status, &made.body["made_by"]), (200, &bob_id), "{}", made.body);
        let own = id(&made.body);
        let theirs = id(&ada.post("/api/account/keys", json!({ "name": "ada's" })).await.body);
        let nobodys = ada.get("/api/account/keys").await.body;
        let nobodys = nobodys["data"].as_array().and_then(|all| all.iter().find(|key| key["made_by"].is_null()));
        let nobodys = id(nobodys.expect("the key of the house"));
        let any = [("if-match", "*")];
        let verbs = |key: &str| {
            [
                ("PATCH", format!("/api/account/keys/{key}"), json!({ "name": "other" })),
                ("POST", format!("/api/account/keys/{key}/rotate"), json!({})),
                ("POST", format!("/api/account/keys/{key}/revoke"), json!({})),
            ]
        };
        for (method, path, body) in [verbs(&theirs), verbs(&nobodys)].concat() {
            for who in [&mut bob, &mut eve] {
                let refused = who.ask_with(method, &path, &any, Some(body.clone())).await;
                assert_eq!((refused.status, refused.code.as_str()), (403, "role_not_allowed"), "{path}");
            }
        }
        for (method, path, body) in verbs(&own) {
            let done = bob.ask_with(method, &path, &any, Some(body)).await;
            assert_eq!(done.status, 200, "{path}: {}", done.body);
        }
        for (method, path, body) in verbs(&theirs) {
            assert_eq!(ada.ask_with(method, &path, &any, Some(body)).await.status, 200, "{path}");
        }
        assert_eq!(house.balance_with(&house.key).await, 200, "what nobody may change goes on");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_playground_has_one_key_that_ends_with_the_session() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let account = house.account;
        let mut bob = signed_in(&house, "bob@example.com", None, Some((account, AccountRole::Member))).await;
        let path = "/api/account/playground-key";
        let secret = |answer: &Value| answer["secret"].as_str().expect("a secret").to_owned();
        let first = bob.ask("POST", path, None).await;
        assert_eq!((first.status, &first.body["origin"]), (200, &json!("console")), "{}", first.body);
        assert_eq!(first.body["limits"]["day_nano_usd"], json!(5_000_000_000_i64), "{}", first.body);
        let ends = first.body["expires_at_ms"].as_i64().expect("an end");
        assert!((3_000_000..=3_600_000).contains(&(ends - house.running().app.world.now_ms())));
        assert_eq!(house.balance_with(&secret(&first.body)).await, 200, "it makes calls");
        // Another tab: another secret of the same key. The one before works on until a third.
        let second = bob.ask("POST", path, None).await;
        assert_eq!(id(&second.body), id(&first.body));
        for shown in [&first, &second] {
            assert_eq!(house.balance_with(&secret(&shown.body)).await, 200);
        }
        let third = bob.ask("POST", path, None).await;
        house.later(1).await;
        assert_eq!(house.balance_with(&secret(&first.body)).await, 401, "two at a time");
        assert_eq!(house.balance_with(&secret(&second.body)).await, 200);
        let keys = bob.get("/api/account/keys").await.body;
        let theirs = keys["data"].as_array().map(|all| all.iter().filter(|key| key["origin"] == "console").count());
        assert_eq!(theirs, Some(1), "{keys}");
        // Signing out ends it, with all its secrets.
        assert_eq!(bob.ask("DELETE", "/api/session", None).await.status, 200);
        for shown in [&second, &third] {
            assert_eq!(house.balance_with(&secret(&shown.body)).await, 401, "signed out");
        }
        assert_eq!(bob.sign_in("bob@example.com", super::GOOD).await.status, 200);
        let next = bob.ask("POST", path, None).await;
        assert_eq!(id(&next.body), id(&first.body), "one for good");
        assert_eq!(house.balance_with(&secret(&next.body)).await, 200);
        house.later(3_600_001).await;
        assert_eq!(house.balance_with(&secret(&next.body)).await, 401, "an hour");
        // Whoever reads makes no calls, and a key asks for none.
        let mut eve = signed_in(&house, "eve@example.com", None, Some((account, AccountRole::Viewer))).await;
        assert_eq!(eve.ask("POST", path, None).await.code, "role_required");
        let by_key = house.http.post(house.url(path)).bearer_auth(&house.key).send().await.expect("a reply");
        assert_eq!(by_key.status(), 401);
        house.quiet().await;
    }
}

/// A reply that is given again has nothing in it that opens something.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_shown_once_and_not_stored() {
    let house = house("sqlite").await;
    let mut operator = signed_in(&house, "op@example.com", Some(HouseRole::Operator), None).await;
    let wish = json!({ "email": "new@example.com", "reason": "a new colleague" });
    let once = [("idempotency-key", "one")];
    let first = operator.ask_with("POST", "/api/admin/people", &once, Some(wish.clone())).await;
    assert!(first.body["token"].is_string() && first.body["link"].is_string(), "{}", first.body);
    let again = operator.ask_with("POST", "/api/admin/people", &once, Some(wish)).await;
    assert_eq!((again.status, &again.body["person_id"]), (200, &first.body["person_id"]));
    assert_eq!((&again.body["token"], &again.body["link"]), (&json!(null), &json!(null)));
    assert_eq!(Browser::new(&house).get("/api/session").await.status, 401);
}
