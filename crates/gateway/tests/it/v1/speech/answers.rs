//! The audio itself: every format plays, is what it says it is, and comes as it is made.

use super::{CATALOG, CHARACTER, ask, house, post, probed, speak, spoken};
use crate::house::{House, Plan, call_id};
use serde_json::json;
use tollgate_store::Ending;

/// What ffprobe calls them.
const FORMATS: [(&str, &str, &str); 6] = [
    ("mp3", "audio/mpeg", "mp3"),
    ("opus", "audio/ogg", "ogg"),
    ("aac", "audio/aac", "aac"),
    ("flac", "audio/flac", "flac"),
    ("wav", "audio/wav", "wav"),
    ("pcm", "audio/pcm", "s16le"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_format_plays_as_long_as_the_usage_row_says() {
    let house = house().await;
    for (format, content_type, named) in FORMATS {
        for (ms, tokens) in [(900, 17), (2_500, 50), (60_500, 1_017)] {
            let input = format!("[[sim:ms={ms}]] Hello, world!");
            let mut body = ask(&input);
            body["response_format"] = json!(format);
            let (row, kind, bytes) = spoken(&house, &body).await;
            assert_eq!(kind, content_type);
            let (name, millis) = probed(&bytes, format);
            assert_eq!(name, named, "{format}");
            assert!((millis - ms).abs() <= 50, "{format}: asked for {ms} ms, ffprobe says {millis}");
            let characters = input.chars().count() as u64;
            assert_eq!((row.counters.input, row.counters.audio_output), (characters, tokens), "{format} {ms}");
            assert_eq!(row.charge.nano(), characters as i64 * CHARACTER);
            assert_eq!((row.ending, row.reason.as_str(), row.estimated), (Ending::Answered, "", false));
        }
    }
}

/// MM19: the reply begins as the format that was asked for does, for every model and every format.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_in_the_format_that_was_asked_for() {
    let house = house().await;
    let models = [
        ("demo-speech", "alloy", "mp3 opus aac flac wav pcm"),
        ("step-tts-mini", "cixingnansheng", "wav mp3 flac opus pcm"),
        ("speech-2.8-turbo", "any", "mp3 flac wav pcm"),
        ("eleven_multilingual_v2", "v1", "mp3 opus wav pcm"),
        ("gemini-2.5-flash-tts", "Kore", "wav pcm"),
        ("qwen3-tts-flash", "Cherry", "wav pcm"),
        ("cosyvoice-v3-flash", "longanyang", "mp3 opus wav pcm"),
    ];
    for (model, voice, formats) in models {
        for (format, content_type, named) in FORMATS {
            let body = json!({ "model": model, "input": "[[sim:ms=1500]]", "voice": voice, "response_format": format });
            if !formats.split(' ').any(|one| one == format) {
                let (status, error, _) = super::refused(&house, &body).await;
                assert_eq!((status, error["code"].as_str()), (400, Some("unsupported_value")), "{model} {format}");
                assert!(
                    error["message"].as_str().is_some_and(|text| text.contains("wav")),
                    "the list is shown: {error}"
                );
                continue;
            }
            let (row, kind, bytes) = spoken(&house, &body).await;
            let (name, millis) = probed(&bytes, format);
            assert_eq!((name.as_str(), kind.as_str()), (named, content_type), "{model} {format}");
            assert!((millis - 1_500).abs() <= 50, "{model} {format}: {millis}");
            assert_eq!(row.counters.audio_output, 34, "{model} {format}");
        }
    }
    // A provider that sends something else under the name is not believed.
    for format in ["mp3", "opus", "aac", "flac", "wav"] {
        let mut body = ask("[[sim:wrong_format]]");
        body["response_format"] = json!(format);
        let (status, error, once) = super::refused(&house, &body).await;
        assert_eq!((status, error["code"].as_str()), (502, Some("upstream_invalid_reply")), "{format}");
        assert_eq!(once.as_deref(), Some("false"), "it was made once, and not for the SDK to make again");
    }
}

/// MM21: what has come goes out before more comes.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_piece_arrives_before_the_provider_sends_the_second() {
    let house = house().await;
    for (model, voice, format) in [
        ("demo-speech", "alloy", "mp3"),
        ("demo-speech", "alloy", "wav"),
        ("speech-2.8-turbo", "v", "flac"),
        ("speech-2.8-turbo", "v", "wav"),
        ("eleven_multilingual_v2", "v", "opus"),
        ("qwen3-tts-flash", "Cherry", "pcm"),
        ("cosyvoice-v3-flash", "longanyang", "mp3"),
        ("gemini-2.5-flash-tts", "Kore", "wav"),
    ] {
        for events in [false, true] {
            house.sim.shut("/_door");
            let stream_format = if events { "sse" } else { "audio" };
            let mut reply = speak(
                &house,
                &json!({ "model": model, "input": "[[sim:door ms=4000]]", "voice": voice, "response_format": format, "stream_format": stream_format }),
            )
            .await;
            let first = reply.chunk().await.expect("a chunk").expect("bytes");
            assert!(!first.is_empty(), "{model} {format}");
            house.sim.open();
            let mut rest = 0;
            while let Some(chunk) = reply.chunk().await.expect("a whole answer") {
                rest += chunk.len();
            }
            assert!(rest > 0, "{model} {format}: all of it came at once");
        }
    }
}

