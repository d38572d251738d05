//! What the maker counted, in whatever spelling.

use super::house::{House, TASK};
use super::makers::{MAKERS, Maker};
use serde_json::json;
use tollgate_media::video::Api;

#[tokio::test]
async fn seconds_and_tokens_in_any_spelling() {
    for (api, millis, tokens) in [
        (Api::DashScope, Some(5000), None),
        (Api::Ark, Some(5000), Some(108_000)),
        (Api::MiniMaxV2, Some(5000), None),
        (Api::Sora, Some(4000), None),
        (Api::KlingV1, Some(5000), None),
        (Api::Kling2, Some(5000), None),
        (Api::KlingOmni, Some(5000), None),
        (Api::MiniMaxV1, None, None),
        (Api::Veo, None, None),
    ] {
        for spelling in ["[[sim:ok]]", "[[sim:usage kind=string]]", "[[sim:usage kind=float]]"] {
            let house = House::of(Maker::of(api)).await;
            let report = house.ending(spelling).await;
            let used = report.used;
            assert_eq!((used.millis, used.tokens), (millis, tokens), "{api:?} {spelling}: {used:?}");
            assert_eq!(report.length, millis, "{api:?} {spelling}");
            let tells = !matches!(api, Api::MiniMaxV1 | Api::Veo);
            assert_eq!(used.raw.is_some(), tells, "{api:?}: {used:?}");
        }
    }
}

#[tokio::test]
async fn no_usage_is_no_zero() {
    for maker in MAKERS.iter().filter(|maker| matches!(maker.api, Api::DashScope | Api::MiniMaxV2)) {
        let house = House::of(*maker).await;
        let report = house.ending("[[sim:usage kind=none]]").await;
        assert!(report.is_ready());
        assert_eq!((report.used.millis, report.used.tokens, report.used.raw), (None, None, None), "{maker:?}");
    }
    // Its length is reported beside the usage.
    let used = House::of(Maker::of(Api::Ark)).await.ending("[[sim:usage kind=none]]").await.used;
    assert_eq!((used.millis, used.tokens), (Some(5000), None), "{used:?}");
    for api in [Api::KlingV1, Api::Kling2, Api::KlingOmni] {
        let used = House::of(Maker::of(api)).await.ending("[[sim:usage kind=none]]").await.used;
        assert_eq!(used.millis, None, "{api:?}: {used:?}");
    }
}

/// A finished video has a length and was counted: a maker that tells zero tells nothing.
#[tokio::test]
async fn zero_is_no_use() {
    let silent = [Api::MiniMaxV1, Api::Veo];
    for maker in MAKERS.iter().filter(|maker| !silent.contains(&maker.api)) {
        let report = House::of(*maker).await.ending("[[sim:ok reported=0]]").await;
        assert!(report.is_ready(), "{maker:?}");
        let used = report.used;
        assert_eq!((used.millis, used.tokens), (None, None), "{maker:?}: {used:?}");
        assert!(used.raw.expect("its own words").contains('0'), "{maker:?}");
    }
}

/// The model decided the length, and says so when it is done.
#[tokio::test]
async fn a_length_the_maker_chose() {
    let house = House::of(Maker::of(Api::Ark)).await;
    let plan = house.plan(&json!({"prompt": "[[sim:ok reported=12]]", "duration": -1}));
    let id = house.send(&plan, TASK).await.expect("accepted");
    let seen: Vec<_> = house.polls(&id).await.into_iter().map(|report| report.expect("a report").used).collect();
    assert_eq!(seen.iter().map(|used| used.millis).collect::<Vec<_>>(), [None, None, Some(12_000)]);
    assert_eq!(
        seen[2].raw.as_deref(),
        Some(r#"{"duration":12,"usage":{"completion_tokens":259200,"total_tokens":259200}}"#)
    );
}

/// Source seconds are billed where the maker reports them, and never above what was held.
#[tokio::test]
async fn source_seconds_are_within_the_bound() {
    let clip = "https://media.example/a.mp4";
    for (api, variant, model, fields, millis, made) in [
        (Api::DashScope, "a-video-edit", "wan2.7-videoedit", json!({"prompt": "p", "video_url": clip}), 13_240, 6620),
        (Api::MiniMaxV2, "d-native-audio", "MiniMax-H3", json!({"prompt": "p", "video_url": clip}), 9000, 5000),
    ] {
        let house = House::of(Maker { model, ..Maker::of(api) }).await;
        let plan = house.plan_as(variant, &fields);
        let id = house.send(&plan, TASK).await.expect("accepted");
        let report = house.polls_of(plan.call, &id).await.pop().expect("a poll").expect("a report");
        assert_eq!((report.used.millis, report.length), (Some(millis), Some(made)), "what is billed, what was made");
        assert!(millis <= u64::from(plan.bound.seconds) * 1000);
    }
    let house = House::of(Maker::of(Api::Ark)).await;
    let plan = house.plan(&json!({"prompt": "p", "seconds": "30"}));
    let id = house.send(&plan, TASK).await.expect("accepted");
    let used = house.polls(&id).await.pop().expect("a poll").expect("a report").used;
    assert!(used.tokens.expect("tokens") <= plan.bound.tokens.expect("a bound"));
}
