//! /api/admin/*: every command of the store over HTTP, on both engines, and what is refused.

use super::admin_close;
use crate::engine::Engine;
use crate::house::{House, Plan, call_id, chat, error_of};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;
use tollgate_catalog::Money;
use tollgate_gateway::endpoints::{Access, rows};
use tollgate_store::admin::AdminCommand;
use tollgate_store::{Attribution, NewAdminKey, NewOrder, OrderLimits, OrderMade};

const SECRET: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";
const NOBODY: &str = "acct_00000000000000000000000000";

/// A house and its operator, who remembers what was asked and every answer.
pub struct Office {
    pub house: House,
    asked: Mutex<BTreeSet<&'static str>>,
    answers: Mutex<Vec<String>>,
}

impl Office {
    async fn new(database: String) -> Office {
        let config = "catalog_source = \"database\"\n".to_owned();
        let house = House::with(Plan { database, config, ..Plan::default() }).await;
        let done = Attribution::by("test".to_owned(), "a test".to_owned());
        let new = NewAdminKey { name: "night shift".to_owned(), expires_at: None, done };
        house.running().app.store.create_admin_key(new, SECRET).await.expect("a key");
        Office { house, asked: Mutex::default(), answers: Mutex::default() }
    }

    async fn try_it(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let method: Method = method.parse().expect("a method");
        let plain = path.split('?').next().unwrap_or(path);
        let row = rows().iter().find(|row| row.method == method && row.fits(plain).is_some());
        let command = row.unwrap_or_else(|| panic!("no row for {method} {path}")).command;
        let request = self.house.http.request(method, self.house.url(path)).bearer_auth(SECRET);
        let request = body.iter().fold(request, |request, body| request.json(body));
        let reply = request.send().await.expect("a reply");
        let status = reply.status().as_u16();
        let text = reply.text().await.expect("text");
        if status == 200 {
            self.asked.lock().expect("a lock").extend(command);
        }
        let value = serde_json::from_str(&text).expect("JSON");
        self.answers.lock().expect("a lock").push(text);
        (status, value)
    }

