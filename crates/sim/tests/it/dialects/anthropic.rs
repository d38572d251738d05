//! Anthropic: strictness, shapes, and a tool turn with thoughts.

use serde_json::{Value, json};
use tollgate_sim::{Sim, SimSettings};

use super::{Dialect::Anthropic, events, refusals};
use crate::it::client::{read, request, request_with, sim};

fn tool(name: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}})
}

fn turns(assistant: Value, user: Value) -> Value {
    json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": assistant}, {"role": "user", "content": user}])
}

#[tokio::test]
async fn refuses_what_anthropic_refuses() {
    let sim = sim().await;
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "fine"});
    let tools = json!([tool("look")]);
    let mark = json!({"type": "ephemeral"});
    let marked = |count: usize| -> Value {
        (0..count).map(|_| json!({"type": "text", "text": "x", "cache_control": mark})).collect()
    };
    let image = |media: &str, data: &str| {
        let source = json!({"type": "base64", "media_type": media, "data": data});
        json!({"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]})
    };
    let schema = |schema: Value| json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}});
    refusals(Anthropic, &sim, "m", &[
        (json!({"-": "max_tokens"}), "max_tokens: Field required"),
        (json!({"messages": []}), "at least one message"),
        (json!({"frequency_penalty": 1}), "frequency_penalty: Extra inputs are not permitted"),
        (json!({"messages": [{"role": "assistant", "content": "x"}]}), "first message must use"),
        (json!({"messages": [{"role": "tool", "content": "x"}]}), "messages.0.role"),
        (json!({"messages": [{"role": "user", "content": ""}]}), "non-empty content"),
        (json!({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}), "text content blocks must be non-empty"),
        (json!({"messages": [{"role": "user", "content": "x", "name": "bob"}]}), "messages.0.name: Extra inputs"),
        (json!({"messages": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}]}), "does not match any of the expected tags"),
        (json!({"messages": turns(json!([call]), json!("and?")), "tools": tools}), "without `tool_result` blocks"),
        (json!({"messages": turns(json!("x"), json!([result])), "tools": tools}), "unexpected `tool_use_id`"),
        (json!({"messages": turns(json!([call]), json!([{"type": "text", "text": "x"}, result])), "tools": tools}), "must come before"),
        (json!({"messages": turns(json!([call]), json!([result]))}), "must define tools"),
        (json!({"messages": turns(json!([call]), json!([result, {"type": "text", "text": "x"}])), "tools": tools}), ""),
        (json!({"messages": turns(json!([{"type": "tool_use", "id": "a.b", "name": "look", "input": {}}]), json!("x")), "tools": tools}), "pattern"),
        (json!({"messages": turns(json!([{"type": "tool_use", "id": "a", "name": "look", "input": "{}"}]), json!("x")), "tools": tools}), "valid dictionary"),
        (json!({"messages": turns(json!([{"type": "thinking", "thinking": "x", "signature": "forged"}]), json!("x"))}), "Invalid `signature`"),
        (json!({"messages": turns(json!([{"type": "thinking", "thinking": "x"}]), json!("x"))}), "signature: Field required"),
        (json!({"messages": turns(json!([{"type": "redacted_thinking", "data": "forged"}]), json!("x"))}), "Invalid `data`"),
        (json!({"tools": [{"name": "x"}]}), "tools.0.input_schema: Field required"),
        (json!({"tools": [{"name": "x", "input_schema": {}}]}), "Input should be 'object'"),
        (json!({"tools": [{"name": "a/b", "input_schema": {"type": "object"}}]}), "pattern"),
        (json!({"tools": [tool("x"), tool("x")]}), "must be unique"),
        (json!({"tools": [{"type": "function", "function": {"name": "x"}}]}), "tools.0.name: Field required"),
        (json!({"tool_choice": {"type": "auto"}}), "only be specified while providing tools"),
        (json!({"tools": tools, "tool_choice": {"type": "none", "disable_parallel_tool_use": true}}), "Extra inputs"),
        (json!({"tools": tools, "tool_choice": {"type": "tool", "name": "other"}}), "not found in provided tools"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 100}}), "greater than or equal to 1024"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 4096}}), "must be greater than `thinking.budget_tokens`"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 2000}, "temperature": 0.5}), "may only be set to 1"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 2000}, "tools": tools, "tool_choice": {"type": "any"}}), "forces tool use"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 2000}, "tools": tools, "messages": turns(json!([call]), json!([result]))}), "Expected `thinking`"),
        (json!({"messages": [{"role": "user", "content": [{"type": "text", "text": " \n"}]}]}), "non-whitespace text"),
        (json!({"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}]}), ""),
        (json!({"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}, {"role": "user", "content": "z"}]}), "must follow a user turn"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 2000}, "top_p": 0.5}), "greater than or equal to 0.95"),
        (json!({"thinking": {"type": "adaptive"}, "top_p": 0.98}), ""),
        (json!({"temperature": 1.5}), "temperature"),
        (json!({"stop_sequences": [" "]}), "non-whitespace"),
        (json!({"metadata": {"team": "x"}}), "metadata.team: Extra inputs"),
        (json!({"system": [{"type": "text", "text": "x", "cache_control": null}]}), "cache_control"),
        (json!({"system": marked(5)}), "maximum of 4 blocks"),
        (json!({"system": marked(4)}), ""),
        (image("image/jpg", "AAAA"), "image/jpg"),
        (image("image/png", "_-__"), "invalid base64"),
        (image("image/png", "AAAA"), ""),
        (schema(json!({"type": "object", "properties": {}})), "additionalProperties"),
        (schema(json!({"type": "object", "additionalProperties": false, "properties": {"n": {"type": "integer", "minimum": 1}}})), "'minimum' is not supported"),
    ]).await;
}

#[tokio::test]
async fn asks_for_its_key_and_version() {
    let sim = Sim::start(SimSettings { require_key: Some("k".into()), ..SimSettings::default() }).await.unwrap();
    let body = Anthropic.body("sim-plain", "x").to_string();
    let plain = read(request(&sim, "POST", "/v1/messages", &body).await).await;
    assert!(plain.status() == 400 && plain.text().contains("anthropic-version"));
    let locked = Sim::start(SimSettings { require_key: Some("z".into()), ..SimSettings::default() }).await.unwrap();
    let answer = Anthropic.ask(&locked, "m", &Anthropic.body("sim-plain", "x")).await;
    assert_eq!((answer.status(), &answer.json()["error"]["type"]), (401, &json!("authentication_error")));
    let headers = "anthropic-version: 1\r\nx-api-key: z\r\n";
    let odd = read(request_with(&locked, "POST", "/v1/messages", headers, &body).await).await;
    assert!(odd.status() == 400 && odd.text().contains("is not a valid version"));
    let headers = "anthropic-version: 2026-10-21\r\nx-api-key: z\r\n";
    assert_eq!(read(request_with(&locked, "POST", "/v1/messages", headers, &body).await).await.status(), 200);
    assert!(locked.received().iter().all(|received| received.header("x-api-key").is_none()));
}

#[tokio::test]
async fn counts_without_billing() {
    let sim = sim().await;
    let mut body = Anthropic.body("sim-plain", "one two three");
    let headers = "anthropic-version: 2023-06-01\r\n";
    let count = async |body: &Value| {
        let body = body.to_string();
        read(request_with(&sim, "POST", "/v1/messages/count_tokens", headers, &body).await).await
    };
    assert!(count(&body).await.text().contains("max_tokens: Extra inputs"));
    body.as_object_mut().unwrap().remove("max_tokens");
    assert_eq!(count(&body).await.json(), json!({"input_tokens": 3}));
    assert_eq!(sim.counts().accepted, 0);
}

#[tokio::test]
async fn streams_blocks_in_order() {
    let sim = sim().await;
    let answer = Anthropic.stream(&sim, "m", &Anthropic.body("sim-reasoning", "one two")).await;
    let events = events(&answer);
    assert!(events.iter().all(|(name, data)| *name == data["type"]), "event lines say the type");
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(&names[..3], ["message_start", "ping", "content_block_start"]);
    assert_eq!(&names[names.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    let signatures = events.iter().filter(|(_, data)| data["delta"]["type"] == "signature_delta").count();
    assert_eq!(signatures, 1);
    let (_, end) = &events[events.len() - 2];
    assert_eq!((&end["usage"]["input_tokens"], &end["usage"]["output_tokens"]), (&json!(2), &json!(19)));
    let whole =
        Anthropic.ask(&sim, "m", &Anthropic.body("sim-cached-60", "[[sim:prompt=100 written=20]]")).await.json();
    let usage = &whole["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(20), &json!(60)));
}

#[tokio::test]
async fn a_tool_turn_needs_its_thoughts_back() {
    let sim = sim().await;
    let mut body = Anthropic.body("sim-reasoning_tools", "weather?");
    body["tools"] = json!([tool("look")]);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    let first = Anthropic.ask(&sim, "m", &body).await.json();
    assert_eq!(first["stop_reason"], "tool_use");
    let kinds: Vec<_> =
        first["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "tool_use", "tool_use"]);
    let results: Vec<_> = ["toolu_sim_0", "toolu_sim_1"]
        .iter()
        .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "sunny"}))
        .collect();
    let with = |content: Value| {
        let mut body = body.clone();
        body["messages"] = turns(content, json!(results));
        body["messages"][0]["content"] = json!("weather?");
        body
    };
    let whole = first["content"].clone();
    let second = Anthropic.ask(&sim, "m", &with(whole.clone())).await;
    assert_eq!((second.status(), &second.json()["stop_reason"]), (200, &json!("end_turn")));
    let bare = Value::from(whole.as_array().unwrap()[1..].to_vec());
    assert_eq!(Anthropic.ask(&sim, "m", &with(bare)).await.status(), 400);
    let mut forged = whole;
    forged[0]["thinking"] = json!("other thoughts");
    assert!(Anthropic.ask(&sim, "m", &with(forged)).await.text().contains("Invalid `signature`"));
}
