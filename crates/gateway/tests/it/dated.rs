//! Prices that change at an instant: the call, the list, the quote and the receipt go by the clock,
//! not by a reload.

use crate::engine::Engine;
use crate::house::{House, Plan, call_id, second};
use serde_json::{Value, json};
use tollgate_store::receipt::{PublicKeys, verify, verify_price};

/// The first of January 2027.
const CHANGE: i64 = 1_798_761_600_000;
const CATALOG: &str = r#"
[model."dated"]
context_window = 100000
max_output_tokens = 1000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[[model."dated".change]]
from = 2027-01-01T00:00:00Z
price = { input = 5_000_000, output = 10_000_000, "tool:web_search" = 10_000 }
[model."dated-tools"]
context_window = 100000
max_output_tokens = 1000
login_required = true
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-responses", upstream_model = "sim-plain" }]
[[model."dated-tools".change]]
from = 2027-01-01T00:00:00Z
price = { input = 1_000_000, output = 2_000_000, "tool:web_search" = 10_000 }
"#;

fn plan() -> Plan {
    Plan { catalog: CATALOG, now: Some(CHANGE - 30_000), ..Plan::default() }
}

fn ask(text: &str, stream: bool) -> Value {
    json!({ "model": "dated", "stream": stream, "messages": [{ "role": "user", "content": text }] })
}

async fn json_of(house: &House, path: &str) -> Value {
    house.http.get(house.url(path)).send().await.expect("a reply").json().await.expect("JSON")
}

async fn quote(house: &House) -> Value {
    let path = "/v1/quote?endpoint=/v1/chat/completions&input=3&output=2";
    let reply = house.http.post(house.url(path)).bearer_auth(&house.key).json(&ask("hello", false)).send();
    reply.await.expect("a reply").json().await.expect("JSON")
}

/// A receipt that anybody can do again: its signature, and the price that it names.
async fn recomputed(house: &House, call: tollgate_store::CallId) -> String {
    let keys: PublicKeys =
        serde_json::from_value(json_of(house, "/.well-known/tollgate-receipts").await).expect("keys");
    let reply = house.get(&format!("/v1/usage/{call}/receipt")).send().await.expect("a reply");
    let receipt = verify(&reply.text().await.expect("text"), &keys).expect("a receipt").receipt;
    let calculation = receipt.calculation.clone().expect("a calculation");
    let path = format!("/api/pricing/versions/{}", calculation.price_id);
    let price = house.http.get(house.url(&path)).send().await.expect("a reply").text().await.expect("text");
    verify_price(&receipt, &price).expect("the price of the receipt");
    calculation.pricing_version
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_charged_at_the_price_of_its_beginning() {
    let house = House::with(plan()).await;
    let old = quote(&house).await;
    assert_eq!((&old["total_nano_usd"], &old["price_changes_at"]), (&json!(7_000), &json!("2027-01-01T00:00:00Z")));
    let mut running = house.post(&ask("[[sim:tokens=40 delay_ms=10]]", true)).send().await.expect("a reply");
    let call = call_id(&running);
    running.chunk().await.expect("a piece");
    // The year ends in the middle of the answer.
    house.later(30_000).await;
    while running.chunk().await.expect("a piece").is_some() {}
    let row = house.row(call).await;
    let used = i64::try_from(row.counters.input).expect("few");
    assert_eq!(row.charge.nano(), used * 1_000 + 40 * 2_000);
    assert_eq!(recomputed(&house, call).await, old["pricing_version"]);

    let new = quote(&house).await;
    assert_eq!((&new["total_nano_usd"], &new["price_changes_at"]), (&json!(35_000), &Value::Null));
    let call = call_id(&house.post(&ask("[[sim:tokens=2]]", false)).send().await.expect("a reply"));
    let row = house.row(call).await;
    let used = i64::try_from(row.counters.input).expect("few");
    assert_eq!(row.charge.nano(), used * 5_000 + 2 * 10_000);
    assert_eq!(recomputed(&house, call).await, new["pricing_version"]);
    assert_ne!(old["pricing_version"], new["pricing_version"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_announces_a_change_and_changes_with_it() {
    let house = House::with(plan()).await;
    let list = async || house.http.get(house.url("/api/pricing")).send().await.expect("a reply");
    let before = list().await;
    assert_eq!(before.headers()["cache-control"], "public, max-age=30", "nobody keeps a price beyond its end");
    let etag = before.headers()["etag"].clone();
    let page: Value = before.json().await.expect("JSON");
    let announced = json!({
        "model_name": "dated", "from": "2027-01-01T00:00:00Z",
        "old": { "standard": { "input": 1_000_000, "output": 2_000_000 }, "paid": null },
        "new": { "standard": { "input": 5_000_000, "output": 10_000_000, "tool:web_search": 10_000 }, "paid": null },
    });
    assert_eq!(page["announced"], json!([announced]));
    let record = json_of(&house, "/api/pricing/dated").await;
    assert_eq!(record["announced"][0]["new"], announced["new"]);
    assert_eq!(record["model_ratio"], 0.5);
    let prompt = async || {
        let card: Value = house.get("/v1/models/dated").send().await.expect("a reply").json().await.expect("JSON");
        card["pricing"]["prompt"].as_str().expect("text").to_owned()
    };
    assert_eq!(prompt().await, "0.000001");

    house.later(30_000).await;
    let after = list().await;
    assert_eq!(
        (after.status().as_u16(), &after.headers()["cache-control"]),
        (200, &"public, max-age=60".parse().expect("a value"))
    );
    assert_ne!(after.headers()["etag"], etag, "another list");
    let page: Value = after.json().await.expect("JSON");
    assert!(page.get("announced").is_none());
    let record = json_of(&house, "/api/pricing/dated").await;
    assert_eq!((&record["model_ratio"], record.get("announced")), (&json!(2.5), None));
    assert_eq!(record["pricing_version"], page["pricing_version"]);
    assert_eq!(prompt().await, "0.000005");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_sold_from_its_first_price_on() {
    let house = House::with(plan()).await;
    let search = json!({ "model": "dated-tools", "input": "[[sim:tokens=2]]", "tools": [{ "type": "web_search" }] });
    let send = async || {
        let request = house.http.post(house.url("/v1/responses")).bearer_auth(&house.key).json(&search);
        request.send().await.expect("a reply")
    };
    let (status, error) = crate::house::error_of(send().await).await;
    assert_eq!(
        (status, error["code"].as_str(), error["param"].as_str()),
        (400, Some("unsupported_value"), Some("tools"))
    );
    assert!(error["message"].as_str().is_some_and(|text| text.contains("tool:web_search")), "{error}");
    assert_eq!(house.available().await, 10_000_000_000, "nothing was held");
    house.later(30_000).await;
    assert_eq!(send().await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_change_at_the_same_instant() {
    let [_, postgres] = Engine::both().await;
    let house = House::with(Plan { database: postgres.url.clone(), ..plan() }).await;
    let other = second(&house).await;
    let tags = async || {
        let tag = async |url: String| {
            let reply = house.http.get(url).send().await.expect("a reply");
            reply.headers()["etag"].to_str().expect("text").to_owned()
        };
        (tag(house.url("/api/pricing")).await, tag(format!("http://{}/api/pricing", other.address)).await)
    };
    let before = tags().await;
    house.clock.pass(29_999);
    assert_eq!(tags().await, before);
    house.clock.pass(30_000);
    let after = tags().await;
    assert_eq!(after.0, after.1);
    assert_ne!(after.0, before.0);
    other.stop().await;
}
