//! `stream_format: "sse"`: the same audio as events, for every model.

use super::{ask, house, post, probed, speak};
use crate::house::{call_id, events};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn events_carry_the_audio_of_every_maker_and_end_with_the_usage() {
    let house = house().await;
    for (model, voice, format) in [
        ("demo-speech", "alloy", "mp3"),
        ("demo-speech", "alloy", "opus"),
        ("speech-2.8-turbo", "v", "wav"),
        ("eleven_multilingual_v2", "v", "mp3"),
        ("gemini-2.5-flash-tts", "Kore", "wav"),
        ("qwen3-tts-flash", "Cherry", "wav"),
        ("cosyvoice-v3-flash", "longanyang", "mp3"),
    ] {
        let input = "[[sim:ms=2500]] Hi";
        let body = json!({ "model": model, "input": input, "voice": voice, "response_format": format, "stream_format": "sse" });
        let reply = speak(&house, &body).await;
        assert_eq!(
            (reply.status().as_u16(), reply.headers()["content-type"].to_str().ok()),
            (200, Some("text/event-stream"))
        );
        let call = call_id(&reply);
        let text = reply.text().await.expect("a whole stream");
        assert!(!text.contains("[DONE]"));
        let events = events(&text);
        let (last, deltas) = events.split_last().expect("events");
        assert!(deltas.len() > 1, "{model}: {} events", deltas.len());
        let mut audio = Vec::new();
        for delta in deltas {
            assert_eq!(delta["type"], "speech.audio.delta");
            audio.extend(STANDARD.decode(delta["audio"].as_str().expect("audio")).expect("base64"));
        }
        let (_, millis) = probed(&audio, format);
        assert!((millis - 2_500).abs() <= 50, "{model} {format}: {millis}");
        let row = house.row(call).await;
        let (input, output) = (row.counters.input, row.counters.audio_output);
        assert_eq!((input, output), (18, 50));
        let usage = json!({ "input_tokens": input, "output_tokens": output, "total_tokens": input + output });
        assert_eq!((&last["type"], &last["usage"]), (&json!("speech.audio.done"), &usage));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_break_off_do_not_end_with_the_last_one() {
    let house = house().await;
    let mut body = ask("[[sim:cut ms=4000]]");
    body["stream_format"] = json!("sse");
    // It may break before its head has left.
    let Ok(mut reply) = post(&house, &body).send().await else { return };
    let mut text = Vec::new();
    let broke = loop {
        match reply.chunk().await {
            Ok(Some(chunk)) => text.extend(chunk),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(broke && !String::from_utf8_lossy(&text).contains("speech.audio.done"));
}
