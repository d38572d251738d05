//! Providers that do not speak OpenAI's form, each in every format it has.

use super::{SECOND, row_of, transcribe, wav};
use crate::house::{House, Plan, call_id, error_of};
use serde_json::{Value, json};
use tollgate_store::Ending;

const CATALOG: &str = r#"
[model."scribe"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
transcription = { response_formats = ["json", "text", "srt", "vtt", "verbose_json"] }
route = [{ provider = "elevenlabs", upstream_model = "scribe_v2" }]

[model."qwen-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
max_duration_seconds = 300
route = [{ provider = "dashscope", upstream_model = "qwen3-asr-flash" }]
"#;

/// A catalog with one model for each scenario of a provider. Options stand behind a plus sign, in
/// the name of the model behind a dash.
pub fn scenarios(provider: &str, model: &str, names: &[&str]) -> String {
    let one = |name: &&str| {
        format!(
            "[model.\"{}\"]\ntype = \"asr\"\nsupported_endpoint_types = [\"audio-transcription\"]\n\
             billing_unit = \"audio_duration\"\nprice = {{ input = 360_000_000 }}\n\
             route = [{{ provider = \"{provider}\", upstream_model = \"{model}+{name}\" }}]\n",
            name.replace(['+', '='], "-")
        )
    };
    names.iter().map(one).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn scribe_gives_every_format_from_the_times_of_its_words() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    let file = wav(2_900);
    let said = format!("sim heard {} bytes", file.len());
    let ask = async |format: &str| {
        let more = [("response_format", format), ("language", "en"), ("prompt", "not for it")];
        let reply = transcribe(&house, "scribe", &more, &file).await;
        assert_eq!(
            (reply.status().as_u16(), &reply.headers()["x-tollgate-dropped"]),
            (200, &"prompt".parse().unwrap())
        );
        let row = row_of(&house, &reply).await;
        assert_eq!(row.charge.nano(), 3 * SECOND, "{format}");
        assert_eq!(row.raw_usage.as_deref(), Some("{\"duration\":3.0}"));
        reply.text().await.expect("text")
    };
    assert_eq!(ask("text").await, format!("{said}\n"));
    let json: Value = serde_json::from_str(&ask("json").await).expect("JSON");
    assert_eq!(json, json!({ "text": said, "usage": { "type": "duration", "seconds": 3 } }));
    assert_eq!(ask("srt").await, format!("1\n00:00:00,000 --> 00:00:01,900\n{said}\n\n"));
    assert!(ask("vtt").await.starts_with("WEBVTT\n\n00:00:00.000 --> 00:00:01.900\n"));
    let verbose: Value = serde_json::from_str(&ask("verbose_json").await).expect("JSON");
    assert_eq!((&verbose["duration"], &verbose["segments"][0]["end"]), (&json!(3.0), &json!(1.9)));
    let received = house.sim.received();
    assert!(received.iter().all(|one| one.path == "/video/elevenlabs/v1/speech-to-text" && one.accepted));
    // Never anything that it charges more for.
    for one in &received {
        let fields = super::sent(&one.body).0;
        assert!(
            fields
                .iter()
                .all(|(name, _)| !["use_multi_channel", "keyterms", "entity_detection"].contains(&name.as_str()))
        );
    }
}

/// A reply of several megabytes that has to be rewritten: neither it nor the transcript is ever in
/// memory as a whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_transcript_is_rewritten_on_disk() {
    const WORDS: usize = 30_000;
    let models =
        [("elevenlabs", "scribe_v2+words=30000"), ("dashscope", "fun-asr+words=30000")].map(|(provider, model)| {
            format!(
                "[model.\"{provider}\"]\ntype = \"asr\"\nsupported_endpoint_types = [\"audio-transcription\"]\n\
             billing_unit = \"audio_duration\"\nprice = {{ input = 360_000_000 }}\n\
             transcription = {{ response_formats = [\"json\", \"text\", \"srt\", \"vtt\", \"verbose_json\"] }}\n\
             route = [{{ provider = \"{provider}\", upstream_model = \"{model}\" }}]\n"
            )
        });
    let catalog: &'static str = Box::leak(models.concat().into_boxed_str());
    let house = House::with(Plan { catalog, ..Plan::default() }).await;
    let app = &house.running().app;
    for model in ["elevenlabs", "dashscope"] {
        for format in ["text", "json", "srt", "vtt", "verbose_json"] {
            let more = [("response_format", format), ("timestamp_granularities[]", "word")];
            let reply = transcribe(&house, model, &more, &wav(2_900)).await;
            assert_eq!(reply.status(), 200, "{model} {format}");
            // Whatever is in memory now was asked for, and it is no transcript.
            assert!(app.bodies.used() <= 1 << 20, "{model} {format}: {} bytes in memory", app.bodies.used());
            let call = call_id(&reply);
            let body = reply.text().await.expect("all of it");
            let said: Vec<&str> = match format {
                "text" => body.split_whitespace().collect(),
                "srt" | "vtt" => body.split_whitespace().filter(|word| word.starts_with("word")).collect(),
                _ => {
                    let json: Value = serde_json::from_str(&body).expect("JSON");
                    assert_eq!(json["text"].as_str().expect("a text").split(' ').count(), WORDS, "{model} {format}");
                    if format == "verbose_json" {
                        assert_eq!(json["words"].as_array().map(Vec::len), Some(WORDS), "{model}");
                        assert!(body.len() > 2 << 20, "{model}: {}", body.len());
                    }
                    continue;
                }
            };
            assert_eq!((said.len(), said[WORDS - 1]), (WORDS, "word30000"), "{model} {format}");
            assert_eq!(house.row(call).await.charge.nano(), 3 * SECOND, "{model} {format}");
        }
    }
    house.quiet().await;
    assert_eq!((app.spool.budget.used(), app.bodies.used()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn qwen_is_sent_the_recording_as_base64_that_is_made_on_the_way() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    for millis in [1_000, 1_001, 130_002] {
        let file = wav(millis);
        let reply = transcribe(&house, "qwen-ears", &[("language", "zh")], &file).await;
        assert_eq!(reply.status(), 200, "{millis}");
        let row = row_of(&house, &reply).await;
        assert_eq!(row.charge.nano(), i64::from(millis.div_ceil(1_000)) * SECOND);
        let body: Value = reply.json().await.expect("JSON");
        assert_eq!(body["text"], format!("sim heard {} bytes", file.len()), "the bytes arrive as they were sent");
        if millis < 10_000 {
            let received = house.sim.received().pop().expect("a request");
            assert_eq!(received.json()["asr_options"]["language"], "zh");
        }
    }
    // 10 MB of base64 and not a byte more; nothing is sent, nothing is charged.
    let before = house.available().await;
    let seen = house.sim.received().len();
    let mut large = wav(1_000);
    large.resize(7_500_001, 0);
    let (status, error) = error_of(transcribe(&house, "qwen-ears", &[], &large).await).await;
    assert_eq!((status, &error["param"]), (400, &json!("file")), "{error}");
    let (status, error) = error_of(transcribe(&house, "qwen-ears", &[], &wav(300_100)).await).await;
    assert_eq!((status, &error["param"]), (400, &json!("file")), "{error}");
    house.quiet().await;
    assert_eq!((house.available().await, house.sim.received().len()), (before, seen));
    let (status, _) = error_of(transcribe(&house, "qwen-ears", &[("response_format", "srt")], &wav(500)).await).await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn their_failures_are_free_and_stated_in_our_words() {
    for (provider, model) in [("elevenlabs", "scribe_v2"), ("dashscope", "qwen3-asr-flash")] {
        let names = ["error400", "error429", "error500", "moderation", "garbage", "cut"];
        let catalog: &'static str = Box::leak(scenarios(provider, model, &names).into_boxed_str());
        let house = House::with(Plan { catalog, ..Plan::default() }).await;
        for (name, status, code) in [
            ("error400", 400, "invalid_request"),
            ("error429", 429, "rate_limit_exceeded"),
            ("error500", 502, ""),
            ("moderation", 400, "content_policy_violation"),
            ("garbage", 502, "upstream_invalid_reply"),
            ("cut", 502, "upstream_error"),
        ] {
            let reply = transcribe(&house, name, &[], &wav(1_000)).await;
            let call = call_id(&reply);
            let (got, error) = error_of(reply).await;
            let known =
                code.is_empty() && (500..600).contains(&got) || (got, error["code"].as_str()) == (status, Some(code));
            assert!(known, "{provider} {name}: {got} {error}");
            assert!(!error.to_string().contains("sim.internal"), "{error}");
            let row = house.row(call).await;
            assert_eq!(
                (row.charge.nano(), row.ending, row.attempts),
                (0, Ending::UpstreamFault, 1),
                "{provider} {name}"
            );
        }
        assert_eq!(house.sim.received().len(), names.len(), "none was sent twice");
    }
}

/// A model that is to do what its provider does not have is not put on sale.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_cannot_do_is_a_mistake_in_the_catalog() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    let table = |more: &str, provider: &str, upstream: &str| {
        format!(
            "[model.\"m\"]\ntype = \"asr\"\nsupported_endpoint_types = [\"audio-transcription\"]\nbilling_unit = \"audio_duration\"\n\
             price = {{ input = 1 }}\n{more}\nroute = [{{ provider = \"{provider}\", upstream_model = \"{upstream}\" }}]\n"
        )
    };
    for (text, expected) in [
        (table("", "sim-anthropic", "x"), "has no transcription"),
        (table("transcription = { stream = true }", "elevenlabs", "scribe_v2"), "does not stream"),
        (table("transcription = { translations = true }", "elevenlabs", "scribe_v2"), "does not translate"),
        (table("transcription = { response_formats = [\"srt\"] }", "dashscope", "qwen3-asr-flash"), "gives no srt"),
        (table("transcription = { response_formats = [\"srtt\"] }", "sim", "whisper"), "no format is called \"srtt\"; did you mean \"srt\"?"),
        (table("accepted_upload_formats = [\"mp4a\"]", "sim", "whisper"), "no format is called \"mp4a\""),
        (table("transcription = { max_bytes = 0 }", "sim", "whisper"), "takes no recording at all"),
        (
            "[model.\"m\"]\nprice = { input = 1, output = 1 }\ntranscription = { stream = true }\nroute = [{ provider = \"sim\", upstream_model = \"x\" }]\n".to_owned(),
            "is of no use without \"audio-transcription\"",
        ),
    ] {
        std::fs::write(house.dir.join("catalog/more.toml"), &text).expect("written");
        let mistakes = house.source.load().err().unwrap_or_default();
        let all: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert!(all.len() == 1 && all[0].contains(expected), "{expected}: {all:?}");
    }
    std::fs::write(house.dir.join("catalog/more.toml"), CATALOG).expect("written");
}
