//! What happens when a provider does not write down what it was given.

use super::{KIND, SECOND, form, house, post, row_of, transcribe, wav};
use crate::house::{call_id, error_of};
use serde_json::json;
use tollgate_store::Ending;

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_free_reported_once_and_never_sent_twice() {
    let house = house().await;
    let before = house.available().await;
    for (scenario, status, code, again) in [
        ("error400", 400, "invalid_request", "false"),
        ("moderation", 400, "content_policy_violation", "false"),
        ("error401", 502, "upstream_error", ""),
        ("error429", 429, "rate_limit_exceeded", ""),
        ("error500", 502, "upstream_error", "false"),
        ("html502", 502, "upstream_error", "false"),
        ("garbage", 502, "upstream_invalid_reply", "false"),
        ("textless", 502, "upstream_invalid_reply", "false"),
        ("cut", 502, "upstream_error", "false"),
        ("packed", 502, "upstream_invalid_reply", "false"),
    ] {
        let seen = house.sim.received().len();
        let reply = transcribe(&house, "whisper", &[("prompt", &format!("[[sim:{scenario}]]"))], &wav(1_000)).await;
        let call = call_id(&reply);
        let retry = reply.headers().get("x-should-retry").map_or("", |value| value.to_str().expect("text")).to_owned();
        let (got, error) = error_of(reply).await;
        assert_eq!((got, error["code"].as_str(), retry.as_str()), (status, Some(code), again), "{scenario}: {error}");
        assert!(!error.to_string().contains("sim.internal"), "{error}");
        let row = house.row(call).await;
        assert_eq!((row.charge.nano(), row.ending, row.attempts), (0, Ending::UpstreamFault, 1), "{scenario}");
        assert_eq!(house.sim.received().len(), seen + 1, "{scenario} was sent once");
    }
    house.quiet().await;
    assert_eq!(house.available().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn subtitles_that_are_json_are_no_subtitles() {
    let house = house().await;
    for format in ["srt", "vtt"] {
        let more = [("prompt", "[[sim:json]]"), ("response_format", format)];
        let (status, error) = error_of(transcribe(&house, "whisper", &more, &wav(1_000)).await).await;
        assert_eq!((status, &error["code"]), (502, &json!("upstream_invalid_reply")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_route_gets_the_whole_form() {
    let house = house().await;
    let file = wav(2_000_000 / 16);
    assert!(file.len() > 1 << 20, "on disk");
    let reply = transcribe(&house, "two-ears", &[("language", "en")], &file).await;
    assert_eq!(reply.status(), 200);
    let row = row_of(&house, &reply).await;
    assert_eq!((row.attempts, row.provider.as_deref()), (2, Some("sim")));
    let text: serde_json::Value = reply.json().await.expect("JSON");
    assert_eq!(text["text"], format!("sim heard {} bytes", file.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_that_is_too_large_to_be_held_passes() {
    let house = house().await;
    for (format, length) in [("json", 3 << 20), ("srt", 3 << 20), ("text", 3 << 20)] {
        let more = [("prompt", "[[sim:huge mib=3]]"), ("response_format", format)];
        let reply = transcribe(&house, "whisper", &more, &wav(1_000)).await;
        assert_eq!(reply.status(), 200, "{format}");
        let call = call_id(&reply);
        let body = reply.bytes().await.expect("all of it");
        assert!(body.len() > length, "{format}: {}", body.len());
        assert_eq!(house.row(call).await.charge.nano(), SECOND);
    }
    house.quiet().await;
    assert_eq!(house.running().app.bodies.used(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_with_another_length_is_reported_and_not_believed() {
    let house = house().await;
    for seconds in ["2", "2.5", "600"] {
        let more = [("prompt", format!("[[sim:seconds={seconds}]]"))];
        let more: Vec<(&str, &str)> = more.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let reply = transcribe(&house, "whisper", &more, &wav(1_600)).await;
        let row = row_of(&house, &reply).await;
        assert_eq!(row.charge.nano(), 2 * SECOND, "{seconds}");
        assert!(row.raw_usage.is_some_and(|usage| usage.contains("seconds")));
    }
    let page = house.get("/metrics").send().await.expect("a reply").text().await.expect("text");
    let line = r#"tollgate_recordings_other_length_total{provider="sim",model="whisper-sim"} 2"#;
    assert!(page.contains(line), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_the_answer_pays_nothing() {
    let house = house().await;
    house.sim.shut("/v1/audio/transcriptions");
    let body = form(&[("model", "whisper"), ("file", "")], "a.wav", &wav(3_000));
    house.leave(post(&house, "/v1/audio/transcriptions", KIND, body)).await;
    // The provider answers after the call has ended.
    house.quiet().await;
    house.sim.open();
    let rows = house.all_rows().await;
    let row = rows.values().next().expect("a row");
    assert_eq!((row.ending, row.charge.nano()), (Ending::ClientLeft, 0));
    assert_eq!(house.running().app.spool.budget.used(), 0);
}
