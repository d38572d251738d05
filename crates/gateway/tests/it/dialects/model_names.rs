//! The name of the model is the public one, also where route and public name are the same and the
//! provider answers in the name of a dated version: in every event of a stream and in a whole
//! reply.

use super::client::Client;
use super::scripted::{Scripted, Written};
use crate::house::{House, Plan, events};
use serde_json::{Value, json};
use tollgate_wire::Dialect;

const CATALOG: &str = r#"
[model."gemini-same"]
context_window = 100000
max_output_tokens = 5000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "script", upstream_model = "gemini-same" }]
"#;

const DATED: &str = "gemini-same-2026-01-01";

fn named(events: &[Value]) -> String {
    let line = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(line).collect()
}

/// A whole reply and a stream of a provider that names a dated version.
fn answers(dialect: Dialect) -> (&'static str, Value, String) {
    match dialect {
        Dialect::Chat => {
            let chunk = |delta: Value, finish: Value| {
                json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": DATED,
                    "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
            };
            let said = ["A ", "toll ", "is ", "due."].map(|text| chunk(json!({ "content": text }), Value::Null));
            let stream = named(&said) + &named(&[chunk(json!({}), json!("stop"))]) + "data: [DONE]\n\n";
            let whole = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": DATED, "choices": [
                { "index": 0, "message": { "role": "assistant", "content": "A toll." }, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8 } });
            ("openai", whole, stream)
        }
        Dialect::Anthropic => {
            let message = |content: Value, stop: Value| {
                json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": DATED, "content": content,
                    "stop_reason": stop, "stop_sequence": null, "usage": { "input_tokens": 5, "output_tokens": 3 } })
            };
            let stream = named(&[
                json!({ "type": "message_start", "message": message(json!([]), Value::Null) }),
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "A toll." } }),
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null }, "usage": { "output_tokens": 3 } }),
                json!({ "type": "message_stop" }),
            ]);
            ("anthropic", message(json!([{ "type": "text", "text": "A toll." }]), json!("end_turn")), stream)
        }
        Dialect::Responses => {
            let item = json!({ "id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
                "content": [{ "type": "output_text", "text": "A toll.", "annotations": [] }] });
            let response = |status: &str, output: Value| {
                json!({ "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": DATED, "output": output,
                    "usage": { "input_tokens": 5, "output_tokens": 3, "total_tokens": 8 } })
            };
            let stream = named(&[
                json!({ "type": "response.created", "sequence_number": 0, "response": response("in_progress", json!([])) }),
                json!({ "type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_1", "output_index": 0,
                    "content_index": 0, "delta": "A toll." }),
                json!({ "type": "response.completed", "sequence_number": 2, "response": response("completed", json!([item])) }),
            ]);
            ("openai-responses", response("completed", json!([item])), stream)
        }
        Dialect::Gemini => {
            let piece = |text: &str, finish: Value| {
                json!({ "candidates": [{ "index": 0, "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": finish }],
                    "modelVersion": DATED, "usageMetadata": { "promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8 } })
            };
            let stream = named(&[piece("A ", Value::Null), piece("toll ", Value::Null), piece("due.", json!("STOP"))]);
            ("gemini", piece("A toll.", json!("STOP")), stream)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dated_name_of_the_provider_is_not_shown() {
    for client in Client::all() {
        let (kind, whole, stream) = answers(client.0);
        let script = Scripted::start(vec![Written::events(stream.clone()), Written::json(&whole)]).await;
        let house = House::with(Plan { catalog: CATALOG, config: script.config(kind), ..Plan::default() }).await;
        let text = client.ask(&house, "gemini-same", "go", true).await.text().await.expect("text");
        assert!(client.is_whole(&text, &events(&text)), "{client:?}: {text}");
        assert!(!text.contains(DATED), "{client:?}: {text}");
        assert_eq!(text.matches("gemini-same").count(), stream.matches(DATED).count(), "{client:?}: {text}");
        let whole = client.ask(&house, "gemini-same", "go", false).await.text().await.expect("text");
        assert!(whole.contains("gemini-same") && !whole.contains(DATED), "{client:?}: {whole}");
    }
}
