//! Operators and auditors look at an account as its customers see it; the account knows.

use super::{Browser, house, signed_in};
use crate::engine::Engine;
use serde_json::{Value, json};
use tollgate_store::{AccountId, AccountRole, HouseRole};

async fn reads(browser: &mut Browser<'_>, path: &str, account: AccountId) -> u16 {
    browser.ask_with("GET", path, &[("tollgate-account", &account.to_string())], None).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_looks_at_an_account_and_changes_nothing_in_it() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let account = house.account;
        let named = account.to_string();
        let mut owner = signed_in(&house, "owner@example.com", None, Some((account, AccountRole::Owner))).await;
        let mut op = signed_in(&house, "op@example.com", Some(HouseRole::Operator), None).await;
        assert_eq!(reads(&mut op, "/api/account", account).await, 404, "not yet");

        let why = json!({ "account": named, "reason": "ticket 7" });
        let bare = op.post("/api/session/view", json!({ "account": named })).await;
        assert_eq!((bare.status, &bare.body["error"]["param"]), (400, &json!("reason")), "{}", bare.body);
        let nobody = op.post("/api/session/view", json!({ "account": AccountId([9; 16]), "reason": "x" })).await;
        assert_eq!((nobody.status, nobody.code.as_str()), (404, "not_found"));
        assert_eq!(owner.post("/api/session/view", why.clone()).await.code, "role_required", "not of the house");
        let begun = op.post("/api/session/view", why.clone()).await;
        assert_eq!((begun.status, &begun.body["account_id"]), (200, &json!(named)), "{}", begun.body);
        assert_eq!(op.get("/api/session").await.body["viewing"]["account_id"], json!(named), "a page can say so");

        for path in ["/api/account", "/api/account/usage", "/api/account/keys", "/api/account/members"] {
            assert_eq!(reads(&mut op, path, account).await, 200, "{path}");
        }
        // Secrets, the log and all changes are the owner's.
        for path in ["/api/account/webhooks/secret", "/api/account/audit", "/api/account/invites"] {
            assert_eq!(reads(&mut op, path, account).await, 403, "{path}");
        }
        let header = [("tollgate-account", named.as_str()), ("if-match", "*")];
        let key = Some(json!({ "name": "mine" }));
        for (method, path, body) in [
            ("POST", "/api/account/keys", key),
            ("PATCH", "/api/account", Some(json!({ "name": "mine" }))),
            ("POST", "/api/account/playground-key", None),
            ("POST", "/api/account/invites", Some(json!({ "email": "x@example.com", "role": "owner" }))),
        ] {
            let refused = op.ask_with(method, path, &header, body).await;
            assert_eq!(refused.status, 404, "{method} {path}: {}", refused.body);
        }

        // The account's own log says that somebody of the house looked; who and why is in theirs.
        let log = owner.get("/api/account/audit").await.body;
        let row = log["data"].as_array().and_then(|rows| rows.iter().find(|row| row["action"] == "account.view"));
        let row = row.unwrap_or_else(|| panic!("{log}"));
        assert_eq!((&row["actor"], &row["reason"]), (&json!("operator"), &json!("")));
        let log = op.get("/api/admin/audit?action=account.view").await.body;
        let actor = log["data"][0]["actor"].as_str().expect("an actor");
        assert!(actor.starts_with("op@example.com") && log["data"][0]["reason"] == "ticket 7", "{log}");

        assert_eq!(op.ask("DELETE", "/api/session/view", None).await.status, 200);
        let log = owner.get("/api/account/audit").await.body;
        assert_eq!(
            (&log["data"][0]["action"], &log["data"][0]["actor"]),
            (&json!("account.view_end"), &json!("operator"))
        );
        assert_eq!(reads(&mut op, "/api/account", account).await, 404, "no longer");
        assert_eq!(op.get("/api/session").await.body["viewing"], Value::Null);
        assert_eq!(op.post("/api/session/view", why).await.status, 200);
        // A session of the house ends after an hour without use.
        house.later(1_800_000).await;
        assert_eq!(op.get("/api/session").await.body["viewing"]["account_id"], json!(named), "half of the hour");
        house.later(3_600_000).await;
        assert_eq!(op.get("/api/session").await.body["viewing"], Value::Null, "an hour is over");
        assert_eq!(reads(&mut op, "/api/account", account).await, 404);
        house.quiet().await;
    }
}

/// Who is in an account, and who is asked into it, is a change of that account.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_an_account_has_its_members_and_invites() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let account = house.account;
        let mut ada = signed_in(&house, "ada@example.com", None, Some((account, AccountRole::Owner))).await;
        let bob = super::person(&house, "bob@example.com", None, Some((account, AccountRole::Viewer))).await;
        let role = json!({ "email": "eve@example.com", "role": "viewer" });
        assert_eq!(ada.post("/api/account/invites", role).await.status, 200);
        let invites = ada.get("/api/account/invites").await.body;
        let invite = invites["data"][0]["invite_id"].as_str().expect("an id").to_owned();
        assert_eq!(ada.ask("DELETE", &format!("/api/account/invites/{invite}"), None).await.status, 200);
        assert_eq!(ada.ask("DELETE", &format!("/api/account/members/{}", bob.id), None).await.status, 200);
        let log = ada.get("/api/account/audit").await.body;
        let rows = log["data"].as_array().expect("rows");
        let done: Vec<&str> = rows.iter().filter_map(|row| row["action"].as_str()).collect();
        assert_eq!(done[..3], ["membership.change", "invite.revoke", "invite.create"], "{log}");
        // Whoever is of the account is named.
        assert!(rows[..3].iter().all(|row| row["actor"].as_str().is_some_and(|one| one.starts_with("ada@"))), "{log}");
        house.quiet().await;
    }
}