    async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.try_it("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    pub async fn send(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.try_it(method, path, Some(body)).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    pub async fn refused(&self, method: &str, path: &str, body: Option<Value>) -> (u16, String, String) {
        let (status, answer) = self.try_it(method, path, body).await;
        let word = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
        (status, word("code"), word("param"))
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// The names of all commands, as their own reader lists them.
fn commands() -> BTreeSet<String> {
    let error = serde_json::from_str::<AdminCommand>(r#"{"command":"?"}"#).err().expect("no command").to_string();
    let (_, names) = error.split_once("expected one of ").expect("their names");
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_command_of_the_store_has_a_row() {
    let known: BTreeSet<String> = rows().iter().filter_map(|row| row.command).map(str::to_owned).collect();
    assert!(commands().len() > 30, "{:?}", commands());
    assert_eq!(known, commands());
    for row in rows().iter().filter(|row| row.command.is_some()) {
        assert!(matches!(row.access, Access::Role(_)) && row.path.starts_with("/api/admin/"), "{}", row.path);
    }
}

/// Pages of browsers never get at what an operator does, whatever origin they say they have.
#[tokio::test(flavor = "multi_thread")]
async fn pages_in_browsers_are_refused() {
    let house = House::new().await;
    for row in rows().iter().filter(|row| matches!(row.access, Access::Role(_) | Access::Local)) {
        let request = house.http.request(Method::OPTIONS, house.url(row.path)).header("origin", "https://a.example");
        let reply = request.header("access-control-request-method", row.method.as_str()).send().await.expect("a reply");
        assert!(!reply.headers().contains_key("access-control-allow-origin"), "{}", row.path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_does_what_it_says() {
    for engine in Engine::both().await {
        let office = Office::new(engine.url.clone()).await;
        let account = money(&office).await;
        let (call, price) = keys_and_calls(&office, &account).await;
        books(&office, &account, &call, &price).await;
        the_house(&office).await;
        workflows(&office).await;
        people(&office, &account).await;
        money_in(&office, &account).await;
        alerts(&office, &account).await;
        catalog(&office).await;
        let asked: BTreeSet<String> =
            office.asked.lock().expect("a lock").iter().map(|&name| name.to_owned()).collect();
        let left: Vec<String> = commands().difference(&asked).cloned().collect();
        assert!(left.is_empty(), "{}: never asked: {left:?}", engine.name);
        office.house.quiet().await;
    }
}

/// What is on sale, and another catalog in its place.
async fn catalog(office: &Office) {
    let before = office.get("/api/admin/catalog?texts=true").await;
    let path = "/api/admin/catalog/publish";
    let request = office.house.http.post(office.house.url(path)).bearer_auth(SECRET);
    let request = request.header("if-match", text(&before["etag"]));
    let body = json!({ "files": { "note.toml": "# nothing on sale\n" }, "merge": true, "reason": "a note" });
    let reply = request.json(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    office.asked.lock().expect("a lock").insert("catalog_publish");
    assert_eq!(office.get("/api/admin/catalog").await["version"], 2);
}

/// Accounts, and money that moves once for each reference.
async fn money(office: &Office) -> String {
    let body =
        json!({ "name": "ada", "groups": ["default"], "limit_day_nano_usd": 5_000_000_000_i64, "reason": "signed" });
    let made = office.send("POST", "/api/admin/accounts", body).await;
    let id = text(&made["account_id"]);
    let again = office
        .send("POST", "/api/admin/accounts", json!({ "name": "other", "account_id": id, "reason": "again" }))
        .await;
    assert_eq!(
        (&again["account_id"], &again["name"]),
        (&made["account_id"], &json!("ada")),
        "repeated, it is the same account"
    );
    let first = office.get("/api/admin/accounts?limit=1").await;
    assert_eq!((first["data"].as_array().map(Vec::len), &first["has_more"]), (Some(1), &json!(true)));
    let next = office.get(&format!("/api/admin/accounts?limit=1&after={}", text(&first["next_after"]))).await;
    assert_eq!(
        (&next["data"][0]["account_id"], &next["has_more"], &next["next_after"]),
        (&made["account_id"], &json!(false), &json!(null))
    );

    let path = format!("/api/admin/accounts/{id}");
    let change = json!({ "name": "ada l.", "limit_day_nano_usd": null, "suspended": false, "reason": "asked for it" });
    let changed = office.send("PATCH", &path, change).await;
    assert_eq!((&changed["name"], &changed["limits"]["day_nano_usd"]), (&json!("ada l."), &json!(null)));
    let hook = office
        .send(
            "PUT",
            &format!("{path}/webhook"),
            json!({ "webhook_url": "https://a.example/hook", "reason": "asked for" }),
        )
        .await;
    assert_eq!(hook["webhook_url"], "https://a.example/hook");
    let none = json!({ "webhook_url": null, "reason": "asked for" });
    assert_eq!(office.send("PUT", &format!("{path}/webhook"), none).await["webhook_url"], json!(null));

    let (topups, adjustments) = (format!("{path}/topups"), format!("{path}/adjustments"));
    let paid = json!({ "amount_nano_usd": 2_000_000_000, "reference": "payment 1", "reason": "paid" });
    let first = office.send("POST", &topups, paid.clone()).await;
    assert_eq!(
        (&first["applied"], &first["account"]["paid_available_nano_usd"]),
        (&json!(true), &json!(2_000_000_000))
    );
    let second = office.send("POST", &topups, paid.clone()).await;
    assert_eq!(
        (&second["applied"], &second["account"]["paid_available_nano_usd"]),
        (&json!(false), &json!(2_000_000_000))
    );
    let other = json!({ "amount_nano_usd": 3_000_000_000_i64, "reference": "payment 1", "reason": "paid" });
    assert_eq!(office.refused("POST", &topups, Some(other)).await.0, 409, "the reference is another payment's");
    let trial = json!({
        "amount_nano_usd": 7, "pot": "trial", "expires_at_ms": 4_000_000_000_000_i64, "reference": "gift", "reason": "welcome",
    });
    assert_eq!(office.send("POST", &topups, trial).await["account"]["trial_available_nano_usd"], 7);
    assert_eq!(office.get(&format!("{path}/expiring")).await["data"][0]["credit"], "gift");
    let less = json!({ "amount_nano_usd": -500_000_000, "reference": "correction", "reason": "a mistake" });
    assert_eq!(office.send("POST", &adjustments, less).await["account"]["paid_available_nano_usd"], 1_500_000_000);
    let too_much = json!({ "amount_nano_usd": -9_000_000_000_i64, "reference": "c2", "reason": "a mistake" });
    assert_eq!(office.refused("POST", &adjustments, Some(too_much)).await, (409, "conflict".to_owned(), String::new()));
    let history = office.get(&format!("{path}/history?limit=2")).await;
    assert_eq!((&history["data"][0]["reference"], &history["has_more"]), (&json!("correction"), &json!(true)));
    assert!(text(&history["data"][0]["actor"]).starts_with("night shift (adm_"), "{history}");
    let before = &history["next_before"];
    assert_eq!(office.get(&format!("{path}/history?before={before}")).await["data"][0]["reference"], "payment 1");
    assert_eq!(office.get(&path).await["paid_available_nano_usd"], 1_500_000_000);
    admin_close::close(office, &path).await;
    id
}

/// Keys are shown once, work at once and end at once; what a call was charged is given back once.
async fn keys_and_calls(office: &Office, account: &str) -> (String, String) {
    let house = &office.house;
    let keys = format!("/api/admin/accounts/{account}/keys");
    let wanted =
        json!({ "name": "app", "models": ["plain"], "limit_total_nano_usd": 1_000_000_000, "reason": "signed" });
    let made = office.send("POST", &keys, wanted).await;
    let (id, secret) = (text(&made["key_id"]), text(&made["secret"]));
    assert!(secret.starts_with("sk-") && secret.len() == 51, "48 letters and digits");
    office.answers.lock().expect("a lock").clear();
    let call = async || {
        let url = house.url("/v1/chat/completions");
        house.http.post(url).bearer_auth(&secret).json(&chat("[[sim:tokens=2]]")).send().await.expect("a reply")
    };
    let reply = call().await;
    assert_eq!(reply.status(), 200);
    let called = call_id(&reply).to_string();
    house.quiet().await;

    let usage = office.get(&format!("/api/admin/usage?account={account}&limit=1")).await;
    let now = office.house.running().app.world.now_ms();
    let sold = office.get(&format!("/api/admin/margins?from_ms={}&to_ms={}", now - 3_600_000, now + 1)).await;
    assert_eq!(sold["data"][0]["cost_unknown"], sold["data"][0]["calls"], "the model has no list price");
    assert_eq!((&usage["data"][0]["call_id"], &usage["has_more"]), (&json!(called), &json!(false)));
    let shown = office.get(&format!("/api/admin/accounts/{account}/usage/{called}")).await;
    let charge = shown["charge_nano_usd"].as_i64().expect("a charge");
    assert!(charge > 0 && shown["provider"] == "sim", "{shown}");
    let refund = json!({ "call_id": called, "reason": "it was late" });
    assert_eq!(office.send("POST", "/api/admin/refunds", refund.clone()).await["applied"], true);
    assert_eq!(office.send("POST", "/api/admin/refunds", refund).await["applied"], false);
    let other = json!({ "call_id": called, "amount_nano_usd": 1, "reason": "more" });
    assert_eq!(office.refused("POST", "/api/admin/refunds", Some(other)).await.0, 409, "a call is refunded once");

    let change = json!({ "name": "app 2", "models": null, "cidrs": ["127.0.0.0/8"], "reason": "more models" });
    let changed = office.send("PATCH", &format!("/api/admin/keys/{id}"), change).await;
    assert_eq!((&changed["models"], &changed["cidrs"]), (&json!(null), &json!(["127.0.0.0/8"])));
    let listed = office.get(&format!("{keys}?limit=1")).await;
    assert_eq!((&listed["data"][0]["name"], &listed["has_more"]), (&json!("app 2"), &json!(false)));
    assert_eq!(office.get(&format!("{keys}?after={id}")).await["data"], json!([]));
    assert_eq!(call().await.status(), 200);
    let rotate = json!({ "grace_seconds": 0, "reason": "leaked" });
    let rotated = office.send("POST", &format!("/api/admin/keys/{id}/rotate"), rotate).await;
    assert_eq!(call().await.status(), 401, "the secret of before, at once");
    office.answers.lock().expect("a lock").pop();
    let secret = text(&rotated["secret"]);
    let call = async || {
        let url = house.url("/v1/chat/completions");
        house.http.post(url).bearer_auth(&secret).json(&chat("[[sim:tokens=2]]")).send().await.expect("a reply")
    };
    assert_eq!(call().await.status(), 200);
    let revoked = office.send("POST", &format!("/api/admin/keys/{id}/revoke"), json!({ "reason": "over" })).await;
    assert!(revoked["revoked_at_ms"].is_i64(), "{revoked}");
    assert_eq!(call().await.status(), 401, "at once");
    house.quiet().await;
    for answer in office.answers.lock().expect("a lock").iter() {
        assert!(!answer.contains(&secret) && !answer.contains("\"secret\""), "a secret is shown once: {answer}");
    }
    let receipt = office.get(&format!("/api/admin/accounts/{account}/usage/{called}/receipt")).await;
    (called, text(&receipt["receipt"]["calculation"]["price_id"]))
}

/// The ledger, receipts and prices.
async fn books(office: &Office, account: &str, call: &str, price: &str) {
    let price = office.get(&format!("/api/admin/prices/{price}")).await;
    assert_eq!(price["model"], "plain");
    let sums = office.get(&format!("/api/admin/usage/sums?from=2020-01-01&by=day,route&account={account}")).await;
    assert!(sums["totals"]["requests"].as_i64() > Some(0), "{sums}");
    let report = office.send("POST", "/api/admin/ledger/verify", json!({ "how": "full" })).await;
    assert_eq!(report["breaches"], json!([]), "{report}");
    let last = office.get("/api/admin/ledger/last").await["seq"].as_i64().expect("a number");
    let (mut after, mut seen) = (0, 0);
    loop {
        let page = office
            .get(&format!("/api/admin/ledger/entries?account={account}&until={last}&limit=3&after={after}"))
            .await;
        let rows = page["data"].as_array().expect("rows");
        assert!(rows.iter().all(|row| row["account_id"] == account && row["seq"].as_i64() > Some(after)));
        seen += rows.len();
        match page["next_after"].as_i64() {
            Some(next) => after = next,
            None => break,
        }
    }
    let whole = office.get(&format!("/api/admin/ledger/entries?account={account}")).await;
    assert_eq!(whole["data"].as_array().map(Vec::len), Some(seen), "all pages together");
    assert!(whole["data"].as_array().is_some_and(|rows| rows.iter().any(|row| row["call_id"] == call)));
    let keys = office.get("/api/admin/receipts/keys").await;
    let rotated = office.send("POST", "/api/admin/receipts/keys/rotate", json!({ "reason": "a year" })).await;
    assert_ne!(keys["keys"][0]["kid"], rotated["keys"][0]["kid"]);
}

/// Operators, pauses, the clock.
/// A contract that is fixed and let go, each with a row that says who and why.
async fn workflows(office: &Office) {
    let house = &office.house;
    super::workflows::put_example(house).await;
    let all = office.get("/api/admin/workflows").await;
    assert_eq!((&all["data"][0]["slug"], &all["data"][0]["stage"]), (&json!("storyline-to-clip"), &json!("draft")));
    let path = "/api/admin/workflows/storyline-to-clip";
    let reason = || json!({ "reason": "it is ready" });
    let conflict = (409, "conflict".to_owned(), String::new());
    assert_eq!(office.refused("POST", &format!("{path}/unlock"), Some(reason())).await, conflict);
    let locked = office.send("POST", &format!("{path}/lock"), reason()).await;
    assert_eq!((&locked["verb"], &locked["reason"]), (&json!("lock"), &json!("it is ready")));
    assert!(text(&locked["actor"]).starts_with("night shift (adm_"));
    assert_eq!(office.refused("POST", &format!("{path}/lock"), Some(reason())).await, conflict, "once");
    assert_eq!(office.get("/api/admin/workflows").await["data"][0]["stage"], "locked");
    office.send("POST", &format!("{path}/unlock"), reason()).await;
    let moves = office.get(&format!("{path}/moves")).await;
    let verbs: Vec<&Value> = moves["data"].as_array().expect("a list").iter().map(|moved| &moved["verb"]).collect();
    assert_eq!(verbs, ["unlock", "lock"], "newest first");
    assert_eq!(office.refused("POST", "/api/admin/workflows/moon/lock", Some(reason())).await.0, 404);
    assert_eq!(office.refused("POST", &format!("{path}/lock"), Some(json!({}))).await.0, 400, "a reason is needed");
    the_run_of_a_fixture(office).await;
}

async fn the_run_of_a_fixture(office: &Office) {
    let house = &office.house;
    super::workflows::put_narration(house).await;
    let path = "/api/admin/workflows/article-to-narration";
    office.send("POST", &format!("{path}/lock"), json!({ "reason": "reviewed" })).await;
    let keys = house.running().app.store.keys(house.account).await.expect("keys");
    let key = keys.last().expect("a key").id;
    let begun = json!({ "reason": "does it work?", "account": house.account, "key": key });
    let begun = office.send("POST", &format!("{path}/verify"), begun).await;
    assert_eq!(begun["slug"], "article-to-narration");
    let run = office.get(&format!("/api/admin/workflows/runs/{}", text(&begun["run"]))).await;
    assert_eq!((&run["slug"], &run["account"]), (&json!("article-to-narration"), &json!(house.account)), "{run}");
}

async fn the_house(office: &Office) {
    let house = &office.house;
    let made =
        office.send("POST", "/api/admin/admin-keys", json!({ "name": "day shift", "reason": "new colleague" })).await;
    let (id, secret) = (text(&made["admin_key_id"]), text(&made["secret"]));
    let clock =
        async || house.http.get(house.url("/api/admin/clock")).bearer_auth(&secret).send().await.expect("a reply");
    assert_eq!(clock().await.status(), 200);
    let listed = office.get("/api/admin/admin-keys").await;
    assert!(
        listed["data"].as_array().is_some_and(|keys| keys.len() == 2 && keys.iter().all(|key| key["secret"].is_null()))
    );
    office.send("POST", &format!("/api/admin/admin-keys/{id}/revoke"), json!({ "reason": "left" })).await;
    assert_eq!(clock().await.status(), 401, "at once");
    let log = office.get("/api/admin/audit?limit=1").await;
    assert_eq!((&log["data"][0]["action"], &log["data"][0]["subject"]), (&json!("admin_key.revoke"), &json!(id)));

    let pause = |paused: bool| json!({ "kind": "model", "name": "plain", "paused": paused, "reason": "it is broken" });
    assert_eq!(office.send("POST", "/api/admin/pauses", pause(true)).await["paused"], true);
    let (status, error) = error_of(house.ask("[[sim:tokens=2]]").await).await;
    assert_eq!((status, error["reason"].as_str()), (503, Some("paused")), "at once");
    assert_eq!(office.get("/api/admin/pauses").await["data"][0]["name"], "plain");
    office.send("POST", "/api/admin/pauses", pause(false)).await;
    assert_eq!(house.ask("[[sim:tokens=2]]").await.status(), 200);
    let changes = office.get("/api/admin/pauses/changes").await;
    assert_eq!(changes["data"].as_array().map(Vec::len), Some(2));
    let provider = json!({ "kind": "provider", "name": "nowhere", "paused": true, "reason": "x" });
    assert_eq!(office.refused("POST", "/api/admin/pauses", Some(provider)).await.2, "name");
    assert!(office.get("/api/admin/clock").await["now_ms"].is_i64());
    office.send("POST", "/api/admin/clock/accept", json!({ "reason": "looked at" })).await;
    office.get("/api/admin/social/days").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_understood_is_refused_by_name_and_changes_nothing() {
    let office = Office::new("sqlite".to_owned()).await;
    let account = office.house.account.to_string();
    let path = format!("/api/admin/accounts/{account}");
    let topups = format!("{path}/topups");
    let before = office.get(&path).await;
    let whole = json!({ "amount_nano_usd": 1, "reference": "r", "reason": "x" });
    let with = |name: &str, value: Value| {
        let mut body = whole.clone();
        body[name] = value;
        body
    };
    let without = |name: &str| {
        let mut body = whole.clone();
        body.as_object_mut().expect("an object").remove(name);
        body
    };
    for (body, code, param) in [
        (without("amount_nano_usd"), "missing_parameter", "amount_nano_usd"),
        (without("reference"), "missing_parameter", "reference"),
        (without("reason"), "missing_parameter", "reason"),
        (with("reason", json!(null)), "missing_parameter", "reason"),
        (with("reason", json!(" ")), "invalid_parameter", "reason"),
        (with("reason", json!("a\u{0}b")), "invalid_parameter", "reason"),
        (with("reason", json!("x".repeat(1_001))), "invalid_parameter", "reason"),
        (with("amount_nano_usd", json!(0)), "invalid_parameter", "amount_nano_usd"),
        (with("amount_nano_usd", json!(-1)), "invalid_parameter", "amount_nano_usd"),
        (with("amount_nano_usd", json!(1.5)), "invalid_parameter", "amount_nano_usd"),
        (with("amount_nano_usd", json!("1")), "invalid_parameter", "amount_nano_usd"),
        (with("amount_nano_usd", json!(u64::MAX)), "invalid_parameter", "amount_nano_usd"),
        (with("pot", json!("both")), "invalid_parameter", "pot"),
        (with("actor", json!("somebody else")), "unknown_parameter", "actor"),
        (with("account", json!(NOBODY)), "unknown_parameter", "account"),
        (with("kind", json!("refund")), "unknown_parameter", "kind"),
    ] {
        let refusal = office.refused("POST", &topups, Some(body.clone())).await;
        assert_eq!(refusal, (400, code.to_owned(), param.to_owned()), "{body}");
    }
    let reason = |name: &str, value: Value| json!({ name: value, "reason": "x" });
    for (method, path, body, status, param) in [
        ("PATCH", path.clone(), reason("groups", json!(["nowhere"])), 400, "groups"),
        ("PATCH", path.clone(), reason("groups", json!([])), 400, "groups"),
        ("PATCH", path.clone(), reason("name", json!(null)), 400, "name"),
        ("PATCH", path.clone(), reason("limit_day_nano_usd", json!(-1)), 400, "limit_day_nano_usd"),
        ("PUT", format!("{path}/webhook"), json!({ "reason": "x" }), 400, "webhook_url"),
        ("PUT", format!("{path}/webhook"), reason("webhook_url", json!("http://10.0.0.1/")), 400, "webhook_url"),
        ("POST", format!("{path}/keys"), json!({ "name": "k", "models": ["plian"], "reason": "x" }), 400, "models"),
        ("POST", format!("{path}/keys"), json!({ "name": "k", "cidrs": ["here"], "reason": "x" }), 400, "cidrs"),
        ("POST", format!("{path}/keys"), json!({ "name": "k", "secret": "sk-mine", "reason": "x" }), 400, "secret"),
        ("POST", format!("/api/admin/accounts/{NOBODY}/keys"), json!({ "name": "k", "reason": "x" }), 404, ""),
        ("POST", format!("/api/admin/accounts/{NOBODY}/topups"), whole.clone(), 404, ""),
        ("POST", "/api/admin/accounts/ada/topups".to_owned(), whole.clone(), 404, "account"),
        ("POST", "/api/admin/refunds".to_owned(), json!({ "call_id": "x", "reason": "x" }), 400, "call_id"),
        (
            "POST",
            "/api/admin/refunds".to_owned(),
            json!({ "call_id": NOBODY.replace("acct", "call"), "reason": "x" }),
            404,
            "",
        ),
        ("POST", "/api/admin/ledger/verify".to_owned(), json!({ "how": "well" }), 400, "how"),
    ] {
        let (got, _, named) = office.refused(method, &path, Some(body.clone())).await;
        assert_eq!((got, named.as_str()), (status, param), "{method} {path} {body}");
    }
    for (path, status, param) in [
        ("/api/admin/accounts?limit=0".to_owned(), 400, "limit"),
        ("/api/admin/accounts?limit=501".to_owned(), 400, "limit"),
        ("/api/admin/accounts?after=ada".to_owned(), 400, "after"),
        ("/api/admin/accounts?limit=1&limit=2".to_owned(), 400, "limit"),
        ("/api/admin/accounts?name=ada".to_owned(), 400, "name"),
        (format!("{path}?account={NOBODY}"), 400, "account"),
        (format!("/api/admin/accounts/{NOBODY}"), 404, ""),
        ("/api/admin/accounts/ada".to_owned(), 404, "account"),
        ("/api/admin/prices/zz".to_owned(), 404, "price_id"),
        ("/api/admin/ledger/entries?from_ms=x".to_owned(), 400, "from_ms"),
    ] {
        let (got, _, named) = office.refused("GET", &path, None).await;
        assert_eq!((got, named.as_str()), (status, param), "{path}");
    }
    // A change takes its words from the body: a parameter is as unknown as elsewhere.
    let why = json!({ "reason": "x" });
    assert_eq!(office.refused("POST", "/api/admin/clock/accept?now=1", Some(why)).await.0, 400);
    assert_eq!(office.get(&path).await, before, "nothing was changed");
    assert_eq!(office.get(&format!("{path}/keys")).await["data"].as_array().map(Vec::len), Some(1));
}

/// A question about a record is answered without it, and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn head_reads_and_nothing_else() {
    let office = Office::new("sqlite".to_owned()).await;
    let head = async |path: &str| {
        let request = office.house.http.head(office.house.url(path)).bearer_auth(SECRET);
        request.send().await.expect("a reply").status().as_u16()
    };
    assert_eq!(head("/api/admin/accounts?limit=1").await, 200);
    assert_eq!(head("/api/admin/receipts/keys/rotate").await, 405);
}

/// People: made, changed, invited, put into an account.
async fn people(office: &Office, account: &str) {
    let wish = json!({ "email": "Eve@Example.com", "house_role": "auditor", "reason": "hired" });
    let made = office.send("POST", "/api/admin/people", wish.clone()).await;
    let id = text(&made["person_id"]);
    assert!(text(&made["token"]).len() > 40 && made["house_role"] == "auditor", "{made}");
    let twice = office.refused("POST", "/api/admin/people", Some(wish)).await;
    assert_eq!((twice.0, twice.1.as_str()), (409, "conflict"));
    let bad = json!({ "email": "nobody", "reason": "x" });
    assert_eq!(office.refused("POST", "/api/admin/people", Some(bad)).await.2, "email");
    let changed = json!({ "house_role": null, "disabled": true, "reason": "left" });
    let path = format!("/api/admin/people/{id}");
    let changed = office.send("PATCH", &path, changed).await;
    assert_eq!((&changed["house_role"], changed["disabled_at_ms"].is_i64()), (&json!(null), true));
    let back = office.send("PATCH", &path, json!({ "disabled": false, "reason": "back" })).await;
    assert_eq!(back["disabled_at_ms"], json!(null));
    let member = format!("/api/admin/accounts/{account}/members/{id}");
    let put = office.send("PUT", &member, json!({ "role": "owner", "reason": "theirs" })).await;
    assert_eq!(put["memberships"][0]["role"], "owner", "{put}");
    let last = office.refused("PUT", &member, Some(json!({ "role": "viewer", "reason": "less" }))).await;
    assert_eq!((last.0, last.1.as_str()), (409, "conflict"), "one owner stays");
    office.send("POST", "/api/admin/people/links", json!({ "email": "eve@example.com", "reason": "lost" })).await;
    let nobody = json!({ "email": "x@example.com", "reason": "lost" });
    assert_eq!(office.refused("POST", "/api/admin/people/links", Some(nobody)).await.0, 404);
    office.send("POST", &format!("{path}/sign-out"), json!({ "reason": "stolen" })).await;
    let removed = office.send("POST", &format!("{path}/passkeys/remove"), json!({ "reason": "lost" })).await;
    assert_eq!(removed["person_id"], json!(id));
    assert_eq!(office.get(&path).await["email"], "Eve@Example.com");
    assert_eq!(office.get("/api/admin/people?limit=1").await["has_more"], false);
    let wish = json!({ "email": "new@example.com", "house_role": "operator", "reason": "hired" });
    let invite = office.send("POST", "/api/admin/invites", wish).await;
    assert!(text(&invite["link"]).contains("#token="), "without mail it is handed over: {invite}");
    assert_eq!(office.get("/api/admin/invites").await["data"].as_array().map(Vec::len), Some(1));
    let revoke = format!("/api/admin/invites/{}/revoke", text(&invite["invite_id"]));
    office.send("POST", &revoke, json!({ "reason": "a mistake" })).await;
    assert_eq!(office.refused("POST", &revoke, Some(json!({ "reason": "again" }))).await.0, 404);
}

/// Codes, orders and statements.
async fn money_in(office: &Office, account: &str) {
    let wish = json!({ "amount_nano_usd": 2_000_000_000, "count": 3, "note": "fair", "reason": "a fair" });
    let made = office.send("POST", "/api/admin/codes", wish).await;
    assert_eq!(made["codes"].as_array().map(Vec::len), Some(3), "{made}");
    let batch = text(&made["batch_id"]);
    let listed = office.get("/api/admin/codes").await;
    assert_eq!(
        (&listed["data"][0]["batch_id"], &listed["data"][0]["codes"]),
        (&json!(batch), &json!(null)),
        "{listed}"
    );
    let ended = office.send("POST", &format!("/api/admin/codes/{batch}/revoke"), json!({ "reason": "over" })).await;
    assert!(ended["revoked_at_ms"].is_i64(), "{ended}");
    let store = &office.house.running().app.store;
    let new = NewOrder {
        account: account.parse().expect("an account"),
        provider: "stripe".to_owned(),
        amount_minor: 500,
        currency: "usd".to_owned(),
        credit: Money::from_usd(5).expect("an amount"),
        live: false,
        expires_at: i64::MAX / 2,
        next_look_at: i64::MAX / 2,
        actor: "test".to_owned(),
        idem: None,
    };
    let limits = OrderLimits { open: 3, hour: 10 };
    let OrderMade::Made(order) = store.create_order(new, limits).await.expect("asked") else { panic!("an order") };
    let path = format!("/api/admin/orders/{}", order.id);
    assert_eq!(office.get("/api/admin/orders").await["data"][0]["order_id"], json!(order.id));
    assert_eq!(office.get(&path).await["amount_minor"], 500);
    office.send("POST", &format!("{path}/forgive"), json!({ "reason": "a friend" })).await;
    let log = office.get("/api/admin/audit?limit=1").await;
    assert_eq!((&log["data"][0]["action"], &log["data"][0]["reason"]), (&json!("order.forgive"), &json!("a friend")));
    let statement = office.get(&format!("/api/admin/accounts/{account}/statements/2026-01")).await;
    assert_eq!(statement["account_id"], json!(account), "{statement}");
}

/// Places whose addresses are never shown again, rules, silence, and what an account hears of.
async fn alerts(office: &Office, account: &str) {
    let hidden = "https://hooks.example/T0/B0/very-secret-token";
    let place = json!({ "name": "ops", "kind": "slack", "to": hidden, "reason": "on call" });
    let place = office.send("POST", "/api/admin/alerts/places", place).await;
    assert_eq!(place["shown"], "hooks.example");
    let id = text(&place["place_id"]);
    let bound = json!({ "name": "low", "kind": "balance", "accounts": [account], "amount_nano_usd": 1, "places": [id], "reason": "asked for" });
    let rule = office.send("POST", "/api/admin/alerts/rules", bound.clone()).await;
    let path = format!("/api/admin/alerts/rules/{}", text(&rule["rule_id"]));
    assert_eq!(rule["condition"]["kind"], "balance", "{rule}");
    let off = office.send("PATCH", &path, json!({ "enabled": false, "reason": "noise" })).await;
    assert_eq!((&off["enabled"], &off["condition"]), (&json!(false), &rule["condition"]));
    let until = json!({ "until_ms": 4_000_000_000_000_i64, "reason": "works" });
    assert_eq!(office.send("POST", &format!("{path}/silence"), until).await["silence_reason"], "works");
    let lifted = office.send("POST", &format!("{path}/silence"), json!({ "until_ms": null, "reason": "done" })).await;
    assert_eq!(lifted["silenced_until_ms"], json!(null));
    for (field, value, code) in [
        ("days", json!(3), "invalid_parameter"),
        ("accounts", json!([]), "invalid_parameter"),
        ("accounts", json!(["acct_x"]), "invalid_parameter"),
        ("kind", json!("moon"), "invalid_parameter"),
        ("places", json!(["place_x"]), "invalid_parameter"),
        ("amount_nano_usd", json!(0), "invalid_parameter"),
    ] {
        let mut wrong = bound.clone();
        wrong[field] = value;
        let refused = office.refused("POST", "/api/admin/alerts/rules", Some(wrong)).await;
        assert_eq!((refused.0, refused.1.as_str(), refused.2.as_str()), (400, code, field));
    }
    for to in
        ["https://127.0.0.1/x", "https://169.254.169.254/x", "http://hooks.example/x", "https://localhost/x", "no"]
    {
        let wrong = json!({ "name": "x", "kind": "webhook", "to": to, "reason": "x" });
        let refused = office.refused("POST", "/api/admin/alerts/places", Some(wrong)).await;
        assert_eq!((refused.0, refused.2.as_str()), (400, "to"), "{to}");
    }
    assert_eq!(office.get("/api/admin/alerts").await["data"], json!([]));
    assert_eq!(office.get("/api/admin/alerts/events").await["has_more"], json!(false));
    assert_eq!(office.get("/api/admin/alerts/rules").await["data"][0]["name"], "low");
    assert_eq!(office.get("/api/admin/alerts/places").await["data"][0]["kind"], "slack");
    let notices = format!("/api/admin/accounts/{account}/notices");
    let set = office.send("PUT", &notices, json!({ "threshold_nano_usd": 5, "mail": false, "reason": "asked" })).await;
    assert_eq!((&set["threshold_nano_usd"], &set["mail"], &set["webhook"]), (&json!(5), &json!(false), &json!(true)));
    assert_eq!(office.get(&notices).await["threshold_nano_usd"], 5);
    office.send("POST", &format!("{path}/remove"), json!({ "reason": "over" })).await;
    office.send("POST", &format!("/api/admin/alerts/places/{id}/remove"), json!({ "reason": "over" })).await;
    let log = office.get("/api/admin/audit?limit=1").await;
    assert_eq!((&log["data"][0]["action"], &log["data"][0]["reason"]), (&json!("alert_place.remove"), &json!("over")));
    let log = office.get("/api/admin/audit?limit=500").await.to_string();
    let answers = office.answers.lock().expect("a lock").concat();
    assert!(!answers.contains("very-secret-token") && !log.contains("very-secret-token"), "an address is never shown");
}
