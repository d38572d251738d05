//! What is refused before anything is held, and mistakes in the catalog.

use super::{ask, house, refused, speak};
use crate::house::error_of;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_gateway::settings::ConfigSource;

/// Every refusal names its field, costs nothing, leaves no row and asks nobody.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_does_not_take_is_refused_before_anything_is_held() {
    let house = house().await;
    let with = |field: &str, value: Value| {
        let mut body = ask("Hello.");
        body[field] = value;
        body
    };
    let long =
        |count: usize| json!({ "model": "step-tts-mini", "input": "あ".repeat(count), "voice": "wenrounvsheng" });
    let cases = [
        (json!({ "input": "x" }), 400, "missing_parameter", "model"),
        (json!({ "model": "demo-speech" }), 400, "missing_parameter", "input"),
        (with("input", json!("")), 400, "invalid_parameter", "input"),
        (with("input", json!(["a"])), 400, "invalid_parameter", "input"),
        (with("voice", json!("nobody")), 400, "unsupported_value", "voice"),
        (with("voice", json!({ "name": "alloy" })), 400, "invalid_parameter", "voice"),
        (with("response_format", json!("ogg")), 400, "unsupported_value", "response_format"),
        (with("speed", json!(0.2)), 400, "unsupported_value", "speed"),
        (with("speed", json!(4.1)), 400, "unsupported_value", "speed"),
        (with("speed", json!("fast")), 400, "invalid_parameter", "speed"),
        (with("stream_format", json!("ws")), 400, "invalid_parameter", "stream_format"),
        (with("instructions", json!(7)), 400, "invalid_parameter", "instructions"),
        (long(1_001), 400, "invalid_parameter", "input"),
        (json!({ "model": "eleven_multilingual_v2", "input": "x" }), 400, "missing_parameter", "voice"),
        (json!({ "model": "gemini-2.5-flash-tts", "input": "x", "speed": 1.5 }), 400, "unsupported_value", "speed"),
        (json!({ "model": "plain", "input": "x", "voice": "v" }), 400, "unsupported_value", "model"),
        (json!({ "model": "demo-speach", "input": "x", "voice": "v" }), 404, "model_not_found", "model"),
    ];
    for (body, status, code, param) in cases {
        let (got, error, _) = refused(&house, &body).await;
        assert_eq!(
            (got, error["code"].as_str(), error["param"].as_str()),
            (status, Some(code), Some(param)),
            "{body}: {error}"
        );
    }
    assert!(house.all_rows().await.is_empty() && house.sim.received().is_empty());
    // Exactly as many as it takes; each is one, however many bytes it has.
    assert_eq!(speak(&house, &long(1_000)).await.status(), 200);
}

/// A voice that stands in an address leads nowhere else, and nothing is held to find that out.
#[tokio::test(flavor = "multi_thread")]
async fn a_voice_that_leads_elsewhere_is_refused_before_anything_is_held() {
    let house = house().await;
    let store = &house.running().app.store;
    let last = store.last_entry().await.expect("read");
    for voice in ["../../v1/music", "..", "a/b", "a?output_format=wav_48000", "a#b", "a b"] {
        let body = json!({ "model": "eleven_multilingual_v2", "input": "x", "voice": voice });
        let (status, error, _) = refused(&house, &body).await;
        assert_eq!(
            (status, error["code"].as_str(), error["param"].as_str()),
            (400, Some("invalid_parameter"), Some("voice")),
            "{voice}: {error}"
        );
        let url = house.url("/v1/quote?endpoint=/v1/audio/speech");
        let quote = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
        assert_eq!(error_of(quote).await, (status, error), "a quote says the same");
    }
    assert_eq!(store.last_entry().await.expect("read"), last, "nothing was held");
    assert!(house.all_rows().await.is_empty() && house.sim.received().is_empty());
}

/// MM38: a field that could cost something is not passed on by nobody's decision.
#[tokio::test(flavor = "multi_thread")]
async fn a_field_without_a_price_is_refused_by_its_name() {
    let house = house().await;
    for (model, field, value) in [
        ("demo-speech", "volume", json!(2)),
        ("speech-2.8-turbo", "subtitle_enable", json!(true)),
        ("speech-2.8-turbo", "voice_setting", json!({ "voice_id": "dear" })),
        ("eleven_multilingual_v2", "optimize_streaming_latency", json!(4)),
        ("step-tts-mini", "voice_label", json!({ "emotion": "x" })),
    ] {
        let mut body = json!({ "model": model, "input": "x", "voice": "cixingnansheng" });
        body[field] = value;
        if model == "demo-speech" {
            body["voice"] = json!("alloy");
        }
        let (status, error, _) = refused(&house, &body).await;
        assert_eq!(
            (status, error["code"].as_str(), error["param"].as_str()),
            (400, Some("unknown_parameter"), Some(field))
        );
    }
    assert!(house.sim.received().is_empty());
    // What the catalog says costs nothing is passed on; who asks is left out, and reported.
    let body = json!({ "model": "step-tts-mini", "input": "x", "voice": "wenrounvsheng", "volume": 2, "user": "u-1" });
    let reply = speak(&house, &body).await;
    assert_eq!((reply.status().as_u16(), reply.headers()["x-tollgate-dropped"].to_str().ok()), (200, Some("user")));
    let sent = house.sim.received().pop().expect("a request").json();
    assert_eq!((&sent["volume"], sent.get("user")), (&json!(2), None));
    let body = json!({ "model": "speech-2.8-turbo", "input": "x", "instructions": "softly" });
    let reply = speak(&house, &body).await;
    assert_eq!(reply.headers()["x-tollgate-dropped"], "instructions");
}

