//! Models that do not think, and models that think by a budget within a range: their providers
//! refuse what does not fit them, so it is left out or cut before.

use super::client::Client;
use crate::house::{House, Plan};
use serde_json::{Value, json};
use tollgate_wire::Dialect;

const CATALOG: &str = r#"
[model."gemini-unthinking-chat"]
max_output_tokens = 64000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-unthinking" }]

[model."gemini-unthinking-responses"]
max_output_tokens = 64000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-responses", upstream_model = "sim-unthinking" }]

[model."gemini-thinking-responses"]
max_output_tokens = 64000
reasoning_efforts = ["low", "medium", "high"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-responses", upstream_model = "sim-plain" }]

[model."gemini-pro"]
max_output_tokens = 64000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-gemini", upstream_model = "sim-budget-128-32768" }]
chat = { gemini3 = false, least_budget = 128, most_budget = 32_768, thinks_always = true }
"#;

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

/// Asks with these members added; gives what was reported as dropped and what the provider got.
async fn ask(house: &House, client: Client, model: &str, more: &Value) -> (String, Value) {
    let mut body = client.body(model, "say [[sim:tokens=3]]", false);
    more.as_object().expect("a map").iter().for_each(|(name, value)| body[name] = value.clone());
    let reply = client.post(house, &client.path(model, false), &body).send().await.expect("a reply");
    let dropped = reply.headers().get("x-tollgate-dropped").map(|names| names.to_str().expect("text").to_owned());
    let status = reply.status();
    assert_eq!(status, 200, "{client:?} {model} {more}: {}", reply.text().await.unwrap_or_default());
    let received = house.sim.received();
    (dropped.unwrap_or_default(), serde_json::from_slice(&received.last().expect("a call").body).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_think_gets_no_thinking_settings() {
    let house = house().await;
    for (dialect, more) in [
        (Dialect::Chat, json!({})),
        (Dialect::Responses, json!({})),
        (Dialect::Anthropic, json!({})),
        (Dialect::Anthropic, json!({"thinking": {"type": "disabled"}})),
        (Dialect::Anthropic, json!({"thinking": {"type": "adaptive"}})),
        (Dialect::Gemini, json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}})),
        (Dialect::Gemini, json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}})),
    ] {
        for model in ["gemini-unthinking-chat", "gemini-unthinking-responses"] {
            ask(&house, Client(dialect), model, &more).await;
        }
    }
    // One that thinks is asked for its sealed thoughts as ever.
    let (_, sent) = ask(&house, Client(Dialect::Chat), "gemini-thinking-responses", &json!({})).await;
    assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_cut_to_what_the_model_takes() {
    let house = house().await;
    for (dialect, more, budget, expected) in [
        (
            Dialect::Anthropic,
            json!({"max_tokens": 60_000, "thinking": {"type": "enabled", "budget_tokens": 40_000}}),
            32_768,
            "reasoning",
        ),
        (Dialect::Anthropic, json!({"thinking": {"type": "disabled"}}), 128, "reasoning"),
        (Dialect::Chat, json!({"reasoning_effort": "max", "max_tokens": 60_000}), 32_768, ""),
        (Dialect::Responses, json!({"reasoning": {"effort": "none"}}), 128, "reasoning"),
    ] {
        let (dropped, sent) = ask(&house, Client(dialect), "gemini-pro", &more).await;
        assert_eq!(dropped, expected, "{more}");
        assert_eq!(sent["generationConfig"]["thinkingConfig"]["thinkingBudget"], budget, "{more}: {sent}");
    }
}
