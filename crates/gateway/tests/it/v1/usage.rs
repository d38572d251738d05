//! GET /v1/usage and /v1/usage/{call_id}.

use crate::house::{House, Plan, call_id, error_of};
use serde_json::{Value, json};
use tollgate_store::{Limits, NewAccount, NewKey};

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_without_gap_or_overlap() {
    let house = House::new().await;
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(call_id(&house.ask("hi").await).to_string());
    }
    house.quiet().await;
    made.reverse();
    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/v1/usage?limit=3{before}");
        let page: Value = house.get(&path).send().await.expect("a reply").json().await.expect("JSON");
        seen.extend(
            page["data"].as_array().expect("rows").iter().map(|row| row["call_id"].as_str().expect("an id").to_owned()),
        );
        match page["next_before"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    assert_eq!(seen, made);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_carries_its_price_and_no_route() {
    let house = House::new().await;
    let call = call_id(&house.ask("hello there [[sim:tokens=2]]").await);
    house.row(call).await;
    let reply = house.get(&format!("/v1/usage/{call}")).send().await.expect("a reply");
    let text = reply.text().await.expect("text");
    let body: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(body["charge_nano_usd"], 3 * 1_000 + 2 * 2_000);
    assert_eq!(body["usage"]["input"], 3);
    assert_eq!(body["price"]["faces"]["output"], 2_000_000);
    assert!(!text.contains("sim-plain"), "routes are the operator's business: {text}");
}

/// The whole calculation of a call: lines, tier and why, multiplier, price version, every movement
/// of money.
#[tokio::test(flavor = "multi_thread")]
async fn one_call_shows_its_whole_calculation() {
    const CATALOG: &str = r#"
[model."calculated"]
price = { input = 1_000_000, output = 2_000_000, cache_read = 100_000 }
route = [{ provider = "sim", upstream_model = "sim-cached" }]
[[model."calculated".tier]]
name = "long"
when = [{ dim = "context_len", context_len_gt = 15 }, { dim = "request_attr", path = "metadata.mode", equals = "pro" }]
multiplier = "133/100"
"#;
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    let body = json!({
        "model": "calculated", "stream": true, "metadata": { "mode": "pro" },
        "messages": [{ "role": "user", "content": "hi [[sim:tokens=20000 chunks=200 prompt=17 cached=10 written=0]]" }],
    });
    let reply = house.post(&body).send().await.expect("a reply");
    let call = call_id(&reply);
    reply.bytes().await.expect("the whole stream");
    let row = house.row(call).await;
    let reply = house.get(&format!("/v1/usage/{call}")).send().await.expect("a reply");
    let page: Value = reply.json().await.expect("JSON");
    let sum = &page["calculation"];
    // (7 × 1,000 + 10 × 100 + 20,000 × 2,000) × 133/100
    let charge = 40_008_000 * 133 / 100;
    assert_eq!((row.charge.nano(), &sum["total_nano_usd"]), (charge, &json!(charge)));
    assert_eq!(
        (&sum["multiplier"], &sum["group"], &sum["billing_unit"]),
        (&json!("133/100"), &json!("default"), &json!("tokens"))
    );
    assert_eq!(sum["pricing_version"], house.running().app.serving.load().catalog.pricing_version(0));
    let lines: Vec<_> = sum["lines"]
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| (line["face"].as_str(), line["quantity"].as_u64()))
        .collect();
    assert_eq!(lines, [(Some("input"), Some(7)), (Some("output"), Some(20_000)), (Some("cache_read"), Some(10))]);
    assert_eq!(sum["tier"]["name"], "long");
    assert_eq!((&sum["tier"]["why"][0]["fact"], &sum["tier"]["why"][1]["fact"]), (&json!(17), &json!("pro")));
    let entries = page["entries"].as_array().expect("entries");
    let kinds: Vec<_> = entries.iter().filter_map(|entry| entry["kind"].as_str()).collect();
    // How often it was extended depends on how the pieces came.
    let (end, extended) = (kinds.len() - 1, kinds.len() - 2);
    assert_eq!((kinds[0], kinds[end], extended > 0), ("hold", "settle", true), "{kinds:?}");
    assert!(kinds[1..end].iter().all(|kind| *kind == "extend"), "{kinds:?}");
    let held: i64 = entries[..end].iter().filter_map(|entry| entry["paid_nano_usd"].as_i64()).sum();
    assert_eq!((held, &page["hold_nano_usd"]), (row.hold.nano(), &json!(held)));
    assert_eq!((&entries[end]["charged_nano_usd"], &page["extensions"]), (&json!(charge), &json!(extended)));
    assert_eq!((&page["write_off_nano_usd"], &page["refunded_nano_usd"]), (&json!(0), &json!(0)));
    assert!(page["raw_usage"].as_str().is_some_and(|raw| raw.contains("20000")));

    // What was free has nothing to calculate.
    let reply = house.ask("[[sim:empty]]").await;
    let call = call_id(&reply);
    house.row(call).await;
    let page: Value =
        house.get(&format!("/v1/usage/{call}")).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!((&page["calculation"]["lines"], &page["calculation"]["total_nano_usd"]), (&json!([]), &json!(0)));
    let kinds: Vec<_> =
        page["entries"].as_array().expect("entries").iter().filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!(kinds, ["hold", "void"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_accounts_call_is_not_found() {
    let house = House::new().await;
    let call = call_id(&house.ask("mine").await);
    house.row(call).await;
    let store = &house.running().app.store;
    let other = store
        .create_account(NewAccount { name: "other".to_owned(), ..NewAccount::default() })
        .await
        .expect("an account");
    let key = NewKey {
        account: other.id,
        name: String::new(),
        expires_at: None,
        models: None,
        cidrs: None,
        limits: Limits::default(),
        scope: Default::default(),
    };
    store.create_key(key, "sk-other-accounts-key").await.expect("a key");
    let path = house.url(&format!("/v1/usage/{call}"));
    let reply = house.http.get(path).bearer_auth("sk-other-accounts-key").send().await.expect("a reply");
    let (status, error) = error_of(reply).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("not_found")));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_parameters_are_named() {
    let house = House::new().await;
    for (query, param, code) in [
        ("limit=0", "limit", "invalid_parameter"),
        ("limit=501", "limit", "invalid_parameter"),
        ("limit=x", "limit", "invalid_parameter"),
        ("before=call_zzz", "before", "invalid_parameter"),
        ("offset=3", "offset", "unknown_parameter"),
    ] {
        let (status, error) = error_of(house.get(&format!("/v1/usage?{query}")).send().await.expect("a reply")).await;
        assert_eq!((status, &error["param"], &error["code"]), (400, &json!(param), &json!(code)));
    }
    assert_eq!(house.get("/v1/usage?limit=500").send().await.expect("a reply").status(), 200);
    let (status, _) = error_of(house.get("/v1/usage/nonsense").send().await.expect("a reply")).await;
    assert_eq!(status, 404);
}
