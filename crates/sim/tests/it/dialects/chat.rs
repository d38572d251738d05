//! Chat completions by OpenAI itself: what it refuses and many servers of its dialect let pass.

use serde_json::{Value, json};

use crate::it::client::{ask, post, sim};

/// Each change to a body that is taken, and a part of what is said to it; with nothing to say it is
/// taken.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table")]
async fn refuses_what_openai_refuses() {
    let sim = sim().await;
    let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    let part = |part: Value| user(json!([part]));
    let function = |function: Value| json!({"tools": [{"type": "function", "function": function}]});
    let look = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
    let called = |call: Value, result: Value| json!({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "tool_calls": [call]}, result]});
    let call = json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "fine"});
    let format = |format: Value| json!({"response_format": format});
    let closed = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let table = [
        (json!({"top_k": 4}), "Unrecognized request argument supplied: top_k"),
        (json!({"thinking": {"type": "enabled"}}), "Unrecognized request argument supplied: thinking"),
        (part(json!({"type": "image", "source": {}})), "Invalid value: 'image'"),
        (
            part(json!({"type": "text", "text": "x", "cache_control": {}})),
            "Unknown parameter: 'messages[0].content[0].cache_control'",
        ),
        (part(json!({"type": "image_url", "image_url": "https://a/b.png"})), "expected an object"),
        (part(json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,_-"}})), "valid URL"),
        (part(json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}})), ""),
        (user(json!([])), "at least one part"),
        (
            json!({"messages": [{"role": "user", "content": "x", "is_error": true}]}),
            "Unknown parameter: 'messages[0].is_error'",
        ),
        (json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": null}]}), "got null"),
        (
            json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "tool_calls": []}]}),
            "too short",
        ),
        (
            json!({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "reasoning_details": []}]}),
            "Unknown parameter",
        ),
        (called(call.clone(), result.clone()), ""),
        (
            called(json!({"id": "c", "function": {"name": "look", "arguments": "{}"}}), result.clone()),
            "messages[1].tool_calls[0].type",
        ),
        (
            called(
                json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": {}}}),
                result.clone(),
            ),
            "expected a string",
        ),
        (
            called(
                json!({"id": "c", "type": "function", "function": {"name": "a.b", "arguments": "{}"}}),
                result.clone(),
            ),
            "pattern",
        ),
        (
            called(
                json!({"id": "c".repeat(65), "type": "function", "function": {"name": "look", "arguments": "{}"}}),
                json!({"role": "tool", "tool_call_id": "c".repeat(65), "content": "x"}),
            ),
            "maximum length 64",
        ),
        (
            called(
                call.clone(),
                json!({"role": "tool", "tool_call_id": "c", "content": [{"type": "image_url", "image_url": {"url": "https://a"}}]}),
            ),
            "Invalid value: 'image_url'",
        ),
        (json!({"tools": []}), "too short"),
        (json!({"tools": [{"name": "look", "input_schema": {}}]}), "Missing required parameter: 'tools[0].type'"),
        (function(json!({"name": "a b"})), "pattern"),
        (function(json!({"name": "n".repeat(65)})), "pattern"),
        (function(json!({"name": "x", "parameters": {}})), "JSON Schema of 'type: \"object\"'"),
        (
            function(json!({"name": "x", "strict": true, "parameters": {"type": "object", "properties": {"a": {}}}})),
            "additionalProperties",
        ),
        (function(json!({"name": "x", "strict": true, "parameters": closed})), ""),
        (json!({"tool_choice": "auto"}), "only allowed when 'tools' are specified"),
        (json!({"parallel_tool_calls": false}), "only allowed when 'tools' are specified"),
        (
            json!({"tools": look, "tool_choice": {"type": "function", "name": "look"}}),
            "Unknown parameter: 'tool_choice.name'",
        ),
        (
            json!({"tools": look, "tool_choice": {"type": "function", "function": {"name": "other"}}}),
            "not found in 'tools'",
        ),
        (json!({"tools": look, "tool_choice": {"type": "function", "function": {"name": "look"}}}), ""),
        (json!({"tools": look, "tool_choice": {"type": "any"}}), "tool_choice.type"),
        (json!({"stop": ["a", "b", "c", "d", "e"]}), "maximum length 4"),
        (json!({"temperature": 2.5}), "temperature"),
        (json!({"top_logprobs": 2}), "only allowed when 'logprobs'"),
        (json!({"max_tokens": 5, "max_completion_tokens": 5}), "at the same time"),
        (json!({"metadata": {"a": 1}}), "16 pairs of strings"),
        (json!({"reasoning_effort": "enormous"}), "reasoning_effort"),
        (json!({"service_tier": "standard_only"}), "service_tier"),
        (format(json!({"type": "json_object"})), "must contain the word 'json'"),
        (
            format(json!({"type": "json_schema", "name": "n", "schema": {}})),
            "Unknown parameter: 'response_format.name'",
        ),
        (
            format(
                json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "object"}}}),
            ),
            "additionalProperties",
        ),
        (format(json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": closed}})), ""),
    ];
    for (change, expected) in table {
        let mut body = ask("sim-strict", "hello");
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        let answer = post(&sim, &body).await;
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_string();
        let param = answer.json()["error"]["param"].as_str().unwrap_or_default().to_string();
        if expected.is_empty() {
            assert_eq!(answer.status(), 200, "{change}: {message}");
        } else {
            assert_eq!(answer.status(), 400, "{change}: {}", answer.text());
            assert!(format!("{message} {param}").contains(expected), "{change}: {message} ({param})");
        }
    }
}

/// A marker in the prompt changes what is played, not who plays it.
#[tokio::test]
async fn stays_strict_in_every_scenario() {
    let sim = sim().await;
    for (model, status) in [("sim-strict", 400), ("sim-plain", 200)] {
        let mut body = ask(model, "[[sim:reasoning]]");
        body["top_k"] = json!(4);
        assert_eq!(post(&sim, &body).await.status(), status, "{model}");
    }
}

#[tokio::test]
async fn a_model_that_does_not_think_gets_no_thinking_settings() {
    let sim = sim().await;
    for (model, prompt, status) in
        [("sim-unthinking", "[[sim:tools]]", 400), ("sim-plain", "[[sim:unthinking]]", 400), ("sim-plain", "hi", 200)]
    {
        let mut body = ask(model, prompt);
        assert_eq!(post(&sim, &body).await.status(), 200, "{model} {prompt}");
        body["reasoning_effort"] = json!("none");
        assert_eq!(post(&sim, &body).await.status(), status, "{model} {prompt}");
    }
}
