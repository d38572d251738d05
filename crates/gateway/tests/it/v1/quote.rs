//! POST /v1/quote: the price of a call before it is made, by the functions that make its hold and
//! its charge.

use crate::house::{House, MODEL, Plan, call_id, chat, error_of};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::Pot;

const CHAT: &str = "/v1/chat/completions";

const CATALOG: &str = r#"
auto_groups = ["partner", "default"]
[group.partner]
multiplier = "0.8"
[model."tiers"]
context_window = 1000000
max_output_tokens = 1000
enable_groups = ["default", "partner"]
price = { input = 1_000_000, output = 2_000_000, cache_read = 100_000 }
paid = { input = 900_000, output = 1_800_000, cache_read = 90_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[[model."tiers".tier]]
name = "pro in the morning"
when = [
  { dim = "request_attr", path = "metadata.mode", equals = "pro" },
  { dim = "wall_clock", timezone = "Europe/Berlin", weekdays = [1, 2, 3, 4, 5], hours = [9, 10, 11] },
]
multiplier = "133/100"
[[model."tiers".tier]]
name = "long"
when = [{ dim = "context_len", context_len_gt = 1000 }]
price = { input = 3_000_000, output = 3_000_000, cache_read = 300_000 }
[model."long"]
max_output_tokens = 40_000
price = { input = 1, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."windowed"]
context_window = 30_000
price = { input = 1, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."endless"]
price = { input = 1, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."per-call"]
billing_unit = "per_call"
price = { per_call = 2_500 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

/// Monday, 9 February 2026, 10:00 in Berlin.
const MORNING: i64 = 1_770_627_600_000;

fn quote(house: &House, query: &str, body: &Value) -> RequestBuilder {
    house.http.post(house.url(&format!("/v1/quote?{query}"))).bearer_auth(&house.key).json(body)
}

async fn quoted(house: &House, query: &str, body: &Value) -> Value {
    let reply = quote(house, &format!("endpoint={CHAT}{query}"), body).send().await.expect("a reply");
    let status = reply.status();
    let quoted: Value = reply.json().await.expect("JSON");
    assert_eq!(status, 200, "{quoted}");
    quoted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_holds_and_sends_nothing_and_names_the_hold_of_the_call() {
    let house = House::new().await;
    let mut body = chat("hello there [[sim:tokens=2]]");
    body["max_tokens"] = json!(100);
    let bound = quoted(&house, "", &body).await;
    assert_eq!((bound["kind"].as_str(), bound["model"].as_str()), (Some("upper_bound"), Some(MODEL)));
    let lines = bound["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 2, "{bound}");
    assert_eq!(
        (&lines[1]["face"], &lines[1]["quantity"], &lines[1]["micro_usd"]),
        (&json!("output"), &json!(100), &json!(2_000_000))
    );
    let prompt = lines[0]["quantity"].as_i64().expect("a number");
    assert_eq!(bound["total_nano_usd"], prompt * 1_000 + 100 * 2_000);
    assert_eq!(bound["hold_nano_usd"], bound["total_nano_usd"]);
    assert_eq!((&bound["tier"], &bound["group"], &bound["multiplier"]), (&Value::Null, &json!("default"), &json!("1")));
    assert_eq!(bound["pricing_version"], house.running().app.serving.load().catalog.pricing_version(0));
    assert_eq!(bound["depends_on"].as_array().map(Vec::len), Some(3));
    assert_eq!(bound["would_be_refused"], Value::Null);
    house.quiet().await;
    assert!(house.sim.received().is_empty());
    assert_eq!(house.available().await, 10_000_000_000);
    let rows = house.running().app.store.usage(Some(house.account), Default::default()).await.expect("rows");
    assert!(rows.is_empty(), "a quote is no call");

    let reply = house.post(&body).send().await.expect("a reply");
    let row = house.row(call_id(&reply)).await;
    assert_eq!(row.hold.nano(), bound["hold_nano_usd"].as_i64().expect("a number"));
    assert!(row.charge <= row.hold);
    // What it used, stated beforehand, would have been quoted at just that.
    let exact = quoted(&house, "&input=3&output=2", &body).await;
    assert_eq!((&exact["kind"], &exact["depends_on"]), (&json!("exact"), &json!([])));
    assert_eq!(exact["total_nano_usd"], row.charge.nano());
    assert_eq!(exact["hold_nano_usd"], row.hold.nano());
}

/// What is held at first, and the most that a call can come to: in thousands of nano-USD, which are
/// tokens of output here.
#[tokio::test(flavor = "multi_thread")]
async fn a_quote_names_the_most_that_a_call_can_cost() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    for (model, extra, held, most, kind) in [
        ("long", json!({}), 16_384, Some(40_000), "upper_bound"),
        ("long", json!({ "stream": true }), 4_096, Some(40_000), "upper_bound"),
        ("long", json!({ "stream": true, "n": 2 }), 8_192, Some(80_000), "upper_bound"),
        ("long", json!({ "stream": true, "max_tokens": 100 }), 100, Some(100), "upper_bound"),
        ("long", json!({ "max_tokens": 50_000 }), 40_000, Some(40_000), "upper_bound"),
        ("windowed", json!({ "stream": true }), 4_096, Some(30_000), "upper_bound"),
        ("windowed", json!({ "max_tokens": 50_000 }), 30_000, Some(30_000), "upper_bound"),
        ("endless", json!({ "stream": true }), 4_096, None, "open"),
        ("endless", json!({ "max_tokens": 50_000 }), 50_000, Some(50_000), "upper_bound"),
        ("per-call", json!({}), 2_500, Some(2_500), "upper_bound"),
    ] {
        let mut body = chat("[[sim:tokens=2]]");
        body["model"] = json!(model);
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        let quote = quoted(&house, "", &body).await;
        let thousands = |name: &str| quote[name].as_i64().map(|nano| nano / 1_000);
        assert_eq!(
            (thousands("hold_nano_usd"), thousands("most_nano_usd")),
            (Some(held), most),
            "{model} {extra}: {quote}"
        );
        assert_eq!(quote["kind"], kind, "{model} {extra}");
        assert_eq!(thousands("total_nano_usd"), most.or(Some(held)), "{model} {extra}");
        let reply = house.post(&body).send().await.expect("a reply");
        let call = call_id(&reply);
        reply.bytes().await.expect("an answer");
        house.quiet().await;
        assert_eq!(Some(house.row(call).await.hold.nano()), quote["hold_nano_usd"].as_i64(), "{model} {extra}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tier_is_shown_with_the_facts_that_chose_it() {
    let plan = Plan { catalog: CATALOG, now: Some(MORNING), usd: "0", ..Plan::default() };
    let house = House::with(plan).await;
    house.credit("trial", Pot::Trial, Money::from_usd(10).expect("fits")).await;
    let mut body = chat("hi");
    body["model"] = json!("tiers");
    let base = quoted(&house, "", &body).await;
    assert_eq!(
        (&base["tier"], &base["tier_is_settled"], &base["paid_prices"]),
        (&Value::Null, &json!(true), &json!(false))
    );
    body["metadata"] = json!({ "mode": "pro" });
    let pro = quoted(&house, "&input=10&output=1", &body).await;
    assert_eq!(pro["tier"]["name"], "pro in the morning");
    assert_eq!(
        pro["tier"]["why"],
        json!([
            { "dim": "request_attr", "path": "metadata.mode", "equals": "pro", "fact": "pro" },
            { "dim": "wall_clock", "timezone": "Europe/Berlin", "weekdays": [1, 2, 3, 4, 5], "hours": [9, 10, 11],
              "fact": "Mon 2026-02-09 10:00:00 +01:00" },
        ])
    );
    // 12,000 × 133/100
    assert_eq!((&pro["multiplier"], &pro["total_nano_usd"]), (&json!("133/100"), &json!(15_960)));
    // Length can still change the tier, so the bound is that of the dearer one.
    let mut body = chat(&"word ".repeat(700));
    body["model"] = json!("tiers");
    let bound = quoted(&house, "", &body).await;
    assert_eq!((&bound["tier"]["name"], &bound["tier_is_settled"]), (&json!("long"), &json!(false)));
    let short = quoted(&house, "&input=1000&output=1", &body).await;
    assert_eq!((&short["tier"], &short["total_nano_usd"]), (&Value::Null, &json!(1_002_000)));
    let long = quoted(&house, "&input=901&cache_read=100&output=1", &body).await;
    assert_eq!(long["tier"]["why"][0]["fact"], 1_001);
    assert_eq!(long["total_nano_usd"], 901 * 3_000 + 100 * 300 + 3_000);
    // After a top-up the paid prices; the bound is what is held.
    house.top_up("first", "1").await;
    let paid = quoted(&house, "&input=10&output=1", &body).await;
    assert_eq!((&paid["paid_prices"], &paid["total_nano_usd"]), (&json!(true), &json!(10 * 900 + 1_800)));
}

#[tokio::test(flavor = "multi_thread")]
async fn free_and_certain_things_are_quoted_as_such() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    let empty = quoted(&house, "&input=500&output=0", &chat("hi")).await;
    assert_eq!((&empty["lines"], &empty["total_nano_usd"]), (&json!([]), &json!(0)), "an empty answer is free");
    let mut body = chat("hi");
    body["model"] = json!("per-call");
    let call = quoted(&house, "", &body).await;
    assert_eq!(
        (&call["total_nano_usd"], &call["depends_on"], &call["billing_unit"]),
        (&json!(2_500_000), &json!([]), &json!("per_call"))
    );
    let exact = quoted(&house, "&input=500&output=9", &body).await;
    assert_eq!(exact["total_nano_usd"], 2_500_000, "tokens of such a model are information");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_served_is_refused_and_what_could_not_be_paid_is_shown() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    house.credit("little", Pot::Trial, Money::from_nano(1_000)).await;
    let body = chat("hi");
    let rows = [
        ("", 400, "missing_parameter", "endpoint"),
        ("endpoint=/v1/nothing", 400, "invalid_parameter", "endpoint"),
        ("endpoint=/v1/balance", 400, "invalid_parameter", "endpoint"),
        ("endpoint=%2Fv1%2Fchat%2Fcompletions&tokens=3", 400, "unknown_parameter", "tokens"),
        ("endpoint=/v1/chat/completions&input=-1", 400, "invalid_parameter", "input"),
        ("endpoint=/v1/chat/completions&output=1e3", 400, "invalid_parameter", "output"),
    ];
    for (query, status, code, param) in rows {
        let (got, error) = error_of(quote(&house, query, &body).send().await.expect("a reply")).await;
        assert_eq!((got, &error["code"], &error["param"]), (status, &json!(code), &json!(param)), "{query}");
    }
    let chat_query = format!("endpoint={CHAT}");
    let rows = [
        (json!({ "model": "nothing", "messages": [{ "role": "user", "content": "x" }] }), 404, "model_not_found"),
        (json!({ "model": "no-chat", "messages": [{ "role": "user", "content": "x" }] }), 400, "unsupported_value"),
        (json!({ "model": MODEL, "messages": [] }), 400, "invalid_parameter"),
        (json!({ "model": MODEL, "messages": [{ "role": "user", "content": "x" }], "n": 0 }), 400, "invalid_parameter"),
    ];
    for (body, status, code) in rows {
        let (got, error) = error_of(quote(&house, &chat_query, &body).send().await.expect("a reply")).await;
        assert_eq!((got, &error["code"]), (status, &json!(code)), "{body}");
    }
    let overflow = quoted(
        &house,
        "",
        &json!({ "model": MODEL, "messages": [{ "role": "user", "content": "x" }], "max_tokens": u64::MAX }),
    )
    .await;
    assert!(overflow["total_nano_usd"].as_i64().expect("a number") < 3_000_000, "never above what the model can give");
    let (status, _) =
        error_of(quote(&house, &format!("{chat_query}&output={}", u64::MAX), &body).send().await.expect("a reply"))
            .await;
    assert_eq!(status, 400, "too large to be charged");

    let poor = quoted(&house, "", &body).await;
    assert_eq!(poor["would_be_refused"]["code"], "insufficient_balance");
    assert_eq!(poor["available_nano_usd"], 1_000);
    let mut body = body;
    body["model"] = json!("paid-only");
    let topup = quoted(&house, "", &body).await;
    assert_eq!(
        (&topup["would_be_refused"]["code"], &topup["available_nano_usd"]),
        (&json!("model_requires_topup"), &json!(0))
    );
    house.top_up("first", "10").await;
    assert_eq!(quoted(&house, "", &body).await["would_be_refused"], Value::Null);
    let mut house = house;
    house.key = house.new_key(|key| key.limits.total = Some(Money::from_nano(5_000))).await;
    assert_eq!(quoted(&house, "", &body).await["would_be_refused"]["code"], "key_spend_cap_reached");
    house.key = house.new_key(|key| key.models = Some(vec!["other".to_owned()])).await;
    let (status, error) = error_of(quote(&house, &chat_query, &body).send().await.expect("a reply")).await;
    assert_eq!((status, &error["code"]), (403, &json!("model_not_allowed")));
}
