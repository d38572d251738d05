//! 3.2: tool calls, fragments, results.

use super::*;

fn fragment(index: Value, id: Value, name: Value, args: Value) -> Value {
    let mut call = json!({"function": {}});
    for (key, value) in [("index", index), ("id", id)] {
        if !value.is_null() {
            call[key] = value;
        }
    }
    for (key, value) in [("name", name), ("arguments", args)] {
        if !value.is_null() {
            call["function"][key] = value;
        }
    }
    chunk(json!({"tool_calls": [call]}), Value::Null)
}

fn tail() -> [Value; 2] {
    [chunk(json!({}), json!("tool_calls")), done()]
}

const NO: Value = Value::Null;

#[test]
fn case_21_one_content_for_parallel_results() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let body = sent(
        C,
        G,
        json!({"model": "m", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [call("1"), call("2")]},
        {"role": "tool", "tool_call_id": "1", "content": "x"}, {"role": "tool", "tool_call_id": "2", "content": "y"}]}),
    );
    assert_eq!(body["contents"].as_array().unwrap().len(), 3);
    assert_eq!(body["contents"][2]["parts"].as_array().unwrap().len(), 2);
}

#[test]
fn case_22_pictures_of_parallel_results_follow_for_gemini_2() {
    let picture = json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}]);
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}, {"type": "tool_use", "id": "2", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": picture}, {"type": "tool_result", "tool_use_id": "2", "content": "r"}]}]});
    let mut old = Target::new(G, "up");
    old.gemini3 = false;
    let (older, _) = try_sent(A, &old, &body).unwrap();
    let results = older["contents"][2]["parts"].as_array().unwrap();
    assert!(results.len() == 2 && results.iter().all(|part| part["functionResponse"].is_object()), "{older}");
    assert_eq!(older["contents"][3]["parts"][0]["inlineData"]["mimeType"], "image/png");
    let newer = sent(A, G, body);
    assert_eq!(newer["contents"].as_array().unwrap().len(), 3);
    let inside = &newer["contents"][2]["parts"][0]["functionResponse"]["parts"][0]["inlineData"];
    assert_eq!(inside["data"], "QUJD");
}

#[test]
fn case_23_and_24_gemini_calls_end_a_turn_and_are_numbered() {
    let call = json!({"functionCall": {"name": "f", "args": {}}});
    let played = play(
        G,
        C,
        &[
            json!({"candidates": [{"content": {"parts": [call, call]}, "index": 0}], "modelVersion": "up"}),
            json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}]}),
        ],
    );
    assert_eq!(chat_finish(&played.data), "tool_calls");
    let calls = chat_calls(&played.data);
    assert!(calls.len() == 2 && calls[0].starts_with("0 call_") && calls[1].starts_with("1 call_"), "{calls:?}");
    assert_ne!(calls[0][2..], calls[1][2..], "ids differ");
}

#[test]
fn case_25_and_45_calls_of_responses_are_numbered_without_gaps() {
    let item = |at: u64, id: &str| {
        let item =
            json!({"type": "function_call", "id": format!("fc{at}"), "call_id": id, "name": "f", "arguments": "{}"});
        [
            json!({"type": "response.output_item.added", "output_index": at, "item": item}),
            json!({"type": "response.output_item.done", "output_index": at, "item": item}),
        ]
    };
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "r", "model": "up"}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "t"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "id": "m", "content": []}}),
    ];
    events.extend(item(2, "a"));
    events.extend(item(5, "b"));
    events.push(json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}));
    let played = play(R, C, &events);
    assert_eq!(chat_calls(&played.data), ["0 a f {}", "1 b f {}"]);
    assert_eq!((chat_text(&played.data).as_str(), chat_finish(&played.data).as_str()), ("t", "tool_calls"));
}

