//! 3.6 and 3.8: parameters, and the arithmetic of usage as clients see it.

use super::*;
use tollgate_wire::error::Code;

fn plain(more: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "q"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn case_110_and_111_the_limit_under_the_name_the_server_knows() {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]});
    assert_eq!(sent(A, C, body.clone())["max_completion_tokens"], 9);
    let mut old = Target::new(C, "up");
    old.current_chat = false;
    let (body, _) = try_sent(A, &old, &body).unwrap();
    assert!(body["max_tokens"] == 9 && body.get("max_completion_tokens").is_none());
    assert_eq!(
        sent(C, A, plain(json!({"max_tokens": 9, "max_completion_tokens": 5})))["max_tokens"],
        5,
        "the smaller of the two"
    );
}

#[test]
fn case_112_and_113_zero_is_sent_and_nothing_is_invented() {
    let body = sent(C, G, plain(json!({"temperature": 0, "top_p": 0.0, "seed": 0})));
    assert_eq!(body["generationConfig"], json!({"temperature": 0, "topP": 0.0, "seed": 0}));
    assert!(sent(C, A, plain(json!({}))).get("top_p").is_none());
}

#[test]
fn case_114_two_choices_of_a_provider_with_one() {
    assert_eq!(refused(C, A, plain(json!({"n": 2}))), "n");
    assert_eq!(sent(C, G, plain(json!({"n": 2})))["generationConfig"]["candidateCount"], 2);
}

#[test]
fn case_115_each_choice_has_its_own_calls() {
    let one = |choice: u64, args: &str| json!({"id": "c", "model": "up", "choices": [{"index": choice, "delta": {"tool_calls": [{"index": 0, "id": format!("c{choice}"), "function": {"name": "f", "arguments": args}}]}, "finish_reason": null}]});
    let end = |choice: u64| json!({"id": "c", "model": "up", "choices": [{"index": choice, "delta": {}, "finish_reason": "tool_calls"}]});
    let played =
        play(C, G, &[one(0, "{\"a\""), one(1, "{\"b\""), one(0, ":1}"), one(1, ":2}"), end(0), end(1), done()]);
    let calls: Vec<(&Value, &Value)> = played
        .data
        .iter()
        .map(|c| &c["candidates"][0])
        .filter(|c| c["content"]["parts"][0]["functionCall"].is_object())
        .map(|c| (&c["index"], &c["content"]["parts"][0]["functionCall"]["args"]))
        .collect();
    assert_eq!(calls, [(&json!(0), &json!({"a": 1})), (&json!(1), &json!({"b": 2}))]);
}

#[test]
fn case_116_and_117_stream_options_and_cache_keys() {
    let body =
        sent(C, R, plain(json!({"stream": true, "stream_options": {"include_usage": true}, "prompt_cache_key": "k"})));
    assert!(body.get("stream_options").is_none() && body["prompt_cache_key"] == "k");
}

#[test]
fn case_118_the_order_of_schemas_is_preserved() {
    let body =
        plain(json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": null}}]})).to_string();
    let schema = r#"{"type":"object","properties":{"z":{},"a":{},"m":{"y":1,"b":2}}}"#;
    let body = body.replace(r#""parameters":null"#, &format!(r#""parameters":{schema}"#));
    let request = CheckedRequest::read(C, Bytes::from(body), None).unwrap();
    for to in [A, R, G] {
        let sent = request.upstream_body(&Target::new(to, "up")).unwrap();
        assert!(String::from_utf8(sent.body.to_vec()).unwrap().contains(schema), "{to:?}");
    }
}

#[test]
fn case_119_jpg_is_jpeg() {
    let picture = json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/jpg;base64,QUJD"}}]}]});
    assert_eq!(sent(C, A, picture.clone())["messages"][0]["content"][0]["source"]["media_type"], "image/jpeg");
    assert_eq!(sent(C, G, picture)["contents"][0]["parts"][0]["inlineData"]["mimeType"], "image/jpeg");
}

fn anthropic(usage: Value) -> Value {
    json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn", "usage": usage})
}

#[test]
fn case_127_claude_for_a_chat_client() {
    let usage = &reply(
        A,
        C,
        anthropic(
            json!({"input_tokens": 9, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 0, "output_tokens": 5}),
        ),
    )["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["prompt_tokens_details"]["cached_tokens"], &usage["total_tokens"]),
        (&json!(10), &json!(1), &json!(15))
    );
}

#[test]
fn case_128_chat_for_claude_and_gemini_clients() {
    let body = json!({"id": "c", "object": "chat.completion", "model": "up", "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 2600, "completion_tokens": 300, "prompt_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400}}});
    let usage = &reply(C, A, body.clone())["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["cache_read_input_tokens"], &usage["cache_creation_input_tokens"]),
        (&json!(200), &json!(2000), &json!(400))
    );
    let usage = &reply(C, G, body)["usageMetadata"];
    assert_eq!(
        (&usage["promptTokenCount"], &usage["cachedContentTokenCount"], &usage["candidatesTokenCount"]),
        (&json!(2600), &json!(2000), &json!(300))
    );
}

