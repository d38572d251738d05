//! Providers that fail, before the audio and in the middle of it.

use super::{ask, broken, house, impatient, refused};
use serde_json::json;
use tollgate_store::Ending;

/// MM14: a 200 that cannot be used is a fault: one request, one row, no charge, and no SDK tries
/// again by itself.
#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_answer_is_free_and_not_asked_for_again() {
    let house = house().await;
    for scenario in ["empty", "json200", "json_as_audio", "wrong_format"] {
        house.sim.clear();
        let (status, error, once) = refused(&house, &ask(&format!("[[sim:{scenario}]]"))).await;
        assert_eq!(status, 502, "{scenario}: {error}");
        assert_eq!(once.as_deref(), Some("false"), "{scenario}");
        assert!(!error.to_string().contains("internal"), "{scenario}: {error}");
        assert_eq!(house.sim.received().len(), 1, "{scenario}");
    }
    let rows = house.all_rows().await;
    assert_eq!(rows.len(), 4);
    assert!(
        rows.values().all(|row| row.ending == Ending::UpstreamFault && row.charge.nano() == 0 && row.attempts == 1)
    );
    // Samples that never come: the header has gone out, and the end says that it was none.
    let mut body = ask("[[sim:header_only pieces=1]]");
    body["response_format"] = json!("wav");
    assert_eq!(broken(&house, &body).await.reason, "broken_off");
}

/// MM22: a fault in the middle never looks like an end.
#[tokio::test(flavor = "multi_thread")]
async fn audio_that_breaks_off_is_broken_for_the_client_and_free() {
    let house = house().await;
    let with = |model: &str, voice: &str, format: &str, scenario: &str| json!({ "model": model, "input": format!("[[sim:{scenario} ms=4000]]"), "voice": voice, "response_format": format });
    for body in [
        with("demo-speech", "alloy", "mp3", "cut cut=fin"),
        with("demo-speech", "alloy", "mp3", "cut"),
        with("demo-speech", "alloy", "wav", "cut cut=fin"),
        with("eleven_multilingual_v2", "v", "opus", "cut cut=fin"),
        with("speech-2.8-turbo", "v", "mp3", "cut cut=fin"),
        with("speech-2.8-turbo", "v", "wav", "odd"),
        with("speech-2.8-turbo", "v", "flac", "unfinished"),
        with("speech-2.8-turbo", "v", "mp3", "error_midway"),
        with("qwen3-tts-flash", "Cherry", "wav", "unfinished"),
        with("qwen3-tts-flash", "Cherry", "pcm", "error_midway"),
        with("cosyvoice-v3-flash", "longanyang", "mp3", "unfinished"),
        with("cosyvoice-v3-flash", "longanyang", "opus", "error_midway"),
        with("gemini-2.5-flash-tts", "Kore", "pcm", "cut cut=fin"),
        with("gemini-2.5-flash-tts", "Kore", "wav", "other_rate"),
    ] {
        let row = broken(&house, &body).await;
        assert_eq!((row.reason.as_str(), row.status), ("broken_off", 200), "{body}");
        assert_eq!(row.counters.input, 0, "nothing is shown as sold: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_falls_silent_is_not_waited_for_for_ever() {
    let house = impatient().await;
    let (status, error, once) = refused(&house, &ask("[[sim:hang]]")).await;
    assert_eq!((status, error["code"].as_str(), once.as_deref()), (504, Some("upstream_timeout"), Some("false")));
    broken(&house, &ask("[[sim:hang_midway ms=4000]]")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_makers_words_decide_whose_fault_it_is() {
    let house = house().await;
    for (model, voice) in [
        ("demo-speech", "alloy"),
        ("speech-2.8-turbo", "v"),
        ("eleven_multilingual_v2", "v"),
        ("gemini-2.5-flash-tts", "Kore"),
        ("qwen3-tts-flash", "Cherry"),
        ("cosyvoice-v3-flash", "longanyang"),
    ] {
        for (scenario, status, code, once) in [
            ("moderated", 400, "content_policy_violation", Some("false")),
            ("limited", 429, "rate_limit_exceeded", None),
            ("bad", 400, "invalid_request", Some("false")),
            ("money", 502, "upstream_error", None),
            ("error500", 502, "upstream_error", Some("false")),
        ] {
            house.sim.clear();
            let body = json!({ "model": model, "input": format!("[[sim:{scenario}]]"), "voice": voice });
            let (got, error, retry) = refused(&house, &body).await;
            assert_eq!((got, error["code"].as_str()), (status, Some(code)), "{model} {scenario}: {error}");
            assert_eq!(retry.as_deref(), once, "{model} {scenario}");
            let said = error.to_string();
            for secret in ["sim-guard.internal", "acc-sim-12345678", "sim-worker", "sim-0f1e"] {
                assert!(!said.contains(secret), "{model} {scenario}: {said}");
            }
            assert_eq!(house.sim.received().len(), 1, "{model} {scenario}");
        }
    }
    let (_, error, _) = refused(&house, &ask("[[sim:moderated]]")).await;
    assert!(
        error["message"].as_str().is_some_and(|text| text.contains("safety system")),
        "the provider's words: {error}"
    );
}

/// A known whim of one maker: an answer without content. Nothing was made.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_ended_for_no_reason_may_be_asked_for_again() {
    let house = house().await;
    let body = json!({ "model": "gemini-2.5-flash-tts", "input": "[[sim:empty]]", "voice": "Kore" });
    let (status, error, once) = refused(&house, &body).await;
    assert_eq!((status, error["code"].as_str(), once), (502, Some("upstream_invalid_reply"), None), "{error}");
}
