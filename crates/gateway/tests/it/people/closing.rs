//! Closing an account: what it takes, what stops with it, what stays, and what comes back.

use super::{Answer, Browser, CONFIG, GOOD, house, signed_in};
use crate::engine::Engine;
use crate::house::{House, Plan, chat, second};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinSet;
use tollgate_gateway::start::Running;
use tollgate_gateway::workers::mail;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{AccountRole, CLOSE_GRACE_MS, EventPage, HouseRole, KeyScope, Membership, NewPerson, Pot};

const CLOSE: &str = "/api/account/close";
const USD: i64 = 1_000_000_000;

async fn close(who: &mut Browser<'_>, give_up: Option<i64>) -> Answer {
    let mut body = json!({ "confirm": who.house.account });
    if let Some(amount) = give_up {
        body["give_up_nano_usd"] = json!(amount);
    }
    who.post(CLOSE, body).await
}

fn heard(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.code.as_str())
}

/// The grace time is over, and the regular round has come by.
async fn erased(house: &House) -> usize {
    house.later(CLOSE_GRACE_MS + 60_000).await;
    let app = &house.running().app;
    app.store.erase_closed(app.world.now_ms() - CLOSE_GRACE_MS).await.expect("erased")
}

async fn chat_with(house: &House, at: &str, key: &str) -> u16 {
    let request = house.http.post(format!("{at}/v1/chat/completions")).bearer_auth(key);
    request.json(&chat("hello")).send().await.expect("a reply").status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_closes_an_account_and_an_operator_opens_it_again() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let account = house.account;
        let (elsewhere, _) = house.stranger("1").await;
        let mut ada = signed_in(&house, "ada@example.com", None, Some((account, AccountRole::Owner))).await;
        let mut bob = signed_in(&house, "bob@example.com", None, Some((account, AccountRole::Member))).await;
        let mut op = signed_in(&house, "op@example.com", Some(HouseRole::Operator), None).await;
        let store = house.running().app.store.clone();
        let bob_id = store.person_by_email("bob@example.com").await.expect("read").expect("bob").id;
        store.put_membership(elsewhere, bob_id, AccountRole::Viewer, super::test()).await.expect("in two accounts");
        assert_eq!(bob.sign_in("bob@example.com", GOOD).await.status, 200);
        let manage = house.new_key(|key| key.scope = KeyScope::Manage).await;
        let invite = json!({ "email": "new@example.com", "role": "member" });
        assert_eq!(ada.post("/api/account/invites", invite).await.status, 200);
        assert_eq!(chat_with(&house, &house.url(""), &house.key).await, 200);
        house.quiet().await;
        let left = house.available().await;

        // Who may, and what must be said.
        let whole = [("tollgate-account", account.to_string())];
        let whole = whole.each_ref().map(|(name, value)| (*name, value.as_str()));
        let body = || Some(json!({ "confirm": account, "give_up_nano_usd": left }));
        assert_eq!(heard(&bob.ask_with("POST", CLOSE, &whole, body()).await), (403, "role_not_allowed"));
        let by_key = house.http.post(house.url(CLOSE)).bearer_auth(&manage).json(&body()).send().await;
        assert_eq!(heard(&super::answer(by_key.expect("a reply")).await), (403, "key_scope"));
        house.later(11 * 60_000).await;
        assert_eq!(heard(&close(&mut ada, Some(left)).await), (403, "step_up_required"));
        assert_eq!(ada.post("/api/session/step-up", json!({ "password": GOOD })).await.status, 200);
        let typed = ada.post(CLOSE, json!({ "confirm": "yes", "give_up_nano_usd": left })).await;
        assert_eq!((typed.status, &typed.body["error"]["param"]), (400, &json!("confirm")), "{}", typed.body);
        for wrong in [None, Some(left - 1), Some(left + 1), Some(0)] {
            let refused = close(&mut ada, wrong).await;
            assert_eq!(heard(&refused), (409, "conflict"), "{wrong:?}: {}", refused.body);
            assert!(refused.body.to_string().contains(&left.to_string()), "says what is left: {}", refused.body);
            assert_eq!(refused.body["error"]["param"], "give_up_nano_usd", "{}", refused.body);
        }
        assert_eq!(house.balance().await.suspended_at, None, "nothing has happened");

        let closed = close(&mut ada, Some(left)).await;
        assert_eq!(closed.status, 200, "{}", closed.body);
        assert!(closed.body["closed_at_ms"].is_number(), "{}", closed.body);
        // Nobody is in it, and nothing opens it.
        assert_eq!(heard(&ada.get("/api/account").await), (403, "role_required"));
        assert_eq!(heard(&bob.ask_with("GET", "/api/account", &whole, None).await), (404, "not_found"));
        assert_eq!(bob.get("/api/account").await.body["account_id"], json!(elsewhere), "the other one is theirs");
        for key in [&house.key, &manage] {
            assert_eq!(house.balance_with(key).await, 401);
        }
        assert_eq!(chat_with(&house, &house.url(""), &house.key).await, 401);
        assert!(store.invites(Some(account)).await.expect("read").is_empty());
        // What was, is: the operator sees it.
        let path = format!("/api/admin/accounts/{account}");
        let shown = op.get(&path).await.body;
        assert_eq!(shown["closed_at_ms"], closed.body["closed_at_ms"], "{shown}");
        assert_eq!(shown["paid_available_nano_usd"], left, "no money has moved");
        assert!(op.get(&format!("{path}/history")).await.body["data"][0]["reference"].is_string());
        let why = |reason: &str| json!({ "reason": reason });
        for (method, end, body) in [
            ("PATCH", "", json!({ "suspended": false, "reason": "x" })),
            ("POST", "/keys", json!({ "name": "late", "reason": "x" })),
        ] {
            let refused = op.ask(method, &format!("{path}{end}"), Some(body)).await;
            assert_eq!(heard(&refused), (409, "conflict"), "{end}: {}", refused.body);
        }
        assert_eq!(heard(&op.post(&format!("{path}/reopen"), json!({})).await), (400, "missing_parameter"));

        // It comes back as it was, but for its keys.
        let back = op.post(&format!("{path}/reopen"), why("a mistake")).await;
        assert_eq!(
            (back.status, &back.body["closed_at_ms"], &back.body["suspended_at_ms"]),
            (200, &json!(null), &json!(null))
        );
        assert_eq!(ada.get("/api/account").await.body["paid_available_nano_usd"], left);
        assert_eq!(house.balance_with(&house.key).await, 401, "revoked is revoked");
        let made = ada.post("/api/account/keys", json!({ "name": "anew" })).await;
        let secret = made.body["secret"].as_str().expect("a secret").to_owned();
        assert_eq!(chat_with(&house, &house.url(""), &secret).await, 200);
        assert_eq!(heard(&op.post(&format!("{path}/reopen"), why("again")).await), (409, "conflict"));
        let log = ada.get("/api/account/audit").await.body.to_string();
        assert!(log.contains("account.close") && log.contains("account.reopen_closed"), "{log}");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_its_time_a_closed_account_is_nobodys_and_its_books_stay() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let account = house.account;
        let store = house.running().app.store.clone();
        let (elsewhere, _) = house.stranger("1").await;
        let mut ada = signed_in(&house, "ada@example.com", None, Some((account, AccountRole::Owner))).await;
        let bob = super::person(&house, "bob@example.com", None, Some((account, AccountRole::Member))).await;
        store.put_membership(elsewhere, bob.id, AccountRole::Owner, super::test()).await.expect("elsewhere too");
        let mut op =
            signed_in(&house, "op@example.com", Some(HouseRole::Operator), Some((account, AccountRole::Viewer))).await;
        let hook = json!({ "webhook_url": "https://hooks.invalid/secret" });
        assert_eq!(ada.ask("PUT", "/api/account/webhooks", Some(hook)).await.status, 200);
        house.credit("gift", Pot::Trial, "3".parse().expect("an amount")).await;
        assert_eq!(chat_with(&house, &house.url(""), &house.key).await, 200);
        house.quiet().await;
        let left = house.available().await;
        assert_eq!(close(&mut ada, Some(left)).await.status, 200);
        // Somebody pays after all: that was not given up.
        house.top_up("late", "4").await;
        let app = &house.running().app;
        assert_eq!(app.store.erase_closed(app.world.now_ms() - CLOSE_GRACE_MS).await.expect("asked"), 0, "not yet");
        let rows = house.all_rows().await.len();

        assert_eq!(erased(&house).await, 1);
        assert_eq!(erased(&house).await, 0, "once");
        let account_now = house.balance().await;
        assert_eq!((account_now.name.as_str(), &account_now.webhook_url), ("closed account", &None));
        assert!(account_now.erased_at.is_some());
        let (trial, paid) = (account_now.trial_available.nano(), account_now.paid_available.nano());
        assert_eq!((trial, paid), (0, 4 * USD), "what was given up is taken off, what came later stays");
        let events = store.events(account, EventPage { before: None, limit: 20 }).await.expect("read");
        let taken: i64 = events
            .iter()
            .filter(|event| event.reference.starts_with(&format!("closed:{account}:")))
            .map(|event| event.trial.nano() + event.paid.nano())
            .sum();
        assert_eq!(taken, -left, "{events:?}");
        assert_eq!(house.all_rows().await.len(), rows, "the usage log stays");
        // Who was only there is gone; who is elsewhere, or of the house, is not.
        for (email, known) in [("ada@example.com", false), ("bob@example.com", true), ("op@example.com", true)] {
            assert_eq!(store.person_by_email(email).await.expect("read").is_some(), known, "{email}");
        }
        assert!(store.members(account).await.expect("read").is_empty());
        assert!(store.keys(account).await.expect("read").iter().all(|key| key.name.is_empty()));
        assert_eq!(ada.sign_in("ada@example.com", GOOD).await.status, 401);
        assert_eq!(op.sign_in("op@example.com", GOOD).await.status, 200);
        let path = format!("/api/admin/accounts/{account}/reopen");
        assert_eq!(heard(&op.post(&path, json!({ "reason": "too late" })).await), (409, "conflict"));
        house.quiet().await;
    }
}