#[test]
fn case_131_gemini_for_a_chat_client() {
    let body = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 20, "thoughtsTokenCount": 30, "toolUsePromptTokenCount": 5, "totalTokenCount": 155}});
    let usage = &reply(G, C, body)["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"], &usage["total_tokens"]),
        (&json!(105), &json!(50), &json!(155))
    );
}

/// Abroad nobody else would refuse them: they would be lost.
#[test]
fn a_parameter_of_another_kind_is_refused_by_its_name() {
    let asked = |from: Dialect| match from {
        C => json!({"model": "m", "messages": [{"role": "user", "content": "q"}]}),
        A => json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}),
        R => json!({"model": "m", "input": "q"}),
        G => json!({"contents": [{"parts": [{"text": "q"}]}]}),
    };
    let read = |from: Dialect, body: &Value| {
        let path = Path { model: "gemini-x", stream: false };
        CheckedRequest::read(from, Bytes::from(body.to_string()), (from == G).then_some(path))
    };
    for (from, field, value) in [
        (C, "temperature", json!("hot")),
        (C, "max_tokens", json!("5")),
        (C, "stop", json!(7)),
        (C, "stop", json!(["a", 1])),
        (C, "tools", json!({})),
        (C, "functions", json!("f")),
        (C, "seed", json!([1])),
        (C, "n", json!("2")),
        (C, "top_logprobs", json!(1.5)),
        (C, "logprobs", json!("yes")),
        (C, "response_format", json!("json")),
        (C, "reasoning_effort", json!(3)),
        (C, "reasoning.max_tokens", json!("many")),
        (C, "parallel_tool_calls", json!("no")),
        (C, "user", json!(7)),
        (A, "temperature", json!("hot")),
        (A, "stop_sequences", json!("x")),
        (A, "system", json!(7)),
        (A, "tools", json!({"name": "f"})),
        (A, "thinking", json!(true)),
        (A, "output_config.effort", json!(1)),
        (A, "metadata.user_id", json!(7)),
        (R, "temperature", json!("hot")),
        (R, "max_output_tokens", json!("5")),
        (R, "instructions", json!(["a"])),
        (R, "tools", json!("f")),
        (R, "reasoning", json!("high")),
        (R, "text.format", json!("json")),
        (G, "generationConfig", json!([])),
        (G, "generationConfig.temperature", json!("hot")),
        (G, "generationConfig.stopSequences", json!("x")),
        (G, "generationConfig.thinkingConfig.includeThoughts", json!("yes")),
        (G, "systemInstruction", json!(7)),
        (G, "tools", json!({})),
    ] {
        let mut body = asked(from);
        let mut place = &mut body;
        for name in field.split('.') {
            place = &mut place[name];
        }
        *place = value.clone();
        for to in Dialect::ALL.into_iter().filter(|to| *to != from) {
            let sent = read(from, &body).and_then(|request| request.upstream_body(&Target::new(to, "up")));
            let problem = sent.map(|sent| sent.dropped.to_string()).expect_err(&format!("{from:?} to {to:?}: {field}"));
            assert_eq!(problem.param.as_deref(), Some(field), "{from:?} to {to:?}: {value}");
            assert_eq!(problem.code, Code::InvalidParameter, "{from:?} to {to:?}: {field}");
        }
    }
    // Null asks for nothing, nothing is no mistake, and Google reads numbers in texts.
    for (from, field, value) in [
        (C, "temperature", Value::Null),
        (C, "tools", json!([])),
        (C, "stop", json!([])),
        (A, "system", json!([])),
        (R, "text", json!({})),
        (G, "topK", json!("40")),
    ] {
        let mut body = asked(from);
        if from == G {
            body["generationConfig"] = json!({});
            body["generationConfig"][field] = value;
        } else {
            body[field] = value;
        }
        for to in Dialect::ALL.into_iter().filter(|to| *to != from) {
            assert!(try_sent(from, &Target::new(to, "up"), &body).is_ok(), "{from:?} to {to:?}: {field}");
        }
    }
}
