//! The turn after: what a provider said comes back to it, thoughts, seals and calls included,
//! whatever dialect the client speaks and whether the answer was streamed or whole.
//!
//! Each case is an answer of a provider, translated for a client, remembered by the client as its
//! SDK would, sent back with the results of its tools, and translated again. The provider must find
//! its own words, in their order.

use crate::client::{Client, remembered_stream, remembered_whole, request_after};
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_dialects::{CheckedRequest, Path, SealNeeds, Target, ToolNames, own_seals};
use tollgate_wire::Dialect;

/// A block of an answer.
#[derive(Clone, Debug, PartialEq)]
enum Block {
    Thought(String, String),
    /// Signed by Anthropic and not shown; what is sealed for the others.
    Signed(String),
    /// Sealed, without any text.
    Sealed(String),
    Text(String),
    Call(String, Value),
}

fn any_seal() -> impl Strategy<Value = String> {
    "([A-Za-z0-9+/]{4}){1,4}"
}

fn any_block() -> impl Strategy<Value = Block> {
    prop_oneof![
        ("[a-z\u{e9}\"\n]{1,8}", any_seal()).prop_map(|(text, seal)| Block::Thought(text, seal)),
        any_seal().prop_map(Block::Sealed),
        any_seal().prop_map(Block::Signed),
        "[A-Za-z \u{4e2d}\u{2028}]{1,8}".prop_map(Block::Text),
        ("[a-z_]{1,8}", "[a-z\"\\\\]{0,6}", any::<i32>())
            .prop_map(|(name, text, n)| Block::Call(name, json!({"t": text, "n": [n]}))),
        "[a-z_]{1,8}".prop_map(|name| Block::Call(name, json!({}))),
    ]
}

fn any_answer() -> impl Strategy<Value = Vec<Block>> {
    prop::collection::vec(any_block(), 1..7)
}

/// The answer as Anthropic's content.
fn anthropic(blocks: &[Block]) -> Vec<Value> {
    let one = |(at, block): (usize, &Block)| match block {
        Block::Thought(text, seal) => json!({"type": "thinking", "thinking": text, "signature": seal}),
        Block::Signed(seal) => json!({"type": "thinking", "thinking": "", "signature": seal}),
        Block::Sealed(seal) => json!({"type": "redacted_thinking", "data": seal}),
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Call(name, args) => {
            json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": args})
        }
    };
    blocks.iter().enumerate().map(one).collect()
}

/// The answer as Responses' output.
fn responses(blocks: &[Block]) -> Vec<Value> {
    let one = |(at, block): (usize, &Block)| match block {
        Block::Thought(text, seal) => json!({"type": "reasoning", "id": format!("rs_{at}"),
            "summary": [{"type": "summary_text", "text": text}], "encrypted_content": seal}),
        Block::Sealed(seal) | Block::Signed(seal) => {
            json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": [], "encrypted_content": seal})
        }
        Block::Text(text) => {
            json!({"type": "message", "id": format!("msg_{at}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
        }
        Block::Call(name, args) => {
            json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}"),
            "name": name, "arguments": args.to_string(), "status": "completed"})
        }
    };
    blocks.iter().enumerate().map(one).collect()
}

/// The answer as Gemini's parts: a thought's seal stands on the call or the text that follows it.
fn gemini(blocks: &[Block]) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut seal: Option<&String> = None;
    for (at, block) in blocks.iter().enumerate() {
        match block {
            Block::Thought(text, sealed) => {
                parts.push(json!({"text": text, "thought": true}));
                seal = Some(sealed);
            }
            Block::Sealed(sealed) | Block::Signed(sealed) => seal = Some(sealed),
            Block::Text(text) => parts.push(json!({"text": text})),
            Block::Call(name, args) => {
                let mut part = json!({"functionCall": {"id": format!("id.{at}"), "name": name, "args": args}});
                if let Some(seal) = seal.take() {
                    part["thoughtSignature"] = json!(seal);
                }
                parts.push(part);
            }
        }
    }
    parts
}

fn whole(upstream: Dialect, blocks: &[Block]) -> String {
    match upstream {
        Dialect::Anthropic => json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "up",
            "content": anthropic(blocks), "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1}}),
        Dialect::Responses => json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed",
            "model": "up", "output": responses(blocks), "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}),
        _ => json!({"candidates": [{"content": {"role": "model", "parts": gemini(blocks)}, "finishReason": "STOP", "index": 0}],
            "modelVersion": "up", "responseId": "r"}),
    }
    .to_string()
}

