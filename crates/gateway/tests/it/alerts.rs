//! Alerts and notices over real sockets, on both engines: each kind of rule fires and clears, once
//! for all replicas, in the form of each place; places that are slow, down or hostile; customers
//! who hear of a low balance.

use crate::engine::Engine;
use crate::house::{House, Plan, error_of, second};
use crate::people::{letters, person, test};
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ring::hmac;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_gateway::workers::alerts::{look, look_at_notices, say_how_it_is, send_due};
use tollgate_store::{AccountRole, Credit, CreditKind, KeyScope, NewAdminKey, Pot};

const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";
const USD: i64 = 1_000_000_000;
const CONFIG: &str = "secrets_file = \"@DIR@/shared.key\"\n[webhooks]\nprivate = true\npatience = \"60s\"\n\
     [people]\nenabled = true\n[people.mail]\nfolder = \"mail\"\n";

/// Answers with these, then with 200 and this body, and remembers.
#[derive(Clone)]
struct Receiver {
    answers: Arc<Mutex<Vec<u16>>>,
    says: &'static str,
    seen: Arc<Mutex<Vec<(HeaderMap, Value, Bytes)>>>,
    /// It takes what it is sent and never answers.
    hangs: bool,
}

impl Receiver {
    async fn start(answers: &[u16], says: &'static str) -> (Receiver, String) {
        let answers = Arc::new(Mutex::new(answers.to_vec()));
        Receiver { answers, says, seen: Arc::default(), hangs: false }.served().await
    }

    async fn hanging() -> (Receiver, String) {
        Receiver { answers: Arc::default(), says: "", seen: Arc::default(), hangs: true }.served().await
    }

