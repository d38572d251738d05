//! What the SDKs make of a stream: events put together to what was said, in the only order they
//! know.

use serde_json::{Value, json};
use tollgate_wire::Dialect;

/// All the data of a stream of ours.
pub fn data_of(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// What a client makes of a stream of ours that ended well. Panics where an SDK would, at an order
/// it does not know.
pub fn gathered(to: Dialect, text: &str) -> Value {
    let data = data_of(text);
    match to {
        Dialect::Chat => chat(&data),
        Dialect::Anthropic => anthropic(&data),
        Dialect::Responses => responses(&data),
        Dialect::Gemini => {
            let parts =
                data.iter().flat_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array().unwrap().clone());
            json!({"role": "model", "parts": parts.collect::<Vec<_>>()})
        }
    }
}

fn push(to: &mut Value, text: &Value) {
    if let Some(text) = text.as_str() {
        *to = json!(format!("{}{text}", to.as_str().unwrap_or("")));
    }
}

/// Deltas put together: texts joined, lists collected, calls by index.
fn chat(chunks: &[Value]) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut details = Vec::new();
    let mut calls: Vec<Value> = Vec::new();
    let mut ended = false;
    for chunk in chunks.iter().filter(|chunk| chunk["choices"][0]["index"] == 0) {
        assert!(!ended, "nothing follows the finish: {chunk}");
        ended = chunk["choices"][0]["finish_reason"].is_string();
        let delta = &chunk["choices"][0]["delta"];
        for name in ["content", "refusal", "reasoning_content"] {
            if delta[name].is_string() {
                push(&mut message[name], &delta[name]);
            }
        }
        details.extend(delta["reasoning_details"].as_array().cloned().unwrap_or_default());
        for call in delta["tool_calls"].as_array().unwrap_or(&Vec::new()) {
            let index = call["index"].as_u64().unwrap() as usize;
            if index == calls.len() {
                let typed = call["type"] == "function" || call["type"] == "custom";
                assert!(call["id"].is_string() && typed, "a call begins with its id: {call}");
                calls.push(call.clone());
            } else {
                assert!(index < calls.len() && call.get("id").is_none(), "{call}");
                push(&mut calls[index]["function"]["arguments"], &call["function"]["arguments"]);
            }
        }
    }
    calls.iter_mut().for_each(|call| {
        call.as_object_mut().unwrap().remove("index");
    });
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    if !details.is_empty() {
        message["reasoning_details"] = json!(details);
    }
    message
}

/// Blocks put together, with the order the SDKs insist on.
fn anthropic(events: &[Value]) -> Value {
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    let mut open = None;
    assert_eq!(events[0]["type"], "message_start");
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    for event in events {
        let index = event["index"].as_u64().map(|index| index as usize);
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!((index, open), (Some(blocks.len()), None), "contiguous, one at a time");
                open = index;
                blocks.push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                let at = index.unwrap();
                assert_eq!(open, index);
                let (block, delta) = (&mut blocks[at], &event["delta"]);
                match delta["type"].as_str().unwrap() {
                    "text_delta" => push(&mut block["text"], &delta["text"]),
                    "thinking_delta" => push(&mut block["thinking"], &delta["thinking"]),
                    "signature_delta" => {
                        assert_eq!(block["signature"], "", "one signature");
                        block["signature"] = delta["signature"].clone();
                    }
                    "input_json_delta" => inputs[at].push_str(delta["partial_json"].as_str().unwrap()),
                    _ => {}
                }
            }
            "content_block_stop" => {
                assert_eq!(open.take(), index);
                let at = index.unwrap();
                if blocks[at]["type"] == "tool_use" {
                    // What a model wrote need not be JSON; it then compares unequal to whatever was
                    // meant.
                    blocks[at]["input"] = serde_json::from_str(&inputs[at]).unwrap_or_else(|_| json!(inputs[at]));
                }
            }
            _ => assert_eq!(open, None),
        }
    }
    json!({"role": "assistant", "content": blocks})
}

/// The final object, and that it is what the events said.
fn responses(events: &[Value]) -> Value {
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], at, "numbers rise by one");
    }
    assert_eq!((&events[0]["type"], &events[1]["type"]), (&json!("response.created"), &json!("response.in_progress")));
    let last = events.last().unwrap();
    let output = last["response"]["output"].clone();
    let done: Vec<Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect();
    assert_eq!(json!(done), output, "the final object repeats every item");
    for (at, item) in done.iter().enumerate() {
        let mine: Vec<&Value> = events.iter().filter(|event| event["output_index"] == at).collect();
        assert_eq!(mine[0]["type"], "response.output_item.added");
        assert_eq!(mine[0]["item"]["id"], item["id"]);
        if item["type"] == "function_call" {
            let text: String = mine
                .iter()
                .filter(|e| e["type"] == "response.function_call_arguments.delta")
                .map(|e| e["delta"].as_str().unwrap())
                .collect();
            assert_eq!(item["arguments"], text.as_str(), "at least one delta");
        }
    }
    output
}