/// The answer as events, each text cut in two.
fn events(upstream: Dialect, blocks: &[Block]) -> String {
    let mut out = String::new();
    let mut send = |event: Value| {
        if let Some(name) = event["type"].as_str() {
            out.push_str(&format!("event: {name}\n"));
        }
        out.push_str(&format!("data: {event}\n\n"));
    };
    let halves = |text: &str| {
        let cut = text.floor_char_boundary(text.len() / 2);
        [text[..cut].to_owned(), text[cut..].to_owned()]
    };
    match upstream {
        Dialect::Anthropic => {
            send(json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
                "model": "up", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}));
            for (at, block) in anthropic(blocks).into_iter().enumerate() {
                let (empty, deltas) = match block["type"].as_str().unwrap() {
                    "thinking" => {
                        let mut deltas: Vec<Value> = halves(block["thinking"].as_str().unwrap())
                            .map(|text| json!({"type": "thinking_delta", "thinking": text}))
                            .into();
                        deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
                        (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
                    }
                    "text" => {
                        let deltas = halves(block["text"].as_str().unwrap());
                        (
                            json!({"type": "text", "text": ""}),
                            deltas.map(|text| json!({"type": "text_delta", "text": text})).into(),
                        )
                    }
                    "tool_use" => {
                        let mut empty = block.clone();
                        empty["input"] = json!({});
                        let input = block["input"].to_string();
                        let pieces = if input == "{}" { [String::new(), String::new()] } else { halves(&input) };
                        (empty, pieces.map(|text| json!({"type": "input_json_delta", "partial_json": text})).into())
                    }
                    _ => (block.clone(), Vec::new()),
                };
                send(json!({"type": "content_block_start", "index": at, "content_block": empty}));
                deltas
                    .into_iter()
                    .for_each(|delta| send(json!({"type": "content_block_delta", "index": at, "delta": delta})));
                send(json!({"type": "content_block_stop", "index": at}));
            }
            send(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}));
            send(json!({"type": "message_stop"}));
        }
        Dialect::Responses => {
            let all = responses(blocks);
            send(json!({"type": "response.created", "response": {"id": "resp_1", "model": "up"}}));
            for (at, item) in all.iter().enumerate() {
                let mut added = item.clone();
                added["summary"] = json!([]);
                added["content"] = json!([]);
                added["arguments"] = json!("");
                send(json!({"type": "response.output_item.added", "output_index": at, "item": added}));
                let mut deltas = |name: &str, text: &str| {
                    for half in halves(text) {
                        send(json!({"type": name, "item_id": item["id"], "output_index": at, "delta": half}));
                    }
                };
                match item["type"].as_str().unwrap() {
                    "message" => deltas("response.output_text.delta", item["content"][0]["text"].as_str().unwrap()),
                    "function_call" => {
                        deltas("response.function_call_arguments.delta", item["arguments"].as_str().unwrap())
                    }
                    _ => {
                        if let Some(text) = item["summary"][0]["text"].as_str() {
                            deltas("response.reasoning_summary_text.delta", text);
                        }
                    }
                }
                send(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
            }
            send(
                json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": all}}),
            );
        }
        _ => {
            for part in gemini(blocks) {
                send(
                    json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "modelVersion": "up"}),
                );
            }
            send(
                json!({"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP", "index": 0}]}),
            );
        }
    }
    out
}

/// What the provider finds of its own answer, by kind, or in its order.
fn found(upstream: Dialect, sent: &Value, ordered: bool) -> Vec<String> {
    let mut found: Vec<(u8, String)> = Vec::new();
    match upstream {
        Dialect::Anthropic => {
            let turn = sent["messages"].as_array().unwrap().iter().find(|turn| turn["role"] == "assistant");
            let content = turn.map(|turn| turn["content"].clone()).unwrap_or(json!([]));
            let plain = json!([{"type": "text", "text": content}]);
            let blocks = if content.is_string() { &plain } else { &content };
            for block in blocks.as_array().unwrap() {
                match block["type"].as_str().unwrap() {
                    "thinking" => found.push((0, format!("thought {} {}", block["thinking"], block["signature"]))),
                    "redacted_thinking" => found.push((0, format!("sealed {}", block["data"]))),
                    "text" => found.push((1, block["text"].as_str().unwrap().to_owned())),
                    _ => found.push((2, format!("call {} {} {}", block["id"], block["name"], block["input"]))),
                }
            }
        }
        Dialect::Responses => {
            for item in sent["input"].as_array().unwrap() {
                match item["type"].as_str().unwrap_or("") {
                    "reasoning" => {
                        found.push((0, format!("thought {} {}", item["summary"], item["encrypted_content"])))
                    }
                    "function_call" => {
                        found.push((2, format!("call {} {} {}", item["call_id"], item["name"], item["arguments"])))
                    }
                    "message" if item["role"] == "assistant" => match item["content"].as_array() {
                        Some(parts) => {
                            for part in parts {
                                found.push((1, part["text"].as_str().unwrap().to_owned()));
                            }
                        }
                        None => found.push((1, item["content"].as_str().unwrap().to_owned())),
                    },
                    _ => {}
                }
            }
        }
        _ => {
            let turn = sent["contents"].as_array().unwrap().iter().find(|turn| turn["role"] == "model");
            for part in turn.map(|turn| turn["parts"].as_array().unwrap().clone()).unwrap_or_default() {
                if part["functionCall"].is_object() {
                    let call = &part["functionCall"];
                    let seal = &part["thoughtSignature"];
                    let seal = if seal == "skip_thought_signature_validator" { &Value::Null } else { seal };
                    found.push((2, format!("call {} {} {}", call["name"], call["args"], seal)));
                } else if part["thought"] != true {
                    found.push((1, part["text"].as_str().unwrap_or("").to_owned()));
                }
            }
        }
    }
    if !ordered {
        found.sort_by_key(|(kind, _)| *kind);
    }
    // Neighbouring texts are one text.
    let mut out: Vec<String> = Vec::new();
    let mut last = 9;
    for (kind, text) in found.into_iter().filter(|(_, text)| !text.is_empty()) {
        match (kind, last) {
            (1, 1) => out.last_mut().unwrap().push_str(&text),
            _ => out.push(text),
        }
        last = kind;
    }
    out
}