/// MM20: neither a redirect nor a host of the provider's reaches a client.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_of_the_provider_is_not_passed_on() {
    let house = house().await;
    let (status, error, _) = super::refused(&house, &ask("[[sim:redirect]]")).await;
    assert_eq!((status, error["code"].as_str()), (502, Some("upstream_error")));
    assert!(!error.to_string().contains("127.0.0.1:9"), "{error}");
    // A maker that sends a link beside the audio: the audio is what goes out.
    let body = json!({ "model": "qwen3-tts-flash", "input": "[[sim:ms=500]]", "voice": "Cherry" });
    let reply = speak(&house, &body).await;
    assert_eq!(reply.status(), 200);
    assert!(!reply.headers().contains_key("location"));
    let bytes = reply.bytes().await.expect("audio");
    assert!(bytes.starts_with(b"RIFF") && !bytes.windows(12).any(|part| part == b"sim.internal"));
    let body = json!({ "model": "qwen3-tts-flash", "input": "[[sim:link_only]]", "voice": "Cherry" });
    let (status, error, _) = super::refused(&house, &body).await;
    assert_eq!((status, error["code"].as_str()), (502, Some("upstream_invalid_reply")), "a link is no audio");
    assert!(!error.to_string().contains("oss.sim"), "{error}");
}

/// MM36: framing headers are ours, whatever the provider says of its body.
#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_answer_is_not_passed_on() {
    let house = house().await;
    let (status, error, once) = super::refused(&house, &ask("[[sim:packed]]")).await;
    assert_eq!((status, error["code"].as_str()), (502, Some("upstream_invalid_reply")), "{error}");
    assert_eq!(once.as_deref(), Some("false"));
    assert_eq!(house.sim.received().len(), 1, "it is made once");
    let reply = speak(&house, &ask("[[sim:ms=500]]")).await;
    assert!(!reply.headers().contains_key("content-encoding"));
    reply.bytes().await.expect("audio");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_is_a_name_or_an_id_and_is_sent_as_it_came() {
    let house = house().await;
    for voice in [json!("echo"), json!({ "id": "echo" })] {
        let mut body = ask("Hi.");
        body["voice"] = voice.clone();
        spoken(&house, &body).await;
        let seen = house.sim.received().pop().expect("a request");
        assert_eq!(seen.json()["voice"], voice);
    }
    let mut body = ask("Hi.");
    body.as_object_mut().expect("an object").remove("voice");
    spoken(&house, &body).await;
    assert_eq!(house.sim.received().pop().expect("a request").json()["voice"], "alloy", "the model's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_gets_the_same_audio_again_and_pays_once() {
    let house = house().await;
    let before = house.available().await;
    let request = |body: &serde_json::Value| post(&house, body).header("idempotency-key", "one").send();
    let body = ask("[[sim:ms=2000]]");
    let first = request(&body).await.expect("a reply");
    let (call, kind) = (call_id(&first), first.headers()["content-type"].clone());
    let bytes = first.bytes().await.expect("audio");
    let charge = house.row(call).await.charge.nano();
    house.quiet().await;
    for _ in 0..3 {
        let again = request(&body).await.expect("a reply");
        assert_eq!((call_id(&again), &again.headers()["content-type"]), (call, &kind));
        assert_eq!(again.headers()["idempotency-replayed"], "true");
        assert!(again.bytes().await.expect("audio") == bytes, "the same audio");
    }
    let other = request(&ask("[[sim:ms=2001]]")).await.expect("a reply");
    assert_eq!(other.status(), 409);
    assert_eq!((before - house.available().await, house.sim.received().len()), (charge, 1));
    // More than is stored: charged once, and reported.
    let body = ask("[[sim:huge mib=2]]");
    let large = post(&house, &body).header("idempotency-key", "large").send().await.expect("a reply");
    large.bytes().await.expect("audio");
    house.quiet().await;
    let again = post(&house, &body).header("idempotency-key", "large").send().await.expect("a reply");
    assert_eq!(again.status(), 409);
    assert_eq!(house.sim.received().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_route_takes_over_only_where_nothing_can_have_been_made() {
    let both = r#"
[model."two"]
type = "tts"
billing_unit = "characters"
supported_endpoint_types = ["audio-speech"]
price = { input = 15_000_000 }
route = [{ provider = "nobody", upstream_model = "a" }, { provider = "sim", upstream_model = "b", priority = 1 }]
[model."two".speech]
formats = ["mp3"]
max_characters = 100
[model."same"]
type = "tts"
billing_unit = "characters"
supported_endpoint_types = ["audio-speech"]
price = { input = 15_000_000 }
route = [{ provider = "sim", upstream_model = "a" }, { provider = "sim", upstream_model = "b", priority = 1 }]
[model."same".speech]
formats = ["mp3"]
max_characters = 100
"#;
    let catalog: &'static str = Box::leak(format!("{CATALOG}{both}").into_boxed_str());
    let house = House::with(Plan { catalog, ..Plan::default() }).await;
    let body = json!({ "model": "two", "input": "Hi.", "voice": "v" });
    let (row, _, _) = spoken(&house, &body).await;
    assert_eq!((row.attempts, row.upstream_model.as_deref()), (2, Some("b")));
    for (scenario, asked) in
        [("limited", 2), ("error500", 1), ("page502", 1), ("empty", 1), ("json200", 1), ("moderated", 1)]
    {
        house.sim.clear();
        let body = json!({ "model": "same", "input": format!("[[sim:{scenario}]]"), "voice": "v" });
        let (status, error, _) = super::refused(&house, &body).await;
        assert!(status >= 400, "{scenario}: {error}");
        assert_eq!(house.sim.received().len(), asked, "{scenario}");
    }
}
