//! What is sent both ways: a realistic request of about 300 bytes, replies of about 400, events of
//! about 200.

use std::net::SocketAddr;

use bytes::Bytes;
use serde_json::json;

use crate::tongue::Tongue;

/// What a model name asks the upstream for: `bench-<think ms>-<events>`, or `bench-idle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wish {
    Whole {
        think_ms: u64,
    },
    Stream {
        think_ms: u64,
        events: u64,
        pause_ms: u64,
    },
    /// One event, then silence.
    Idle,
}

/// Plain, plain with a thinking provider, long stream, paced stream, short streams, idle stream.
pub const MODELS: &[&str] =
    &["bench-0-0", "bench-20-0", "bench-0-200", "bench-0-100-4", "bench-0-8", "bench-20-8", "bench-idle"];

impl Wish {
    /// Reads the model name out of a request without parsing it: ours is the only `"bench-` in a
    /// body. Gemini has it in the path.
    pub fn of(tongue: Tongue, head: &[u8], body: &[u8]) -> Option<Self> {
        let (text, mark, end): (_, &[u8], _) =
            if tongue == Tongue::Gemini { (head, b"/bench-", b':') } else { (body, b"\"bench-", b'"') };
        let start = text.windows(mark.len()).position(|window| window == mark)? + mark.len();
        let length = text[start..].iter().position(|byte| *byte == end)?;
        Self::named(std::str::from_utf8(&text[start..start + length]).ok()?)
    }

    /// Of a model, without its `bench-`.
    pub fn named(name: &str) -> Option<Self> {
        if name == "idle" {
            return Some(Self::Idle);
        }
        let mut numbers = name.split('-').map(str::parse::<u64>);
        let (think_ms, events) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let pause_ms = numbers.next().map_or(Some(0), Result::ok)?;
        Some(match events {
            0 => Self::Whole { think_ms },
            _ => Self::Stream { think_ms, events, pause_ms },
        })
    }
}

pub fn wants_usage(body: &[u8]) -> bool {
    let mark = b"\"include_usage\"";
    body.windows(mark.len()).any(|window| window == mark)
}

pub const SYSTEM: &str = "You are a careful assistant of a toll company. Answer in one short sentence.";
pub const QUESTION: &str = "How much does a truck with three axles pay for the northern bridge on a Sunday morning?";

/// A whole HTTP request, ready to be written.
pub fn request(target: SocketAddr, key: &str, model: &str, stream: bool) -> Bytes {
    let body = json!({
        "model": model,
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}],
        "temperature": 0.2, "max_tokens": 256, "stream": stream,
    });
    posted(target, key, "/v1/chat/completions", &body.to_string())
}

pub fn posted(target: SocketAddr, key: &str, path: &str, body: &str) -> Bytes {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {target}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\naccept: application/json\r\nuser-agent: tollgate-bench\r\n\
         content-length: {length}\r\n\r\n"
    );
    (head + body).into()
}

/// The same without a body.
pub fn asked(target: SocketAddr, key: &str, path: &str) -> Bytes {
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {target}\r\nauthorization: Bearer {key}\r\n\
         accept: application/json\r\nuser-agent: tollgate-bench\r\n\r\n"
    );
    head.into()
}

/// A whole HTTP reply that is not streamed.
pub fn whole(model: &str) -> Bytes {
    let text = "A truck with three axles pays 14.50 on the northern bridge on Sundays before noon.";
    let message = json!({"role": "assistant", "content": text, "refusal": null});
    let body = json!({
        "id": "chatcmpl-bench0123456789", "object": "chat.completion", "created": 1_767_225_600, "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 38, "completion_tokens": 17, "total_tokens": 55},
    });
    let body = body.to_string();
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    (head + &body).into()
}

pub const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The HTTP chunks of one stream's events.
pub struct Events {
    pub opening: Vec<Bytes>,
    /// The pieces of text, one event each; where they are all alike there is one.
    pub tokens: Vec<Bytes>,
    pub finish: Bytes,
    /// Only when it was asked for; empty where it is part of the end.
    pub usage: Bytes,
    /// The last events and the end of the body.
    pub done: Bytes,
}

impl Events {
    pub fn token(&self, at: u64) -> &Bytes {
        let at = usize::try_from(at).unwrap_or_default();
        &self.tokens[at % self.tokens.len()]
    }

    /// Of chat completions.
    pub fn of(model: &str) -> Self {
        let chunk = |choices: serde_json::Value, usage: serde_json::Value| {
            let chunk = json!({
                "id": "chatcmpl-bench0123456789", "object": "chat.completion.chunk", "created": 1_767_225_600,
                "model": model, "choices": choices, "usage": usage,
            });
            http_chunk(&format!("data: {chunk}\n\n"))
        };
        let said = json!([{"index": 0, "delta": {"content": " bridge"}, "logprobs": null, "finish_reason": null}]);
        let end = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": "stop"}]);
        let usage = json!({"prompt_tokens": 38, "completion_tokens": 200, "total_tokens": 238});
        Self {
            opening: Vec::new(),
            tokens: vec![chunk(said, json!(null)).into()],
            finish: chunk(end, json!(null)).into(),
            usage: chunk(json!([]), usage).into(),
            done: (http_chunk("data: [DONE]\n\n") + "0\r\n\r\n").into(),
        }
    }
}

pub fn http_chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_understood() {
        let target = SocketAddr::from(([127, 0, 0, 1], 1));
        for model in MODELS {
            assert!(Wish::of(Tongue::Chat, &[], &request(target, "k", model, false)).is_some(), "{model}");
        }
        let wish = Wish::Stream { think_ms: 0, events: 100, pause_ms: 4 };
        assert_eq!(Wish::of(Tongue::Chat, &[], b"{\"model\": \"bench-0-100-4\"}"), Some(wish));
    }

    #[test]
    fn sizes_are_realistic() {
        let request = request(SocketAddr::from(([127, 0, 0, 1], 1)), "k", "bench-0-0", false);
        let body = request.len() - crate::http1::head_end(&request).unwrap();
        assert!((250..350).contains(&body), "{body}");
        assert!((380..520).contains(&whole("bench-0-0").len()));
        assert!((180..260).contains(&Events::of("bench-0-200").token(0).len()));
    }
}
