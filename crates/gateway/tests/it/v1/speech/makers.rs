//! What each maker is sent, and what only one of them does.

use super::{house, probed, spoken};
use serde_json::{Value, json};

fn body(model: &str, more: Value) -> Value {
    let mut body = json!({ "model": model, "input": "[[sim:ms=1200]] Grüße!", "voice": "v1" });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn each_is_asked_in_its_own_words() {
    let house = house().await;
    let input = "[[sim:ms=1200]] Grüße!";
    let more = json!({ "voice": "nova", "speed": 1.25, "instructions": "softly", "response_format": "flac" });
    let (row, _, _) = spoken(&house, &body("demo-speech", more)).await;
    assert_eq!(row.counters.input, input.chars().count() as u64, "instructions are not counted");
    let sent = house.sim.received().pop().expect("a request");
    assert_eq!(
        sent.json(),
        json!({ "model": "gpt-4o-mini-tts", "input": input, "voice": "nova", "response_format": "flac", "speed": 1.25, "instructions": "softly" })
    );
    assert!(sent.header("x-client-request-id").is_some_and(|id| id.starts_with("call_")));
    spoken(&house, &body("speech-2.8-turbo", json!({ "speed": 1.5, "response_format": "wav" }))).await;
    let sent = house.sim.received().pop().expect("a request");
    assert!(sent.authorization_is("Bearer sim-key"));
    assert_eq!(
        sent.json(),
        json!({
            "model": "speech-2.8-turbo", "text": input, "stream": true, "stream_options": { "exclude_aggregated_audio": true },
            "voice_setting": { "voice_id": "v1", "speed": 1.5 }, "output_format": "hex",
            "audio_setting": { "sample_rate": 24000, "format": "pcm", "channel": 1 },
        })
    );
    spoken(&house, &body("eleven_multilingual_v2", json!({ "speed": 0.7, "response_format": "opus" }))).await;
    let sent = house.sim.received().pop().expect("a request");
    assert_eq!(
        (sent.path.as_str(), sent.query.as_str()),
        ("/video/elevenlabs/v1/text-to-speech/v1/stream", "output_format=opus_48000_64")
    );
    assert_eq!(
        sent.json(),
        json!({ "text": input, "model_id": "eleven_multilingual_v2", "voice_settings": { "speed": 0.7 } })
    );
    assert!(!sent.has_authorization(), "its key stands in a header of its own");
    spoken(&house, &body("gemini-2.5-flash-tts", json!({ "voice": "Puck", "instructions": "Say it slowly:" }))).await;
    let sent = house.sim.received().pop().expect("a request");
    assert!(sent.path.ends_with("/v1beta/models/gemini-2.5-flash-preview-tts:generateContent"), "{}", sent.path);
    assert_eq!(sent.json()["contents"][0]["parts"][0]["text"], format!("Say it slowly:\n\n{input}"));
    spoken(&house, &body("qwen3-tts-flash", json!({ "voice": "Cherry", "language_type": "German" }))).await;
    let sent = house.sim.received().pop().expect("a request");
    assert_eq!(sent.header("x-dashscope-sse"), Some("enable"));
    assert_eq!(sent.json()["input"], json!({ "text": input, "voice": "Cherry", "language_type": "German" }));
    let more =
        json!({ "voice": "longanyang", "speed": 1.5, "instructions": "softly", "seed": 7, "response_format": "wav" });
    spoken(&house, &body("cosyvoice-v3-flash", more)).await;
    let sent = house.sim.received().pop().expect("a request");
    assert_eq!(sent.path, "/video/dashscope/api/v1/services/audio/tts/SpeechSynthesizer");
    assert_eq!(sent.header("x-dashscope-sse"), Some("enable"));
    assert_eq!(
        sent.json()["input"],
        json!({ "text": input, "voice": "longanyang", "format": "pcm", "sample_rate": 24000, "rate": 1.5, "instruction": "softly", "seed": 7 })
    );
}

/// The last event repeats the whole audio unless it is asked not to; some do it all the same.
#[tokio::test(flavor = "multi_thread")]
async fn audio_that_is_sent_twice_goes_out_once() {
    let house = house().await;
    for pieces in [1, 2, 7] {
        for format in ["mp3", "flac", "wav", "pcm"] {
            let input = format!("[[sim:again ms=2700 pieces={pieces}]]");
            let body = json!({ "model": "speech-2.8-turbo", "input": input, "voice": "v", "response_format": format });
            let (row, _, bytes) = spoken(&house, &body).await;
            let (_, millis) = probed(&bytes, format);
            assert!((millis - 2_700).abs() <= 50, "{format} in {pieces}: {millis}");
            assert_eq!(row.counters.audio_output, 50);
            assert!(row.raw_usage.is_some_and(|raw| raw.contains("usage_characters")), "its report is stored");
        }
    }
}

/// An aggregate of megabytes is not held to find out that it is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_repetition_is_not_held() {
    let house = house().await;
    let body = json!({ "model": "speech-2.8-turbo", "input": "[[sim:again ms=60000 pieces=30]]", "voice": "v", "response_format": "pcm" });
    let (row, _, bytes) = spoken(&house, &body).await;
    assert_eq!((bytes.len(), row.counters.audio_output), (60 * 48_000, 1_000));
}
