//! Large uploads: on disk, within their budgets, and gone with their call.

use super::{CATALOG, KIND, SECOND, Upload, form, house, post, row_of, transcribe, wav};
use crate::house::{House, Plan, error_of};
use serde_json::json;

/// Of an upload that is on disk: what is gathered for the next write, and its fields.
const IN_MEMORY: usize = (256 << 10) + 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_large_upload_is_on_disk_while_it_comes_and_gone_afterwards() {
    let house = house().await;
    // 20 minutes at 16 kB a second: 19.2 MB.
    let mut upload = Upload::begin(&house, "whisper", 1_200_000);
    upload.send(9 << 20).await;
    upload.spooled(&house, 8 << 20).await;
    let app = &house.running().app;
    assert!(app.bodies.used() <= IN_MEMORY, "{} bytes in memory", app.bodies.used());
    let left = std::fs::read_dir(app.settings.data_dir.clone()).expect("a folder");
    let names: Vec<String> =
        left.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().all(|name| !name.starts_with(".tmp") && !name.contains("spool")), "{names:?}");
    let reply = upload.finish().await;
    assert_eq!(reply.status(), 200);
    let row = row_of(&house, &reply).await;
    assert_eq!((row.counters.seconds, row.charge.nano()), (1_200, 1_200 * SECOND));
    house.quiet().await;
    assert_eq!((app.spool.budget.used(), app.bodies.used()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_uploads_at_once_take_little_memory() {
    let config = "[limits]\nbody_time = \"1h\"\n".to_owned();
    let house = House::with(Plan { catalog: CATALOG, config, usd: "1000", ..Plan::default() }).await;
    let mut uploads: Vec<Upload> = (0..100).map(|_| Upload::begin(&house, "whisper", 120_000)).collect();
    for upload in &mut uploads {
        upload.send(3 << 19).await;
    }
    // Each has taken its first step of disk.
    uploads[0].spooled(&house, 800 << 20).await;
    let memory = house.running().app.bodies.used();
    assert!(memory <= 100 * IN_MEMORY, "{memory} bytes in memory for 150 MiB");
    for upload in uploads {
        let reply = upload.finish().await;
        assert_eq!(reply.status(), 200);
        assert_eq!(row_of(&house, &reply).await.charge.nano(), 120 * SECOND);
    }
    house.quiet().await;
    let app = &house.running().app;
    assert_eq!((app.spool.budget.used(), app.bodies.used()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_pay_uploads_nothing_large() {
    let house = House::with(Plan { catalog: CATALOG, usd: "0", ..Plan::default() }).await;
    let (status, error) = error_of(transcribe(&house, "whisper", &[], &wav(60_000)).await).await;
    assert_eq!((status, &error["code"]), (402, &json!("insufficient_balance")));
    assert_eq!(house.running().app.spool.budget.used(), 0);
    // What is small is read, and refused for its price.
    let (status, _) = error_of(transcribe(&house, "whisper", &[], &wav(1_000)).await).await;
    assert_eq!(status, 402);
    assert!(house.sim.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_bounded_in_size_and_in_parts() {
    let config = "[limits]\nupload_bytes = \"2MiB\"\n".to_owned();
    let house = House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await;
    let (status, error) = error_of(transcribe(&house, "whisper", &[], &wav(140_000)).await).await;
    assert_eq!((status, &error["code"]), (413, &json!("body_too_large")));
    // Without a length it is read as far as it may be; the server may close before all is sent.
    let mut upload = Upload::begin(&house, "whisper", 140_000);
    upload.try_send(usize::MAX).await;
    if let Ok(reply) = upload.reply().await {
        assert_eq!(reply.status(), 413);
    }
    let many: Vec<(String, String)> = (0..301).map(|n| (format!("include[{n}]"), "logprobs".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let reply = post(&house, "/v1/audio/transcriptions", KIND, form(&many, "a", b"")).send().await.expect("a reply");
    assert!(error_of(reply).await.1["message"].as_str().is_some_and(|text| text.contains("too many parts")));
    let long = "x".repeat((1 << 20) + 1);
    let reply = post(&house, "/v1/audio/transcriptions", KIND, form(&[("prompt", &long)], "a", b"")).send().await;
    assert_eq!(error_of(reply.expect("a reply")).await.1["param"], "prompt");
    let reply = post(&house, "/v1/audio/transcriptions", "application/json", b"{}".to_vec()).send().await;
    assert_eq!(error_of(reply.expect("a reply")).await.0, 415);
}
