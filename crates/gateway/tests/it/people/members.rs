//! Who is in an account, and what they may do there.

use super::{Browser, GOOD, house, letters, signed_in, test, token_in};
use crate::engine::Engine;
use serde_json::json;
use tollgate_store::{AccountRole, HouseRole, NewAccount};

#[tokio::test(flavor = "multi_thread")]
async fn members_come_by_invite_and_one_owner_stays() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let account = house.account;
        let mut ada = signed_in(&house, "ada@example.com", None, Some((account, AccountRole::Owner))).await;
        let invite = json!({ "email": "bob@example.com", "role": "viewer" });
        let once = [("idempotency-key", "one")];
        let made = ada.ask_with("POST", "/api/account/invites", &once, Some(invite.clone())).await;
        assert_eq!(made.status, 200, "{}", made.body);
        let again = ada.ask_with("POST", "/api/account/invites", &once, Some(invite)).await;
        assert_eq!(again.body, made.body, "made once, and mailed once");
        let other = json!({ "email": "eve@example.com", "role": "viewer" });
        let other = ada.ask_with("POST", "/api/account/invites", &once, Some(other)).await;
        assert_eq!((other.status, other.code.as_str()), (409, "idempotency_conflict"));
        assert_eq!(made.body["link"], json!(null), "it is mailed");
        let token = token_in(&letters(&house, 1).await[0]);
        let mut bob = Browser::new(&house);
        let bare = bob.post("/api/invites/accept", json!({ "token": token })).await;
        assert_eq!((bare.code.as_str(), &bare.body["error"]["param"]), ("missing_parameter", &json!("password")));
        let taken = bob.post("/api/invites/accept", json!({ "token": token, "password": GOOD })).await;
        assert_eq!(taken.status, 200, "{}", taken.body);
        assert_eq!(bob.post("/api/invites/accept", json!({ "token": token })).await.code, "token_invalid");
        let bob_id = bob.get("/api/session").await.body["person"]["person_id"].as_str().expect("an id").to_owned();
        let ada_id = ada.get("/api/session").await.body["person"]["person_id"].as_str().expect("an id").to_owned();

        // A viewer reads, and changes nothing.
        assert_eq!(bob.get("/api/account/members").await.body["data"].as_array().map(Vec::len), Some(2));
        let path = format!("/api/account/members/{bob_id}");
        let any = [("if-match", "*")];
        let raised = bob.ask_with("PATCH", &path, &any, Some(json!({ "role": "owner" }))).await;
        assert_eq!((raised.status, raised.code.as_str()), (403, "role_required"));
        assert_eq!(bob.get("/api/account/invites").await.code, "role_required");

        // The last owner stays, whoever asks.
        let own = format!("/api/account/members/{ada_id}");
        for (method, body) in [("PATCH", Some(json!({ "role": "member" }))), ("DELETE", None)] {
            let last = ada.ask_with(method, &own, &any, body).await;
            assert_eq!((last.status, last.code.as_str()), (409, "conflict"), "{method}: {}", last.body);
        }
        // A change says what it was made for.
        let tag = |members: &serde_json::Value| {
            let one = members["data"].as_array().and_then(|all| all.iter().find(|one| one["person_id"] == bob_id));
            one.and_then(|one| one["etag"].as_str()).expect("a tag").to_owned()
        };
        let seen = tag(&ada.get("/api/account/members").await.body);
        let role = |role: &str| Some(json!({ "role": role }));
        assert_eq!(ada.ask("PATCH", &path, role("member")).await.status, 428);
        assert_eq!(ada.ask_with("PATCH", &path, &[("if-match", &seen)], role("member")).await.status, 200);
        let stale = ada.ask_with("PATCH", &path, &[("if-match", &seen)], role("owner")).await;
        assert_eq!((stale.status, stale.code.as_str()), (412, "precondition_failed"));
        let seen = tag(&ada.get("/api/account/members").await.body);
        assert_eq!(ada.ask_with("PATCH", &path, &[("if-match", &seen)], role("owner")).await.status, 200);
        assert_eq!(bob.get("/api/session").await.code, "not_signed_in", "more rights, a new session");
        assert_eq!(bob.sign_in("bob@example.com", GOOD).await.status, 200);
        // Both take the other away at once: one owner is left.
        let (one, two) = tokio::join!(ada.ask("DELETE", &path, None), bob.ask("DELETE", &own, None));
        let left = house.running().app.store.members(account).await.expect("members");
        assert_eq!(left.iter().filter(|one| one.role == AccountRole::Owner).count(), 1, "{} {}", one.body, two.body);
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_in_several_accounts_names_one() {
    let house = house("sqlite").await;
    let store = &house.running().app.store;
    let other =
        store.create_account(NewAccount { name: "other".to_owned(), ..NewAccount::default() }).await.expect("made");
    let third =
        store.create_account(NewAccount { name: "third".to_owned(), ..NewAccount::default() }).await.expect("made");
    let ada = super::person(&house, "ada@example.com", None, Some((house.account, AccountRole::Owner))).await;
    store.put_membership(other.id, ada.id, AccountRole::Viewer, test()).await.expect("put");
    let mut browser = Browser::new(&house);
    browser.sign_in("ada@example.com", GOOD).await;
    let unnamed = browser.get("/api/account/members").await;
    assert_eq!(
        (unnamed.code.as_str(), &unnamed.body["error"]["param"]),
        ("missing_parameter", &json!("Tollgate-Account"))
    );
    for (account, method, status) in [
        (house.account, "GET", 200),
        (other.id, "GET", 200),
        (third.id, "GET", 404),
        (other.id, "POST", 403),
        (third.id, "POST", 404),
    ] {
        let path = if method == "GET" { "/api/account/members" } else { "/api/account/invites" };
        let request = browser.request(method, path).header("tollgate-account", account.to_string());
        let request = request.header("sec-fetch-site", "same-origin");
        let request = if method == "POST" {
            request.json(&json!({ "email": "x@example.com", "role": "viewer" }))
        } else {
            request
        };
        assert_eq!(request.send().await.expect("a reply").status(), status, "{account} {method}");
    }
    // An invite into the house, taken by somebody who is known.
    let mut operator = signed_in(&house, "op@example.com", Some(HouseRole::Operator), None).await;
    let wish = json!({ "email": "ada@example.com", "house_role": "auditor", "reason": "year's end" });
    assert_eq!(operator.post("/api/admin/invites", wish).await.status, 200);
    let token = token_in(&letters(&house, 1).await[0]);
    assert_eq!(Browser::new(&house).post("/api/invites/accept", json!({ "token": token })).await.status, 200);
    assert_eq!(browser.get("/api/session").await.code, "not_signed_in", "more rights, a new session");
    assert_eq!(browser.sign_in("ada@example.com", GOOD).await.body["person"]["house_role"], "auditor");
}
