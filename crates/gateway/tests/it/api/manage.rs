//! /api/account/*: an account manages itself, on both engines.

use crate::engine::Engine;
use crate::house::{House, Plan, call_id, chat};
use reqwest::Method;
use reqwest::header::{ETAG, HeaderMap};
use serde_json::{Value, json};
use tollgate_store::{Attribution, KeyScope, Limits, NewAdminKey, NewKey};

const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";

/// A house and whoever manages its account.
struct Desk {
    house: House,
    manage: String,
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    fn tag(&self) -> String {
        self.headers.get(ETAG).expect("a tag").to_str().expect("text").to_owned()
    }

    fn error(&self) -> (u16, &str, &str) {
        let word = |name: &str| self.body["error"][name].as_str().unwrap_or_default();
        (self.status, word("code"), word("param"))
    }

    fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }
}

impl Desk {
    async fn new(database: String) -> Desk {
        let house = House::with(Plan { database, ..Plan::default() }).await;
        let done = Attribution::by("test", "a test");
        let new = NewAdminKey { name: "night shift".to_owned(), expires_at: None, done };
        house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
        let manage = house.new_key(|key| key.scope = KeyScope::Manage).await;
        Desk { house, manage }
    }

    async fn send(&self, key: &str, method: &str, path: &str, body: Option<Value>, headers: &[(&str, &str)]) -> Answer {
        let method: Method = method.parse().expect("a method");
        let mut request = self.house.http.request(method, self.house.url(path)).bearer_auth(key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = &body {
            request = request.json(body);
        }
        let reply = request.send().await.expect("a reply");
        let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
        let text = reply.text().await.expect("text");
        Answer { status, headers, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(&self.manage, "GET", path, None, &[]).await
    }

    async fn change(&self, method: &str, path: &str, body: Value, headers: &[(&str, &str)]) -> Answer {
        self.send(&self.manage, method, path, Some(body), headers).await
    }

    async fn admin(&self, method: &str, path: &str, body: Option<Value>, headers: &[(&str, &str)]) -> Answer {
        self.send(ADMIN, method, path, body, headers).await
    }

    async fn call(&self, secret: &str) -> reqwest::Response {
        let url = self.house.url("/v1/chat/completions");
        self.house.http.post(url).bearer_auth(secret).json(&chat("[[sim:tokens=2]]")).send().await.expect("a reply")
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_manages_itself() {
    for engine in Engine::both().await {
        let desk = Desk::new(engine.url.clone()).await;
        versions(&desk).await;
        let (key, secret) = keys(&desk).await;
        usage(&desk, &secret).await;
        rotation(&desk, &key, &secret).await;
        webhooks(&desk).await;
        audit(&desk, &key).await;
        operators(&desk, &key).await;
        desk.house.quiet().await;
    }
}

/// A change is for the version that was read: of two at once, one is told to read again.
async fn versions(desk: &Desk) {
    let read = desk.get("/api/account").await;
    let tag = read.tag();
    assert_eq!(read.ok()["account_id"], json!(desk.house.account));
    let body = json!({ "name": "Ada's shop" });
    assert_eq!(desk.change("PATCH", "/api/account", body.clone(), &[]).await.error().1, "precondition_required");
    let changed = desk.change("PATCH", "/api/account", body.clone(), &[("if-match", &tag)]).await;
    assert_ne!(changed.tag(), tag);
    assert_eq!(changed.ok()["name"], "Ada's shop");
    let again = desk.change("PATCH", "/api/account", json!({ "name": "x" }), &[("if-match", &tag)]).await;
    assert_eq!(again.error(), (412, "precondition_failed", "If-Match"));
    let unknown = desk.change("PATCH", "/api/account", json!({ "groups": ["vip"] }), &[("if-match", "*")]).await;
    assert_eq!(unknown.error(), (400, "unknown_parameter", "groups"), "what operators decide");
    let tag = desk.get("/api/account").await.tag();
    let name = |name: &str| desk.change("PATCH", "/api/account", json!({ "name": name }), &[]);
    drop(name("unsent"));
    let headers = [("if-match", tag.as_str())];
    let (one, other) = tokio::join!(
        desk.change("PATCH", "/api/account", json!({ "name": "one" }), &headers),
        desk.change("PATCH", "/api/account", json!({ "name": "other" }), &headers),
    );
    let mut both = [one.status, other.status];
    both.sort_unstable();
    assert_eq!(both, [200, 412], "no update is lost");
    let path = format!("/api/admin/accounts/{}", desk.house.account);
    let rename = json!({ "name": "x", "reason": "y" });
    let stale = desk.admin("PATCH", &path, Some(rename), &[("if-match", &tag)]).await;
    assert_eq!(stale.error().1, "precondition_failed", "operators too");
}

/// Keys with all they can have; a repeated request makes one, and shows its secret once.
async fn keys(desk: &Desk) -> (String, String) {
    let wanted = json!({ "name": "app", "models": ["plain"], "limit_total_nano_usd": 1_000_000_000 });
    let headers = [("idempotency-key", "form-1")];
    let made = desk.change("POST", "/api/account/keys", wanted.clone(), &headers).await.ok();
    let again = desk.change("POST", "/api/account/keys", wanted, &headers).await.ok();
    assert_eq!((&made["key_id"], &again["secret"]), (&again["key_id"], &json!(null)));
    assert_eq!((&made["scope"], &made["limits"]["total_nano_usd"]), (&json!("call"), &json!(1_000_000_000)));
    let other = desk.change("POST", "/api/account/keys", json!({ "name": "b" }), &headers).await;
    assert_eq!(other.error().1, "idempotency_conflict");
    let same = desk.admin("GET", "/api/admin/admin-keys", None, &[]).await;
    assert_eq!(same.status, 200);
    let scope = desk.change("POST", "/api/account/keys", json!({ "name": "b", "scope": "manage" }), &[]).await;
    assert_eq!(scope.error(), (400, "unknown_parameter", "scope"), "a key that manages makes none of its kind");
    let listed = desk.get("/api/account/keys?limit=500").await.ok();
    let rows = listed["data"].as_array().expect("rows");
    assert_eq!(rows.iter().filter(|row| row["name"] == "app").count(), 1);
    assert!(!listed.to_string().contains(&text(&made["secret"])));
    let (id, secret) = (text(&made["key_id"]), text(&made["secret"]));
    let path = format!("/api/account/keys/{id}");
    let tag = text(&rows.iter().find(|row| row["key_id"] == id.as_str()).expect("it")["etag"]);
    let change = json!({ "name": "app 2", "limit_day_nano_usd": 5_000_000, "expires_at_ms": null });
    let changed = desk.change("PATCH", &path, change, &[("if-match", &tag)]).await.ok();
    assert_eq!((&changed["name"], &changed["limits"]["day_nano_usd"]), (&json!("app 2"), &json!(5_000_000)));
    let stale = desk.change("PATCH", &path, json!({ "name": "x" }), &[("if-match", &tag)]).await;
    assert_eq!(stale.error().0, 412);
    let own = rows.iter().find(|row| row["scope"] == "manage").expect("its own");
    let lifted = json!({ "cidrs": null });
    let path = format!("/api/account/keys/{}", text(&own["key_id"]));
    let lifted = desk.change("PATCH", &path, lifted, &[("if-match", "*")]).await;
    assert_eq!(lifted.error(), (403, "key_scope", ""), "it cannot lift what it is held to");
    let (stranger, _) = desk.house.stranger("1").await;
    let foreign = desk.house.running().app.store.keys(stranger).await.expect("keys")[0].id;
    for path in [format!("/api/account/keys/{foreign}/revoke"), format!("/api/account/keys/{foreign}/rotate")] {
        assert_eq!(desk.send(&desk.manage, "POST", &path, None, &[]).await.error().0, 404, "another's");
    }
    (id, secret)
}

/// The usage log by what it is about.
async fn usage(desk: &Desk, secret: &str) {
    let first = desk.call(secret).await;
    assert_eq!(first.status(), 200);
    let second = desk.call(&desk.house.key).await;
    let (first, second) = (call_id(&first).to_string(), call_id(&second).to_string());
    desk.house.quiet().await;
    let key = |row: &Value| text(&row["key_id"]);
    let all = desk.get("/api/account/usage?limit=1").await.ok();
    assert_eq!((&all["data"][0]["call_id"], &all["has_more"]), (&json!(second), &json!(true)));
    let next = desk.get(&format!("/api/account/usage?limit=1&before={}", text(&all["next_before"]))).await.ok();
    assert_eq!(next["data"][0]["call_id"], first.as_str());
    let own = key(&next["data"][0]);
    let of_key = desk.get(&format!("/api/account/usage?key={own}&model=plain&ending=answered")).await.ok();
    let calls: Vec<&Value> = of_key["data"].as_array().expect("rows").iter().map(|row| &row["call_id"]).collect();
    assert_eq!(calls, [first.as_str()]);
    assert_eq!(desk.get("/api/account/usage?model=other").await.ok()["data"], json!([]));
    assert_eq!(
        desk.get(&format!("/api/account/usage?call_id={first}")).await.ok()["data"][0]["call_id"],
        first.as_str()
    );
    assert_eq!(desk.get("/api/account/usage?colour=red").await.error(), (400, "unknown_parameter", "colour"));
    let one = desk.get(&format!("/api/account/usage/{first}")).await.ok();
    assert!(one["calculation"].is_object(), "{one}");
    assert_eq!(
        desk.get(&format!("/api/account/usage/{first}/receipt")).await.ok()["receipt"]["call_id"],
        first.as_str()
    );
    let sums = desk.get("/api/account/usage/sums?from=2020-01-01&by=key").await.ok();
    assert_eq!(sums["totals"]["requests"], 2);
    let lines = desk.get("/api/account/usage/export?from=2020-01-01&format=csv").await;
    assert_eq!((lines.status, text(&lines.body).lines().count()), (200, 3));
    for path in
        ["/api/account/history", "/api/account/expiring", "/api/account/tasks?limit=2", "/api/account/webhooks/secret"]
    {
        desk.get(path).await.ok();
    }
}

/// A new secret works at once and the one before until its time is over.
async fn rotation(desk: &Desk, key: &str, secret: &str) {
    let path = format!("/api/account/keys/{key}/rotate");
    let rotated = desk.change("POST", &path, json!({ "grace_seconds": 3_600 }), &[]).await.ok();
    let newer = text(&rotated["secret"]);
    let until = rotated["former_secret_until_ms"].as_i64().expect("a time");
    assert!(until > desk.house.running().app.world.now_ms());
    assert_eq!(
        (desk.call(secret).await.status(), desk.call(&newer).await.status()),
        (200.into_status(), 200.into_status())
    );
    let ended = desk.change("POST", &path, json!({ "grace_seconds": 0 }), &[]).await.ok();
    let newest = text(&ended["secret"]);
    assert_eq!(desk.call(&newer).await.status(), 401, "at once");
    assert_eq!(desk.call(secret).await.status(), 200, "it has its own time");
    assert_eq!(desk.call(&newest).await.status(), 200);
    let spent = desk.get("/api/account/keys").await.ok();
    let row = spent["data"].as_array().expect("rows").iter().find(|row| row["key_id"] == key).expect("it").clone();
    assert!(row["spent_nano_usd"].as_i64() > Some(0), "one key, one count: {row}");
    desk.house.quiet().await;
    let revoked = desk.send(&desk.manage, "POST", &format!("/api/account/keys/{key}/revoke"), None, &[]).await.ok();
    assert!(revoked["revoked_at_ms"].is_i64());
    for old in [secret, &newest] {
        assert_eq!(desk.call(old).await.status(), 401, "revoked with all its secrets");
    }
    let gone = desk.change("POST", &path, json!({}), &[]).await;
    assert_eq!(gone.error().0, 404, "a revoked key has no new secret");
}

trait IntoStatus {
    fn into_status(self) -> reqwest::StatusCode;
}

impl IntoStatus for u16 {
    fn into_status(self) -> reqwest::StatusCode {
        reqwest::StatusCode::from_u16(self).expect("a status")
    }
}

async fn webhooks(desk: &Desk) {
    let secret_path = "https://user:hunter2@a.example/hook?token=hunter3";
    let set = desk
        .change("PUT", "/api/account/webhooks", json!({ "webhook_url": "https://a.example/h?t=hunter3" }), &[])
        .await;
    assert_eq!(set.ok()["webhook_url"], "https://a.example/h?t=hunter3", "{secret_path}");
    assert_eq!(desk.get("/api/account/webhooks/deliveries").await.ok()["data"], json!([]));
    let path = "/api/account/webhooks/deliveries/task_00000000000000000000000000/resend";
    assert_eq!(desk.send(&desk.manage, "POST", path, None, &[]).await.error().0, 404);
}

/// What was done stands in the log, with who, what and the request; secrets and the house's own
/// reasons do not.
async fn audit(desk: &Desk, key: &str) {
    let path = format!("/api/admin/accounts/{}", desk.house.account);
    let limit = json!({ "limit_day_nano_usd": 50_000_000_000_i64, "reason": "looks like fraud" });
    let changed = desk.admin("PATCH", &path, Some(limit), &[]).await;
    let request = changed.headers.get("x-request-id").expect("a name").to_str().expect("text").to_owned();
    changed.ok();
    let topup = json!({ "amount_nano_usd": 1_000, "reference": "p-77", "reason": "paid" });
    desk.admin("POST", &format!("{path}/topups"), Some(topup), &[]).await.ok();
    let own = desk.get("/api/account/audit?limit=500").await.ok();
    let shown = own.to_string();
    assert!(!shown.contains("fraud") && !shown.contains("night shift") && !shown.contains("hunter3"), "{shown}");
    let actions: Vec<String> = own["data"].as_array().expect("rows").iter().map(|row| text(&row["action"])).collect();
    for action in
        ["account.update", "key.create", "key.update", "key.rotate", "key.revoke", "account.webhook", "credit.top_up"]
    {
        assert!(actions.iter().any(|one| one == action), "{action}: {actions:?}");
    }
    let of_key = desk.get(&format!("/api/account/audit?subject={key}&action=key.update")).await.ok();
    assert_eq!(of_key["data"].as_array().map(Vec::len), Some(1));
    assert!(text(&of_key["data"][0]["detail"]).starts_with("name: app -> app 2"), "{of_key}");
    assert!(text(&of_key["data"][0]["actor"]).contains("(key_") && of_key["data"][0]["request_id"].is_string());
    assert_eq!(desk.get("/api/account/audit?actor=x").await.error(), (400, "unknown_parameter", "actor"));
    let whole =
        desk.admin("GET", &format!("/api/admin/audit?account={}&limit=2", desk.house.account), None, &[]).await.ok();
    assert_eq!((&whole["data"][0]["action"], &whole["data"][0]["reason"]), (&json!("credit.top_up"), &json!("paid")));
    assert_eq!(
        (&whole["data"][1]["reason"], &whole["data"][1]["request_id"]),
        (&json!("looks like fraud"), &json!(request))
    );
    let before = whole["next_before"].as_i64().expect("more");
    let next = desk.admin("GET", &format!("/api/admin/audit?before={before}&limit=1"), None, &[]).await.ok();
    assert!(next["data"][0]["seq"].as_i64() < Some(before));
    assert_eq!(desk.admin("GET", "/api/admin/audit?who=me", None, &[]).await.error().1, "unknown_parameter");
}

/// What operators look at.
async fn operators(desk: &Desk, _key: &str) {
    let account = desk.house.account.to_string();
    let calls = desk.get("/api/account/usage?limit=1").await.ok();
    let prefix: String = desk.house.key.chars().take(7).collect();
    let name = text(&desk.get("/api/account").await.ok()["name"]);
    for wanted in [account.clone(), text(&calls["data"][0]["call_id"]), prefix, name.to_uppercase()] {
        let found = desk.admin("GET", &format!("/api/admin/search?q={wanted}"), None, &[]).await.ok();
        let ids: Vec<&str> =
            found["data"].as_array().expect("rows").iter().filter_map(|row| row["account_id"].as_str()).collect();
        assert!(ids.contains(&account.as_str()), "{wanted}: {found}");
    }
    let providers = desk.admin("GET", "/api/admin/providers", None, &[]).await.ok();
    let sim = providers["data"].as_array().expect("rows").iter().find(|row| row["name"] == "sim").expect("it");
    assert!(sim["models"].as_i64() > Some(0) && sim["paused"] == false, "{sim}");
    let settings = desk.admin("GET", "/api/admin/settings", None, &[]).await.ok();
    assert!(["sqlite", "postgres"].contains(&settings["database"].as_str().unwrap_or_default()), "{settings}");
    let state = desk.admin("GET", "/api/admin/ledger/state", None, &[]).await.ok();
    assert_eq!((&state["breaches"], &state["open_holds"]), (&json!(0), &json!(0)));
    let begun =
        desk.admin("POST", "/api/admin/jobs", Some(json!({ "kind": "verify", "strict": true })), &[]).await.ok();
    let path = format!("/api/admin/jobs/{}", text(&begun["job_id"]));
    let done = loop {
        let job = desk.admin("GET", &path, None, &[]).await.ok();
        if job["state"] != "running" {
            break job;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!((&done["state"], &done["result"]["breaches"]), (&json!("done"), &json!([])), "{done}");
    assert_eq!(desk.admin("POST", "/api/admin/jobs", Some(json!({ "kind": "all" })), &[]).await.error().2, "kind");
    assert_eq!(desk.admin("GET", "/api/admin/jobs/job_0", None, &[]).await.error().0, 404);
}

/// Whoever has no money can change things all the same: each change leaves a row, so there is an
/// end to them.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_changes_so_much_a_day_and_no_more() {
    for engine in Engine::both().await {
        let desk = Desk::new(engine.url.clone()).await;
        let (store, account) = (&desk.house.running().app.store, desk.house.account);
        let before = store.changes_since(account, 0, 1_000).await.expect("a count");
        let mut rows = tokio::task::JoinSet::new();
        for at in before + 1..1_000 {
            let store = store.clone();
            rows.spawn(async move {
                let done = Attribution::by("test", "");
                store.note_audit(&done, "a.change", &at.to_string(), Some(account), "").await.expect("noted");
            });
        }
        rows.join_all().await;
        let name = |name: &str| json!({ "name": name });
        desk.change("PATCH", "/api/account", name("last"), &[("if-match", "*")]).await.ok();
        for (method, path, body) in [
            ("PATCH", "/api/account", Some(name("more"))),
            ("POST", "/api/account/keys", Some(name("more"))),
            ("POST", "/api/account/webhooks/deliveries/task_00000000000000000000000000/resend", None),
        ] {
            let refused = desk.send(&desk.manage, method, path, body, &[("if-match", "*")]).await;
            assert_eq!(refused.error().0, 429, "{path}: {}", refused.body);
            assert!(refused.headers.contains_key("retry-after"), "{path}");
        }
        assert_eq!(desk.get("/api/account").await.ok()["name"], "last", "reading goes on");
        let path = format!("/api/admin/accounts/{account}");
        let change = json!({ "name": "by the operator", "reason": "asked for" });
        desk.admin("PATCH", &path, Some(change), &[]).await.ok();
        let later = store.changes_since(account, i64::MAX / 2, 1_000).await.expect("a count");
        assert_eq!(later, 0, "what is older counts no more");
        desk.house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_makes_so_many_keys_and_no_more() {
    let desk = Desk::new("sqlite".to_owned()).await;
    let (store, account) = (&desk.house.running().app.store, desk.house.account);
    let there = store.keys(account).await.expect("keys").len();
    let mut made = tokio::task::JoinSet::new();
    for n in there + 1..1_000 {
        let store = store.clone();
        let (models, cidrs, limits) = (None, None, Limits::default());
        let key =
            NewKey { account, name: "k".to_owned(), expires_at: None, models, cidrs, limits, scope: KeyScope::Call };
        made.spawn(async move { store.create_key(key, &format!("sk-{n}")).await.expect("a key") });
    }
    made.join_all().await;
    desk.change("POST", "/api/account/keys", json!({ "name": "the last" }), &[]).await.ok();
    let more = desk.change("POST", "/api/account/keys", json!({ "name": "one more" }), &[]).await;
    assert_eq!(more.error(), (409, "conflict", ""), "{}", more.body);
    let path = format!("/api/admin/accounts/{account}/keys");
    desk.admin("POST", &path, Some(json!({ "name": "one more", "reason": "asked for" })), &[]).await.ok();
    desk.house.quiet().await;
}
