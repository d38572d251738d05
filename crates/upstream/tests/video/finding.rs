//! Tasks whose creation was not answered: found by our id, in a list, or not at all.

use crate::house::{House, TASK};
use crate::makers::{MAKERS, Maker};
use serde_json::json;
use tollgate_upstream::video::{Found, Likeness};
use tollgate_wire::video::{Api, REMIX};

/// What a list read to its end has that may be the one.
fn perhaps(found: Option<Found>) -> Vec<(String, Likeness)> {
    let Some(Found::Perhaps { alike, whole: true }) = found else { panic!("{found:?}") };
    alike.into_iter().map(|one| (one.id, one.likeness)).collect()
}

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
            Api::MiniMaxV2 => {
                assert_eq!(perhaps(before), [(known.clone(), Likeness::Outside)]);
                let after = perhaps(after);
                assert_eq!(after.len(), 2);
                assert!(after.contains(&(known, Likeness::Outside)), "{after:?}");
            }
            // Its list tells prompts.
            Api::Sora => {
                assert_eq!(before, Some(Found::Nothing));
                let after = perhaps(after);
                assert_eq!((after.len(), after[0].1), (1, Likeness::Whole));
                assert_ne!(after[0].0, known);
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
    assert_eq!(perhaps(found).len(), 1);
    let other = house.plan(&json!({"prompt": "p", "metadata": {"safety_identifier": "user-8"}}));
    assert_eq!(house.find(&other, TASK).await.expect("an answer"), Some(Found::Nothing), "another caller's");
}

/// A remix is known by its source and its prompt; the list tells its length and size as those of the source.
#[tokio::test]
async fn a_lost_remix_is_told_from_others() {
    let house = House::of(Maker::of(Api::Sora)).await;
    let source = house.create("p").await.expect("accepted");
    let remix = |prompt: &str, source: &str| {
        let body = json!({"prompt": prompt, "remix_of": source});
        let mut plan = house.plan(&json!({"prompt": prompt}));
        (plan.call, plan.body) = (REMIX, body.as_object().cloned().expect("an object"));
        plan
    };
    house.send(&remix("[[sim:lost]] at night", &source), TASK).await.expect_err("lost");
    let found = perhaps(house.find(&remix("[[sim:lost]] at night", &source), TASK).await.expect("an answer"));
    assert_eq!((found.len(), found[0].1), (1, Likeness::Whole));
    for other in [remix("by day", &source), remix("[[sim:lost]] at night", "video_other")] {
        assert_eq!(house.find(&other, TASK).await.expect("an answer"), Some(Found::Nothing));
    }
    let plain = house.plan(&json!({"prompt": "[[sim:lost]] at night"}));
    assert_eq!(house.find(&plain, TASK).await.expect("an answer"), Some(Found::Nothing), "no remix was sought");
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
            Some(Found::Perhaps { alike, whole: true }) => {
                assert_eq!((alike.len(), alike.last().map(|one| &one.id)), (231, Some(&first)), "{api:?}");
            }
            other => panic!("{api:?}: {other:?}"),
        }
        assert_eq!(house.sim.received().len() - before, 3, "{api:?}: three pages");
        if api == Api::Ark {
            assert_eq!(house.find(&plan, "never").await.expect("an answer"), Some(Found::Nothing));
        }
    }
}