    async fn served(self) -> (Receiver, String) {
        let receiver = self;
        let app = Router::new().route("/hook", post(receive)).with_state(receiver.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        serve(listener, app);
        (receiver, url)
    }

    fn seen(&self) -> Vec<(HeaderMap, Value, Bytes)> {
        self.seen.lock().expect("a lock").clone()
    }

    async fn reach(&self, count: usize) -> Vec<(HeaderMap, Value, Bytes)> {
        for _ in 0..15_000 {
            if self.seen().len() >= count {
                return self.seen();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("sent {} times, not {count}: {:?}", self.seen().len(), self.seen());
    }
}

#[expect(clippy::disallowed_methods, reason = "a receiver of the test's own, gone with it")]
fn serve(listener: tokio::net::TcpListener, app: Router) {
    tokio::spawn(async move { axum::serve(listener, app).await });
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> (StatusCode, &'static str) {
    let value = serde_json::from_slice(&body).unwrap_or_default();
    receiver.seen.lock().expect("a lock").push((headers, value, body));
    if receiver.hangs {
        std::future::pending::<()>().await;
    }
    let mut answers = receiver.answers.lock().expect("a lock");
    let answer = if answers.is_empty() { 200 } else { answers.remove(0) };
    (StatusCode::from_u16(answer).expect("a status"), receiver.says)
}

fn is_signed(secret: &str, headers: &HeaderMap, body: &[u8]) -> bool {
    let text = |name: &str| headers[name].to_str().expect("text").to_owned();
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signed = [format!("{}.{}.", text("webhook-id"), text("webhook-timestamp")).as_bytes(), body].concat();
    text("webhook-signature").split(' ').any(|one| {
        let one = one.strip_prefix("v1,").and_then(|one| BASE64_STANDARD.decode(one).ok());
        one.is_some_and(|one| hmac::verify(&key, &signed, &one).is_ok())
    })
}

/// A house with an operator, who looks by hand.
struct Watch {
    house: House,
}

impl Watch {
    async fn new(engine: &Engine) -> Watch {
        let shared = tempfile::tempdir().expect("a folder").keep();
        let config = CONFIG.replace("@DIR@", &shared.display().to_string());
        let plan = Plan { config, database: engine.url.clone(), ..Plan::default() };
        let house = House::with(plan).await;
        let new = NewAdminKey { name: "on call".to_owned(), expires_at: None, done: test() };
        house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
        Watch { house }
    }

    async fn try_it(&self, method: &str, path: &str, mut body: Value) -> (u16, Value) {
        let request = self.house.http.request(method.parse().expect("a method"), self.house.url(path));
        let request = request.bearer_auth(ADMIN);
        let request = match method {
            "GET" => request,
            _ => {
                body["reason"] = json!("a test");
                request.json(&body)
            }
        };
        let reply = request.send().await.expect("a reply");
        (reply.status().as_u16(), reply.json().await.unwrap_or_default())
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.try_it(method, path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    async fn place(&self, kind: &str, to: &str) -> String {
        let made = self.ask("POST", "/api/admin/alerts/places", json!({ "name": kind, "kind": kind, "to": to })).await;
        assert!(!made.to_string().contains("/hook"), "an address is not shown: {made}");
        made["place_id"].as_str().expect("an id").to_owned()
    }

    async fn rule(&self, places: &[&str], mut body: Value) -> String {
        body["places"] = if places.is_empty() { Value::Null } else { json!(places) };
        body["name"] = body["kind"].clone();
        let made = self.ask("POST", "/api/admin/alerts/rules", body).await;
        made["rule_id"].as_str().expect("an id").to_owned()
    }

    async fn look(&self) {
        look(&self.house.running().app).await.expect("looked");
    }

    /// What is in the list, the oldest first.
    async fn events(&self) -> Vec<(String, String)> {
        let page = self.ask("GET", "/api/admin/alerts/events?limit=500", json!({})).await;
        let word = |row: &Value, name: &str| row[name].as_str().expect("a word").to_owned();
        let rows = page["data"].as_array().expect("rows");
        rows.iter().rev().map(|row| (word(row, "what"), word(row, "subject"))).collect()
    }

    async fn firing(&self) -> usize {
        self.ask("GET", "/api/admin/alerts", json!({})).await["data"].as_array().expect("rows").len()
    }

    /// Nothing changes by looking again, on any replica.
    async fn steady(&self, count: usize) {
        for _ in 0..2 {
            self.look().await;
        }
        assert_eq!(self.events().await.len(), count);
    }

    async fn adjust(&self, id: &str, nano: i64) {
        let credit = Credit {
            id: id.to_owned(),
            account: self.house.account,
            kind: CreditKind::Adjust,
            pot: Pot::Paid,
            amount: Money::from_nano(nano),
            expires_at: None,
            reason: "test".to_owned(),
            actor: "test".to_owned(),
        };
        self.house.running().app.store.credit(credit).await.expect("adjusted");
    }
}

pub async fn a_balance_that_falls_is_sent_once_and_clears_once() {
    for engine in Engine::both().await {
        let watch = Watch::new(&engine).await;
        let app = watch.house.running().app.clone();
        let account = watch.house.account.to_string();
        let (receiver, url) = Receiver::start(&[], "").await;
        let place = watch.place("webhook", &url).await;
        let other = if engine.name == "postgres" { Some(second(&watch.house).await) } else { None };
        watch.rule(&[&place], json!({ "kind": "balance", "accounts": [account], "amount_nano_usd": 5 * USD })).await;
        watch.steady(0).await;
        watch.adjust("less", -6 * USD).await;
        // Both at the same moment.
        match &other {
            Some(other) => drop(tokio::join!(look(&app), look(&other.app))),
            None => drop(tokio::join!(look(&app), look(&app))),
        }
        watch.steady(1).await;
        let (headers, event, body) = receiver.reach(1).await.remove(0);
        let secret = watch.ask("GET", &format!("/api/admin/alerts/places/{place}/secret"), json!({})).await;
        assert!(is_signed(secret["secret"].as_str().expect("a secret"), &headers, &body));
        assert_eq!((&event["type"], &event["data"]["subject"]), (&json!("alert.firing"), &json!(account)));
        assert_eq!(headers["webhook-id"], event["id"].as_str().expect("an id"));
        assert!(event["data"]["message"].as_str().expect("words").contains("4 USD; the bound is 5 USD"), "{event}");
        assert_eq!(watch.firing().await, 1);
        // Just above the bound is not yet well.
        watch.adjust("a little", USD + USD / 5).await;
        watch.steady(1).await;
        watch.adjust("more", USD).await;
        watch.look().await;
        watch.steady(2).await;
        let (_, event, _) = receiver.reach(2).await.remove(1);
        assert_eq!(event["type"], "alert.cleared");
        assert_eq!(watch.firing().await, 0);
        while app.store.alerts_waiting().await.expect("read") > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(receiver.seen().len(), 2, "each once");
        if let Some(other) = other {
            other.stop().await;
        }
        watch.house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_rule_fires_and_clears() {
    for engine in Engine::both().await {
        let watch = Watch::new(&engine).await;
        let house = &watch.house;
        let store = &house.running().app.store;
        let account = house.account.to_string();
        // Spending.
        watch.rule(&[], json!({ "kind": "spend", "amount_nano_usd": 1, "window_minutes": 15 })).await;
        watch.rule(&[], json!({ "kind": "spend", "accounts": [account], "amount_nano_usd": 1 })).await;
        watch.steady(0).await;
        assert_eq!(house.ask("hello").await.status(), 200);
        house.quiet().await;
        watch.look().await;
        let mut expected = vec![("firing".to_owned(), "house".to_owned()), ("firing".to_owned(), account.clone())];
        assert_eq!(watch.events().await, expected, "{}", engine.name);
        house.later(7_200_000).await;
        watch.look().await;
        expected.extend([("cleared".to_owned(), "house".to_owned()), ("cleared".to_owned(), account.clone())]);
        assert_eq!(watch.events().await, expected);
        // Disks and certificates, as replicas say.
        watch.rule(&[], json!({ "kind": "disk", "bytes": 1_000 })).await;
        watch.rule(&[], json!({ "kind": "certificate", "days": 7 })).await;
        let now = house.running().app.world.now_ms();
        say_how_it_is(&house.running().app).await.expect("said");
        let facts = store.alert_facts("disk", now - 60_000).await.expect("read");
        assert!(facts.iter().any(|fact| fact.value > 1_000), "this disk is not full: {facts:?}");
        watch.steady(4).await;
        for (value, what) in [(999, "firing"), (1_200, "cleared")] {
            store.put_alert_fact("disk", "r2", value).await.expect("said");
            store.put_alert_fact("certificate", "r2", now + value * 600_000).await.expect("said");
            watch.look().await;
            expected.extend([(what.to_owned(), "r2".to_owned()), (what.to_owned(), "r2".to_owned())]);
            assert_eq!(watch.events().await, expected);
        }
        // Keys of operators.
        let rule = watch.rule(&[], json!({ "kind": "key_end", "days": 3 })).await;
        let new = NewAdminKey { name: "short".to_owned(), expires_at: Some(now + 86_400_000), done: test() };
        let key = store.create_admin_key(new, "ak-short").await.expect("a key");
        watch.look().await;
        expected.push(("firing".to_owned(), "operators".to_owned()));
        assert_eq!(watch.events().await, expected);
        store.revoke_admin_key(key.id, test()).await.expect("revoked");
        watch.look().await;
        expected.push(("cleared".to_owned(), "operators".to_owned()));
        assert_eq!(watch.events().await, expected);
        watch.ask("POST", &format!("/api/admin/alerts/rules/{rule}/remove"), json!({})).await;
        // The ledger: what an audit found, and that there was one at all.
        watch.rule(&[], json!({ "kind": "drift", "minutes": 180 })).await;
        for (found, what) in [(2, "firing"), (0, "cleared")] {
            store.put_alert_fact("drift", "ledger", found).await.expect("said");
            watch.look().await;
            expected.push((what.to_owned(), "house".to_owned()));
            assert_eq!(watch.events().await, expected);
        }
        // Tasks: how they are counted is a test of the store.
        watch.rule(&[], json!({ "kind": "unknown_tasks", "minutes": 5 })).await;
        watch.steady(expected.len()).await;
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_provider_fire_by_share_and_number() {
    for engine in Engine::both().await {
        let watch = Watch::new(&engine).await;
        let house = &watch.house;
        let app = &house.running().app;
        let refused = json!({ "name": "x", "kind": "faults", "provider": "nobdy" });
        assert_eq!(watch.try_it("POST", "/api/admin/alerts/rules", refused).await.0, 400);
        watch.rule(&[], json!({ "kind": "faults", "provider": "nobody", "percent": 50, "count": 3 })).await;
        for number in 1..=3 {
            let body = json!({ "model": "two-routes", "messages": [{ "role": "user", "content": "x" }] });
            assert_eq!(house.post(&body).send().await.expect("a reply").status(), 200);
            house.quiet().await;
            app.flush_health().await.expect("written");
            watch.look().await;
            assert_eq!(watch.firing().await, usize::from(number == 3), "{number} of {}", engine.name);
        }
        assert_eq!(watch.events().await, [("firing".to_owned(), "nobody".to_owned())]);
        house.later(3 * 3_600_000).await;
        watch.look().await;
        assert_eq!(watch.firing().await, 0, "nothing failed for hours");
        house.quiet().await;
    }
}

/// A place that answers 500, and one that is not there: tried again with the same id, within a
/// bound, while another one hears at once.
pub async fn places_that_fail_are_tried_again_and_given_up() {
    for engine in Engine::both().await {
        let watch = Watch::new(&engine).await;
        let app = watch.house.running().app.clone();
        let (failing, url) = Receiver::start(&[500; 20], "").await;
        let (well, well_url) = Receiver::start(&[], "ok").await;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let nobody = format!("http://{}/hook", listener.local_addr().expect("an address"));
        drop(listener);
        let mut places = Vec::new();
        for (kind, to) in [("webhook", &url), ("slack", &well_url), ("discord", &nobody)] {
            places.push(watch.place(kind, to).await);
        }
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let account = watch.house.account.to_string();
        let body = json!({ "kind": "balance", "accounts": [account], "amount_nano_usd": 5 * USD });
        watch.rule(&places, body).await;
        watch.adjust("less", -6 * USD).await;
        watch.look().await;
        well.reach(1).await;
        // Within five hours it is over; a reminder would come after a day.
        for step in 1..=30 {
            if app.store.alerts_waiting().await.expect("read") == 0 {
                break;
            }
            watch.house.clock.pass(step * 1_200_000);
            send_due(&app).await.expect("sent");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(app.store.alerts_waiting().await.expect("read"), 0, "given up");
        let ids: std::collections::BTreeSet<String> = failing
            .seen()
            .iter()
            .map(|(headers, ..)| headers["webhook-id"].to_str().expect("text").to_owned())
            .collect();
        assert_eq!((ids.len(), well.seen().len()), (1, 1));
        assert!((2..=8).contains(&failing.seen().len()), "{}", failing.seen().len());
        let page = watch.ask("GET", "/api/admin/alerts/events", json!({})).await;
        let first = page["data"].as_array().and_then(|rows| rows.last()).expect("an event").clone();
        let mut said: Vec<(&str, i64)> = first["deliveries"]
            .as_array()
            .expect("places")
            .iter()
            .map(|one| (one["outcome"].as_str().expect("a word"), one["tries"].as_i64().expect("a number")))
            .collect();
        said.sort_unstable();
        assert_eq!(said, [("delivered", 1), ("given_up", 8), ("given_up", 8)]);
        assert!(app.metrics.alerts.deliveries("given_up") >= 2);
        watch.house.clock.pass(0);
        watch.house.quiet().await;
    }
}

/// It has the message, and does not say so.
pub async fn a_slow_place_holds_up_nobody() {
    for engine in Engine::both().await {
        let watch = Watch::new(&engine).await;
        let app = watch.house.running().app.clone();
        let (slow, slow_url) = Receiver::hanging().await;
        let (well, well_url) = Receiver::start(&[], "ok").await;
        let (first, other) = (watch.place("slack", &slow_url).await, watch.place("slack", &well_url).await);
        watch.rule(&[&first, &other], json!({ "kind": "disk", "bytes": 1_000 })).await;
        app.store.put_alert_fact("disk", "r2", 1).await.expect("said");
        watch.look().await;
        slow.reach(1).await;
        well.reach(1).await;
        // The slow one is in somebody's hands.
        while app.store.alerts_waiting().await.expect("read") > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // What comes meanwhile reaches the other one; the slow one has one at a time.
        app.store.put_alert_fact("disk", "r3", 1).await.expect("said");
        watch.look().await;
        well.reach(2).await;
        assert_eq!(slow.seen().len(), 1);
        watch.house.quiet().await;
    }
}

/// Each chat in its own form, by hand; a refusal with 200 is a refusal; mail is queued.
#[tokio::test(flavor = "multi_thread")]
async fn a_test_says_what_came_back() {
    for engine in Engine::both().await {
        let watch = Watch::new(&engine).await;
        let said = "[Tollgate] TEST: test: this is a test; nothing is wrong";
        for (kind, says, outcome, path) in [
            ("slack", "ok", "delivered", "/text"),
            ("discord", "", "delivered", "/content"),
            ("feishu", "{\"code\":0}", "delivered", "/content/text"),
            ("feishu", "{\"code\":19024,\"msg\":\"Key Words Not Found\"}", "refused", "/content/text"),
            ("dingtalk", "{\"errcode\":0}", "delivered", "/text/content"),
            ("wecom", "{\"errcode\":93000}", "refused", "/text/content"),
            ("telegram", "{\"ok\":true}", "delivered", "/text"),
        ] {
            let (receiver, url) = Receiver::start(&[], says).await;
            let place = watch.place(kind, &url).await;
            let tried = watch.ask("POST", &format!("/api/admin/alerts/places/{place}/test"), json!({})).await;
            assert_eq!((&tried["outcome"], &tried["status"]), (&json!(outcome), &json!(200)), "{kind} {says}");
            assert_eq!(receiver.seen()[0].1.pointer(path), Some(&json!(said)), "{kind}");
        }
        let place = watch.place("mail", "ops@example.com").await;
        let rule = watch.rule(&[&place], json!({ "kind": "disk", "bytes": 1 })).await;
        let tried = watch.ask("POST", &format!("/api/admin/alerts/rules/{rule}/test"), json!({})).await;
        assert_eq!(tried["data"][0]["outcome"], "queued");
        let letter = letters(&watch.house, 1).await.remove(0);
        assert!(
            letter.contains("To: ops@example.com") && letter.contains("Subject: Alert: [Tollgate] TEST: disk"),
            "{letter}"
        );
        // It fires, and a letter goes the same way.
        let rule = watch.rule(&[&place], json!({ "kind": "disk", "bytes": 1_000 })).await;
        watch.house.running().app.store.put_alert_fact("disk", "r2", 1).await.expect("said");
        let silence = format!("/api/admin/alerts/rules/{rule}/silence");
        let until = watch.house.running().app.world.now_ms() + 3_600_000;
        watch.ask("POST", &silence, json!({ "until_ms": until })).await;
        watch.look().await;
        assert_eq!(watch.firing().await, 1);
        assert_eq!(watch.house.running().app.store.alerts_waiting().await.expect("read"), 0, "silence");
        watch.ask("POST", &silence, json!({ "until_ms": null })).await;
        watch.look().await;
        letters(&watch.house, 2).await;
        watch.house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_and_the_webhook_hear_of_a_low_balance_once() {
    for engine in Engine::both().await {
        let watch = Watch::new(&engine).await;
        let house = &watch.house;
        let app = &house.running().app;
        // In the morning, so that all of it is one day.
        let morning = 86_400_000 - app.world.now_ms().rem_euclid(86_400_000) + 21_600_000;
        house.later(morning).await;
        person(house, "ada@example.com", None, Some((house.account, AccountRole::Owner))).await;
        person(house, "bob@example.com", None, Some((house.account, AccountRole::Viewer))).await;
        let (receiver, url) = Receiver::start(&[503], "").await;
        app.store.set_webhook(house.account, Some(url), test()).await.expect("set");
        let manage = house.new_key(|key| key.scope = KeyScope::Manage).await;
        let put = async |key: &str, body: Value| {
            let request = house.http.put(house.url("/api/account/notices")).bearer_auth(key);
            request.json(&body).send().await.expect("a reply")
        };
        for (body, field) in [
            (json!({}), "threshold_nano_usd"),
            (json!({ "threshold_nano_usd": 0 }), "threshold_nano_usd"),
            (json!({ "threshold_nano_usd": 5, "post": true }), "post"),
        ] {
            let (status, error) = error_of(put(&manage, body).await).await;
            assert_eq!((status, &error["param"]), (400, &json!(field)), "{error}");
        }
        assert_eq!(put(&house.key, json!({ "threshold_nano_usd": 5 })).await.status(), 403, "a key that buys");
        assert_eq!(put(&manage, json!({ "threshold_nano_usd": 5 * USD })).await.status(), 200);
        look_at_notices(app, None).await.expect("looked");
        assert_eq!(app.store.mail_waiting().await.expect("read"), 0);
        watch.adjust("less", -6 * USD).await;
        drop(tokio::join!(look_at_notices(app, None), look_at_notices(app, None)));
        let letter = letters(house, 1).await.remove(0);
        assert!(letter.contains("To: ada@example.com") && letter.contains("Subject: Your balance is low"), "{letter}");
        receiver.reach(1).await;
        house.later(morning + 10_000).await;
        send_due(app).await.expect("sent");
        let seen = receiver.reach(2).await;
        let (headers, event, body) = &seen[1];
        let secret: Value = house.get("/v1/webhooks/secret").send().await.expect("a reply").json().await.expect("JSON");
        assert!(is_signed(secret["secret"].as_str().expect("a secret"), headers, body));
        assert_eq!(seen[0].0["webhook-id"], headers["webhook-id"]);
        assert_eq!((&event["type"], &event["data"]["balance_nano_usd"]), (&json!("balance.low"), &json!(4 * USD)));
        // Up and down again all day: three in all, and not one in a loop.
        for round in 0..6 {
            for amount in [3 * USD, -3 * USD] {
                watch.adjust(&format!("{round} {amount}"), amount).await;
                look_at_notices(app, None).await.expect("looked");
                look_at_notices(app, None).await.expect("looked");
            }
        }
        letters(house, 3).await;
        let shown =
            house.http.get(house.url("/api/account/notices")).bearer_auth(&manage).send().await.expect("a reply");
        let shown: Value = shown.json().await.expect("JSON");
        assert_eq!((&shown["sent_today"], shown["low_since_ms"].is_i64()), (&json!(3), true), "{shown}");
        receiver.reach(4).await;
        // Whoever wants nothing hears nothing.
        assert_eq!(put(&manage, json!({ "threshold_nano_usd": null })).await.status(), 200);
        house.later(morning + 86_400_000).await;
        look_at_notices(app, None).await.expect("looked");
        assert_eq!(letters(house, 3).await.len(), 3);
        house.quiet().await;
    }
}

/// An address that leads inside only when it is looked up is not reached: as with webhooks of
/// customers, and with the same words.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_inside_is_never_reached() {
    let house = House::with(Plan {
        names: Some(Arc::new(|name| (name == "hooks.example").then(|| vec![IpAddr::from([127, 0, 0, 1])]))),
        ..Plan::default()
    })
    .await;
    let new = NewAdminKey { name: "on call".to_owned(), expires_at: None, done: test() };
    house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
    let watch = Watch { house };
    for to in [
        "https://10.0.0.7/hook",
        "https://[::1]/hook",
        "https://user:x@hooks.example/hook",
        "http://hooks.example/hook",
    ] {
        let body = json!({ "name": "x", "kind": "feishu", "to": to });
        let (status, error) = watch.try_it("POST", "/api/admin/alerts/places", body).await;
        assert_eq!((status, &error["error"]["param"]), (400, &json!("to")), "{to}: {error}");
        assert!(!error.to_string().contains("/hook"), "{error}");
    }
    let place = watch.place("webhook", "https://hooks.example/hook").await;
    let tried = watch.ask("POST", &format!("/api/admin/alerts/places/{place}/test"), json!({})).await;
    assert_eq!((&tried["outcome"], &tried["status"]), (&json!("not_reached"), &Value::Null));
}