/// Calls run while somebody closes the account, again and again: it closes between two of them, and
/// not a nano-dollar moves afterwards. Another replica that knows the key well serves no call.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_moves_in_an_account_from_its_close_on() {
    for engine in Engine::both().await {
        let house =
            House::with(Plan { config: CONFIG.to_owned(), database: engine.url.clone(), usd: "50", ..Plan::default() })
                .await;
        let mut ada = signed_in(&house, "ada@example.com", None, Some((house.account, AccountRole::Owner))).await;
        let other = if engine.name == "postgres" { Some(second(&house).await) } else { None };
        let there = other.as_ref().map_or_else(|| house.url(""), |other| format!("http://{}", other.address));
        assert_eq!(chat_with(&house, &there, &house.key).await, 200, "known there");

        // One call that waits for its provider: what is held for it stands in the way.
        house.sim.shut("/v1/chat/completions");
        let mut calls = JoinSet::new();
        calls.spawn(house.post(&chat("slow")).send());
        while house.sim.waited() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let refused = close(&mut ada, Some(house.available().await)).await;
        assert_eq!(heard(&refused), (409, "conflict"));
        assert!(refused.body.to_string().contains("are held"), "{}", refused.body);
        assert_eq!(refused.body["error"]["param"], json!(null), "no field mends that");
        house.sim.open();

        for at in [house.url(""), there.clone()].iter().cycle().take(40) {
            let request = house.http.post(format!("{at}/v1/chat/completions")).bearer_auth(&house.key);
            calls.spawn(request.json(&chat("hello")).send());
        }
        let closed: Value = loop {
            let answer = close(&mut ada, Some(house.available().await)).await;
            match answer.status {
                200 => break answer.body,
                409 => tokio::time::sleep(Duration::from_millis(2)).await,
                _ => panic!("{}", answer.body),
            }
        };
        let left = closed["paid_available_nano_usd"].as_i64().expect("an amount");
        assert!([401, 403].contains(&chat_with(&house, &there, &house.key).await), "at once, there too");
        while let Some(done) = calls.join_next().await {
            let status = done.expect("joined").expect("a reply").status().as_u16();
            assert!([200, 401, 403].contains(&status), "{status}");
        }
        house.quiet().await;
        let after = house.balance().await;
        assert_eq!((after.paid_available.nano(), after.paid_held.nano()), (left, 0), "{}", engine.name);
        if let Some(other) = other {
            other.stop().await;
        }
    }
}

