//! What the public Open Responses suite asks of a server, over a provider that speaks only chat
//! completions and over one of Anthropic's dialect: the documented fields of every response object,
//! the events, and its cases that no other file here has.

use super::socket::{Socket, ask, last};
use super::{MODELS, create, house, send};
use crate::house::events;
use reqwest::Method;
use serde_json::{Value, json};

/// Fields that a response object always has, null where empty.
const FIELDS: &str = "id object created_at completed_at status incomplete_details model previous_response_id instructions \
    output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs \
    temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier \
    prompt_cache_key";

fn check(response: &Value) {
    let missing: Vec<_> = FIELDS.split_whitespace().filter(|field| response.get(field).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?} in {response}");
    assert_eq!((&response["status"], &response["object"]), (&json!("completed"), &json!("response")));
    let usage = &response["usage"];
    assert!(
        usage["input_tokens_details"]["cached_tokens"].is_u64()
            && usage["output_tokens_details"]["reasoning_tokens"].is_u64()
    );
    assert!(response["output"].as_array().is_some_and(|items| !items.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_responses() {
    let house = house().await;
    let heart = "data:image/png;base64,iVBORw0KGgo=";
    let message = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": text });
    let phase =
        |phase: &str, text: &str| json!({ "type": "message", "role": "assistant", "phase": phase, "content": text });
    let inputs = [
        ("basic-response", json!([message("user", "Say hello.")])),
        (
            "assistant-phase",
            json!([phase("commentary", "Thinking."), phase("final_answer", "Four."), message("user", "Repeat.")]),
        ),
        ("system-prompt", json!([message("system", "You are a pirate."), message("user", "Hello.")])),
        (
            "multi-turn",
            json!([message("user", "I am Alice."), message("assistant", "Hello Alice!"), message("user", "Who?")]),
        ),
        (
            "image-input",
            json!([{ "type": "message", "role": "user", "content": [
                { "type": "input_text", "text": "What is it?" }, { "type": "input_image", "image_url": heart }] }]),
        ),
    ];
    let tools = json!([{ "type": "function", "name": "get_weather", "description": "The weather", "parameters": {
        "type": "object", "properties": { "location": { "type": "string" } }, "required": ["location"] } }]);
    for model in &MODELS[..2] {
        for (case, input) in &inputs {
            let made = create(&house, json!({ "model": model, "input": input })).await;
            assert_eq!(made["output"][0]["type"], "message", "{case}");
            check(&made);
        }
        let asked = json!({ "model": model, "tools": tools, "input": "weather? [[sim:tools calls=1]]" });
        let made = create(&house, asked).await;
        assert_eq!(made["output"][0]["type"], "function_call", "tool-calling");
        let tool = made["tools"][0].as_object().expect("a tool");
        assert!(["description", "parameters", "strict"].iter().all(|field| tool.contains_key(*field)), "{tool:?}");
        check(&made);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streamed_responses() {
    let house = house().await;
    for model in &MODELS[..2] {
        let body = json!({ "model": model, "input": [{ "type": "message", "role": "user", "content": "Count." }], "stream": true });
        let text = send(&house, Method::POST, "/v1/responses", Some(&body)).await.text().await.expect("text");
        assert!(!text.contains('\r') && text.ends_with("data: [DONE]\n\n"), "LF only, and the mark at the end");
        let all = events(&text);
        for (at, event) in all.iter().enumerate() {
            assert_eq!(event["sequence_number"], json!(at));
            let line = format!("event: {}\n", event["type"].as_str().expect("a type"));
            assert!(text.contains(&line));
        }
        let kinds: Vec<_> = all.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect();
        assert_eq!(
            &kinds[..4],
            ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]
        );
        check(&last(&all)["response"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets() {
    let house = house().await;
    for model in &MODELS[..2] {
        let mut socket = Socket::open(&house).await;
        let ask = |text: &str| {
            let mut message = ask(text, None);
            message["model"] = json!(model);
            message
        };
        let mut plain = ask("Count.");
        plain.as_object_mut().expect("an object").remove("store");
        let stored = socket.turn(plain).await;
        check(&last(&stored)["response"]);
        for text in ["first", "second"] {
            check(&last(&socket.turn(ask(text)).await)["response"]);
        }
        let body = json!({ "model": model, "prompt_cache_key": "k", "input": [
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Remember slate." }] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "OK." }] },
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Compress this." }] } ] });
        let pressed: Value =
            send(&house, Method::POST, "/v1/responses/compact", Some(&body)).await.json().await.expect("JSON");
        for field in ["id", "object", "output", "created_at", "usage"] {
            assert!(pressed.get(field).is_some_and(|value| !value.is_null()), "compact-response: {field} in {pressed}");
        }
        let mut input = pressed["output"].as_array().expect("items").clone();
        input.push(json!({ "type": "message", "role": "user", "content": "Continue." }));
        let mut chain = ask("");
        (chain["input"], chain["tools"]) = (json!(input), json!([]));
        check(&last(&socket.turn(chain).await)["response"]);
    }
}
