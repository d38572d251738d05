//! Webhooks: sent at least once with the same id, signed so that the account can verify it, never
//! to an address inside.

use super::table::{finished, quick};
use crate::house::{House, Plan, error_of};
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
use tollgate_upstream::NameSource;

/// A receiver: answers with these, then with 204, and remembers.
#[derive(Clone, Default)]
struct Receiver {
    answers: Arc<Mutex<Vec<u16>>>,
    seen: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    /// It takes what it is sent and never answers.
    hangs: Arc<Mutex<bool>>,
}

impl Receiver {
    async fn start(answers: &[u16]) -> (Receiver, String) {
        let receiver = Receiver { answers: Arc::new(Mutex::new(answers.to_vec())), ..Receiver::default() };
        let app = Router::new().route("/hook", post(receive)).with_state(receiver.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        serve(listener, app);
        (receiver, url)
    }

    fn seen(&self) -> Vec<(HeaderMap, Bytes)> {
        self.seen.lock().expect("a lock").clone()
    }

    async fn reach(&self, count: usize) -> Vec<(HeaderMap, Bytes)> {
        for _ in 0..6_000 {
            if self.seen().len() >= count {
                return self.seen();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("sent {} times, not {count}", self.seen().len());
    }
}

#[expect(clippy::disallowed_methods, reason = "a receiver of the test's own, gone with it")]
fn serve(listener: tokio::net::TcpListener, app: Router) {
    tokio::spawn(async move { axum::serve(listener, app).await });
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    receiver.seen.lock().expect("a lock").push((headers, body));
    let hangs = *receiver.hangs.lock().expect("a lock");
    if hangs {
        std::future::pending::<()>().await;
    }
    let mut answers = receiver.answers.lock().expect("a lock");
    let answer = if answers.is_empty() { 204 } else { answers.remove(0) };
    StatusCode::from_u16(answer).expect("a status")
}

async fn create(house: &House, prompt: &str, url: &str) -> reqwest::Response {
    let body = json!({ "model": "kling-v3", "prompt": prompt, "webhook_url": url });
    house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await.expect("a reply")
}

fn private() -> Plan {
    Plan { config: "[webhooks]\nprivate = true\n".to_owned(), ..Plan::default() }
}

/// As docs/video.md says it is done.
fn is_signed(secret: &str, headers: &HeaderMap, body: &[u8]) -> bool {
    let text = |name: &str| headers[name].to_str().expect("text").to_owned();
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signed = [format!("{}.{}.", text("webhook-id"), text("webhook-timestamp")).as_bytes(), body].concat();
    let given = text("webhook-signature");
    given.split(' ').any(|one| {
        let one = one.strip_prefix("v1,").and_then(|one| BASE64_STANDARD.decode(one).ok());
        one.is_some_and(|one| hmac::verify(&key, &signed, &one).is_ok())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn sent_until_it_is_taken_with_one_id() {
    let house = quick(private()).await;
    let (receiver, url) = Receiver::start(&[500, 302]).await;
    let task: Value = create(&house, "p", &url).await.json().await.expect("JSON");
    let id = task["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
    assert!(task["warnings"].is_null(), "`webhook_url` is a field of ours: {task}");
    finished(&house, &id).await;
    receiver.reach(1).await;
    let mut later = 0;
    for count in [2, 3] {
        // The next try is due by our clock, not by waiting for it; how late it was put off is not
        // known, so step by step.
        while receiver.seen().len() < count && later < 600_000 {
            later += 10_000;
            house.clock.pass(later);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        receiver.reach(count).await;
    }
    let secret: Value = house.get("/v1/webhooks/secret").send().await.expect("a reply").json().await.expect("JSON");
    let secret = secret["secret"].as_str().expect("a secret").to_owned();
    for (headers, body) in receiver.seen() {
        assert!(is_signed(&secret, &headers, &body));
        assert!(!is_signed(&secret, &headers, b"{}"));
        let event: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(headers["webhook-id"], event["id"].as_str().expect("an id"));
        assert_eq!((&event["object"], &event["type"]), (&json!("event"), &json!("video.completed")));
        assert_eq!((&event["data"]["id"], &event["data"]["status"]), (&json!(id), &json!("completed")));
    }
    // Taken is taken.
    house.clock.pass(86_400_000);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(receiver.seen().len(), 3);
    house.clock.pass(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_notified_and_a_receiver_can_have_enough() {
    let house = quick(private()).await;
    let (receiver, url) = Receiver::start(&[410]).await;
    let task: Value = create(&house, "[[sim:moderation queue=0 run=0]]", &url).await.json().await.expect("JSON");
    finished(&house, task["id"].as_str().expect("an id")).await;
    let (_, body) = receiver.reach(1).await.remove(0);
    let event: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((&event["type"], &event["data"]["status"]), (&json!("video.failed"), &json!("failed")));
    house.clock.pass(86_400_000);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(receiver.seen().len(), 1, "gone means gone");
    house.clock.pass(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_inside_are_refused() {
    let house = quick(Plan::default()).await;
    let (receiver, inside) = Receiver::start(&[]).await;
    for url in
        [&*inside, "https://127.0.0.1/hook", "https://localhost/hook", "https://[::1]/hook", "http://example.com/hook"]
    {
        let (status, error) = error_of(create(&house, "p", url).await).await;
        let seen = (status, error["code"].as_str(), error["param"].as_str());
        assert_eq!(seen, (400, Some("invalid_parameter"), Some("webhook_url")), "{url}");
    }
    assert!(house.sim.received().is_empty() && receiver.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_account_has_a_secret_of_its_own() {
    let house = quick(Plan::default()).await;
    let store = &house.running().app.store;
    let new = tollgate_store::NewAccount { name: "other".to_owned(), ..tollgate_store::NewAccount::default() };
    let account = store.create_account(new).await.expect("an account").id;
    let other = house.new_key(|key| key.account = account).await;
    let secret = async |key: &str| -> Value {
        let reply = house.http.get(house.url("/v1/webhooks/secret")).bearer_auth(key).send().await.expect("a reply");
        reply.json().await.expect("JSON")
    };
    let (own, theirs) = (secret(&house.key).await, secret(&other).await);
    assert!(own["secret"].as_str().is_some_and(|text| text.starts_with("whsec_") && text.len() > 40), "{own}");
    assert_ne!(own["secret"], theirs["secret"]);
    assert_eq!(own, secret(&house.key).await, "and keeps it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_can_be_notified_of_all_its_tasks() {
    let mut house = quick(private()).await;
    let (receiver, url) = Receiver::start(&[]).await;
    let file = house.dir.join("tollgate.toml");
    let config = std::fs::read_to_string(&file).expect("read");
    let own = format!("[webhooks.account.{}]\nurl = \"{url}\"\n", house.account);
    std::fs::write(&file, format!("{config}{own}")).expect("written");
    house.restart().await;
    let make = async |named: Option<&str>| -> Value {
        let body = json!({ "model": "sora-2", "prompt": "[[sim:queue=0 run=0]]", "webhook_url": named });
        let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
        let task: Value = reply.expect("a reply").json().await.expect("JSON");
        finished(&house, task["id"].as_str().expect("an id")).await
    };
    // What the request names comes first, then what was set for the account, then what the file
    // says.
    let (own, own_url) = Receiver::start(&[]).await;
    let (named, named_url) = Receiver::start(&[]).await;
    let set = async |url: Option<String>| {
        let app = &house.running().app;
        app.store.set_webhook(house.account, url, Default::default()).await.expect("written").expect("the account");
        app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    };
    let notified = async |receiver: &Receiver, count: usize, task: &Value| {
        let (_, body) = receiver.reach(count).await.remove(count - 1);
        let event: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(event["data"]["id"], task["id"]);
    };
    notified(&receiver, 1, &make(None).await).await;
    set(Some(own_url)).await;
    notified(&own, 1, &make(None).await).await;
    notified(&named, 1, &make(Some(&named_url)).await).await;
    set(None).await;
    notified(&receiver, 2, &make(None).await).await;
    assert_eq!((receiver.seen().len(), own.seen().len(), named.seen().len()), (2, 1, 1), "one of them each time");
}

/// A public name that leads inside, as a customer's own name server can make it: nobody is
/// connected to, and it is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_inside_is_not_reached() {
    let inside = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = inside.local_addr().expect("an address").port();
    let names: NameSource = Arc::new(|name| (name == "hook.example").then(|| vec![IpAddr::from([127, 0, 0, 1])]));
    let house = quick(Plan { names: Some(names), ..Plan::default() }).await;
    let url = format!("https://hook.example:{port}/hook");
    let task: Value = create(&house, "[[sim:queue=0 run=0]]", &url).await.json().await.expect("JSON");
    finished(&house, task["id"].as_str().unwrap_or_else(|| panic!("{task}"))).await;
    let connected = tokio::time::timeout(Duration::from_secs(20), async {
        tokio::select! {
            connected = inside.accept() => Some(connected),
            () = failed(&house) => None,
        }
    });
    assert!(connected.await.expect("tried within 20 s").is_none(), "it went inside");
    let connected = tokio::time::timeout(Duration::from_millis(300), inside.accept()).await;
    assert!(connected.is_err(), "and not after that");
}

/// Waits until a try has failed.
async fn failed(house: &House) {
    loop {
        let page = house.get("/metrics").send().await.expect("a page").text().await.expect("text");
        if page
            .lines()
            .any(|line| line.starts_with("tollgate_webhooks_total{outcome=\"failed\"}") && !line.ends_with(" 0"))
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whoever deletes a task before its webhook got through is notified of its end all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_deleted_is_notified_all_the_same() {
    let house = quick(private()).await;
    let (receiver, url) = Receiver::start(&[500]).await;
    let task: Value = create(&house, "[[sim:queue=0 run=0]]", &url).await.json().await.expect("JSON");
    let id = task["id"].as_str().expect("an id").to_owned();
    finished(&house, &id).await;
    receiver.reach(1).await;
    let gone = house.http.delete(house.url(&format!("/v1/videos/{id}"))).bearer_auth(&house.key).send().await;
    assert_eq!(gone.expect("a reply").status(), 200);
    let mut later = 0;
    while receiver.seen().len() < 2 && later < 600_000 {
        later += 10_000;
        house.clock.pass(later);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let (headers, body) = receiver.reach(2).await.remove(1);
    let event: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((&event["type"], &event["data"]["id"]), (&json!("video.completed"), &json!(id)));
    assert_eq!(event["data"]["status"], "completed");
    assert_eq!(headers["webhook-id"], receiver.seen()[0].0["webhook-id"], "the same event");
    house.clock.pass(0);
}

/// Receivers that never answer keep a quarter of the places, all of one account's; whoever else is
/// to be notified is notified meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn receivers_that_hang_keep_nobody_else_waiting() {
    let config = "[webhooks]\nprivate = true\npatience = \"300s\"\nat_once = 4\n".to_owned();
    let house = quick(Plan { config, ..Plan::default() }).await;
    let (deaf, url) = Receiver::start(&[]).await;
    *deaf.hangs.lock().expect("a lock") = true;
    for _ in 0..6 {
        let task: Value = create(&house, "[[sim:queue=0 run=0]]", &url).await.json().await.expect("JSON");
        finished(&house, task["id"].as_str().expect("an id")).await;
    }
    deaf.reach(1).await;
    let (_, key) = house.stranger("10").await;
    let (receiver, url) = Receiver::start(&[]).await;
    for count in 1..=2 {
        let body = json!({ "model": "kling-v3", "prompt": "[[sim:queue=0 run=0]]", "webhook_url": url });
        let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&key).json(&body).send().await;
        assert_eq!(reply.expect("a reply").status(), 200);
        receiver.reach(count).await;
    }
    assert_eq!(deaf.seen().len(), 1, "its share of the places");
}
