//! The hard cases of the reference, each under its number. What is not here is in the golden files,
//! in the tests of usage and of the SSE reader, or is the gateway's (disconnects, headers, retries,
//! identity across calls).

mod agents;
mod citations;
mod coding;
mod functions;
mod hosted;
mod makers;
mod parameters;
mod reasoning;
mod schemas;
mod stops;
mod streams;
mod tools;
mod turns;

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_dialects::{CheckedRequest, Path, ReplyStream, Sent, Setup, StreamEnd, Target, ToolNames, Voice, convert};
use tollgate_wire::{Dialect, Problem, StreamFault};

pub use Dialect::{Anthropic as A, Chat as C, Gemini as G, Responses as R};

pub fn request(from: Dialect, body: &Value) -> CheckedRequest {
    let path = Path { model: "gemini-x", stream: false };
    CheckedRequest::read(from, Bytes::from(body.to_string()), (from == G).then_some(path)).unwrap()
}

pub fn try_sent(from: Dialect, target: &Target, body: &Value) -> Result<(Value, Sent), Problem> {
    let sent = request(from, body).upstream_body(target)?;
    Ok((serde_json::from_slice(&sent.body).unwrap(), sent))
}

/// The body a provider of `to` gets.
pub fn sent(from: Dialect, to: Dialect, body: Value) -> Value {
    try_sent(from, &Target::new(to, "up"), &body).unwrap().0
}

/// What was dropped on the way.
pub fn dropped(from: Dialect, to: Dialect, body: Value) -> String {
    try_sent(from, &Target::new(to, "up"), &body).unwrap().1.dropped.to_string()
}

/// The refused parameter.
pub fn refused(from: Dialect, to: Dialect, body: Value) -> String {
    try_sent(from, &Target::new(to, "up"), &body).unwrap_err().param.unwrap()
}

/// What of an answer is reported as dropped.
pub fn lost(from: Dialect, to: Dialect, body: &Value) -> String {
    let converted = convert(from, to, Bytes::from(body.to_string()), &ToolNames::default(), &voice()).unwrap();
    converted.dropped.to_string()
}

pub fn voice() -> Voice {
    Voice { id: "call_1".into(), model: "public".into(), created: 7, wants_usage: true, ..Voice::default() }
}

/// A whole reply as a client of `to` gets it.
pub fn reply(from: Dialect, to: Dialect, body: Value) -> Value {
    let converted = convert(from, to, Bytes::from(body.to_string()), &ToolNames::default(), &voice()).unwrap();
    serde_json::from_slice(&converted.body).unwrap()
}

pub struct Played {
    pub text: String,
    pub data: Vec<Value>,
    /// `complete`, `truncated`, or the fault.
    pub end: String,
    pub stream: ReplyStream,
}

/// A stream as a client of `to` gets it; the pieces are sent as they are.
pub fn play_raw(from: Dialect, to: Dialect, pieces: &[&[u8]]) -> Played {
    let mut stream = ReplyStream::new(Setup {
        from,
        to,
        voice: voice(),
        names: ToolNames::default(),
        rename: true,
        max_event_bytes: 1 << 23,
    });
    let mut out = Vec::new();
    let mut fault: Option<StreamFault> = None;
    for piece in pieces {
        match stream.feed(Bytes::copy_from_slice(piece)) {
            Ok(bytes) => out.extend_from_slice(&bytes),
            Err(broken) => {
                out.extend_from_slice(&broken.before);
                fault = Some(broken.fault);
                break;
            }
        }
    }
    let end = match fault {
        Some(fault) => format!("{fault:?}"),
        None => match stream.finish() {
            StreamEnd::Complete { tail } => {
                out.extend_from_slice(&tail);
                "complete".to_owned()
            }
            StreamEnd::Truncated { rest } => {
                out.extend_from_slice(&rest);
                "truncated".to_owned()
            }
            StreamEnd::Fault(fault) => format!("{fault:?}"),
        },
    };
    let text = String::from_utf8(out).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let data = lines.map(|data| serde_json::from_str(data).unwrap()).collect();
    Played { data, text, end, stream }
}

pub fn play(from: Dialect, to: Dialect, events: &[Value]) -> Played {
    let all: String = events
        .iter()
        .map(|event| match event.as_str() {
            Some(text) => format!("data: {text}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    play_raw(from, to, &[all.as_bytes()])
}

/// A chat chunk.
pub fn chunk(delta: Value, finish: Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

pub fn done() -> Value {
    json!("[DONE]")
}

/// The whole text a chat client reads.
pub fn chat_text(data: &[Value]) -> String {
    data.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
}

/// The finish reason of a chat stream.
pub fn chat_finish(data: &[Value]) -> String {
    let reasons = data.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
    reasons.collect::<Vec<_>>().join("+")
}

/// Calls of a chat stream: `index id name arguments`.
pub fn chat_calls(data: &[Value]) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for chunk in data {
        for call in chunk["choices"][0]["delta"]["tool_calls"].as_array().unwrap_or(&Vec::new()) {
            let at = call["index"].as_u64().unwrap() as usize;
            let args = call["function"]["arguments"].as_str().unwrap_or("");
            if at == calls.len() {
                calls.push(format!(
                    "{at} {} {} ",
                    call["id"].as_str().unwrap(),
                    call["function"]["name"].as_str().unwrap()
                ));
            }
            calls[at].push_str(args);
        }
    }
    calls
}

/// Types of events in their order.
pub fn kinds(data: &[Value]) -> Vec<&str> {
    data.iter().map(|event| event["type"].as_str().unwrap()).collect()
}
