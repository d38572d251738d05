//! Recordings that a provider takes by their address: put into its store, written down by a task
//! that is waited for, never begun twice.

use super::providers::scenarios;
use super::{SECOND, row_of, sent, transcribe, wav};
use crate::house::{House, Plan, call_id, error_of};
use serde_json::{Value, json};
use tollgate_store::Ending;

pub const CATALOG: &str = r#"
[model."long-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
max_duration_seconds = 43_200
transcription = { response_formats = ["json", "text", "srt", "vtt", "verbose_json"], max_bytes = "2GiB" }
route = [{ provider = "dashscope", upstream_model = "qwen3-asr-flash-filetrans" }]

[model."fun-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
transcription = { response_formats = ["json", "srt", "verbose_json"] }
route = [{ provider = "dashscope", upstream_model = "fun-asr" }]

[model."short-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
route = [{ provider = "dashscope", upstream_model = "qwen3-asr-flash" }]

[model."spare-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
route = [
  { provider = "dashscope", upstream_model = "fun-asr+nostore", priority = 1 },
  { provider = "sim", upstream_model = "whisper-sim", priority = 2 },
]
"#;

pub const BEGIN: &str = "/video/dashscope/api/v1/services/audio/asr/transcription";

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

/// How many tasks were begun.
pub fn begun(house: &House) -> usize {
    house.sim.received().iter().filter(|one| one.path == BEGIN).count()
}

/// MM33, MM34: each model has a path of its own; a file in the provider's store is announced by a
/// header, and where that is misspelt the simulated task fails as the real one does.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_recording_goes_to_the_store_and_is_written_down_by_a_task() {
    let house = house().await;
    // One that is held in memory, and one that lies on disk.
    for (model, millis) in [("long-ears", 2_900), ("fun-ears", 2_900), ("long-ears", 400_000)] {
        house.sim.clear();
        let file = wav(millis);
        let said = format!("sim heard {} bytes", file.len());
        let more = [("language", "en"), ("response_format", "verbose_json"), ("prompt", "not for it")];
        let reply = transcribe(&house, model, &more, &file).await;
        assert_eq!(
            (reply.status().as_u16(), &reply.headers()["x-tollgate-dropped"]),
            (200, &"prompt".parse().unwrap())
        );
        let row = row_of(&house, &reply).await;
        assert_eq!(row.charge.nano(), i64::from(millis.div_ceil(1_000)) * SECOND, "{model}");
        assert_eq!((row.ending, row.attempts, row.hold), (Ending::Answered, 1, row.charge));
        let heard: Value = reply.json().await.expect("JSON");
        assert_eq!((&heard["text"], &heard["language"]), (&json!(said), &json!("en")));
        assert_eq!(heard["segments"][0]["end"], 1.9);
        let received = house.sim.received();
        let paths: Vec<&str> = received.iter().map(|one| one.path.trim_start_matches("/video/dashscope")).collect();
        assert_eq!(paths[..3], ["/api/v1/uploads", "/oss", "/api/v1/services/audio/asr/transcription"]);
        assert!(paths[3..paths.len() - 1].iter().all(|path| path.starts_with("/api/v1/tasks/asr-")), "{paths:?}");
        assert!(paths.last().is_some_and(|path| path.starts_with("/transcripts/")), "{paths:?}");
        // The key is for the provider only, not for its store nor for a link.
        let keyed: Vec<bool> = received.iter().map(tollgate_sim::Received::has_authorization).collect();
        assert_eq!((keyed[0], keyed[1], keyed[2], keyed[keyed.len() - 1]), (true, false, true, false));
        assert_eq!(received[2].header("x-dashscope-ossresourceresolve"), Some("enable"));
        if millis < 10_000 {
            assert_eq!(sent(&received[1].body).2, file, "the bytes arrive as they were sent");
        }
    }
    assert_eq!(house.running().app.spool.budget.used(), 0);
    // The other way of the same provider is for other models.
    assert_eq!(transcribe(&house, "short-ears", &[], &wav(500)).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_costs_the_same_and_subtitles_have_their_times() {
    let house = house().await;
    let file = wav(2_001);
    let said = format!("sim heard {} bytes", file.len());
    for (format, expected) in [
        ("text", format!("{said}\n")),
        ("srt", format!("1\n00:00:00,000 --> 00:00:01,900\n{said}\n\n")),
        ("vtt", format!("WEBVTT\n\n00:00:00.000 --> 00:00:01.900\n{said}\n\n")),
    ] {
        let reply = transcribe(&house, "long-ears", &[("response_format", format)], &file).await;
        assert_eq!(row_of(&house, &reply).await.charge.nano(), 3 * SECOND, "{format}");
        assert_eq!(reply.text().await.expect("text"), expected);
    }
    let more = [("response_format", "verbose_json"), ("timestamp_granularities[]", "word")];
    let words: Value = transcribe(&house, "long-ears", &more, &file).await.json().await.expect("JSON");
    assert_eq!((&words["words"][1]["word"], &words["words"][1]["start"]), (&json!("heard"), &json!(0.4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_fails_is_free_and_never_begun_twice() {
    let names = [
        "error400",
        "error429",
        "error500",
        "garbage",
        "cut",
        "moderation",
        "failed",
        "undecodable",
        "nolink",
        "nostore",
    ];
    for model in ["qwen3-asr-flash-filetrans", "paraformer-v2"] {
        let catalog: &'static str = Box::leak(scenarios("dashscope", model, &names).into_boxed_str());
        let house = House::with(Plan { catalog, ..Plan::default() }).await;
        let before = house.available().await;
        for (name, status, again, tasks) in [
            ("error400", 400, "false", 1),
            ("error429", 429, "", 1),
            ("error500", 502, "false", 1),
            ("garbage", 502, "false", 1),
            ("cut", 502, "false", 1),
            ("moderation", 400, "false", 1),
            ("failed", 502, "false", 1),
            ("undecodable", 400, "false", 1),
            ("nolink", 502, "false", 1),
            ("nostore", 502, "", 0),
        ] {
            house.sim.clear();
            let reply = transcribe(&house, name, &[], &wav(1_000)).await;
            let call = call_id(&reply);
            let retry =
                reply.headers().get("x-should-retry").map_or("", |value| value.to_str().expect("text")).to_owned();
            let (given, error) = error_of(reply).await;
            assert_eq!((given, retry.as_str(), begun(&house)), (status, again, tasks), "{model} {name}: {error}");
            assert!(!error.to_string().contains("internal says"), "{error}");
            let row = house.row(call).await;
            assert_eq!((row.charge.nano(), row.ending, row.attempts), (0, Ending::UpstreamFault, 1), "{model} {name}");
        }
        house.quiet().await;
        assert_eq!(house.available().await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_fail_decide_nothing_and_silence_is_an_answer() {
    let catalog: &'static str = Box::leak(scenarios("dashscope", "fun-asr", &["pollerror", "silent"]).into_boxed_str());
    let house = House::with(Plan { catalog, ..Plan::default() }).await;
    let reply = transcribe(&house, "pollerror", &[], &wav(1_000)).await;
    assert_eq!(reply.status(), 200);
    assert_eq!(row_of(&house, &reply).await.charge.nano(), SECOND);
    // Nobody speaks: an answer like any other.
    let reply = transcribe(&house, "silent", &[], &wav(1_000)).await;
    let row = row_of(&house, &reply).await;
    assert_eq!((reply.json::<Value>().await.expect("JSON")["text"].clone(), row.charge.nano()), (json!(""), SECOND));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_leaves_the_recording_to_another_route() {
    let house = house().await;
    let reply = transcribe(&house, "spare-ears", &[], &wav(1_000)).await;
    assert_eq!(reply.status(), 200);
    let row = row_of(&house, &reply).await;
    assert_eq!((row.attempts, row.provider.as_deref(), begun(&house)), (2, Some("sim"), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_does_not_take_is_refused_by_name() {
    let catalog: &'static str = Box::leak(scenarios("dashscope", "fun-asr", &["mb=1"]).into_boxed_str());
    let house = House::with(Plan { catalog, ..Plan::default() }).await;
    let before = house.available().await;
    let (status, error) = error_of(transcribe(&house, "mb-1", &[], &wav(66_000)).await).await;
    assert_eq!((status, &error["param"]), (400, &json!("file")), "{error}");
    house.quiet().await;
    assert_eq!((house.available().await, begun(&house)), (before, 0));
}