const CONFIG: &str = r#"
[provider.openai]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
[provider.minimax]
kind = "minimax"
base_url = "http://127.0.0.1:9/"
[provider.gemini]
kind = "gemini"
base_url = "http://127.0.0.1:9/"
[provider.elevenlabs]
kind = "elevenlabs"
base_url = "http://127.0.0.1:9/"
[provider.ark]
kind = "ark"
base_url = "http://127.0.0.1:9/"
"#;

/// What is wrong with a catalog, beside providers of several kinds.
pub fn mistakes(catalog: &str) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    std::fs::write(dir.path().join("tollgate.toml"), CONFIG).expect("written");
    std::fs::write(dir.path().join("catalog/speech.toml"), catalog).expect("written");
    let source = ConfigSource { file: dir.path().join("tollgate.toml"), environment: Arc::new(BTreeMap::new()) };
    let folder = format!("{}/", dir.path().display());
    let all = source.load().err().unwrap_or_default();
    all.iter().map(|mistake| mistake.to_string().replace(&folder, "")).collect()
}

fn model(provider: &str, unit: &str, more: &str) -> String {
    let price = if unit == "tokens" { "{ input = 1, output = 1, audio_output = 1 }" } else { "{ input = 1 }" };
    format!(
        "[model.m]\ntype = \"tts\"\nbilling_unit = \"{unit}\"\nprice = {price}\nroute = [{{ provider = \"{provider}\", upstream_model = \"u\" }}]\n{more}"
    )
}

#[test]
fn a_model_that_cannot_be_sold_so_is_a_mistake() {
    let offered = "supported_endpoint_types = [\"audio-speech\"]\n";
    let fine = "speech = { formats = [\"mp3\", \"wav\"], max_characters = 10 }\n";
    assert_eq!(mistakes(&model("openai", "characters", &format!("{offered}{fine}"))), Vec::<String>::new());
    assert_eq!(mistakes(&model("minimax", "characters", &format!("{offered}{fine}"))), Vec::<String>::new());
    let table = |inside: &str| format!("{offered}speech = {{ {inside} }}\n");
    let with_extra = |name: &str| table(&format!("formats = [\"mp3\"], max_characters = 10, extra = [\"{name}\"]"));
    for (provider, unit, more, expected) in [
        ("openai", "characters", offered.to_owned(), "is missing: a model that offers \"audio-speech\" needs"),
        ("openai", "characters", table("formats = [\"mp3\"]"), "max_characters"),
        ("openai", "characters", table("max_characters = 10"), "name the formats"),
        ("openai", "characters", table("formats = [\"ogg\"], max_characters = 10"), "\"ogg\" is not one of mp3, opus"),
        (
            "openai",
            "characters",
            table("formats = [\"mp3\"], max_characters = 10, speed_percent = [4]"),
            "the least and the most",
        ),
        ("openai", "tokens", table("formats = [\"mp3\"], max_characters = 10"), "not by tokens"),
        (
            "openai",
            "characters",
            format!("default_voice = \"x\"\n{}", table("voices = [\"a\"], formats = [\"mp3\"], max_characters = 10")),
            "\"x\" is not one of `speech.voices`",
        ),
        (
            "openai",
            "characters",
            format!("default_response_format = \"aac\"\n{}", table("formats = [\"mp3\"], max_characters = 10")),
            "\"aac\" is not one of `speech.formats`",
        ),
        ("gemini", "characters", table("formats = [\"mp3\"], max_characters = 10"), "does not make \"mp3\""),
        (
            "gemini",
            "characters",
            table("formats = [\"pcm\"], max_characters = 10, speed_percent = [50, 200]"),
            "does not take `speed`",
        ),
        (
            "minimax",
            "characters",
            table("formats = [\"mp3\"], max_characters = 10, instructions = true"),
            "does not take `instructions`",
        ),
        (
            "minimax",
            "characters",
            table("formats = [\"wav\"], made = [\"wav\"], max_characters = 10"),
            "does not make \"wav\"",
        ),
        ("ark", "characters", table("formats = [\"mp3\"], max_characters = 10"), "which has no speech; it has"),
        ("openai", "characters", with_extra("speed"), "every request can have `speed`: leave it out of `extra`"),
        ("openai", "characters", with_extra("stream"), "\"openai\", which is told `stream` by the gateway"),
        ("minimax", "characters", with_extra("voice_setting"), "which is told `voice_setting` by the gateway"),
        ("minimax", "characters", with_extra("text"), "which is told `text` by the gateway"),
        ("minimax", "characters", with_extra("timbre_weights"), "which is told `timbre_weights` by the gateway"),
        ("elevenlabs", "characters", with_extra("model_id"), "which is told `model_id` by the gateway"),
        ("elevenlabs", "characters", with_extra("output_format"), "which is told `output_format` by the gateway"),
    ] {
        let found = mistakes(&model(provider, unit, &more));
        assert!(found.iter().any(|one| one.contains(expected)), "{expected:?} is not among {found:#?}");
    }
    let unused = "supported_endpoint_types = [\"openai\"]\nspeech = { formats = [\"mp3\"], max_characters = 10 }\n";
    let found = mistakes(&model("openai", "tokens", unused));
    assert!(found.iter().any(|one| one.contains("is of no use without")), "{found:#?}");
}

