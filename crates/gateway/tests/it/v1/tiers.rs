//! Tiers over the whole way of a call: any parameter of the request can choose one, and what was
//! chosen is what is charged.

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

/// Thinking costs twice as much, a decision or a message its own price.
const FACTS: &str = r#"
[model."gemini-thinks"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
context_window = 100000
max_output_tokens = 1000
reasoning_efforts = ["low", "high"]
chat = { thinks_unasked = false }
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[[model."gemini-thinks".tier]]
name = "thinking"
when = [{ thinking = true }]
price = { input = 1_000_000, output = 4_000_000 }
[[model."gemini-thinks".tier]]
name = "messages"
when = [{ endpoint = "anthropic" }]
multiplier = 3
[model."always"]
chat = { thinks_always = true }
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[[model."always".tier]]
name = "thinking"
when = [{ thinking = true }]
multiplier = 5
"#;

#[tokio::test(flavor = "multi_thread")]
async fn thinking_and_the_endpoint_choose_a_tier_in_every_dialect() {
    let house = House::with(Plan { catalog: FACTS, ..Plan::default() }).await;
    let words = "hello there [[sim:tokens=2]]";
    let turns = json!([{ "role": "user", "content": words }]);
    let gemini = json!([{ "role": "user", "parts": [{ "text": words }] }]);
    let (on, messages) = (Some("thinking"), Some("messages"));
    let rows: Vec<(&str, Value, Option<&str>)> = vec![
        ("chat/completions", json!({}), None),
        ("chat/completions", json!({ "reasoning_effort": "high" }), on),
        ("chat/completions", json!({ "reasoning_effort": "none" }), None),
        ("chat/completions", json!({ "reasoning": { "enabled": false } }), None),
        ("chat/completions", json!({ "enable_thinking": true }), on),
        ("chat/completions", json!({ "enable_thinking": false }), None),
        ("chat/completions", json!({ "thinking": { "type": "enabled" } }), on),
        ("chat/completions", json!({ "thinking": { "type": "disabled" } }), None),
        ("chat/completions", json!({ "chat_template_kwargs": { "enable_thinking": true } }), on),
        ("chat/completions", json!({ "reasoning_effort": "none", "enable_thinking": true }), on),
        ("responses", json!({}), None),
        ("responses", json!({ "reasoning": { "effort": "low" } }), on),
        ("messages", json!({ "max_tokens": 900 }), messages),
        ("messages", json!({ "max_tokens": 2000, "thinking": { "type": "enabled", "budget_tokens": 1024 } }), on),
        ("gemini", json!({}), None),
        ("gemini", json!({ "generationConfig": { "thinkingConfig": { "thinkingBudget": 0 } } }), None),
        ("gemini", json!({ "generationConfig": { "thinkingConfig": { "thinkingBudget": -1 } } }), on),
    ];
    for (path, extra, tier) in rows {
        let (url, mut body) = match path {
            "gemini" => ("/v1beta/models/gemini-thinks:generateContent".to_owned(), json!({ "contents": gemini })),
            "responses" => ("/v1/responses".to_owned(), json!({ "model": "gemini-thinks", "input": words })),
            path => (format!("/v1/{path}"), json!({ "model": "gemini-thinks", "messages": turns })),
        };
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        let reply = house.http.post(house.url(&url)).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{path} {extra}");
        let call = call_id(&reply);
        reply.bytes().await.expect("the whole of it");
        let row = house.row(call).await;
        assert_eq!(row.tier.as_deref(), tier, "{path} {extra}");
        let (input, output) = match tier {
            None => (1_000, 2_000),
            Some("thinking") => (1_000, 4_000),
            Some(_) => (3_000, 6_000),
        };
        let used = row.counters;
        assert_eq!(row.charge.nano(), (used.input as i64) * input + (used.output as i64) * output, "{path} {extra}");
        assert!(row.hold >= row.charge, "{path} {extra}");
    }
    let asked = json!({ "model": "always", "messages": turns, "reasoning_effort": "none" });
    let path = "/v1/quote?endpoint=/v1/chat/completions&input=1&output=1";
    let quote = house.http.post(house.url(path)).bearer_auth(&house.key).json(&asked).send().await.expect("a reply");
    let quote: Value = quote.json().await.expect("JSON");
    assert_eq!((&quote["tier"]["name"], &quote["total_nano_usd"]), (&json!("thinking"), &json!(15_000)));
}

/// The same price on providers of two dialects.
const PRIORITY: &str = r#"
[model."gemini-urgent"]
supported_endpoint_types = ["openai", "anthropic", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[[model."gemini-urgent".tier]]
name = "urgent"
when = [{ dim = "request_attr", path = "service_tier", equals = "priority" }]
multiplier = 2
[[model."gemini-urgent".tier]]
name = "patient"
when = [{ dim = "request_attr", path = "service_tier", equals = "flex" }]
multiplier = "0.5"
[model."gemini-elsewhere"]
supported_endpoint_types = ["openai", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-anthropic", upstream_model = "sim-plain" }]
[[model."gemini-elsewhere".tier]]
name = "patient"
when = [{ dim = "request_attr", path = "service_tier", equals = "flex" }]
multiplier = "0.5"
"#;

/// A tier is asked for in four spellings and priced by one, which is what the provider gets; and
/// one that the provider would not get is neither sold nor charged for.
#[tokio::test(flavor = "multi_thread")]
async fn the_priced_tier_is_the_one_that_is_sent() {
    let house = House::with(Plan { catalog: PRIORITY, ..Plan::default() }).await;
    let ask = async |model: &str, extra: Value| {
        let mut body =
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "hello there [[sim:tokens=2]]" }] }] });
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        let path = format!("/v1beta/models/{model}:generateContent");
        house
            .http
            .post(house.url(&path))
            .header("x-goog-api-key", &house.key)
            .json(&body)
            .send()
            .await
            .expect("a reply")
    };
    let cost = 3 * 1_000 + 2 * 2_000;
    for (extra, tier, charge, sent) in [
        (json!({ "serviceTier": "PRIORITY" }), Some("urgent"), 2 * cost, json!("priority")),
        (json!({ "service_tier": "priority" }), Some("urgent"), 2 * cost, json!("priority")),
        (json!({ "serviceTier": "FLEX" }), Some("patient"), cost / 2, json!("flex")),
        (json!({ "serviceTier": "STANDARD" }), None, cost, json!("default")),
        (json!({}), None, cost, Value::Null),
    ] {
        let reply = ask("gemini-urgent", extra.clone()).await;
        assert_eq!(reply.status(), 200, "{extra}");
        let row = house.row(call_id(&reply)).await;
        assert_eq!((row.tier.as_deref(), row.charge.nano()), (tier, charge), "{extra}");
        assert_eq!(house.sim.received().last().expect("a call").json()["service_tier"], sent, "{extra}");
    }
    let asked = house.sim.received().len();
    for (model, extra, named) in [
        ("gemini-urgent", json!({ "serviceTier": "PRIORITY", "service_tier": "FLEX" }), "serviceTier"),
        ("gemini-elsewhere", json!({ "serviceTier": "FLEX" }), "service_tier"),
    ] {
        let reply = ask(model, extra).await;
        let call = call_id(&reply);
        let (status, error) = crate::house::error_of(reply).await;
        assert!(
            status == 400 && error["message"].as_str().is_some_and(|text| text.contains(named)),
            "{model}: {error}"
        );
        assert!(
            house
                .running()
                .app
                .store
                .usage_of(house.account, call)
                .await
                .is_ok_and(|row| row.is_none_or(|row| row.charge.is_zero()))
        );
    }
    assert_eq!(house.sim.received().len(), asked, "what was refused was not sent");
    house.quiet().await;
    let spent = 2 * cost + 2 * cost + cost / 2 + cost + cost;
    assert_eq!(house.available().await, 10_000_000_000 - spent);
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
