//! From queued to the end: status words, failures with their reasons, and polls that fail without
//! deciding anything.

use super::house::{House, TASK, apis};
use super::makers::{MAKERS, Maker};
use serde_json::json;
use tollgate_media::video::Api;
use tollgate_upstream::video::{VideoFailure, VideoReport, VideoStanding};

fn standings(polls: &[Result<VideoReport, tollgate_upstream::Fault>]) -> Vec<Option<VideoStanding>> {
    polls.iter().map(|poll| poll.as_ref().ok().map(|report| report.standing)).collect()
}

#[tokio::test]
async fn queued_then_running_then_done() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let id = house.create("[[sim:queue=2 run=2]]").await.expect("accepted");
        let polls = house.polls(&id).await;
        // Google does not tell waiting from running.
        let queued = if maker.api == Api::Veo { VideoStanding::Running } else { VideoStanding::Queued };
        let expected =
            [queued, queued, VideoStanding::Running, VideoStanding::Running, VideoStanding::Succeeded].map(Some);
        assert_eq!(standings(&polls), expected, "{maker:?}");
        let last = polls.last().expect("a poll").as_ref().expect("a report");
        assert!(last.is_ready() && last.failure.is_none() && last.strange.is_none());
        if maker.api == Api::Sora {
            let shown: Vec<_> = polls.iter().flatten().map(|report| report.progress).collect();
            assert_eq!(shown, [Some(0), Some(0), Some(50), Some(50), Some(100)]);
        }
        assert_eq!(house.submissions().len(), 1);
    }
}

#[tokio::test]
async fn failures_keep_the_makers_code_and_text() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let (code, sent) = match maker.api {
            Api::DashScope | Api::Ark | Api::Sora => ("InvalidParameter", "InvalidParameter"),
            // A failed task of Kling has a text and no code.
            Api::KlingV1 | Api::Kling2 | Api::KlingOmni => ("task_failed", "x"),
            Api::MiniMaxV1 | Api::MiniMaxV2 => ("2013", "2013"),
            Api::Veo => ("3", "3"),
        };
        let report = house.ending(&format!("[[sim:fail code={sent} text=The_size_is_odd.]]")).await;
        assert_eq!(report.standing, VideoStanding::Ended(VideoFailure::Failed), "{maker:?}");
        let failure = report.failure.expect("a reason");
        assert_eq!(failure.code, code, "{maker:?}");
        assert!(failure.message.starts_with("The size is odd."), "{maker:?}: {}", failure.message);
        assert!(!failure.message.contains("021718067849"), "request ids are not for callers: {}", failure.message);
        assert!(report.link.is_none());
    }
}

#[tokio::test]
async fn moderation_is_a_failure_with_a_reason() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let report = house.ending("[[sim:moderation]]").await;
        assert_eq!(report.standing, VideoStanding::Ended(VideoFailure::Failed), "{maker:?}");
        let failure = report.failure.expect("a reason");
        let code = match maker.api {
            Api::DashScope => "DataInspectionFailed",
            Api::Ark => "OutputVideoSensitiveContentDetected",
            Api::KlingV1 | Api::Kling2 | Api::KlingOmni => "task_failed",
            Api::MiniMaxV1 | Api::MiniMaxV2 => "1027",
            Api::Sora => "moderation_blocked",
            Api::Veo => "content_filtered",
        };
        assert_eq!(failure.code, code, "{maker:?}");
        assert!(failure.message.len() > 10);
    }
}

#[tokio::test]
async fn too_small_a_picture_passes_submission_and_fails_later() {
    const SMALL: &str = "https://media.example/64x64.png";
    for (api, variant, model, fields, code, text) in [
        (
            Api::KlingOmni,
            "c-multi-image",
            "kling-v3-omni",
            json!({"prompt": "p", "metadata": {"image_list": [{"image_url": SMALL}], "aspect_ratio": "1:1"}}),
            "task_failed",
            "Image pixel is invalid",
        ),
        (
            Api::KlingV1,
            "c-standard",
            "kling-v3",
            json!({"prompt": "p", "image": SMALL}),
            "task_failed",
            "Image pixel is invalid",
        ),
        (
            Api::DashScope,
            "a-image-to-video",
            "wan2.7-i2v",
            json!({"prompt": "p", "input_reference": SMALL}),
            "InvalidParameter",
            "pixels",
        ),
        (
            Api::Ark,
            "b-2.0",
            "doubao-seedance-2-0-260128",
            json!({"prompt": "p", "images": [SMALL]}),
            "InvalidParameter",
            "300px",
        ),
        (Api::MiniMaxV2, "d-native-audio", "MiniMax-H3", json!({"prompt": "p", "image": SMALL}), "2013", "size"),
    ] {
        let house = House::of(Maker { model, ..Maker::of(api) }).await;
        let plan = house.plan_as(variant, &fields);
        let id = house.send(&plan, TASK).await.expect("it passes submission");
        let report = house.polls_of(plan.call, &id).await.pop().expect("a poll").expect("a report");
        let failure = report.failure.expect("a reason");
        assert_eq!(failure.code, code);
        assert!(failure.message.contains(text), "{}", failure.message);
    }
}

