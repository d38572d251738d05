//! No input makes the translations panic or grow: requests, replies and streams of any JSON and any
//! bytes, in every pair of dialects.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tollgate_dialects::{CheckedRequest, Path, ReplyStream, Setup, StreamEnd, Target, ToolNames, Voice, convert};
use tollgate_wire::Dialect;

/// Names that mean something somewhere, so that random values reach every reader.
const KEYS: &[&str] = &[
    "model",
    "messages",
    "role",
    "content",
    "type",
    "text",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "index",
    "choices",
    "delta",
    "message",
    "finish_reason",
    "usage",
    "input",
    "output",
    "instructions",
    "tools",
    "tool_choice",
    "system",
    "max_tokens",
    "thinking",
    "signature",
    "data",
    "source",
    "tool_use_id",
    "is_error",
    "input_schema",
    "content_block",
    "stop_reason",
    "response",
    "item",
    "output_index",
    "item_id",
    "call_id",
    "summary",
    "encrypted_content",
    "contents",
    "parts",
    "functionCall",
    "args",
    "functionResponse",
    "thought",
    "thoughtSignature",
    "inlineData",
    "mimeType",
    "candidates",
    "finishReason",
    "usageMetadata",
    "generationConfig",
    "thinkingConfig",
    "reasoning_content",
    "reasoning_details",
    "image_url",
    "url",
    "file",
    "file_data",
    "stream",
    "error",
    "stop",
    "response_format",
    "json_schema",
    "schema",
    "reasoning",
    "effort",
    "logprobs",
    "groundingMetadata",
    "annotation",
    "partial_json",
    "citations",
    "stop_sequences",
    "status",
    "allowed_tools",
    "custom",
    "media_type",
    "title",
    "systemInstruction",
    "functionDeclarations",
    "parameters",
    "toolConfig",
    "functionCallingConfig",
    "mode",
    "allowedFunctionNames",
    "promptFeedback",
];

