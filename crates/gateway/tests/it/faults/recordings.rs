//! Recordings that are written down.

use super::FUNDED;
use crate::house::{House, Plan, call_id, error_of};
use crate::v1::transcriptions::long_files::{self, BEGIN, begun};
use crate::v1::transcriptions::providers::scenarios;
use crate::v1::transcriptions::{CATALOG, KIND, SECOND, Upload, form, house, post, transcribe, wav};
use serde_json::json;
use std::time::Duration;
use tollgate_store::Ending;

pub async fn a_recording_breaks_off() {
    let house = house().await;
    let mut upload = Upload::begin(&house, "whisper", 600_000);
    upload.send(3 << 20).await;
    upload.spooled(&house, 2 << 20).await;
    upload.leave().await;
    let app = &house.running().app;
    while app.spool.budget.used() + app.bodies.used() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
    assert_eq!(house.available().await, FUNDED);
}

pub async fn no_room_for_a_recording() {
    let config = "[storage]\ndisk_reserve = \"8000000GiB\"\n".to_owned();
    let house = House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await;
    let (status, error) = error_of(transcribe(&house, "whisper", &[], &wav(100_000)).await).await;
    assert_eq!((status, &error["code"], &error["param"]), (503, &json!("storage_full"), &json!("file")));
    assert!(house.all_rows().await.is_empty());
    assert_eq!(house.available().await, FUNDED);
    let small = transcribe(&house, "whisper", &[], &wav(10_000)).await;
    assert_eq!(small.status(), 200, "what stays in memory is served");
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED - 10 * SECOND);
}

/// What is rewritten lies on disk, and so does what is written: a provider's JSON, or subtitles of
/// it, fit nowhere.
pub async fn no_room_for_a_transcript() {
    let models: String = [("elevenlabs", "scribe_v2"), ("dashscope", "fun-asr")]
        .map(|(provider, model)| {
            let words = |name: &str| scenarios(provider, model, &[name]).replacen("words", provider, 1);
            [words("words=30000"), words("words=3")].concat()
        })
        .concat();
    let catalog: &'static str = Box::leak(models.into_boxed_str());
    let config = "[storage]\ndisk_reserve = \"8000000GiB\"\n".to_owned();
    let house = House::with(Plan { catalog, config, ..Plan::default() }).await;
    for model in ["elevenlabs", "dashscope"] {
        house.sim.clear();
        let reply = transcribe(&house, &format!("{model}-30000"), &[], &wav(1_000)).await;
        assert_eq!(reply.headers()["x-should-retry"], "false", "{model}: it was heard");
        let call = call_id(&reply);
        let (status, error) = error_of(reply).await;
        assert_eq!((status, &error["code"]), (503, &json!("storage_full")), "{model}: {error}");
        let text = error["message"].as_str().expect("a text");
        assert!(text.contains("no room for this answer") && error["param"].is_null(), "{model}: {error}");
        let row = house.row(call).await;
        assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::UpstreamFault, "storage_full", 0));
        house.quiet().await;
        let app = &house.running().app;
        assert_eq!((house.available().await, app.spool.budget.used(), app.bodies.used()), (FUNDED, 0, 0), "{model}");
        assert_eq!(super::temporary(&app.spool.dir), 0, "{model}: a temporary file is left");
        if model == "dashscope" {
            assert_eq!(begun(&house), 1, "never begun again");
        }
    }
    let small = transcribe(&house, "elevenlabs-3", &[], &wav(10_000)).await;
    assert_eq!(small.status(), 200, "what stays in memory is served");
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED - 10 * SECOND);
}

pub async fn a_reply_that_is_no_transcript() {
    let house = house().await;
    for scenario in ["error500", "html502", "garbage", "textless", "cut"] {
        let reply = transcribe(&house, "whisper", &[("prompt", &format!("[[sim:{scenario}]]"))], &wav(1_000)).await;
        assert_eq!(reply.headers()["x-should-retry"], "false", "{scenario}");
        let call = call_id(&reply);
        assert_eq!(error_of(reply).await.0, 502, "{scenario}");
        let row = house.row(call).await;
        assert_eq!((row.ending, row.charge.nano(), row.attempts), (Ending::UpstreamFault, 0, 1), "{scenario}");
    }
    house.quiet().await;
    assert_eq!((house.available().await, house.sim.received().len()), (FUNDED, 5));
}

