//! Clients that declare `functions` and read `function_call`, as chat had it before tools.

use super::*;

fn asked() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "q"}],
        "functions": [{"name": "get weather", "parameters": {"type": "object", "properties": {}}}]})
}

/// The names that the answer is read with.
fn names(to: Dialect, body: &Value) -> ToolNames {
    try_sent(C, &Target::new(to, "up"), body).unwrap().1.names
}

/// An answer with so many calls of the tool, by the name it has at the provider.
fn called(from: Dialect, sent: &str, calls: usize) -> Value {
    let all = (0..calls).map(|at| match from {
        A => json!({"type": "tool_use", "id": format!("c{at}"), "name": sent, "input": {"n": at}}),
        R => json!({"type": "function_call", "id": format!("i{at}"), "call_id": format!("c{at}"), "name": sent, "arguments": format!("{{\"n\":{at}}}"), "status": "completed"}),
        _ => json!({"functionCall": {"id": format!("c{at}"), "name": sent, "args": {"n": at}}}),
    });
    let all: Vec<Value> = all.collect();
    match from {
        A => {
            json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "content": all, "stop_reason": "tool_use"})
        }
        R => json!({"id": "r", "object": "response", "status": "completed", "model": "up", "output": all}),
        _ => {
            json!({"candidates": [{"content": {"role": "model", "parts": all}, "finishReason": "STOP", "index": 0}]})
        }
    }
}

fn sent_name(to: Dialect) -> String {
    let body = sent(C, to, asked());
    let at = match to {
        A => &body["tools"][0]["name"],
        R => &body["tools"][0]["name"],
        _ => &body["tools"][0]["functionDeclarations"][0]["name"],
    };
    at.as_str().unwrap().to_owned()
}

#[test]
fn functions_are_answered_with_a_function_call() {
    for from in [A, R, G] {
        let (names, name) = (names(from, &asked()), sent_name(from));
        for calls in [1, 2] {
            let body = Bytes::from(called(from, &name, calls).to_string());
            let converted = convert(from, C, body, &names, &voice()).unwrap();
            let whole: Value = serde_json::from_slice(&converted.body).unwrap();
            let choice = &whole["choices"][0];
            let call = json!({"name": "get weather", "arguments": "{\"n\":0}"});
            assert_eq!(choice["message"]["function_call"], call, "{from:?}");
            assert!(choice["message"].get("tool_calls").is_none(), "{from:?}");
            assert_eq!(choice["finish_reason"], "function_call", "{from:?}");
            // They know one call in an answer.
            assert_eq!(converted.dropped.to_string(), if calls == 1 { "" } else { "answer.tool_calls" }, "{from:?}");
        }
    }
}

#[test]
fn functions_are_answered_so_in_a_stream() {
    let name = sent_name(G);
    let mut stream = ReplyStream::new(Setup {
        from: G,
        to: C,
        voice: voice(),
        names: names(G, &asked()),
        rename: true,
        max_event_bytes: 1 << 20,
    });
    let mut text =
        stream.feed(Bytes::from(format!("data: {}\n\n", called(G, &name, 2)))).map(|bytes| bytes.to_vec()).unwrap();
    let StreamEnd::Complete { tail } = stream.finish() else { panic!("cut") };
    text.extend_from_slice(&tail);
    let text = String::from_utf8(text).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let data: Vec<Value> = lines.map(|data| serde_json::from_str(data).unwrap()).collect();
    let of = |member: &str| -> String {
        let pieces = data.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["function_call"][member].as_str());
        pieces.collect()
    };
    assert_eq!((of("name").as_str(), of("arguments").as_str()), ("get weather", "{\"n\":0}"), "{text}");
    assert_eq!((chat_finish(&data).as_str(), chat_calls(&data).len()), ("function_call", 0), "{text}");
    assert_eq!(stream.dropped().map(ToString::to_string).as_deref(), Some("answer.tool_calls"));
}

/// One call is asked for where that can be said; whoever declares `tools` is answered as ever.
#[test]
fn only_clients_of_functions_are() {
    assert_eq!(sent(C, A, asked())["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    assert_eq!(sent(C, R, asked())["parallel_tool_calls"], false);
    assert_eq!(dropped(C, G, asked()), "");
    let mut both = asked();
    both["tools"] = json!([{"type": "function", "function": {"name": "g"}}]);
    for body in [both, json!({"model": "m", "messages": [{"role": "user", "content": "q"}]})] {
        let converted = convert(A, C, Bytes::from(called(A, "g", 2).to_string()), &names(A, &body), &voice()).unwrap();
        let whole: Value = serde_json::from_slice(&converted.body).unwrap();
        assert_eq!(whole["choices"][0]["message"]["tool_calls"].as_array().unwrap().len(), 2);
        assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    }
}
