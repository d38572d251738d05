//! One task in its two shapes.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_media::video::{Failure, TaskView, VideoState, Warning, deleted, legacy, legacy_error, list, openai};

const URL: &str = "https://files.example/v.mp4?Expires=1800000000";

fn task(state: VideoState) -> TaskView<'static> {
    TaskView {
        id: "task_1",
        model: "m",
        state,
        progress: None,
        created_at: 1_767_225_600,
        completed_at: None,
        expires_at: None,
        url: None,
        failure: None,
        effective: &[("model", "m"), ("size", "1280*720"), ("resolution", "720P"), ("seconds", "5")],
        made_seconds: None,
        left: "0",
        remixed_from: None,
        warnings: &[],
    }
}

fn value(bytes: Bytes) -> Value {
    serde_json::from_slice(&bytes).expect("JSON")
}

#[test]
fn created() {
    let warnings: &'static [Warning] = Box::leak(Box::new([Warning::new("images", "not read")]));
    let shown = value(openai(&TaskView { warnings, ..task(VideoState::Queued) }));
    assert_eq!(
        shown,
        json!({
            "id": "task_1", "task_id": "task_1", "object": "video", "model": "m", "status": "queued", "progress": 0,
            "created_at": 1_767_225_600, "completed_at": null, "expires_at": null, "error": null, "remixed_from_video_id": null,
            "seconds": "5", "size": "1280*720", "effective": {"size": "1280*720", "resolution": "720P", "seconds": "5"},
            "warnings": [{"field": "images", "message": "not read"}],
        })
    );
}

#[test]
fn states() {
    for (state, said, word, progress, old_word, old_progress) in [
        (VideoState::Accepted, None, "queued", 0, "NOT_START", "0%"),
        (VideoState::Unknown, None, "in_progress", 0, "SUBMITTED", "10%"),
        (VideoState::Unknown, Some(85), "in_progress", 85, "SUBMITTED", "85%"),
        (VideoState::Queued, None, "queued", 0, "QUEUED", "20%"),
        (VideoState::Running, None, "in_progress", 30, "IN_PROGRESS", "30%"),
        (VideoState::Running, Some(55), "in_progress", 55, "IN_PROGRESS", "55%"),
        (VideoState::Running, Some(100), "in_progress", 99, "IN_PROGRESS", "99%"),
        (VideoState::Completed, Some(7), "completed", 100, "SUCCESS", "100%"),
        (VideoState::Failed, Some(7), "failed", 100, "FAILURE", "100%"),
    ] {
        let task = TaskView { progress: said, ..task(state) };
        let (new, old) = (value(openai(&task)), value(legacy(&task)));
        assert_eq!((new["status"].as_str(), new["progress"].as_u64()), (Some(word), Some(progress)));
        assert_eq!(old["code"], "success");
        assert_eq!(
            (old["data"]["status"].as_str(), old["data"]["progress"].as_str()),
            (Some(old_word), Some(old_progress))
        );
        assert_eq!(state.is_final(), progress == 100);
    }
}

#[test]
fn endings() {
    let done = TaskView {
        url: Some(URL),
        completed_at: Some(1_767_225_700),
        expires_at: Some(1_800_000_000),
        ..task(VideoState::Completed)
    };
    let (new, old) = (value(openai(&done)), value(legacy(&done)));
    assert_eq!((new["metadata"]["url"].as_str(), new["expires_at"].as_i64()), (Some(URL), Some(1_800_000_000)));
    assert_eq!((old["data"]["result_url"].as_str(), old["data"]["fail_reason"].as_str()), (Some(URL), Some("")));
    let failure = Failure { code: "InvalidParameter".to_owned(), message: "The size is wrong.".to_owned() };
    let failed = TaskView { failure: Some(&failure), url: Some(URL), ..task(VideoState::Failed) };
    let (new, old) = (value(openai(&failed)), value(legacy(&failed)));
    assert_eq!(new["error"], json!({"code": "InvalidParameter", "message": "The size is wrong."}));
    assert_eq!((&new["metadata"], old["data"]["result_url"].as_str()), (&Value::Null, Some("")));
    assert_eq!(old["data"]["fail_reason"], "The size is wrong.");
    // A link or an error that is known early is not shown early.
    let running = TaskView { failure: Some(&failure), url: Some(URL), ..task(VideoState::Running) };
    assert!(value(openai(&running))["error"].is_null() && value(legacy(&running))["data"]["result_url"] == "");
}

/// A length that was left to the provider is shown in its own word, and as it was made in the end;
/// none is left out.
#[test]
fn lengths() {
    let asked = &[("resolution", "720P"), ("seconds", "5")][..];
    let left = &[("resolution", "720P")][..];
    for (effective, state, made, seconds) in [
        (asked, VideoState::Queued, None, "5"),
        (asked, VideoState::Completed, None, "5"),
        (asked, VideoState::Completed, Some(6), "6"),
        (left, VideoState::Queued, None, "-1"),
        (left, VideoState::Running, Some(12), "-1"),
        (left, VideoState::Completed, Some(12), "12"),
        (left, VideoState::Completed, None, "-1"),
        (left, VideoState::Failed, None, "-1"),
    ] {
        let shown = value(openai(&TaskView { effective, made_seconds: made, left: "-1", ..task(state) }));
        let stated = (shown["seconds"].as_str(), shown["size"].as_str());
        assert_eq!(stated, (Some(seconds), Some("720P")), "{effective:?} {state:?} {made:?}");
    }
}

#[test]
fn pages() {
    let page = value(list(&[task(VideoState::Queued)], true));
    assert_eq!(
        (page["first_id"].as_str(), page["last_id"].as_str(), page["has_more"].as_bool()),
        (Some("task_1"), Some("task_1"), Some(true))
    );
    assert_eq!(page["data"][0]["id"], "task_1");
    assert!(value(list(&[], false))["first_id"].is_null());
    assert_eq!(value(deleted("task_1")), json!({"id": "task_1", "object": "video.deleted", "deleted": true}));
    assert_eq!(
        value(legacy_error("task_not_found", "No.")),
        json!({"code": "task_not_found", "message": "No.", "data": null})
    );
}
