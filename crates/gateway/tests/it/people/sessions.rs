//! The life of a session, from signing up to signing out.

use super::{Browser, GOOD, house, letters, person, signed_in, token_in};
use crate::engine::Engine;
use serde_json::json;
use tollgate_store::HouseRole;

const HOUR: i64 = 3_600_000;

#[tokio::test(flavor = "multi_thread")]
async fn from_signing_up_to_signing_out() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let mut ada = Browser::new(&house);
        let wish = json!({ "email": "Ada@Example.com", "password": GOOD, "account_name": "Ada's", "locale": "zh" });
        assert_eq!(ada.post("/api/sign-up", wish).await.status, 200);
        assert_eq!(ada.sign_in("ada@example.com", GOOD).await.code, "sign_in_failed", "the e-mail is not verified");
        let letter = letters(&house, 1).await.remove(0);
        assert!(letter.contains("To: Ada@Example.com"), "{letter}");
        let token = token_in(&letter);
        let verify = |password: &str| json!({ "token": token, "password": password });
        let other = ada.post("/api/email/verify", verify("not who signed up")).await;
        assert_eq!(other.code, "sign_in_failed", "whoever has the mail must have signed up");
        let verified = ada.post("/api/email/verify", verify(GOOD)).await;
        assert_eq!(verified.status, 200, "{}", verified.body);
        assert_eq!(ada.post("/api/email/verify", verify(GOOD)).await.code, "token_invalid", "once");

        let first = ada.sign_in(" ada@example.COM", GOOD).await;
        assert_eq!(first.status, 200, "{}", first.body);
        let shown = ada.get("/api/session").await.body;
        assert_eq!(shown["accounts"][0]["name"], "Ada's");
        assert_eq!((&shown["accounts"][0]["role"], &shown["strong"]), (&json!("owner"), &json!(true)));
        assert_eq!(ada.get("/api/account/members").await.body["data"][0]["email"], "Ada@Example.com");

        // A step-up, and a new password: the value before is worth nothing any more.
        for (path, body) in [
            ("/api/session/step-up", json!({ "password": GOOD })),
            ("/api/password", json!({ "password": GOOD, "new_password": "another lamp, ten stairs" })),
        ] {
            let before = ada.cookie.clone();
            let answer = ada.post(path, body).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            assert_ne!(ada.cookie, before, "{path}");
            let mut old = Browser { house: &house, cookie: before };
            assert_eq!(old.get("/api/session").await.code, "not_signed_in", "{path}");
        }
        letters(&house, 2).await;
        assert_eq!(Browser::new(&house).sign_in("ada@example.com", GOOD).await.code, "sign_in_failed");

        // Another browser, ended from here.
        let mut other = Browser::new(&house);
        assert_eq!(other.sign_in("ada@example.com", "another lamp, ten stairs").await.status, 200);
        let sessions = ada.get("/api/sessions").await.body;
        let ids: Vec<_> = sessions["data"].as_array().expect("a list").iter().collect();
        assert_eq!(ids.len(), 2, "{sessions}");
        let theirs = ids.iter().find(|one| one["current"] == false).expect("the other").to_owned();
        let path = format!("/api/sessions/{}", theirs["session_id"].as_str().expect("an id"));
        assert_eq!(ada.ask("DELETE", &path, None).await.status, 200);
        assert_eq!(other.get("/api/session").await.code, "not_signed_in");
        let cookie = ada.cookie.clone();
        assert_eq!(ada.ask("DELETE", "/api/session", None).await.status, 200);
        assert_eq!(ada.cookie, None, "taken away");
        assert_eq!(Browser { house: &house, cookie }.get("/api/session").await.code, "not_signed_in");

        // A new password by mail.
        let mut lost = Browser::new(&house);
        assert_eq!(lost.post("/api/password/forgot", json!({ "email": "ada@example.com" })).await.status, 200);
        let letter = letters(&house, 3).await.pop().expect("a letter");
        let reset = json!({ "token": token_in(&letter), "new_password": GOOD });
        assert_eq!(lost.post("/api/password/reset", reset.clone()).await.status, 200);
        assert_eq!(lost.post("/api/password/reset", reset).await.code, "token_invalid");
        assert_eq!(lost.sign_in("ada@example.com", GOOD).await.status, 200);
        let log = house.running().app.store.operator_events(100).await.expect("the log");
        for action in ["person.create", "person.verify", "session.begin", "person.password", "session.end"] {
            assert!(log.iter().any(|event| event.action == action), "{action}");
        }
        let everything = format!("{log:?}");
        assert!(!everything.contains(GOOD) && !everything.contains(&token), "no secret in the log");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_somebody_else_chose_is_never_a_session() {
    let house = house("sqlite").await;
    person(&house, "ada@example.com", None, None).await;
    // Chosen by whoever lays it into the browser before its owner signs in.
    let chosen = format!("tollgate_session={}", "A".repeat(43));
    let mut victim = Browser { house: &house, cookie: Some(chosen.clone()) };
    assert_eq!(victim.get("/api/session").await.code, "not_signed_in");
    assert_eq!(victim.sign_in("ada@example.com", GOOD).await.status, 200);
    assert_ne!(victim.cookie.as_ref(), Some(&chosen));
    assert_eq!(Browser { house: &house, cookie: Some(chosen) }.get("/api/session").await.status, 401);
    // A session of the attacker's own, laid in the same way, ends.
    let mallory = signed_in(&house, "mallory@example.com", None, None).await;
    let theirs = mallory.cookie.clone();
    let mut victim = Browser { house: &house, cookie: theirs.clone() };
    assert_eq!(victim.sign_in("ada@example.com", GOOD).await.status, 200);
    assert_eq!(Browser { house: &house, cookie: theirs }.get("/api/session").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_by_the_clock_and_a_step_up_lasts_ten_minutes() {
    let house = house("sqlite").await;
    let mut operator = signed_in(&house, "op@example.com", Some(HouseRole::Operator), None).await;
    let mut customer = signed_in(&house, "ada@example.com", None, None).await;
    house.later(9 * 60_000).await;
    assert_eq!(customer.get("/api/session").await.body["strong"], true);
    house.later(11 * 60_000).await;
    assert_eq!(customer.get("/api/session").await.body["strong"], false);
    let weak = customer.post("/api/session/totp", json!({})).await;
    assert_eq!((weak.status, weak.code.as_str()), (403, "step_up_required"));
    assert_eq!(operator.get("/api/admin/people").await.status, 200);
    house.later(11 * 60_000 + HOUR + 1).await;
    assert_eq!(operator.get("/api/admin/people").await.code, "not_signed_in", "an hour idle");
    assert_eq!(customer.get("/api/session").await.status, 200);
    house.later(14 * HOUR).await;
    assert_eq!(customer.get("/api/session").await.code, "not_signed_in", "twelve hours idle");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_operator_comes_by_a_printed_token_once() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let app = &house.running().app;
        let tokens = [1u8, 2].map(|n| tollgate_gateway::people::tokens::OneTimeToken::new(|bytes| bytes.fill(n)));
        for token in &tokens {
            let purpose = tollgate_store::TokenPurpose::FirstOperator;
            let expires_at = app.world.now_ms() + HOUR;
            let new = tollgate_store::NewMailToken { hash: token.hash, purpose, expires_at };
            app.store.create_token(new, None).await.expect("stored");
        }
        let wish = |token: &str, email: &str| json!({ "token": token, "email": email, "password": GOOD });
        let mut first = Browser::new(&house);
        assert_eq!(first.post("/api/first-operator", wish("nonsense", "op@example.com")).await.code, "token_invalid");
        let made = first.post("/api/first-operator", wish(&tokens[0].text, "op@example.com")).await;
        assert_eq!(made.body["person"]["house_role"], "operator", "{}", made.body);
        assert_eq!(first.get("/api/admin/people").await.status, 200);
        let late = Browser::new(&house).post("/api/first-operator", wish(&tokens[1].text, "x@example.com")).await;
        assert_eq!(late.code, "token_invalid", "there is an operator");
    }
}

/// Nobody is signed in by what cannot be written down, and an attempt is no guess.
pub async fn the_database_is_down_at_a_sign_in() {
    let house = house("sqlite").await;
    person(&house, "ada@example.com", None, None).await;
    let file = house.running().app.settings.data_dir.join("tollgate.db");
    let blocker = rusqlite::Connection::open(file).expect("the database");
    blocker.busy_timeout(std::time::Duration::from_secs(5)).expect("patience");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let mut ada = Browser::new(&house);
    let refused = ada.sign_in("ada@example.com", GOOD).await;
    assert_eq!((refused.status, refused.code.as_str()), (503, "ledger_unavailable"), "{}", refused.body);
    assert_eq!(ada.cookie, None);
    drop(blocker);
    assert_eq!(ada.sign_in("ada@example.com", GOOD).await.status, 200, "{}", refused.body);
}