/// The answer as the provider itself would want it back.
fn expected(upstream: Dialect, blocks: &[Block], ordered: bool) -> Vec<String> {
    let sent = match upstream {
        Dialect::Anthropic => json!({"messages": [{"role": "assistant", "content": anthropic(blocks)}]}),
        Dialect::Responses => json!({"input": responses(blocks)}),
        _ => json!({"contents": [{"role": "model", "parts": gemini(blocks)}]}),
    };
    found(upstream, &sent, ordered)
}

fn check(upstream: Dialect, client: Dialect, blocks: &[Block], streamed: bool) -> Result<(), TestCaseError> {
    let said = if streamed {
        remembered_stream(upstream, client, &events(upstream, blocks))
    } else {
        remembered_whole(upstream, client, &whole(upstream, blocks))
    };
    let body = request_after(client, &said);
    let path = Path { model: "gemini-x", stream: false };
    let path = (client == Dialect::Gemini).then_some(path);
    let request = CheckedRequest::read(client, body.to_string().into(), path).unwrap();
    let sent = request.upstream_body(&Target::new(upstream, "up")).unwrap();
    prop_assert_eq!(&sent.names, &ToolNames::default());
    let sent: Value = serde_json::from_slice(&sent.body).unwrap();
    // Chat has one text and one list of calls: the order within a kind is all it keeps.
    let ordered = client != Dialect::Chat;
    let expected = expected(upstream, blocks, ordered);
    prop_assert_eq!(
        found(upstream, &sent, ordered),
        expected,
        "{:?} for {:?}, streamed {}: {}\n{}",
        upstream,
        client,
        streamed,
        said,
        sent
    );
    Ok(())
}

/// The same answer taken to a provider of the client's own dialect: it finds nothing of another
/// maker, and nothing of ours.
fn check_home(upstream: Dialect, client: Dialect, blocks: &[Block], streamed: bool) -> Result<(), TestCaseError> {
    let said = if streamed {
        remembered_stream(upstream, client, &events(upstream, blocks))
    } else {
        remembered_whole(upstream, client, &whole(upstream, blocks))
    };
    let body = request_after(client, &said).to_string();
    let home = SealNeeds { wants_reasoning_back: false, gemini3: true };
    let sent =
        own_seals(client, body.as_bytes(), home).map_or(body, |(sent, _)| String::from_utf8(sent.to_vec()).unwrap());
    for ours in ["tg1.", "dGcxL", "reasoning_details", "reasoning_content"] {
        prop_assert!(!sent.contains(ours), "{:?} for {:?}: {}", upstream, client, sent);
    }
    let sent: Value = serde_json::from_str(&sent).unwrap();
    for content in sent["contents"].as_array().into_iter().flatten() {
        let call = content["parts"].as_array().unwrap().iter().find(|part| part["functionCall"].is_object());
        prop_assert!(call.is_none_or(|call| call["thoughtSignature"].is_string()), "{}", sent);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    /// Cases 58 and 60, 61, 62 and 67 for every pair, whole and streamed.
    #[test]
    fn the_provider_finds_its_own_words(blocks in any_answer(), streamed in any::<bool>()) {
        for upstream in [Dialect::Anthropic, Dialect::Responses, Dialect::Gemini] {
            for client in Dialect::ALL {
                if client != upstream {
                    check(upstream, client, &blocks, streamed)?;
                    check_home(upstream, client, &blocks, streamed)?;
                }
            }
        }
    }
}

#[test]
fn clients_are_played_as_their_sdks_are() {
    // A client that loses something would hide our own losses.
    let said =
        remembered_whole(Dialect::Anthropic, Dialect::Chat, &whole(Dialect::Anthropic, &[Block::Text("a".into())]));
    assert_eq!(said["content"], "a");
    assert_eq!(Client::of(Dialect::Chat).role, "assistant");
}
