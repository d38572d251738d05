//! The four chat dialects as load generator and upstream speak them: one streamed request of each,
//! and the events of one stream of each, so that a stream through tollgate can be compared between
//! any two of them. Chat completions are in `replies` too, for all the figures that are about one
//! dialect.

use std::net::SocketAddr;

use bytes::Bytes;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::replies::{self, Events, http_chunk};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub enum Tongue {
    Chat,
    Anthropic,
    Responses,
    Gemini,
}

impl Tongue {
    pub const ALL: [Self; 4] = [Self::Chat, Self::Anthropic, Self::Responses, Self::Gemini];

    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }

    /// The kind of a provider that speaks it, and what follows the host in its address.
    pub fn provider(self) -> (&'static str, &'static str) {
        match self {
            Self::Chat => ("openai", "/v1"),
            Self::Anthropic => ("anthropic", ""),
            Self::Responses => ("openai-responses", "/v1"),
            Self::Gemini => ("gemini", ""),
        }
    }

    /// The model that has a provider of this dialect behind it and is sold in all of them.
    pub fn model(self) -> String {
        format!("gemini-bench-{}", self.name())
    }

    /// Which of them the head of a request is about.
    pub fn asked(head: &[u8]) -> Self {
        let path = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        match path {
            b"/v1/messages" => Self::Anthropic,
            b"/v1/responses" => Self::Responses,
            path if path.starts_with(b"/v1beta/") => Self::Gemini,
            _ => Self::Chat,
        }
    }

    /// A whole HTTP request for a stream, ready to be written.
    pub fn request(self, target: SocketAddr, key: &str, model: &str) -> Bytes {
        let (system, question) = (replies::SYSTEM, replies::QUESTION);
        let said = json!([{"role": "user", "content": question}]);
        let (path, body) = match self {
            Self::Chat => return replies::request(target, key, model, true),
            Self::Anthropic => {
                let body = json!({
                    "model": model, "system": system, "messages": said, "temperature": 0.2, "max_tokens": 256, "stream": true,
                });
                ("/v1/messages".to_owned(), body)
            }
            // Stored responses would measure the store.
            Self::Responses => {
                let body = json!({
                    "model": model, "instructions": system, "input": said, "temperature": 0.2, "max_output_tokens": 256,
                    "stream": true, "store": false,
                });
                ("/v1/responses".to_owned(), body)
            }
            Self::Gemini => {
                let body = json!({
                    "systemInstruction": {"parts": [{"text": system}]},
                    "contents": [{"role": "user", "parts": [{"text": question}]}],
                    "generationConfig": {"temperature": 0.2, "maxOutputTokens": 256},
                });
                (format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"), body)
            }
        };
        replies::posted(target, key, &path, &body.to_string())
    }

    /// The events of a stream of so many pieces of text.
    pub fn events(self, model: &str, count: u64) -> Events {
        match self {
            Self::Chat => Events::of(model),
            Self::Anthropic => anthropic(model, count),
            Self::Responses => responses(model, count),
            Self::Gemini => gemini(model, count),
        }
    }
}

fn named(data: &Value) -> Bytes {
    let name = data["type"].as_str().unwrap_or_default();
    http_chunk(&format!("event: {name}\ndata: {data}\n\n")).into()
}

/// The last events, and the end of the body after them.
fn ended(events: &[Bytes]) -> Bytes {
    [events.concat(), b"0\r\n\r\n".to_vec()].concat().into()
}

fn anthropic(model: &str, count: u64) -> Events {
    let usage = |output: u64| json!({"input_tokens": 38, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": output});
    let message = json!({
        "id": "msg_bench0123456789", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage(1),
    });
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " bridge"}});
    let reason = json!({"stop_reason": "end_turn", "stop_sequence": null});
    Events {
        opening: vec![named(&json!({"type": "message_start", "message": message})), named(&start)],
        tokens: vec![named(&delta)],
        finish: named(&json!({"type": "content_block_stop", "index": 0})),
        usage: Bytes::new(),
        done: ended(&[
            named(&json!({"type": "message_delta", "delta": reason, "usage": usage(count)})),
            named(&json!({"type": "message_stop"})),
        ]),
    }
}

