//! GET /v1/usage/sums and /v1/usage/export, and the same of operators below /api/admin.

use crate::engine::Engine;
use crate::house::{House, Plan, call_id, error_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tollgate_store::{AccountId, Attribution, CallId, Counters, KeyId, NewAdminKey, UsageFacts};

const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";

async fn with_operator(plan: Plan) -> House {
    let house = House::with(plan).await;
    let done = Attribution::by("test".to_owned(), "a test".to_owned());
    let new = NewAdminKey { name: "night shift".to_owned(), expires_at: None, done };
    house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
    house
}

async fn read(house: &House, path: &str, key: &str) -> String {
    let reply = house.http.get(house.url(path)).bearer_auth(key).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{path}");
    reply.text().await.expect("text")
}

async fn sums(house: &House, path: &str, key: &str) -> Value {
    serde_json::from_str(&read(house, path, key).await).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_sees_what_it_spent_added_up_and_nobody_elses() {
    for engine in Engine::both().await {
        let house = with_operator(Plan { database: engine.url.clone(), ..Plan::default() }).await;
        let (stranger, strange_key) = house.stranger("5").await;
        let before = house.available().await;
        for _ in 0..3 {
            house.ask("hello there [[sim:tokens=2]]").await;
        }
        let body = json!({ "model": "plain", "messages": [{ "role": "user", "content": "hi" }] });
        let request = house.http.post(house.url("/v1/chat/completions")).bearer_auth(&strange_key).json(&body);
        assert_eq!(request.send().await.expect("a reply").status(), 200);
        house.quiet().await;
        let spent = before - house.available().await;
        let own = sums(&house, "/v1/usage/sums?from=2020-01-01&by=day,model&tz=Asia/Kathmandu", &house.key).await;
        let rows = own["data"].as_array().expect("rows");
        assert_eq!((rows.len(), &rows[0]["model"], &rows[0]["requests"]), (1, &json!("plain"), &json!(3)));
        assert_eq!((&own["totals"]["charge_nano_usd"], &own["totals"]["net_nano_usd"]), (&json!(spent), &json!(spent)));
        let shown = own.to_string();
        for hidden in ["provider", "upstream", "cost", "margin", "account"] {
            assert!(!shown.contains(hidden), "{hidden}: {shown}");
        }
        // The operator sees both, and narrows it to one.
        let all = sums(&house, "/api/admin/usage/sums?from=2020-01-01&by=account,route", ADMIN).await;
        assert_eq!((all["data"].as_array().map(Vec::len), &all["totals"]["requests"]), (Some(2), &json!(4)));
        assert_eq!(all["data"][0]["provider"], "sim");
        let path = format!("/api/admin/usage/sums?from=2020-01-01&account={stranger}");
        assert_eq!(sums(&house, &path, ADMIN).await["totals"]["requests"], 1);
        let margin = &all["totals"];
        assert!(margin.get("margin_nano_usd").is_some() && margin["cost_unknown"].is_i64(), "{margin}");
        wrong_words(&house).await;
    }
}

async fn wrong_words(house: &House) {
    for (query, code, param) in [
        ("", "missing_parameter", "from"),
        ("from=yesterday", "invalid_parameter", "from"),
        ("from=2026-01-01T00:07", "invalid_parameter", "from"),
        ("from=2026-01-01&to=2025-01-01", "invalid_parameter", "to"),
        ("from=2026-01-01&tz=Moon", "invalid_parameter", "tz"),
        ("from=2026-01-01&by=provider", "invalid_parameter", "by"),
        ("from=2026-01-01&by=account", "invalid_parameter", "by"),
        ("from=2026-01-01&top=0", "invalid_parameter", "top"),
        ("from=2026-01-01&limit=x", "invalid_parameter", "limit"),
        ("from=2026-01-01&from=2026-01-02", "invalid_parameter", "from"),
        ("from=2026-01-01&provider=sim", "unknown_parameter", "provider"),
        ("from=2026-01-01&account=acct_00000000000000000000000000", "unknown_parameter", "account"),
        ("from=2026-01-01&colour=red", "unknown_parameter", "colour"),
    ] {
        let reply = house.get(&format!("/v1/usage/sums?{query}")).send().await.expect("a reply");
        let (status, body) = error_of(reply).await;
        assert_eq!((status, &body["code"], &body["param"]), (400, &json!(code), &json!(param)), "{query}");
    }
    for (query, param) in [("from=2026-01-01&format=xml", "format"), ("from=2026-01-01&by=day", "by"), ("", "from")] {
        let (status, body) =
            error_of(house.get(&format!("/v1/usage/export?{query}")).send().await.expect("a reply")).await;
        assert_eq!((status, &body["param"]), (400, &json!(param)), "{query}");
    }
    for path in ["/api/admin/usage/sums?from=2026-01-01", "/api/admin/usage/export?from=2026-01-01"] {
        let reply = house.get(path).send().await.expect("a reply");
        assert_eq!(reply.status(), 401, "a key of an account opens nothing of operators: {path}");
    }
    let path = "/api/admin/usage/sums?from=2026-01-01&by=moon";
    let (status, body) =
        error_of(house.http.get(house.url(path)).bearer_auth(ADMIN).send().await.expect("a reply")).await;
    assert_eq!((status, &body["param"]), (400, &json!("by")));
}

/// Many rows of the log without as many calls.
fn note_refusals(house: &House, account: AccountId, count: u64) {
    let app = &house.running().app;
    for n in 0..count {
        let row = UsageFacts {
            // A minute takes so many rows of one key.
            key: KeyId([u8::try_from(n / 50).expect("few"); 16]),
            at: app.world.now_ms(),
            ended_at: app.world.now_ms(),
            endpoint: "/v1/chat/completions".into(),
            model: "=HYPERLINK(\"http://evil.example\")".to_owned(),
            provider: None,
            upstream_model: None,
            status: 402,
            counters: Counters::default(),
            estimated: false,
            raw_usage: None,
            attempts: 0,
            first_byte_ms: None,
            tier: None,
            dropped: None,
            cost: None,
            price: None,
        };
        app.store.note_refusal(app.new_call_id(), account, "insufficient_balance".to_owned(), row);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_written_out_whole_and_without_formulas() {
    for engine in Engine::both().await {
        let house = with_operator(Plan { database: engine.url.clone(), ..Plan::default() }).await;
        let call = call_id(&house.ask("hello there [[sim:tokens=2]]").await);
        house.row(call).await;
        let (stranger, _) = house.stranger("5").await;
        // More than two pages.
        note_refusals(&house, house.account, 1_100);
        note_refusals(&house, stranger, 3);
        let own = read(&house, "/v1/usage/export?from=2020-01-01", &house.key).await;
        let rows: Vec<Value> = own.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let ids: BTreeSet<CallId> =
            rows.iter().map(|row| row["call_id"].as_str().expect("an id").parse().expect("an id")).collect();
        assert_eq!((rows.len(), ids.len()), (1_101, 1_101), "each once");
        assert!(rows.iter().all(|row| row["account_id"] == house.account.to_string()));
        assert!(!own.contains("provider") && !own.contains("cost"), "what is the operator's business");
        let charged: i64 = rows.iter().map(|row| row["charge_nano_usd"].as_i64().expect("a number")).sum();
        let sums = sums(&house, "/v1/usage/sums?from=2020-01-01", &house.key).await;
        assert_eq!((&sums["totals"]["charge_nano_usd"], &sums["totals"]["requests"]), (&json!(charged), &json!(1_101)));

        let all = read(&house, "/api/admin/usage/export?from=2020-01-01&format=csv", ADMIN).await;
        let mut lines = all.split("\r\n").filter(|line| !line.is_empty());
        let head = lines.next().expect("a head");
        assert!(head.starts_with("call_id,account_id,key_id,started_at,") && head.contains(",provider,"), "{head}");
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines.len(), 1_104);
        assert_eq!(
            lines.iter().filter(|line| line.contains("\"'=HYPERLINK(\"\"http://evil.example\"\")\"")).count(),
            1_103
        );
        assert_eq!(lines.iter().filter(|line| line.contains(",sim,sim-plain,")).count(), 1);
        let narrow = read(&house, "/v1/usage/export?from=2020-01-01&format=csv&ending=answered", &house.key).await;
        assert_eq!(narrow.lines().count(), 2, "{narrow}");
        assert!(!narrow.contains("provider"), "{narrow}");
    }
}