#[test]
fn case_46_nothing_is_sent_twice() {
    let item = json!({"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": "{}"});
    let played = play(
        R,
        C,
        &[
            json!({"type": "response.created", "response": {"id": "r", "model": "up"}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item]}}),
        ],
    );
    assert_eq!(chat_calls(&played.data), ["0 a f {}"]);
}

#[test]
fn case_26_a_new_id_is_a_new_call_whatever_its_index() {
    let [end, done] = tail();
    let events = [
        fragment(json!(0), json!("a"), json!("f"), json!("{}")),
        fragment(json!(0), json!("b"), json!("g"), json!("{}")),
        end,
        done,
    ];
    let played = play(C, A, &events);
    let names: Vec<&Value> =
        played.data.iter().filter(|e| e["type"] == "content_block_start").map(|e| &e["content_block"]["id"]).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn case_27_fragments_without_index_or_id_go_on() {
    let [end, done] = tail();
    let events = [
        fragment(NO, json!("a"), json!("f"), json!("{\"x\"")),
        fragment(NO, NO, NO, json!(":1}")),
        fragment(NO, json!("b"), json!("g"), json!("{}")),
        end,
        done,
    ];
    let played = play(C, R, &events);
    let output = &played.data.last().unwrap()["response"]["output"];
    assert_eq!((&output[0]["arguments"], &output[1]["call_id"]), (&json!("{\"x\":1}"), &json!("b")));
}

#[test]
fn case_28_and_29_and_30_repeated_names_first_arguments_and_objects() {
    let [end, done] = tail();
    let events = [
        fragment(json!(0), json!("a"), json!("f"), json!("{\"x\"")),
        fragment(json!(0), json!("a"), json!("f"), json!(":1}")),
        fragment(json!(1), json!("b"), json!("g"), json!({"o": 1})),
        end,
        done,
    ];
    let played = play(C, G, &events);
    let calls: Vec<&Value> = played
        .data
        .iter()
        .map(|c| &c["candidates"][0]["content"]["parts"][0]["functionCall"])
        .filter(|c| c.is_object())
        .collect();
    assert_eq!(
        calls,
        [&json!({"id": "a", "name": "f", "args": {"x": 1}}), &json!({"id": "b", "name": "g", "args": {"o": 1}})]
    );
}

#[test]
fn case_31_a_call_without_arguments_is_an_empty_object() {
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(chat_calls(&play(A, C, &events).data), ["0 t f {}"]);
}

#[test]
fn case_32_and_33_and_34_arguments_of_any_kind_are_an_object() {
    for (args, input) in [
        (json!(""), json!({})),
        (NO, json!({})),
        (json!("nonsense"), json!({"raw_arguments": "nonsense"})),
        (json!("[1]"), json!({"value": [1]})),
    ] {
        let body = sent(
            C,
            A,
            json!({"model": "m", "messages": [{"role": "user", "content": "q"},
            {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": args}}]},
            {"role": "tool", "tool_call_id": "1", "content": "r"}]}),
        );
        assert_eq!(body["messages"][1]["content"][0]["input"], input);
    }
    for (input, args) in [(json!("s"), "\"s\""), (json!([1]), "[1]"), (NO, "{}")] {
        let body = sent(
            A,
            C,
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": input}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}]}),
        );
        assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["arguments"], args);
    }
}

#[test]
fn case_35_and_36_and_37_void_results_errors_and_pictures() {
    let result = |content: Value| {
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
            {"role": "user", "content": [content]}]})
    };
    let void = result(json!({"type": "tool_result", "tool_use_id": "t"}));
    assert_eq!(sent(A, C, void.clone())["messages"][2], json!({"role": "tool", "tool_call_id": "t", "content": ""}));
    assert_eq!(sent(A, R, void.clone())["input"][2]["output"], "");
    assert_eq!(sent(A, G, void)["contents"][2]["parts"][0]["functionResponse"]["response"], json!({"output": ""}));
    let error = result(json!({"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": true}));
    assert_eq!(sent(A, C, error.clone())["messages"][2]["content"], "Error: no");
    assert_eq!(sent(A, G, error)["contents"][2]["parts"][0]["functionResponse"]["response"], json!({"error": "no"}));
    let picture = result(
        json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}]}),
    );
    assert_eq!(sent(A, R, picture)["input"][2]["output"][0]["type"], "input_image");
}