/// Values that mean something somewhere.
const WORDS: &[&str] = &[
    "user",
    "assistant",
    "system",
    "tool",
    "developer",
    "model",
    "text",
    "image",
    "document",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "function",
    "custom",
    "function_call",
    "function_call_output",
    "reasoning",
    "message",
    "input_text",
    "output_text",
    "refusal",
    "input_image",
    "input_file",
    "image_url",
    "input_audio",
    "file",
    "base64",
    "url",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "text_delta",
    "thinking_delta",
    "signature_delta",
    "input_json_delta",
    "citations_delta",
    "response.created",
    "response.completed",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.function_call_arguments.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_part.added",
    "response.incomplete",
    "response.failed",
    "reasoning.text",
    "reasoning.encrypted",
    "anthropic-claude-v1",
    "google-gemini-v1",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "stop",
    "tool_calls",
    "length",
    "ping",
    "error",
    "data:image/png;base64,QUJD",
    "https://x.example/",
    "tg1.g.QQ==.x",
    "namespace",
    "json_schema",
    "web_search",
    "allowed_tools",
    "adaptive",
    "enabled",
    "high",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => prop::sample::select(WORDS).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => prop_oneof![0..5i64, any::<i64>()].prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => "\\PC{0,6}".prop_map(Value::from),
        1 => Just(json!("{\"a\":1}")),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(KEYS), inner), 0..7).prop_map(|members| {
                Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((prop::sample::select(KEYS), any_json()), 0..8)
        .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn stream(from: Dialect, to: Dialect) -> ReplyStream {
    let voice = Voice { id: "call_1".into(), model: "m".into(), created: 1, wants_usage: true, ..Voice::default() };
    ReplyStream::new(Setup { from, to, voice, names: ToolNames::default(), rename: true, max_event_bytes: 1 << 16 })
}

fn play(from: Dialect, to: Dialect, chunks: &[Bytes]) {
    let mut stream = stream(from, to);
    let mut out = Vec::new();
    let mut broken = false;
    for chunk in chunks {
        match stream.feed(chunk.clone()) {
            Ok(reply) => out.extend_from_slice(&reply),
            Err(_) => {
                broken = true;
                break;
            }
        }
    }
    // What passes within a dialect is the provider's; what we write, clients must be able to read.
    if let StreamEnd::Complete { tail } = stream.finish()
        && from != to
        && !broken
    {
        out.extend_from_slice(&tail);
        crate::client::gathered(to, std::str::from_utf8(&out).unwrap());
    }
    let _ = stream.error_event(tollgate_wire::error::Code::UpstreamError, "x");
    let _ = (stream.best_usage(1), stream.raw_usage().is_some(), stream.saw_done());
}

/// What a provider says last, so that many streams of nonsense end well and are read as a client
/// reads them.
fn good_end(from: Dialect) -> &'static str {
    match from {
        Dialect::Chat => {
            "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        }
        Dialect::Anthropic => {
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"
        }
        Dialect::Responses => {
            "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[]}}\n\n"
        }
        Dialect::Gemini => {
            "data: {\"candidates\":[{\"index\":0,\"content\":{\"parts\":[{\"text\":\"x\"}]},\"finishReason\":\"STOP\"}]}\n\n"
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn requests(mut body in any_object(), conversation in prop::collection::vec(any_object(), 1..5)) {
        let turns = Value::from(conversation.into_iter().map(Value::from).collect::<Vec<_>>());
        for from in Dialect::ALL {
            body.insert("model".into(), json!("m"));
            body.insert("max_tokens".into(), json!(10));
            for name in ["messages", "input", "contents"] {
                body.insert(name.into(), turns.clone());
            }
            for name in ["stream", "n", "max_completion_tokens", "stream_options", "generationConfig"] {
                body.remove(name);
            }
            let text = Bytes::from(serde_json::to_vec(&body).unwrap());
            let path = Path { model: "gemini-x", stream: true };
            let Ok(request) = CheckedRequest::read(from, text, Some(path)) else { continue };
            for to in Dialect::ALL {
                if let Ok(sent) = request.upstream_body(&Target::new(to, "up")) {
                    prop_assert!(serde_json::from_slice::<Value>(&sent.body).is_ok(), "{from:?} {to:?} {}", String::from_utf8_lossy(&sent.body));
                    prop_assert!(!sent.dropped.to_string().contains(['\n', '\r']));
                }
            }
        }
    }

    #[test]
    fn replies(body in any_object()) {
        let text = Bytes::from(serde_json::to_vec(&body).unwrap());
        let voice = Voice::default();
        for from in Dialect::ALL {
            for to in Dialect::ALL {
                if let Ok(converted) = convert(from, to, text.clone(), &ToolNames::default(), &voice) {
                    prop_assert!(serde_json::from_slice::<Value>(&converted.body).is_ok(), "{from:?} {to:?}");
                }
            }
        }
    }

    #[test]
    fn streams(events in prop::collection::vec(any_object(), 0..8), done in any::<bool>()) {
        let chunks: Vec<Bytes> = events
            .iter()
            .map(|event| Bytes::from(format!("data: {}\n\n", serde_json::to_string(event).unwrap())))
            .collect();
        for from in Dialect::ALL {
            let mut chunks = chunks.clone();
            if done {
                chunks.push(Bytes::from_static(good_end(from).as_bytes()));
            }
            for to in Dialect::ALL {
                play(from, to, &chunks);
            }
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut framed = b"data: ".to_vec();
        framed.extend_from_slice(&bytes);
        framed.extend_from_slice(b"\n\n");
        for from in Dialect::ALL {
            let _ = CheckedRequest::read(from, Bytes::from(bytes.clone()), None);
            for to in Dialect::ALL {
                play(from, to, &[Bytes::from(bytes.clone()), Bytes::from(framed.clone())]);
                let _ = convert(from, to, Bytes::from(bytes.clone()), &ToolNames::default(), &Voice::default());
            }
        }
    }
}

/// Time this thread has spent computing, so that a busy machine does not count. (Linux: nanoseconds
/// on the processor.)
fn spent() -> Duration {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel's own account");
    Duration::from_nanos(account.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
}

/// Twice the events take about twice the time, in every pair, and nothing is buffered of a text
/// that passed.
#[test]
fn streams_are_linear() {
    let event = |from: Dialect| match from {
        Dialect::Chat => r#"{"id":"c","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}"#,
        Dialect::Anthropic => {
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}"#
        }
        Dialect::Responses => {
            r#"{"type":"response.output_text.delta","output_index":0,"item_id":"m","content_index":0,"delta":"word "}"#
        }
        Dialect::Gemini => r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"word "}]}}]}"#,
    };
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            let chunk = Bytes::from(format!("data: {}\n\n", event(from)));
            let time = |count: usize| {
                let mut stream = stream(from, to);
                let start = spent();
                for _ in 0..count {
                    stream.feed(chunk.clone()).unwrap();
                }
                spent() - start
            };
            // As many events either way, in short streams and in long ones: many kernels count a
            // thread's time in ticks of some milliseconds, which the sum is many of.
            let all = |streams: usize, count: usize| (0..streams).map(|_| time(count)).sum::<Duration>();
            // A machine that stands still for a moment spoils one try, also by this account where
            // the machine is a guest; what is not linear spoils all of them.
            let mut seen = Vec::new();
            let linear = std::iter::repeat_with(|| (all(24, 500), all(3, 4_000))).take(10).any(|(short, long)| {
                seen.push((short, long));
                long < short * 3 + Duration::from_millis(50)
            });
            assert!(linear, "{from:?} to {to:?}: {seen:?}");
        }
    }
}
