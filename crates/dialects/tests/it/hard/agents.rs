//! Agents that do the same thing more than once: the model calls the same function with the same
//! arguments in several turns, and each result must reach its own call. Gemini 2.5 and some
//! compatible servers give calls no ids.

use super::*;

/// An answer of a provider that gives no ids: two calls that are alike.
fn calls_alike(upstream: Dialect) -> Value {
    match upstream {
        G => {
            let call = json!({"functionCall": {"name": "look", "args": {"at": 1}}});
            json!({"candidates": [{"content": {"role": "model", "parts": [call, call]}, "finishReason": "STOP", "index": 0}]})
        }
        _ => {
            let call = json!({"type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}});
            let (mut one, mut two) = (call.clone(), call);
            (one["index"], two["index"]) = (json!(0), json!(1));
            json!({"id": "c", "object": "chat.completion", "model": "up", "choices": [{"index": 0, "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": null, "tool_calls": [one, two]}}]})
        }
    }
}

/// The same as a stream.
fn events_alike(upstream: Dialect) -> String {
    let mut whole = calls_alike(upstream);
    if upstream == G {
        return format!("data: {whole}\n\n");
    }
    let choice = &mut whole["choices"][0];
    choice["delta"] = choice["message"].take();
    format!("data: {whole}\n\ndata: [DONE]\n\n")
}

fn voice_of(call: &str) -> Voice {
    Voice { id: call.to_owned(), ..voice() }
}

/// What the client of a dialect keeps of the answer, as items of its history.
fn remembered(upstream: Dialect, client: Dialect, call: &str) -> Vec<Value> {
    let body = Bytes::from(calls_alike(upstream).to_string());
    let converted = convert(upstream, client, body, &ToolNames::default(), &voice_of(call)).unwrap();
    let reply: Value = serde_json::from_slice(&converted.body).unwrap();
    match client {
        C => vec![reply["choices"][0]["message"].clone()],
        A => vec![json!({"role": "assistant", "content": reply["content"]})],
        R => reply["output"].as_array().unwrap().clone(),
        G => vec![reply["candidates"][0]["content"].clone()],
    }
}

/// The ids of the calls in an answer or in its events, in their order.
fn ids(client: Dialect, said: &[Value]) -> Vec<String> {
    let text = |id: &Value| id.as_str().map(str::to_owned);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let of = |value: &Value| -> Vec<String> {
        match client {
            C => {
                let said = if value["choices"].is_array() { &value["choices"][0]["delta"] } else { value };
                list(&said["tool_calls"]).iter().filter_map(|call| text(&call["id"])).collect()
            }
            A if value["type"] == "content_block_start" => text(&value["content_block"]["id"]).into_iter().collect(),
            A => list(&value["content"]).iter().filter_map(|block| text(&block["id"])).collect(),
            R if value["type"] == "response.output_item.added" => text(&value["item"]["call_id"]).into_iter().collect(),
            R => text(&value["call_id"]).into_iter().collect(),
            G => {
                let said = if value["candidates"].is_array() { &value["candidates"][0]["content"] } else { value };
                list(&said["parts"]).iter().filter_map(|part| text(&part["functionCall"]["id"])).collect()
            }
        }
    };
    said.iter().flat_map(of).collect()
}

/// The results of a turn, as the client of a dialect sends them.
fn results(client: Dialect, ids: &[String], turn: usize) -> Vec<Value> {
    let said = |at: usize| format!("{turn}.{at}");
    let all = ids.iter().enumerate();
    match client {
        C => all.map(|(at, id)| json!({"role": "tool", "tool_call_id": id, "content": said(at)})).collect(),
        R => all.map(|(at, id)| json!({"type": "function_call_output", "call_id": id, "output": said(at)})).collect(),
        A => {
            let block = |(at, id)| json!({"type": "tool_result", "tool_use_id": id, "content": said(at)});
            vec![json!({"role": "user", "content": all.map(block).collect::<Vec<_>>()})]
        }
        G => {
            let part =
                |(at, id)| json!({"functionResponse": {"id": id, "name": "look", "response": {"output": said(at)}}});
            vec![json!({"role": "user", "parts": all.map(part).collect::<Vec<_>>()})]
        }
    }
}

fn body(client: Dialect, history: &[Value]) -> Value {
    let all: Vec<Value> = match client {
        G => [json!({"role": "user", "parts": [{"text": "q"}]})].into_iter().chain(history.iter().cloned()).collect(),
        _ => [json!({"role": "user", "content": "q"})].into_iter().chain(history.iter().cloned()).collect(),
    };
    match client {
        C => json!({"model": "m", "messages": all}),
        A => json!({"model": "m", "max_tokens": 9, "messages": all}),
        R => json!({"model": "m", "input": all}),
        G => json!({"contents": all}),
    }
}

/// What the provider reads, flat: `call ID` and `ID=RESULT` in their order.
fn read_by(upstream: Dialect, sent: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match upstream {
        C => {
            for message in sent["messages"].as_array().unwrap() {
                for call in message["tool_calls"].as_array().unwrap_or(&Vec::new()) {
                    out.push(format!("call {}", text(&call["id"])));
                }
                if message["role"] == "tool" {
                    out.push(format!("{}={}", text(&message["tool_call_id"]), text(&message["content"])));
                }
            }
        }
        A => {
            let turns = sent["messages"].as_array().unwrap().iter();
            for block in turns.filter_map(|turn| turn["content"].as_array()).flatten() {
                match block["type"].as_str().unwrap() {
                    "tool_use" => out.push(format!("call {}", text(&block["id"]))),
                    "tool_result" => out.push(format!("{}={}", text(&block["tool_use_id"]), text(&block["content"]))),
                    _ => {}
                }
            }
        }
        R => {
            for item in sent["input"].as_array().unwrap() {
                match item["type"].as_str().unwrap_or("") {
                    "function_call" => out.push(format!("call {}", text(&item["call_id"]))),
                    "function_call_output" => {
                        out.push(format!("{}={}", text(&item["call_id"]), text(&item["output"])));
                    }
                    _ => {}
                }
            }
        }
        G => {
            for part in sent["contents"].as_array().unwrap().iter().flat_map(|turn| turn["parts"].as_array().unwrap()) {
                let (call, result) = (&part["functionCall"], &part["functionResponse"]);
                if call.is_object() {
                    out.push(format!("call {}", text(&call["id"])));
                } else if result.is_object() {
                    out.push(format!("{}={}", text(&result["id"]), text(&result["response"]["output"])));
                }
            }
        }
    }
    out
}

/// Two calls per turn with their results, all under ids of their own.
fn assert_paired(read: &[String], turns: usize, what: &str) {
    let mut seen: Vec<&str> = Vec::new();
    for (turn, four) in read.chunks(4).enumerate() {
        let own: Vec<&str> = four[..2].iter().map(|call| call.strip_prefix("call ").expect(what)).collect();
        let results: Vec<String> = own.iter().enumerate().map(|(at, id)| format!("{id}={turn}.{at}")).collect();
        assert_eq!(&four[2..], results, "{what}: {read:?}");
        assert!(own.iter().all(|id| !seen.contains(id)) && own[0] != own[1], "{what}: ids of their own, {read:?}");
        seen.extend(own);
    }
    assert_eq!(read.len(), turns * 4, "{what}: {read:?}");
}

#[test]
fn the_same_call_in_three_turns_of_a_provider_without_ids() {
    for upstream in [G, C] {
        for client in Dialect::ALL.into_iter().filter(|client| *client != upstream) {
            let what = format!("{client:?} at {upstream:?}");
            let mut history: Vec<Value> = Vec::new();
            for turn in 0..3 {
                let call = format!("call_t{turn}");
                let said = remembered(upstream, client, &call);
                let given = ids(client, &said);
                assert_eq!(given.len(), 2, "{what}: {said:?}");
                // The same answer once more, and as a stream, has the same ids.
                assert_eq!(ids(client, &remembered(upstream, client, &call)), given, "{what}");
                assert_eq!(streamed_ids(upstream, client, &call), given, "{what}, streamed");
                history.extend(said);
                history.extend(results(client, &given, turn));
                let sent = sent(client, upstream, body(client, &history));
                assert_paired(&read_by(upstream, &sent), turn + 1, &what);
            }
        }
    }
}

fn streamed_ids(upstream: Dialect, client: Dialect, call: &str) -> Vec<String> {
    let setup = Setup {
        from: upstream,
        to: client,
        voice: voice_of(call),
        names: ToolNames::default(),
        rename: true,
        max_event_bytes: 1 << 20,
    };
    let mut stream = ReplyStream::new(setup);
    let mut out = stream.feed(Bytes::from(events_alike(upstream))).unwrap().to_vec();
    match stream.finish() {
        StreamEnd::Complete { tail } => out.extend_from_slice(&tail),
        other => panic!("{other:?}"),
    }
    let text = String::from_utf8(out).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    ids(client, &lines.map(|data| serde_json::from_str(data).unwrap()).collect::<Vec<Value>>())
}

/// Histories in which an id was used more than once, whoever gave it, reach every provider under
/// ids that are not.
#[test]
fn an_id_that_was_used_before_is_another_call() {
    for client in Dialect::ALL {
        let said = match client {
            C => {
                let call = json!({"id": "x", "type": "function", "function": {"name": "look", "arguments": "{}"}});
                vec![json!({"role": "assistant", "content": null, "tool_calls": [call, call]})]
            }
            A => {
                let call = json!({"type": "tool_use", "id": "x", "name": "look", "input": {}});
                vec![json!({"role": "assistant", "content": [call, call]})]
            }
            R => vec![json!({"type": "function_call", "call_id": "x", "name": "look", "arguments": "{}"}); 2],
            G => {
                let call = json!({"functionCall": {"id": "x", "name": "look", "args": {}}});
                vec![json!({"role": "model", "parts": [call, call]})]
            }
        };
        let mut history: Vec<Value> = Vec::new();
        for turn in 0..3 {
            history.extend(said.clone());
            history.extend(results(client, &["x".to_owned(), "x".to_owned()], turn));
        }
        for upstream in Dialect::ALL.into_iter().filter(|upstream| *upstream != client) {
            let sent = sent(client, upstream, body(client, &history));
            assert_paired(&read_by(upstream, &sent), 3, &format!("{client:?} to {upstream:?}"));
        }
    }
}
