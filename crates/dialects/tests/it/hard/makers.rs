//! A conversation that goes on with another maker. What one maker sealed never reaches a provider
//! of the client's own dialect as its own; all pairs of dialects, streamed and whole, are in
//! `next_turn.rs`.

use super::*;
use tollgate_dialects::{SealNeeds, own_seals, without_reasoning};

const GEMINI3: SealNeeds = SealNeeds { wants_reasoning_back: false, gemini3: true };

fn own(dialect: Dialect, body: &Value, home: SealNeeds) -> Option<(Value, bool)> {
    let (sent, left_out) = own_seals(dialect, body.to_string().as_bytes(), home)?;
    Some((serde_json::from_slice(&sent).unwrap(), left_out))
}

fn claude_said(blocks: Value) -> Value {
    json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1}, "content": blocks})
}

fn chat_said(message: Value) -> Value {
    json!({"id": "c", "object": "chat.completion", "model": "up", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
}

/// A chat server with the same extension gets its own details back, and none of ours.
#[test]
fn a_chat_server_gets_its_own_details_only() {
    let blocks = json!([{"type": "thinking", "thinking": "Hm", "signature": "c2ln"}, {"type": "text", "text": "a"}]);
    let ours = reply(A, C, claude_said(blocks))["choices"][0]["message"].clone();
    assert!(ours["reasoning_details"].is_array());
    let theirs = json!({"role": "assistant", "content": "b", "reasoning": "So", "reasoning_details": [
        {"type": "reasoning.text", "text": "So", "signature": "b3du", "format": "anthropic-claude-v1", "index": 0}]});
    let ask = json!({"role": "user", "content": "q"});
    let body = json!({"model": "m", "messages": [ask, ours, ask, theirs, ask]});
    let (sent, left_out) = own(C, &body, SealNeeds::default()).unwrap();
    let bare = ["reasoning_details", "reasoning_content"].iter().all(|name| sent["messages"][1].get(name).is_none());
    assert!(bare && left_out && sent["messages"][1]["content"] == "a", "{sent}");
    assert_eq!(sent["messages"][3], theirs, "byte for byte");
    // One that wants what was thought as text gets that.
    let deepseek = SealNeeds { wants_reasoning_back: true, ..SealNeeds::default() };
    assert_eq!(own(C, &body, deepseek).unwrap().0["messages"][1]["reasoning_content"], "Hm");
    let untouched = json!({"model": "m", "messages": [ask, theirs, ask, {"role": "user", "content": "What is tg1.?"}]});
    assert!(own(C, &untouched, SealNeeds::default()).is_none(), "nothing of ours: the client's bytes");
    // OpenAI's helper of streams joins the ids of all pieces.
    let joined = json!({"model": "m", "messages": [ask, {"role": "assistant", "content": "a", "reasoning_details": [
        {"type": "reasoning.encrypted", "data": "ZQ==", "format": "openai-responses-v1", "id": "tg1.tg1.rs_1", "index": 0}]}, ask]});
    assert!(own(C, &joined, SealNeeds::default()).is_some());
    assert_eq!(super::sent(C, R, joined)["input"][1]["encrypted_content"], "ZQ==");
}

/// Claude gets its own thoughts back and not those of a server that signs nothing; in a tool turn
/// that begins with none it does not think.
#[test]
fn claude_gets_what_claude_signed() {
    let call = json!([{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let said = chat_said(json!({"role": "assistant", "content": null, "reasoning_content": "Hm", "tool_calls": call}));
    let foreign = reply(C, A, said)["content"].clone();
    assert_eq!(foreign[0]["signature"], "tg1.x..");
    let native = json!([{"type": "thinking", "thinking": "Mine", "signature": "c2ln"}, {"type": "text", "text": "a"}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "r"}]);
    let ask = json!({"role": "user", "content": "q"});
    let thinking = json!({"type": "enabled", "budget_tokens": 2000});
    let body = json!({"model": "m", "max_tokens": 9000, "thinking": thinking, "messages": [ask, {"role": "assistant", "content": native}, ask,
        {"role": "assistant", "content": foreign}, {"role": "user", "content": result}]});
    let (sent, left_out) = own(A, &body, SealNeeds::default()).unwrap();
    assert_eq!((&sent["messages"][1]["content"], left_out), (&native, true));
    assert_eq!((sent["messages"][3]["content"].as_array().unwrap().len(), sent.get("thinking")), (1, None));
    let over = json!({"model": "m", "max_tokens": 9000, "thinking": thinking, "messages": [ask, {"role": "assistant", "content": foreign},
        {"role": "user", "content": result}, {"role": "assistant", "content": native}, ask]});
    assert_eq!(own(A, &over, SealNeeds::default()).unwrap().0["thinking"], thinking, "it thinks where it may");
    // A turn without any thought that Claude refuses to go on with is sent again without thinking.
    let bare = json!({"model": "m", "thinking": thinking, "messages": [ask, {"role": "assistant", "content": [foreign[1]]}, {"role": "user", "content": result}]});
    let again = without_reasoning(A, bare.to_string().as_bytes()).unwrap();
    assert!(serde_json::from_slice::<Value>(&again).unwrap().get("thinking").is_none());
}

#[test]
fn openai_gets_what_openai_sealed() {
    let blocks = json!([{"type": "thinking", "thinking": "Hm", "signature": "c2ln"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]);
    let native = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
    for foreign in [
        reply(A, R, claude_said(blocks)),
        reply(C, R, chat_said(json!({"role": "assistant", "content": "a", "reasoning_content": "Hm"}))),
    ] {
        let mut input = vec![native.clone()];
        input.extend(foreign["output"].as_array().unwrap().clone());
        let (sent, left_out) = own(R, &json!({"model": "m", "input": input}), SealNeeds::default()).unwrap();
        assert_eq!((sent["input"].as_array().unwrap().len(), left_out), (2, true), "{sent}");
        assert_eq!((&sent["input"][0], &sent["input"][1]), (&native, &input[2]), "byte for byte");
    }
}

/// Gemini 3 refuses calls without a signature. One that nobody signed, or another maker, gets
/// Google's stand-in; so does only the first of a turn.
#[test]
fn gemini_gets_a_stand_in_for_what_it_did_not_sign() {
    const STAND_IN: &str = "skip_thought_signature_validator";
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let results = json!({"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}, {"functionResponse": {"name": "g", "response": {}}}]});
    let ask = json!({"role": "user", "parts": [{"text": "q"}]});
    let body = json!({"contents": [ask, {"role": "model", "parts": [call("f"), call("g")]}, results]});
    let (sent, left_out) = own(G, &body, GEMINI3).unwrap();
    let parts = &sent["contents"][1]["parts"];
    assert_eq!((&parts[0]["thoughtSignature"], &parts[1], left_out), (&json!(STAND_IN), &call("g"), false));
    assert!(own(G, &sent, GEMINI3).is_none(), "once is enough");
    assert!(own(G, &body, SealNeeds::default()).is_none(), "models before 3 want none");
    let blocks = json!([{"type": "thinking", "thinking": "Hm", "signature": "c2ln"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]);
    let foreign = reply(A, G, claude_said(blocks))["candidates"][0]["content"].clone();
    let (sent, left_out) = own(G, &json!({"contents": [ask, foreign, results]}), GEMINI3).unwrap();
    let parts = sent["contents"][1]["parts"].as_array().unwrap();
    assert_eq!((parts.len(), &parts[0]["thoughtSignature"], left_out), (1, &json!(STAND_IN), true), "{sent}");
    let signed = json!({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "bWluZQ=="});
    assert!(
        own(G, &json!({"contents": [ask, {"role": "model", "parts": [signed, call("g")]}, results]}), GEMINI3)
            .is_none()
    );
}
