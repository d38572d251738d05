//! Clients as their SDKs are: how each keeps an answer, and how it sends it back.

mod gathered;

use bytes::Bytes;
pub use gathered::gathered;
use serde_json::{Value, json};
use tollgate_dialects::{ReplyStream, Setup, StreamEnd, ToolNames, Voice, convert};
use tollgate_wire::Dialect;

pub struct Client {
    pub role: &'static str,
}

impl Client {
    pub fn of(dialect: Dialect) -> Client {
        Client { role: if dialect == Dialect::Gemini { "model" } else { "assistant" } }
    }
}

pub fn voice() -> Voice {
    Voice { id: "call_9".into(), model: "public".into(), created: 1, ..Voice::default() }
}

/// What a client keeps of a whole reply.
pub fn remembered_whole(from: Dialect, to: Dialect, body: &str) -> Value {
    let converted =
        convert(from, to, Bytes::copy_from_slice(body.as_bytes()), &ToolNames::default(), &voice()).unwrap();
    let reply: Value = serde_json::from_slice(&converted.body).unwrap();
    match to {
        Dialect::Chat => reply["choices"][0]["message"].clone(),
        Dialect::Anthropic => json!({"role": "assistant", "content": reply["content"]}),
        Dialect::Responses => reply["output"].clone(),
        Dialect::Gemini => reply["candidates"][0]["content"].clone(),
    }
}

pub fn streamed(from: Dialect, to: Dialect, events: &str) -> String {
    let setup = Setup { from, to, voice: voice(), names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 };
    let mut stream = ReplyStream::new(setup);
    let mut out = stream.feed(Bytes::copy_from_slice(events.as_bytes())).unwrap().to_vec();
    match stream.finish() {
        StreamEnd::Complete { tail } => out.extend_from_slice(&tail),
        other => panic!("{other:?}"),
    }
    String::from_utf8(out).unwrap()
}

/// What a client keeps of a streamed reply.
pub fn remembered_stream(from: Dialect, to: Dialect, events: &str) -> Value {
    gathered(to, &streamed(from, to, events))
}

/// The client's next request: its history with the results of its tools.
pub fn request_after(dialect: Dialect, said: &Value) -> Value {
    match dialect {
        Dialect::Chat => {
            let mut messages = vec![json!({"role": "user", "content": "q"}), said.clone()];
            for call in said["tool_calls"].as_array().unwrap_or(&Vec::new()) {
                messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "r"}));
            }
            messages.push(json!({"role": "user", "content": "go on"}));
            json!({"model": "m", "messages": messages})
        }
        Dialect::Anthropic => {
            let calls = said["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
            let mut answer: Vec<Value> =
                calls.map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "r"})).collect();
            answer.push(json!({"type": "text", "text": "go on"}));
            json!({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "q"}, said, {"role": "user", "content": answer}]})
        }
        Dialect::Responses => {
            let mut input = vec![json!({"role": "user", "content": "q"})];
            input.extend(said.as_array().unwrap().clone());
            for item in said.as_array().unwrap().iter().filter(|item| item["type"] == "function_call") {
                input.push(json!({"type": "function_call_output", "call_id": item["call_id"], "output": "r"}));
            }
            input.push(json!({"role": "user", "content": "go on"}));
            json!({"model": "m", "input": input})
        }
        Dialect::Gemini => {
            let parts = said["parts"].as_array().unwrap();
            let mut answer: Vec<Value> = Vec::new();
            for call in parts.iter().filter(|part| part["functionCall"].is_object()) {
                let call = &call["functionCall"];
                answer.push(
                    json!({"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "r"}}}),
                );
            }
            answer.push(json!({"text": "go on"}));
            json!({"contents": [{"role": "user", "parts": [{"text": "q"}]}, said, {"role": "user", "parts": answer}]})
        }
    }
}