pub async fn a_transcript_breaks_off() {
    let house = house().await;
    for scenario in ["no_done", "late_error", "cut"] {
        let prompt = format!("[[sim:{scenario} words=9]]");
        let fields = [("model", "gpt-ears"), ("stream", "true"), ("prompt", &*prompt), ("file", "")];
        let body = form(&fields, "a.wav", &wav(1_000));
        // It may break before the client has seen its head.
        let broken = match post(&house, "/v1/audio/transcriptions", KIND, body).send().await {
            Ok(reply) => reply.bytes().await.is_err(),
            Err(_) => true,
        };
        assert!(broken, "{scenario}: half a transcript is not taken for a whole one");
    }
    house.quiet().await;
    let rows = house.all_rows().await;
    assert_eq!((rows.len(), house.sim.received().len()), (3, 3), "none was sent twice");
    assert!(rows.values().all(|row| row.ending == Ending::UpstreamFault && row.reason == "broken_off"));
    assert_eq!(house.available().await, FUNDED);
}

pub async fn the_client_leaves_a_transcript() {
    let house = house().await;
    let more = [("stream", "true"), ("prompt", "[[sim:delay_ms=20 words=10000]]")];
    let mut reply = transcribe(&house, "gpt-ears", &more, &wav(2_000)).await;
    let call = call_id(&reply);
    assert!(reply.chunk().await.expect("a stream").is_some());
    drop(reply);
    assert_eq!(house.row(call).await.ending, Ending::ClientLeft);
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED - 2 * SECOND);
}

pub async fn a_large_transcript() {
    let house = house().await;
    let reply = transcribe(&house, "whisper", &[("prompt", "[[sim:huge mib=3]]")], &wav(1_000)).await;
    assert_eq!(reply.status(), 200);
    let call = call_id(&reply);
    assert!(reply.bytes().await.expect("all of it").len() > 3 << 20);
    assert_eq!(house.row(call).await.ending, Ending::Answered);
    house.quiet().await;
    assert_eq!(house.available().await, FUNDED - SECOND);
}

/// The answer to its beginning is lost, it is never over, or no question about it is answered.
pub async fn a_task_of_a_recording_is_lost() {
    let names = ["cut", "never", "pollerror+ever=1"];
    let catalog: &'static str = Box::leak(scenarios("dashscope", "fun-asr", &names).into_boxed_str());
    for (name, status, patience) in [("cut", 502, "20s"), ("never", 504, "4s"), ("pollerror-ever-1", 504, "4s")] {
        let house = House::with(Plan { catalog, patience, ..Plan::default() }).await;
        let reply = transcribe(&house, name, &[], &wav(1_000)).await;
        let call = call_id(&reply);
        assert_eq!((reply.status().as_u16(), &reply.headers()["x-should-retry"]), (status, &"false".parse().unwrap()));
        let row = house.row(call).await;
        assert_eq!((row.charge.nano(), row.ending, begun(&house)), (0, Ending::UpstreamFault, 1), "{name}");
        house.quiet().await;
        assert_eq!(house.available().await, FUNDED);
    }
}

/// The provider bills a task that was begun, whether or not anybody waits for it.
pub async fn the_client_leaves_a_task() {
    let house = House::with(Plan { catalog: long_files::CATALOG, ..Plan::default() }).await;
    house.sim.shut(BEGIN);
    let body = form(&[("model", "long-ears"), ("file", "")], "a.wav", &wav(3_000));
    house.leave(post(&house, "/v1/audio/transcriptions", KIND, body)).await;
    house.sim.open();
    house.quiet().await;
    let rows = house.all_rows().await;
    let row = rows.values().next().expect("a row");
    assert_eq!((row.charge.nano(), rows.len(), begun(&house)), (3 * SECOND, 1, 1), "{row:?}");
    assert_eq!((house.available().await, house.running().app.spool.budget.used()), (FUNDED - 3 * SECOND, 0));
}