/// A tier that never applies is a misspelt one, and what it is for would be sold at the base price.
#[test]
fn a_price_goes_by_what_a_request_for_speech_can_say() {
    let offered = "supported_endpoint_types = [\"audio-speech\"]\n";
    let table = "speech = { voices = [\"a\", \"b\"], formats = [\"mp3\", \"wav\"], max_characters = 10 }\n";
    let tier = |when: &str| format!("tier = [{{ name = \"t\", when = [{when}], price = {{ input = 2 }} }}]\n");
    let attr =
        |path: &str, equals: &str| format!("{{ dim = \"request_attr\", path = \"{path}\", equals = \"{equals}\" }}");
    let found = |when: &str| mistakes(&model("openai", "characters", &format!("{offered}{}{table}", tier(when))));
    for (path, equals) in
        [("voice", "b"), ("response_format", "wav"), ("stream_format", "sse"), ("endpoint", "audio-speech")]
    {
        assert_eq!(found(&attr(path, equals)), Vec::<String>::new(), "{path} {equals}");
    }
    assert_eq!(found("{ dim = \"context_len\", context_len_gt = 5 }"), Vec::<String>::new(), "by characters");
    for (when, expected) in [
        (attr("voices", "b"), "cannot depend on \"voices\"; did you mean \"voice\"?; it can on voice, response_format"),
        (attr("duration", "9"), "cannot depend on \"duration\""),
        (attr("voice", "c"), "`voice` is never \"c\" here; it can be a, b"),
        (attr("response_format", "flac"), "`response_format` is never \"flac\" here; it can be mp3, wav"),
        (attr("stream_format", "true"), "`stream_format` is never \"true\""),
    ] {
        let found = found(&when);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:#?}");
    }
    let thinks = format!("{offered}{}{table}chat = {{ thinks_unasked = true }}\n", tier("{ thinking = true }"));
    let found = mistakes(&model("openai", "characters", &thinks));
    assert!(found.len() == 1 && found[0].contains("cannot depend on \"thinking\""), "{found:#?}");
}

/// The same of recordings.
#[test]
fn a_price_goes_by_what_a_request_for_a_transcript_can_say() {
    let found = |when: &str| {
        mistakes(&format!(
            "[model.m]\ntype = \"asr\"\nbilling_unit = \"audio_duration\"\nsupported_endpoint_types = [\"audio-transcription\"]\n\
             price = {{ input = 1 }}\nroute = [{{ provider = \"openai\", upstream_model = \"u\" }}]\n\
             transcription = {{ response_formats = [\"json\", \"srt\"] }}\n\
             tier = [{{ name = \"t\", when = [{when}], price = {{ input = 2 }} }}]\n"
        ))
    };
    let attr =
        |path: &str, equals: &str| format!("{{ dim = \"request_attr\", path = \"{path}\", equals = \"{equals}\" }}");
    for (path, equals) in [("response_format", "srt"), ("stream", "true"), ("language", "de"), ("translate", "false")] {
        assert_eq!(found(&attr(path, equals)), Vec::<String>::new(), "{path} {equals}");
    }
    for (when, expected) in [
        (attr("response_format", "vtt"), "`response_format` is never \"vtt\" here; it can be json, srt"),
        (attr("translate", "true"), "`translate` is never \"true\" here"),
        (attr("seconds", "60"), "cannot depend on \"seconds\""),
        ("{ dim = \"context_len\", context_len_gt = 5 }".to_owned(), "cannot depend on `context_len`"),
    ] {
        let found = found(&when);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:#?}");
    }
}