#[tokio::test]
async fn an_unknown_word_is_still_running() {
    // Google has no status words.
    for maker in MAKERS.iter().filter(|maker| maker.api != Api::Veo) {
        let house = House::of(*maker).await;
        let id = house.create("[[sim:word queue=0 run=0]]").await.expect("accepted");
        let polls = house.polls(&id).await;
        assert_eq!(standings(&polls), [Some(VideoStanding::Running), Some(VideoStanding::Succeeded)], "{maker:?}");
        let strange = polls[0].as_ref().expect("a report").strange.clone();
        assert!(strange.is_some_and(|word| word.len() > 5), "{maker:?}: the word is reported");
    }
}

#[tokio::test]
async fn cancelled_expired_forgotten() {
    for (api, scenario, ending) in [
        (Api::DashScope, "cancelled", VideoFailure::Cancelled),
        (Api::DashScope, "unknown", VideoFailure::Forgotten),
        (Api::Ark, "cancelled", VideoFailure::Cancelled),
        (Api::Ark, "expired", VideoFailure::Expired),
        (Api::MiniMaxV2, "cancelled", VideoFailure::Cancelled),
        (Api::MiniMaxV2, "expired", VideoFailure::Expired),
        (Api::Sora, "cancelled", VideoFailure::Cancelled),
        (Api::Veo, "cancelled", VideoFailure::Failed),
    ] {
        let house = House::of(Maker::of(api)).await;
        let report = house.ending(&format!("[[sim:{scenario}]]")).await;
        assert_eq!(report.standing, VideoStanding::Ended(ending), "{api:?}");
        let failure = report.failure.expect("a reason");
        assert!(!failure.code.is_empty() && !failure.message.is_empty());
    }
    // Where a lost task is an HTTP error, the poll is a fault and decides nothing.
    for maker in apis(&[Api::Ark, Api::KlingV1, Api::KlingOmni, Api::MiniMaxV2, Api::Sora, Api::Veo]) {
        let house = House::of(maker).await;
        let id = house.create("[[sim:unknown queue=0 run=0]]").await.expect("accepted");
        house.poll(&id).await.expect_err("a fault");
    }
}

#[tokio::test]
async fn a_failed_poll_decides_nothing() {
    for maker in MAKERS {
        for scenario in ["poll_limited", "poll_broken"] {
            let house = House::of(*maker).await;
            let id = house.create(&format!("[[sim:{scenario} n=2 queue=0 run=0]]")).await.expect("accepted");
            let polls = house.polls(&id).await;
            assert_eq!(standings(&polls), [None, None, Some(VideoStanding::Succeeded)], "{maker:?} {scenario}");
        }
    }
}

#[tokio::test]
async fn waiting_tasks_can_be_cancelled_where_the_maker_allows() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let id = house.create("[[sim:queue=3]]").await.expect("accepted");
        let handle = house.handle(house.call(), &id);
        let done = tollgate_upstream::video::cancel(&house.client, house.video(), &house.asking(), &handle).await;
        let can = matches!(maker.api, Api::DashScope | Api::Ark | Api::Sora);
        assert_eq!(done.expect("an answer"), can, "{maker:?}");
        if can {
            let report = house.poll(&id).await.expect("a report");
            assert_eq!(report.standing, VideoStanding::Ended(VideoFailure::Cancelled));
        }
    }
}

#[tokio::test]
async fn remixes() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let id = house.create("p").await.expect("accepted");
        let handle = house.handle(house.call(), &id);
        let made =
            tollgate_upstream::video::remix(&house.client, house.video(), &house.asking(), &handle, "again").await;
        let made = made.expect("an answer");
        assert_eq!(made.is_some(), maker.api == Api::Sora, "{maker:?}");
        if let Some(again) = made {
            assert!(
                again != id && house.polls(&again).await.last().expect("a poll").as_ref().expect("a report").is_ready()
            );
        }
    }
}

#[tokio::test]
async fn a_compressed_answer_tells_nothing() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let id = house.create("[[sim:poll_packed n=2 queue=0 run=0]]").await.expect("accepted");
        let polls = house.polls(&id).await;
        assert_eq!(standings(&polls), [None, None, Some(VideoStanding::Succeeded)], "{maker:?}");
        let fault = polls[0].as_ref().expect_err("compressed");
        assert_eq!(fault.code, tollgate_wire::error::Code::UpstreamInvalidReply, "{maker:?}: {fault:?}");
        assert!(fault.message.contains("compressed"), "{fault:?}");
    }
}
