//! Pictures and voices that a model of a conversation makes: within one dialect they pass as they
//! are, and each kind of token is charged at its own face. Between dialects they are refused by the
//! name of the field that asks for them.

use super::client::Client;
use super::scripted::{Scripted, Written};
use crate::house::{House, Plan, call_id, error_of};
use crate::watch::until;
use serde_json::{Value, json};
use tollgate_wire::Dialect;

/// Text at 2,000 nano-USD a token, voices at 20,000 and pictures at 30,000.
const CATALOG: &str = r#"
[model."gemini-made"]
context_window = 100_000
max_output_tokens = 10_000
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000, audio_output = 20_000_000, image_output = 30_000_000 }
route = [{ provider = "script", upstream_model = "up" }]
"#;

/// A request for a picture or a voice, and the answer of its maker with and without a report.
fn made(dialect: Dialect, reported: bool) -> (Value, Value) {
    let data = "iVBORw0KGgo".repeat(40_000);
    let mut body = Client(dialect).body("gemini-made", "a bridge", false);
    let (mut answer, usage) = match dialect {
        Dialect::Gemini => {
            body["generationConfig"] = json!({"responseModalities": ["TEXT", "IMAGE"]});
            let parts = json!([{"text": "Here."}, {"inlineData": {"mimeType": "image/png", "data": data}}]);
            let answer = json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
                "modelVersion": "up"});
            let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 1_293, "totalTokenCount": 1_303,
                "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1_290}, {"modality": "TEXT", "tokenCount": 3}]});
            (answer, ("usageMetadata", usage))
        }
        _ => {
            body["modalities"] = json!(["text", "audio"]);
            body["audio"] = json!({"voice": "alloy", "format": "wav"});
            let audio = json!({"id": "audio_1", "data": data, "expires_at": 1, "transcript": "Here."});
            let message = json!({"role": "assistant", "content": null, "audio": audio});
            let answer = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "up",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
            let usage = json!({"prompt_tokens": 10, "completion_tokens": 1_293, "total_tokens": 1_303,
                "completion_tokens_details": {"audio_tokens": 1_290, "text_tokens": 3}});
            (answer, ("usage", usage))
        }
    };
    if reported {
        answer[usage.0] = usage.1;
    }
    (body, answer)
}

async fn asked(dialect: Dialect, body: &Value, answer: Written, stream: bool) -> (House, reqwest::Response) {
    let kind = if dialect == Dialect::Gemini { "gemini" } else { "openai" };
    let script = Scripted::start(vec![answer]).await;
    let config = script.config(kind);
    let house = House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await;
    let client = Client(dialect);
    let reply = client.post(&house, &client.path("gemini-made", stream), body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    (house, reply)
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_and_voices_pass_and_are_charged_at_their_own_face() {
    for (dialect, face) in [(Dialect::Gemini, 30_000), (Dialect::Chat, 20_000)] {
        let (body, answer) = made(dialect, true);
        let (house, reply) = asked(dialect, &body, Written::json(&answer), false).await;
        let call = call_id(&reply);
        let mut written: Value = reply.json().await.expect("JSON");
        // The public name stands where the provider's did.
        for name in ["model", "modelVersion"] {
            if let Some(model) = written.get_mut(name) {
                *model = "up".into();
            }
        }
        assert!(written == answer, "{dialect:?}: the answer was changed");
        let row = house.row(call).await;
        let counted = (row.counters.output, row.counters.image_output + row.counters.audio_output);
        assert_eq!((counted, row.estimated), ((3, 1_290), false), "{dialect:?}");
        assert_eq!(row.charge.nano(), 10 * 1_000 + 3 * 2_000 + 1_290 * face, "{dialect:?}");
        assert!(row.charge <= row.hold, "{dialect:?}");
    }
}

/// A long answer takes of the room of all bodies until its client has it.
#[tokio::test(flavor = "multi_thread")]
async fn long_answers_count_as_bodies() {
    for dialect in [Dialect::Gemini, Dialect::Chat] {
        let (body, mut answer) = made(dialect, true);
        let place = match dialect {
            Dialect::Gemini => "/candidates/0/content/parts/1/inlineData/data",
            _ => "/choices/0/message/audio/data",
        };
        *answer.pointer_mut(place).expect("letters") = "iVBORw0KGgo".repeat(2 << 20).into();
        let (house, reply) = asked(dialect, &body, Written::json(&answer), false).await;
        let bodies = &house.running().app.bodies;
        let taken = bodies.used();
        assert!((22 << 20..26 << 20).contains(&taken), "{dialect:?}: {taken}");
        assert!(reply.bytes().await.expect("an answer").len() > 22 << 20);
        until("the room", async || bodies.used() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_charged_at_their_own_face_in_streams_too() {
    for (dialect, face) in [(Dialect::Gemini, 30_000), (Dialect::Chat, 20_000)] {
        let (mut body, whole) = made(dialect, true);
        let mut event = whole;
        let events = if dialect == Dialect::Chat {
            body["stream"] = json!(true);
            let usage = event.as_object_mut().and_then(|event| event.remove("usage"));
            let message = event["choices"][0].as_object_mut().and_then(|choice| choice.remove("message"));
            event["choices"][0]["delta"] = message.expect("a message");
            event["object"] = json!("chat.completion.chunk");
            let last = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up", "choices": [], "usage": usage});
            format!("data: {event}\n\ndata: {last}\n\ndata: [DONE]\n\n")
        } else {
            format!("data: {event}\n\n")
        };
        let (house, reply) = asked(dialect, &body, Written::events(events), true).await;
        let call = call_id(&reply);
        let text = reply.text().await.expect("events");
        assert!(text.len() > 400_000, "{dialect:?}: {} bytes", text.len());
        let row = house.row(call).await;
        assert_eq!(row.charge.nano(), 10 * 1_000 + 3 * 2_000 + 1_290 * face, "{dialect:?}: {row:?}");
    }
}

/// What is seen of it is output, so a provider that reports nothing makes nothing free.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_or_a_voice_without_a_report_is_not_free() {
    for dialect in [Dialect::Gemini, Dialect::Chat] {
        let (body, answer) = made(dialect, false);
        let (house, reply) = asked(dialect, &body, Written::json(&answer), false).await;
        let row = house.row(call_id(&reply)).await;
        assert!(row.estimated, "{dialect:?}");
        assert!(row.charge.nano() > 3 * 2_000 && row.charge <= row.hold, "{dialect:?}: {row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_dialect_is_refused_by_the_field_that_asks() {
    for (dialect, model, field) in [
        (Dialect::Gemini, "gemini-on-openai", "generationConfig.responseModalities"),
        (Dialect::Chat, "gemini-on-gemini", "audio"),
    ] {
        let house = super::house().await;
        let (mut body, _) = made(dialect, true);
        if dialect == Dialect::Chat {
            body["model"] = model.into();
        }
        let client = Client(dialect);
        let reply = client.post(&house, &client.path(model, false), &body).send().await.expect("a reply");
        let (status, error) = error_of(reply).await;
        assert_eq!(status, 400, "{error}");
        assert!(error.to_string().contains(field), "{dialect:?}: {error}");
        house.quiet().await;
        assert!(house.sim.received().is_empty());
    }
}
