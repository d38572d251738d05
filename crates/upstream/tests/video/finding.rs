//! Tasks whose creation was not answered: found by our id, in a list, or not at all.

use crate::house::{House, TASK};
use crate::makers::{MAKERS, Maker};
use serde_json::json;
use tollgate_upstream::video::Found;
use tollgate_wire::video::Api;

#[tokio::test]
async fn lost_tasks() {
    for maker in MAKERS {
        let house = House::of(*maker).await;
        let other = house.plan(&maker.plain("another"));
        let known = house.send(&other, "task_9999").await.expect("accepted");
        let plan = house.plan(&maker.plain("[[sim:lost]]"));
        let before = house.find(&plan, TASK).await.expect("an answer");
        house.send(&plan, TASK).await.expect_err("lost");
        let after = house.find(&plan, TASK).await.expect("an answer");
        assert_eq!(house.video().habits(maker.api).finds, after.is_some(), "{maker:?}");
        match maker.api {
            Api::KlingV1 | Api::Kling2 | Api::KlingOmni | Api::Ark => {
                assert_eq!(before, Some(Found::Nothing), "{maker:?}");
                let Some(Found::Exactly(id)) = after else { panic!("{maker:?}: {after:?}") };
                assert_ne!(id, known);
                assert!(house.polls_of(plan.call, &id).await.pop().expect("a poll").expect("a report").is_ready());
            }
            // Alike in kind and time; the caller knows which of them are its own already.
            Api::MiniMaxV2 | Api::Sora => {
                assert_eq!(before, Some(Found::Perhaps(vec![known.clone()])));
                let Some(Found::Perhaps(ids)) = after else { panic!("{maker:?}") };
                assert_eq!(ids.len(), 2);
                assert!(ids.contains(&known));
            }
            Api::DashScope | Api::MiniMaxV1 | Api::Veo => assert_eq!((before, after), (None, None)),
        }
        assert_eq!(house.submissions().len(), 2, "looking for a task makes none");
    }
}

#[tokio::test]
async fn lists_tell_kinds_and_times_apart() {
    let house = House::of(Maker::of(Api::Sora)).await;
    house.create("p").await.expect("accepted");
    let longer = house.plan(&json!({"prompt": "p", "seconds": "8"}));
    assert_eq!(house.find(&longer, TASK).await.expect("an answer"), Some(Found::Nothing));
    let house = House { now: house.now - 3600, ..house };
    let plain = house.plan(&json!({"prompt": "p"}));
    assert_eq!(house.find(&plain, TASK).await.expect("an answer"), Some(Found::Nothing), "made an hour later");
}

/// The caller's own identifier takes the place of ours; then only likeness is left.
#[tokio::test]
async fn a_callers_identifier_at_ark() {
    let house = House::of(Maker::of(Api::Ark)).await;
    let plan = house.plan(&json!({"prompt": "[[sim:lost]]", "metadata": {"safety_identifier": "user-7"}}));
    house.send(&plan, TASK).await.expect_err("lost");
    assert_eq!(house.submissions()[0].json()["safety_identifier"], "user-7");
    let found = house.find(&plan, TASK).await.expect("an answer");
    assert!(matches!(found, Some(Found::Perhaps(ids)) if ids.len() == 1));
}

/// The lost one was the first of many: it is on the last page.
#[tokio::test]
async fn lists_are_read_to_their_end() {
    for api in [Api::Ark, Api::MiniMaxV2, Api::Sora] {
        let house = House::of(Maker::of(api)).await;
        let plan = house.plan(&house.maker.plain("p"));
        let first = house.send(&plan, TASK).await.expect("accepted");
        for number in 0..230 {
            house.send(&plan, &format!("other_{number}")).await.expect("accepted");
        }
        let before = house.sim.received().len();
        match house.find(&plan, TASK).await.expect("an answer") {
            Some(Found::Exactly(id)) => assert_eq!((api, id), (Api::Ark, first)),
            Some(Found::Perhaps(ids)) => assert_eq!((ids.len(), ids.last()), (231, Some(&first)), "{api:?}"),
            other => panic!("{api:?}: {other:?}"),
        }
        assert_eq!(house.sim.received().len() - before, 3, "{api:?}: three pages");
        if api == Api::Ark {
            assert_eq!(house.find(&plan, "never").await.expect("an answer"), Some(Found::Nothing));
        }
    }
}