/// Verified owners hear of it, each once over all replicas and in their language; nobody else does.
/// So it is when it was opened from the command line.
#[tokio::test(flavor = "multi_thread")]
async fn owners_hear_that_their_account_was_closed_and_is_open_again() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let other = if engine.name == "postgres" { Some(sharing(&house).await) } else { None };
        let (account, store) = (house.account, house.running().app.store.clone());
        let mut ada = signed_in(&house, "ada@example.com", None, Some((account, AccountRole::Owner))).await;
        for (email, locale, verified, role) in [
            ("cai@example.com", "zh-CN", true, AccountRole::Owner),
            ("unsure@example.com", "en", false, AccountRole::Owner),
            ("mem@example.com", "en", true, AccountRole::Member),
        ] {
            let new = NewPerson {
                email: email.to_owned(),
                name: String::new(),
                locale: locale.to_owned(),
                time_zone: String::new(),
                verified,
                wished_account: None,
                password: None,
                house_role: None,
                membership: Some(Membership { account, role }),
                token: None,
                mail: None,
            };
            store.create_person(new, super::test()).await.expect("made").expect("a new e-mail");
        }
        assert_eq!(close(&mut ada, Some(house.available().await)).await.status, 200);
        let closed = told(&house, 2).await;
        let of = |email: &str| closed.iter().find(|letter| letter.contains(email)).expect("a letter").clone();
        assert!(of("ada@example.com").contains("Subject: Your account was closed"), "{closed:?}");
        assert!(of("ada@example.com").replace("=\r\n", "").contains(&format!("test ({account})")), "{closed:?}");
        assert!(of("cai@example.com").contains("Subject: =?utf-8?"), "in Chinese: {closed:?}");

        // From the command line, and two replicas that look at the same moment.
        let reopen = AdminCommand::AccountReopen { account, done: super::test() };
        store.execute(reopen).await.expect("open again");
        let here = &house.running().app;
        let there = other.as_ref().map_or(here, |other| &other.app);
        let (one, two) = tokio::join!(mail::tell_owners(here), mail::tell_owners(there));
        assert!(one.is_ok() && two.is_ok());
        here.people.ring();
        let all = told(&house, 4).await;
        let again = all.iter().filter(|letter| letter.contains("Subject: Your account is open again")).count();
        assert_eq!((all.len(), again), (4, 1), "{all:?}");
        if let Some(other) = other {
            other.stop().await;
        }
    }
}

/// Another replica with the same secrets, which puts its letters where the first one does.
async fn sharing(house: &House) -> Running {
    let data = house.dir.join("second/data");
    for folder in [&data, &house.dir.join("mail")] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    std::os::unix::fs::symlink(house.dir.join("mail"), house.dir.join("second/mail")).expect("a link");
    std::fs::copy(house.dir.join("data/secrets.key"), data.join("secrets.key")).expect("copied");
    second(house).await
}

/// All letters there are, once so many came and none waits any more.
async fn told(house: &House, count: usize) -> Vec<String> {
    let store = &house.running().app.store;
    super::letters(house, count).await;
    while store.mail_waiting().await.expect("read") > 0 || !store.account_letters(1).await.expect("read").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    super::letters(house, count).await
}
