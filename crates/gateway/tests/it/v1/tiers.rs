//! Tiers over the whole way of a call: any parameter of the request can choose one, and what was chosen is what is charged.

use crate::house::{House, Plan, call_id};
use serde_json::{Value, json};

/// A token costs 1,000 and 2,000 nano-USD; each tier is a plain multiple of that.
const CATALOG: &str = r#"
[model."tiered"]
context_window = 100000
max_output_tokens = 1000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[[model."tiered".tier]]
name = "pro and fine"
when = [{ dim = "request_attr", path = "metadata.mode", equals = "pro" }, { dim = "request_attr", path = "quality", equals = "fine" }]
multiplier = 7
[[model."tiered".tier]]
name = "pro"
when = [{ dim = "request_attr", path = "metadata.mode", equals = "pro" }]
multiplier = 5
[[model."tiered".tier]]
name = "two answers"
when = [{ dim = "request_attr", path = "n", equals = "2" }]
multiplier = 3
[[model."tiered".tier]]
name = "by default"
when = [{ dim = "request_attr", path = "service_tier", equals = "auto" }]
multiplier = 2
"#;

#[tokio::test(flavor = "multi_thread")]
async fn any_parameter_of_the_request_can_choose_the_tier() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    let rows: [(Value, Option<&str>, i64); 9] = [
        (json!({}), Some("by default"), 2),
        (json!({ "service_tier": "auto" }), Some("by default"), 2),
        (json!({ "service_tier": null }), Some("by default"), 2),
        (json!({ "service_tier": "flex" }), None, 1),
        (json!({ "service_tier": "flex", "n": 1 }), None, 1),
        (json!({ "metadata": { "mode": "pro" } }), Some("pro"), 5),
        (json!({ "metadata": { "mode": "pro" }, "quality": "fine" }), Some("pro and fine"), 7),
        (json!({ "metadata": { "mode": "p\u{72}o" }, "service_tier": "flex" }), Some("pro"), 5),
        (json!({ "metadata": { "mode": "PRO" }, "mode": "pro", "service_tier": "flex" }), None, 1),
    ];
    for (extra, tier, times) in rows {
        let mut body =
            json!({ "model": "tiered", "messages": [{ "role": "user", "content": "hello there [[sim:tokens=2]]" }] });
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        for streams in [false, true] {
            body["stream"] = json!(streams);
            let reply = house.post(&body).send().await.expect("a reply");
            assert_eq!(reply.status(), 200);
            let call = call_id(&reply);
            reply.bytes().await.expect("the whole of it");
            let row = house.row(call).await;
            assert_eq!((row.tier.as_deref(), row.charge.nano()), (tier, times * (3 * 1_000 + 2 * 2_000)), "{extra}");
            assert!(row.hold >= row.charge && row.hold.nano() % times == 0, "held at the same tier: {extra}");
        }
    }
}

/// Long prompts cost three times as much; which one is long, the provider's number says in the end.
const LONG: &str = r#"
[model."by-length"]
context_window = 100000
max_output_tokens = 1000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[[model."by-length".tier]]
name = "long"
when = [{ dim = "context_len", context_len_gt = 100 }]
multiplier = 3
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_length_of_the_prompt_is_looked_at_again_with_the_providers_number() {
    let house = House::with(Plan { catalog: LONG, ..Plan::default() }).await;
    // About a hundred tokens by our count in each case, so that both tiers can still apply.
    let words = "word ".repeat(80);
    for (reported, tier, times) in [(99, None, 1), (100, None, 1), (101, Some("long"), 3)] {
        let text = format!("{words} [[sim:cached prompt={reported} cached=0 written=0 tokens=2]]");
        let body = json!({ "model": "by-length", "messages": [{ "role": "user", "content": text }], "max_tokens": 10 });
        let reply = house.post(&body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200);
        let row = house.row(call_id(&reply)).await;
        assert_eq!(row.counters.input, reported);
        let charge = times * (i64::try_from(reported).expect("fits") * 1_000 + 2 * 2_000);
        assert_eq!((row.tier.as_deref(), row.charge.nano()), (tier, charge), "{reported}");
        assert_eq!(row.hold.nano() % 3, 0, "held for the dearer tier");
        assert!(row.hold.nano() >= 3 * (80 * 1_000 + 10 * 2_000), "held for the dearer tier: {}", row.hold);
    }
}