#[test]
fn case_38_and_39_and_40_ids_and_names_fit() {
    let long = "x".repeat(90);
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [{"id": "functions.Bash:0", "type": "function", "function": {"name": "a/b", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "functions.Bash:0", "content": "r"}], "tools": [{"type": "function", "function": {"name": "a/b"}}]});
    let (sent_body, sent_all) = try_sent(C, &Target::new(A, "up"), &body).unwrap();
    let (call, result) = (&sent_body["messages"][1]["content"][0], &sent_body["messages"][2]["content"][0]);
    assert_eq!(call["id"], result["tool_use_id"]);
    assert!(call["id"].as_str().unwrap().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
    assert_eq!(call["name"], sent_body["tools"][0]["name"]);
    // The answer has the caller's name again.
    let answer = json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "content": [{"type": "tool_use", "id": "t", "name": call["name"], "input": {}}],
        "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}});
    let back = convert(A, C, Bytes::from(answer.to_string()), &sent_all.names, &voice()).unwrap();
    let back: Value = serde_json::from_slice(&back.body).unwrap();
    assert_eq!(back["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "a/b");
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": long, "name": long, "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": long, "content": "r"}]}]});
    let body = sent(A, C, body);
    let call = &body["messages"][1]["tool_calls"][0];
    assert!(call["id"].as_str().unwrap().len() <= 64 && call["function"]["name"].as_str().unwrap().len() <= 64);
    assert_eq!(call["id"], body["messages"][2]["tool_call_id"]);
}

#[test]
fn case_41_and_42_a_tool_always_has_an_object_schema() {
    let tools = json!([{"type": "function", "function": {"name": "a", "parameters": {"properties": {}}}}, {"type": "function", "function": {"name": "b"}}]);
    let body = sent(C, A, json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": tools}));
    for tool in body["tools"].as_array().unwrap() {
        assert_eq!(tool["input_schema"]["type"], "object");
    }
}

#[test]
fn case_43_and_44_choices() {
    let tools = json!([{"type": "function", "function": {"name": "a"}}]);
    let body = |choice: Value| json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": tools, "tool_choice": choice, "parallel_tool_calls": false});
    assert_eq!(sent(C, A, body(json!("none")))["tool_choice"], json!({"type": "none"}));
    assert_eq!(
        sent(C, A, body(json!("auto")))["tool_choice"],
        json!({"type": "auto", "disable_parallel_tool_use": true})
    );
    let named = body(json!({"type": "function", "function": {"name": "a"}}));
    assert_eq!(sent(C, R, named)["tool_choice"], json!({"type": "function", "name": "a"}));
}

#[test]
fn case_47_a_call_cut_by_the_limit_is_not_passed_off_as_whole() {
    let events =
        [fragment(json!(0), json!("a"), json!("f"), json!("{\"x\":\"")), chunk(json!({}), json!("length")), done()];
    let played = play(C, R, &events);
    let last = &played.data.last().unwrap()["response"];
    assert_eq!((&last["status"], &last["output"][0]["status"]), (&json!("incomplete"), &json!("incomplete")));
    let played = play(C, G, &events);
    assert!(!played.text.contains("functionCall") && played.text.contains("MAX_TOKENS"));
    // Anthropic ends the block before it says why.
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"x\":"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    let played = play(A, R, &events);
    assert_eq!(played.data.last().unwrap()["response"]["output"][0]["status"], "incomplete");
    assert!(!play(A, G, &events).text.contains("functionCall"));
    let played = play(C, A, &[fragment(json!(0), json!("a"), json!("f"), json!("{\"x\":"))]);
    assert_eq!(played.end, "truncated");
}

/// What a function says beside its error is not lost.
#[test]
fn an_error_of_gemini_keeps_what_is_beside_it() {
    for (response, text, error) in [
        (json!({"error": "no such file"}), "no such file", true),
        (json!({"error": {"code": 5}}), r#"{"code":5}"#, true),
        (json!({"error": "partial", "output": [1, 2]}), r#"{"error":"partial","output":[1,2]}"#, true),
        (json!({"error": null, "rows": 3}), r#"{"error":null,"rows":3}"#, false),
        (json!({"error": "", "rows": 3}), r#"{"error":"","rows":3}"#, false),
        (json!({"error": false}), r#"{"error":false}"#, false),
        (json!({"output": "fine"}), "fine", false),
    ] {
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "q"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response}}]}]});
        let block = sent(G, A, body.clone())["messages"][2]["content"][0].clone();
        let result = (block["content"].as_str().unwrap(), block["is_error"] == true);
        assert_eq!(result, (text, error), "{response}: {block}");
        assert_eq!(dropped(G, A, body.clone()), "", "{response}");
        let chat = &sent(G, C, body)["messages"][2]["content"];
        let prefix = if error { "Error: " } else { "" };
        assert_eq!(chat, &json!(format!("{prefix}{text}")), "{response}");
    }
}

/// A tool in a namespace is sent with the namespace in front, and so it is chosen.
#[test]
fn a_forced_tool_in_a_namespace_is_named_as_it_is_sent() {
    let function = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object"}});
    let mut body = json!({"model": "m", "input": "q", "tools": [
        {"type": "namespace", "name": "ns", "tools": [function("f"), function("g")]}, function("g")]});
    for (name, expected) in [("f", "ns__f"), ("g", "g")] {
        body["tool_choice"] = json!({"type": "function", "name": name});
        assert_eq!(sent(R, C, body.clone())["tool_choice"]["function"]["name"], expected);
        assert_eq!(sent(R, A, body.clone())["tool_choice"]["name"], expected);
        let allowed = &sent(R, G, body.clone())["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"];
        assert_eq!(allowed, &json!([expected]));
    }
}

/// OpenAI takes 40 characters in chat and 64 in Responses, Anthropic 64.
#[test]
fn long_ids_are_shortened_for_the_call_and_its_result_and_stay_apart() {
    let (one, other) = (format!("{}_one", "x".repeat(50)), format!("{}_two", "x".repeat(50)));
    let long = |one: &str, other: &str| {
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": one, "name": "f", "input": {}}, {"type": "tool_use", "id": other, "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": other, "content": "2"}, {"type": "tool_result", "tool_use_id": one, "content": "1"}]}]})
    };
    let chat = sent(A, C, long(&one, &other));
    let (calls, results) = (&chat["messages"][1]["tool_calls"], &chat["messages"]);
    for (at, said) in [(0, "1"), (1, "2")] {
        let id = calls[at]["id"].as_str().unwrap();
        assert!(id.len() <= 40, "{id}");
        assert_eq!((results[2 + at]["tool_call_id"].as_str(), &results[2 + at]["content"]), (Some(id), &json!(said)));
    }
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    // What fits stays.
    assert_eq!(sent(A, R, long(&one, &other))["input"][1]["call_id"], one);
    let (one, other) = (format!("{one}{}", "y".repeat(50)), format!("{other}{}", "y".repeat(50)));
    let responses = sent(A, R, long(&one, &other));
    let ids: Vec<&str> = (1..5).map(|at| responses["input"][at]["call_id"].as_str().unwrap()).collect();
    assert!(ids.iter().all(|id| id.len() <= 64) && ids[0] != ids[1] && ids[..2] == ids[2..], "{ids:?}");
}