fn responses(model: &str, count: u64) -> Events {
    let response = |status: &str, output: Value, usage: Value| {
        json!({
            "id": "resp_bench0123456789", "object": "response", "created_at": 1_767_225_600, "status": status, "model": model,
            "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "output": output,
            "parallel_tool_calls": true, "temperature": 0.2, "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": usage,
        })
    };
    let text = " bridge".repeat(usize::try_from(count).unwrap_or_default());
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let item = |status: &str, content: Value| json!({"id": "msg_bench0", "type": "message", "status": status, "role": "assistant", "content": content});
    let event = |number: u64, kind: &str, more: Value| {
        let mut event = json!({"type": format!("response.{kind}"), "sequence_number": number});
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        named(&event)
    };
    let place = |name: &str, value: Value| {
        let mut place = json!({"item_id": "msg_bench0", "output_index": 0, "content_index": 0});
        place[name] = value;
        place
    };
    let said = |name: &str, value: Value| {
        let mut said = place(name, value);
        said["logprobs"] = json!([]);
        said
    };
    let usage = json!({
        "input_tokens": 38, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": count,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 38 + count,
    });
    let whole = item("completed", json!([part(&text)]));
    let after = 4 + count;
    Events {
        opening: vec![
            event(0, "created", json!({"response": response("in_progress", json!([]), Value::Null)})),
            event(1, "in_progress", json!({"response": response("in_progress", json!([]), Value::Null)})),
            event(2, "output_item.added", json!({"output_index": 0, "item": item("in_progress", json!([]))})),
            event(3, "content_part.added", place("part", part(""))),
        ],
        tokens: (0..count).map(|at| event(4 + at, "output_text.delta", said("delta", json!(" bridge")))).collect(),
        finish: event(after, "output_text.done", said("text", json!(text))),
        usage: Bytes::new(),
        done: ended(&[
            event(after + 1, "content_part.done", place("part", part(&text))),
            event(after + 2, "output_item.done", json!({"output_index": 0, "item": whole})),
            event(after + 3, "completed", json!({"response": response("completed", json!([whole]), usage)})),
        ]),
    }
}

fn gemini(model: &str, count: u64) -> Events {
    let fragment = |candidate: Value, said: u64| {
        let usage = json!({"promptTokenCount": 38, "candidatesTokenCount": said, "totalTokenCount": 38 + said});
        let data = json!({
            "candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "bench0123456789",
        });
        Bytes::from(http_chunk(&format!("data: {data}\n\n")))
    };
    let piece =
        |at: u64| fragment(json!({"content": {"parts": [{"text": " bridge"}], "role": "model"}, "index": 0}), at + 1);
    Events {
        opening: Vec::new(),
        tokens: (0..count).map(piece).collect(),
        finish: Bytes::new(),
        usage: Bytes::new(),
        done: ended(&[fragment(json!({"finishReason": "STOP", "index": 0}), count)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{Reply, head_end};
    use crate::replies::{STREAM_HEAD, Wish};

    #[test]
    fn a_request_tells_its_dialect_and_its_model() {
        let target = SocketAddr::from(([127, 0, 0, 1], 1));
        for tongue in Tongue::ALL {
            let request = tongue.request(target, "k", "bench-0-200");
            let head = head_end(&request).unwrap();
            assert_eq!(Tongue::asked(&request[..head]), tongue);
            let wish = Wish::of(tongue, &request[..head], &request[head..]);
            assert_eq!(wish, Some(Wish::Stream { think_ms: 0, events: 200, pause_ms: 0 }), "{tongue:?}");
        }
    }

    /// Whatever the dialect, a stream is whole for the counter, has an event for every piece and
    /// few besides, all of a likely size.
    #[test]
    fn streams_are_whole_and_alike() {
        for tongue in Tongue::ALL {
            let events = tongue.events("bench-0-200", 200);
            let tokens: Vec<_> = (0..200).map(|at| events.token(at).clone()).collect();
            let all = [STREAM_HEAD.to_vec(), events.opening.concat(), tokens.concat()].concat();
            let end = [&events.finish[..], &events.usage, &events.done].concat();
            let mut reply = Reply::default();
            assert!(!reply.feed(&all).unwrap(), "{tongue:?}");
            assert!(reply.feed(&end).unwrap(), "{tongue:?}");
            assert!((201..=208).contains(&reply.events), "{tongue:?}: {}", reply.events);
            assert!((100..300).contains(&tokens[100].len()), "{tongue:?}: {}", tokens[100].len());
        }
    }
}
