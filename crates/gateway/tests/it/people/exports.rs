//! Everything of an account in one file: whole, of this account alone, without secrets, and not
//! too often.

use super::{Browser, GOOD, house, signed_in};
use crate::engine::Engine;
use crate::house::{call_id, chat};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tollgate_store::AccountRole;

const EXPORT: &str = "/api/account/export";

/// The lines of a file, which is whole.
async fn exported(who: &Browser<'_>) -> (String, Vec<Value>) {
    let reply = who.request("GET", EXPORT).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    assert_eq!(reply.headers()["content-type"], "application/jsonl");
    let text = reply.text().await.expect("all of it");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.last().map(|line| &line["lines"]), Some(&json!(lines.len())), "it says how long it is");
    (text, lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_exports_everything_of_the_account() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let account = house.account;
        let mut ada = signed_in(&house, "ada@example.com", None, Some((account, AccountRole::Owner))).await;
        let mut bob = signed_in(&house, "bob@example.com", None, Some((account, AccountRole::Member))).await;
        let made = ada.post("/api/account/keys", json!({ "name": "laptop" })).await.body;
        let invite = json!({ "email": "new@example.com", "role": "member" });
        assert_eq!(ada.post("/api/account/invites", invite).await.status, 200);
        let mut charged = 0;
        for _ in 0..3 {
            let call = call_id(&house.ask("hello").await);
            charged += house.row(call).await.charge.nano();
        }
        let (_, others) = house.stranger("1").await;
        let reply = house.http.post(house.url("/v1/chat/completions")).bearer_auth(&others).json(&chat("mine")).send();
        let anothers = call_id(&reply.await.expect("a reply")).to_string();
        // More than a piece has.
        let store = &house.running().app.store;
        let noted =
            (0..520).map(|_| async { store.note_audit(&super::test(), "key.update", "x", Some(account), "").await });
        for done in futures_util::future::join_all(noted).await {
            done.expect("noted");
        }
        house.quiet().await;

        assert_eq!(bob.get(EXPORT).await.code, "role_not_allowed");
        house.later(11 * 60_000).await;
        assert_eq!(ada.get(EXPORT).await.code, "step_up_required");
        assert_eq!(ada.post("/api/session/step-up", json!({ "password": GOOD })).await.status, 200);
        let (text, lines) = exported(&ada).await;
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &lines {
            *kinds.entry(line["type"].as_str().expect("a type")).or_default() += 1;
        }
        let of = |kind: &str| kinds.get(kind).copied().unwrap_or(0);
        let few: Vec<usize> =
            ["export", "account", "notice", "member", "invite", "key", "ledger", "usage", "end"].map(of).into();
        assert_eq!(few, [1, 1, 1, 2, 1, 2, 1, 3, 1], "{kinds:?}");
        assert!(of("log") > 520, "{kinds:?}");
        let seqs: BTreeSet<i64> = lines
            .iter()
            .filter(|line| line["type"] == "log")
            .map(|line| line["data"]["seq"].as_i64().expect("a number"))
            .collect();
        assert_eq!(seqs.len(), of("log"), "each row once");
        let usage = lines.iter().filter(|line| line["type"] == "usage");
        let sum: i64 = usage.map(|line| line["data"]["charge_nano_usd"].as_i64().expect("an amount")).sum();
        assert_eq!(sum, charged, "what the ledger says");
        let secret = made["secret"].as_str().expect("a secret");
        for hidden in [secret, &house.key, anothers.as_str(), "\"hash\"", "night shift", "upstream_model"] {
            assert!(!text.contains(hidden), "{hidden} is in it");
        }

        // Each one is in the log, and there is an end to them.
        let log = ada.get("/api/account/audit?action=account.export").await.body;
        assert_eq!(log["data"].as_array().map(Vec::len), Some(1), "{log}");
        for _ in 0..9 {
            exported(&ada).await;
        }
        let refused = ada.get(EXPORT).await;
        assert_eq!((refused.status, refused.code.as_str()), (429, "rate_limit_exceeded"), "{}", refused.body);
        assert_eq!(ada.get(&format!("{EXPORT}?all=true")).await.status, 400);
        house.later(11 * 60_000 + 86_400_001).await;
        assert_eq!(ada.sign_in("ada@example.com", GOOD).await.status, 200);
        exported(&ada).await;
    }
}
