//! Responses: strictness, shapes, and a tool turn with sealed thoughts.

use serde_json::{Value, json};

use super::{Dialect::Responses, events, refusals};
use crate::it::client::{read, request, sim};

#[tokio::test]
async fn refuses_what_openai_refuses() {
    let sim = sim().await;
    let call = json!({"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "call_id": "c1", "output": "fine"});
    let user = json!({"role": "user", "content": "hi"});
    let part = |part: Value| json!({"input": [{"role": "user", "content": [part]}]});
    let tool =
        |schema: Value| json!({"tools": [{"type": "function", "name": "x", "strict": true, "parameters": schema}]});
    refusals(Responses, &sim, "m", &[
        (json!({"-": "model"}), "Missing required parameter: 'model'"),
        (json!({"-": "input"}), "Missing required parameter: 'input'"),
        (json!({"max_tokens": 5}), "Unknown parameter: 'max_tokens'"),
        (json!({"messages": []}), "Unknown parameter: 'messages'"),
        (json!({"stop": ["x"]}), "Unknown parameter: 'stop'"),
        (json!({"max_output_tokens": 5}), "from 16"),
        (json!({"stream_options": {"include_usage": true}}), "Unknown parameter: 'stream_options.include_usage'"),
        (json!({"input": []}), "at least one item"),
        (json!({"input": [{"type": "message", "role": "tool", "content": "x"}]}), "input[0].role"),
        (json!({"input": [{"role": "user", "content": "x", "name": "bob"}]}), "Unknown parameter: 'input[0].name'"),
        (part(json!({"type": "text", "text": "x"})), "Invalid value: 'text'"),
        (part(json!({"type": "output_text", "text": "x"})), "Invalid value: 'output_text'"),
        (part(json!({"type": "input_text", "text": "x", "cache_control": {}})), "Unknown parameter"),
        (part(json!({"type": "input_image", "image_url": {"url": "x"}})), "image_url"),
        (part(json!({"type": "input_image", "image_url": "data:image/png;base64,_-"})), "valid URL"),
        (part(json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"})), ""),
        (json!({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}, user]}), "Invalid value: 'input_text'"),
        (json!({"input": [user, result]}), "No tool call found for function call output"),
        (json!({"input": [user, call]}), "No tool output found for function call c1"),
        (json!({"input": [user, call, result]}), ""),
        (json!({"input": [user, {"type": "function_call", "role": "assistant", "call_id": "c", "name": "x", "arguments": "{}"}]}), "input[1].role"),
        (json!({"input": [user, {"type": "function_call", "call_id": "c", "name": "x", "arguments": {}}]}), "arguments"),
        (json!({"input": [user, {"type": "function_call", "call_id": "c".repeat(65), "name": "x", "arguments": "{}"}]}), "maximum length 64"),
        (json!({"input": [user, {"type": "reasoning", "id": "rs_1", "summary": []}]}), "Item with id 'rs_1' not found"),
        (json!({"input": [user, {"type": "reasoning", "summary": [], "encrypted_content": "x"}]}), "could not be verified"),
        (json!({"input": [{"type": "item_reference", "id": "msg_1"}]}), "Item with id 'msg_1' not found"),
        (json!({"input": [{"type": "whatever"}]}), "'whatever'"),
        (json!({"input": [{"type": "message", "id": "fc_1", "role": "assistant", "content": "x"}, user]}), "begins with 'msg'"),
        (json!({"input": [user, {"type": "function_call", "id": "call_1", "call_id": "c", "name": "x", "arguments": "{}"}]}), "begins with 'fc'"),
        (json!({"input": [{"id": "msg_1", "role": "assistant", "content": "x"}, {"id": "msg_1", "role": "assistant", "content": "y"}, user]}), "Duplicate item found with id msg_1"),
        (json!({"input": [user, {"type": "function_call_output", "call_id": "", "output": "x"}]}), "empty string"),
        (part(json!({"type": "input_image", "detail": "low"})), "Missing required parameter"),
        (json!({"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}}), "pattern"),
        (json!({"previous_response_id": "resp_1"}), "Previous response with id 'resp_1' not found"),
        (json!({"tools": [{"type": "function", "function": {"name": "x"}}]}), "Unknown parameter: 'tools[0].function'"),
        (tool(json!({"type": "object", "properties": {}})), "'additionalProperties' is required"),
        (tool(json!({"type": "object", "additionalProperties": false, "properties": {"a": {}}})), "Missing 'a'"),
        (json!({"tools": [{"type": "function", "name": "x", "parameters": {"type": "object"}}]}), ""),
        (json!({"tools": [{"type": "function", "name": "x", "strict": false, "parameters": {"type": "object"}}]}), ""),
        (json!({"tools": [{"type": "function", "name": "a b", "strict": false}]}), "pattern"),
        (json!({"tool_choice": "required"}), "must be specified with 'tools'"),
        (json!({"tool_choice": {"type": "function", "function": {"name": "x"}}}), "Unknown parameter: 'tool_choice.function'"),
        (json!({"text": {"format": {"type": "json_schema", "json_schema": {}}}}), "Unknown parameter: 'text.format.json_schema'"),
        (json!({"text": {"format": {"type": "json_object"}}}), "must contain the word 'json'"),
        (json!({"reasoning": {"effort": "enormous"}}), "reasoning.effort"),
        (json!({"include": ["everything"]}), "include[0]"),
        (json!({"metadata": {"a": 1}}), "16 pairs of strings"),
        (json!({"prompt_cache_key": "k".repeat(65)}), "at most 64"),
    ]).await;
}

#[tokio::test]
async fn streams_items_in_order() {
    let sim = sim().await;
    let mut body = Responses.body("sim-reasoning", "one two");
    body["reasoning"] = json!({"summary": "auto"});
    let answer = Responses.stream(&sim, "m", &body).await;
    let events = events(&answer);
    for (at, (name, data)) in events.iter().enumerate() {
        assert_eq!(
            (name.as_str(), data["sequence_number"].as_u64()),
            (data["type"].as_str().unwrap(), Some(at as u64))
        );
    }
    let names: Vec<_> = events.iter().map(|(name, _)| name.trim_start_matches("response.")).collect();
    assert_eq!(&names[..4], ["created", "in_progress", "output_item.added", "reasoning_summary_part.added"]);
    assert_eq!(names.last(), Some(&"completed"));
    let done = &events.last().unwrap().1["response"];
    assert_eq!(done["usage"]["output_tokens_details"]["reasoning_tokens"], 7);
    assert_eq!(done["output"][0]["summary"][0]["text"], "the gate opens for every coin and");
    let hidden = Responses.ask(&sim, "m", &Responses.body("sim-reasoning", "x")).await.json();
    assert_eq!(hidden["output"][0]["summary"], json!([]), "a summary is shown when it is asked for");
    assert!(hidden["output"][0]["encrypted_content"].is_string());
}

#[tokio::test]
async fn a_tool_turn_needs_its_thoughts_back() {
    let sim = sim().await;
    let mut body = Responses.body("sim-reasoning_tools", "weather?");
    body["tools"] = json!([{"type": "function", "name": "look", "strict": false, "parameters": {"type": "object"}},
        {"type": "custom", "name": "say"}]);
    let first = Responses.ask(&sim, "m", &body).await.json();
    let output = first["output"].as_array().unwrap().clone();
    let kinds: Vec<_> = output.iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reasoning", "function_call", "custom_tool_call"]);
    let results = [
        json!({"type": "function_call_output", "call_id": "call_sim_0", "output": "sunny"}),
        json!({"type": "custom_tool_call_output", "call_id": "call_sim_1", "output": "said"}),
    ];
    let with = |items: &[Value]| {
        let mut body = body.clone();
        let user = json!({"role": "user", "content": "weather?"});
        body["input"] = [user].iter().chain(items).chain(&results).cloned().collect();
        body
    };
    let second = Responses.ask(&sim, "m", &with(&output)).await;
    assert_eq!(second.status(), 200, "{}", second.text());
    assert!(Responses.ask(&sim, "m", &with(&output[1..])).await.text().contains("required 'reasoning' item"));
    let mut moved = output.clone();
    moved[0]["id"] = json!("rs_other");
    assert!(Responses.ask(&sim, "m", &with(&moved)).await.text().contains("invalid_encrypted_content"));
    let mut nameless = output;
    for item in &mut nameless {
        item.as_object_mut().unwrap().remove("id");
    }
    assert_eq!(Responses.ask(&sim, "m", &with(&nameless)).await.status(), 200, "ids may be left out");
}

#[tokio::test]
async fn counts_input() {
    let sim = sim().await;
    let body = Responses.body("sim-plain", "one two three").to_string();
    let answer = read(request(&sim, "POST", "/v1/responses/input_tokens", &body).await).await;
    assert_eq!(answer.json(), json!({"object": "response.input_tokens", "input_tokens": 3}));
}
