//! Tasks whose creation was not answered: found by our id, in a list, or not at all.

use super::house::{House, Prompt, TASK};
use super::makers::{MAKERS, Maker};
use http::HeaderMap;
use serde_json::{Value, json};
use tollgate_media::video::{Api, Plan, REMIX};
use tollgate_upstream::WholeReply;
use tollgate_upstream::video::{Likeness, VideoSearch};

/// What a list read to its end has that may be the one.
fn perhaps(found: Option<VideoSearch>) -> Vec<(String, Likeness)> {
    let Some(VideoSearch::Perhaps { alike, whole: true }) = found else { panic!("{found:?}") };
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
                assert_eq!(before, Some(VideoSearch::Nothing), "{maker:?}");
                let Some(VideoSearch::Exactly(id)) = after else { panic!("{maker:?}: {after:?}") };
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
                assert_eq!(perhaps(before), [(known.clone(), Likeness::Otherwise)]);
                let after = perhaps(after);
                assert_eq!((after.len(), after[0].1), (2, Likeness::Whole));
                assert_eq!(after[1], (known, Likeness::Otherwise));
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
    assert_eq!(house.find(&longer, TASK).await.expect("an answer"), Some(VideoSearch::Nothing));
    let house = House { now: house.now - 3600, ..house };
    let plain = house.plan(&json!({"prompt": "p"}));
    assert_eq!(house.find(&plain, TASK).await.expect("an answer"), Some(VideoSearch::Nothing), "made an hour later");
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
    assert_eq!(house.find(&other, TASK).await.expect("an answer"), Some(VideoSearch::Nothing), "another caller's");
}

/// The list tells an endpoint's tasks under the name of its model: they are known by our id all the
/// same, and what goes by another name than it was sent with is not taken for something else.
#[tokio::test]
async fn an_endpoint_at_ark() {
    let maker = Maker { model: "ep-20260701120000-x7k2p", ..Maker::of(Api::Ark) };
    let house = House::of(maker).await;
    let plan = house.plan(&json!({"prompt": "[[sim:lost]]"}));
    house.send(&plan, TASK).await.expect_err("lost");
    let found = house.find(&plan, TASK).await.expect("an answer");
    assert!(matches!(found, Some(VideoSearch::Exactly(_))), "{found:?}");
    assert_eq!(
        house.find(&plan, "task_9").await.expect("an answer"),
        Some(VideoSearch::Nothing),
        "it has an id, another one"
    );
    let named = house.plan(&json!({"prompt": "[[sim:lost]]", "metadata": {"safety_identifier": "user-7"}}));
    house.send(&named, "task_2").await.expect_err("lost");
    let found = perhaps(house.find(&named, "task_2").await.expect("an answer"));
    assert_eq!(found.iter().map(|one| one.1).collect::<Vec<_>>(), [Likeness::Otherwise]);
}

/// What Kling answers to a question for our id, and what is read from it: a name, the word that it
/// has none, or neither.
#[tokio::test]
async fn kling_is_believed_by_our_own_id_only() {
    const PAGE: &str = "<html>404 not found</html>";
    let ok = |data: Value| (200, json!({"code": 0, "message": "SUCCEED", "data": data}).to_string());
    let no = |status: u16, code: i64, text: &str| (status, json!({"code": code, "message": text}).to_string());
    let none = Some(None);
    let ours = || Some(Some("847"));
    let older = |id: &str, own: Value| ok(json!({"task_id": id, "task_status": "submitted", "task_info": own}));
    let newer = |list: Value| ok(list);
    let refused = [
        (no(404, 1203, "Requested resource does not exist"), none),
        (no(400, 1201, "Task not found"), none),
        (no(400, 1201, "the task does not exist"), none),
        (no(400, 1201, "task_id is invalid"), None),
        (no(404, 1202, "Invalid request method"), None),
        (no(401, 1002, "Authorization is invalid"), None),
        (no(500, 5000, "Server internal error"), None),
        ((404, PAGE.to_owned()), None),
        ((404, "{}".to_owned()), None),
        ((404, r#"{"error":"not found"}"#.to_owned()), None),
        ((200, PAGE.to_owned()), None),
        (ok(json!({})), None),
        (ok(Value::Null), None),
    ];
    let v1 = [
        (older("847", json!({"external_task_id": TASK})), ours()),
        (older("847", json!({"external_task_id": "task_9"})), None),
        (older("847", json!({"external_task_id": ""})), None),
        (older("847", json!({})), None),
        (older("847", Value::Null), None),
        (older("", json!({"external_task_id": TASK})), None),
        (newer(json!([])), None),
    ];
    let v2 = [
        (newer(json!([{"id": "847", "external_id": TASK}])), ours()),
        (newer(json!([{"id": "846", "external_id": "task_9"}, {"id": "847", "external_id": TASK}])), ours()),
        (newer(json!([])), none),
        (newer(json!([{"id": "847", "external_id": "task_9"}])), None),
        (newer(json!([{"id": "847"}])), None),
        (newer(json!([{"external_id": TASK}])), None),
    ];
    for api in [Api::KlingV1, Api::KlingOmni, Api::Kling2] {
        let house = House::of(Maker::of(api)).await;
        let plan = house.plan(&house.maker.plain("p"));
        let sought = house.sought(&plan, TASK, None);
        let own = if api == Api::Kling2 { &v2[..] } else { &v1[..] };
        for ((status, body), expected) in refused.iter().chain(own) {
            let reply = WholeReply { status: *status, headers: HeaderMap::new(), body: body.clone().into() };
            let page = house.video().found(&sought, None, &reply);
            let read = page.as_ref().ok().map(|page| page.ours.as_deref());
            assert_eq!(read, *expected, "{api:?} {status} {body}: {page:?}");
        }
    }
}

/// A remix is known by its source and its prompt; the list tells its length and size as those of
/// the source.
#[tokio::test]
async fn a_lost_remix_is_distinguished_from_others() {
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
    let words = |id: &str| (id.to_owned(), Likeness::Otherwise);
    assert_eq!((found[0].1, &found[1..]), (Likeness::Whole, &[words(&source)][..]), "the source has another prompt");
    let made = found[0].0.clone();
    let plain = house.plan(&json!({"prompt": "[[sim:lost]] at night"}));
    for (sought, expected) in [
        (remix("by day", &source), vec![words(&made), words(&source)]),
        (remix("[[sim:lost]] at night", "video_other"), vec![words(&source)]),
        (plain, vec![words(&source)]),
    ] {
        assert_eq!(perhaps(house.find(&sought, TASK).await.expect("an answer")), expected, "{:?}", sought.body);
    }
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
            Some(VideoSearch::Exactly(id)) => assert_eq!((api, id), (Api::Ark, first)),
            Some(VideoSearch::Perhaps { alike, whole: true }) => {
                assert_eq!((alike.len(), alike.last().map(|one| &one.id)), (231, Some(&first)), "{api:?}");
            }
            other => panic!("{api:?}: {other:?}"),
        }
        // The one keeps our id, one ends with an empty page, one says that there is no more.
        let pages = if api == Api::MiniMaxV2 { 4 } else { 3 };
        assert_eq!(house.sim.received().len() - before, pages, "{api:?}");
        // Each page is a question of its own; where no more may be asked, nothing is known of the
        // rest.
        let before = house.sim.received().len();
        let found = house.find_in(&plan, "never", 1).await.expect("an answer");
        assert!(matches!(found, Some(VideoSearch::Perhaps { whole: false, .. })), "{api:?}: {found:?}");
        assert_eq!(house.sim.received().len() - before, 2, "{api:?}");
        if api == Api::Ark {
            assert_eq!(house.find(&plan, "never").await.expect("an answer"), Some(VideoSearch::Nothing));
        }
    }
}

/// One page, and what is read from it: the likeness of its entries, and where the list goes on.
fn page(house: &House, plan: &Plan, cursor: Option<&str>, json: &Value) -> (Vec<Likeness>, Option<String>) {
    let reply = WholeReply { status: 200, headers: HeaderMap::new(), body: json.to_string().into() };
    let prompt = Prompt::of(plan);
    let sought = house.sought(plan, TASK, prompt.as_ref());
    let page = house.video().found(&sought, cursor, &reply).expect("a page");
    assert_eq!(page.ours, None);
    (page.alike.iter().map(|one| one.likeness).collect(), page.next)
}

/// That an entry is something else is said only of what cannot be ours: a refund goes by it.
#[tokio::test]
async fn what_tells_too_little_is_not_something_else() {
    use Likeness::{None as Another, Otherwise, Outside, Unclear, Whole};
    let change = |entry: &Value, name: &str, value: Value| {
        let mut entry = entry.clone();
        entry[name] = value;
        entry
    };
    let house = House::of(Maker::of(Api::Sora)).await;
    let (plan, now) = (house.plan(&json!({"prompt": "p"})), house.now);
    let entry = json!({"id": "video_1", "model": house.maker.model, "created_at": now, "seconds": "4",
        "size": "720x1280", "prompt": "p", "remixed_from_video_id": null});
    for (name, value, expected) in [
        ("prompt", json!(" p\n"), Whole),
        ("prompt", json!("P."), Otherwise),
        ("prompt", json!(null), Outside),
        ("model", json!(format!("{}-2025-10-06", house.maker.model)), Whole),
        ("model", json!("sora-two"), Otherwise),
        ("model", json!(null), Unclear),
        ("seconds", json!(4), Whole),
        ("seconds", json!(8), Another),
        ("seconds", json!(null), Unclear),
        ("seconds", json!("about four"), Unclear),
        ("size", json!("720*1280"), Whole),
        ("size", json!("1280x720"), Another),
        ("size", json!("portrait"), Unclear),
        ("created_at", json!(now.to_string()), Whole),
        ("created_at", json!(now - 3_600), Another),
        ("created_at", json!(null), Unclear),
        ("created_at", json!(now * 1_000), Unclear),
        ("created_at", json!("2025-11-15T10:00:00Z"), Unclear),
        ("remixed_from_video_id", json!("video_0"), Another),
        ("id", json!(null), Unclear),
    ] {
        let (read, _) =
            page(&house, &plan, None, &json!({"data": [change(&entry, name, value.clone())], "has_more": false}));
        let expected: Vec<Likeness> = Some(expected).filter(|one| *one != Another).into_iter().collect();
        assert_eq!(read, expected, "{name} {value}");
    }
    let house = House::of(Maker::of(Api::MiniMaxV2)).await;
    let plan = house.plan(&house.maker.plain("p"));
    let entry = json!({"id": "1", "created_at": now, "resolution": "768P", "duration": plan.body["duration"],
        "ratio": plan.body["ratio"]});
    for (name, value, expected) in [
        ("resolution", json!("768p"), Outside),
        ("resolution", json!("2K"), Another),
        ("resolution", json!(null), Unclear),
        ("duration", json!(plan.body["duration"].to_string()), Outside),
        ("duration", json!(14), Another),
        ("duration", json!(null), Unclear),
        ("ratio", json!(null), Outside),
        ("created_at", json!(null), Unclear),
        ("created_at", json!(now + 3_600), Another),
    ] {
        let (read, _) = page(&house, &plan, None, &json!({"tasks": [change(&entry, name, value.clone())]}));
        let expected: Vec<Likeness> = Some(expected).filter(|one| *one != Another).into_iter().collect();
        assert_eq!(read, expected, "{name} {value}");
    }
    let house = House::of(Maker::of(Api::Ark)).await;
    let plan = house.plan(&house.maker.plain("p"));
    for (named, expected) in [(json!(null), vec![Unclear]), (json!(""), vec![Unclear]), (json!("task_9"), vec![])] {
        let entry = json!({"id": "cgt-1", "created_at": now, "safety_identifier": named});
        assert_eq!(page(&house, &plan, None, &json!({"items": [entry]})).0, expected, "{named}");
    }
}

/// A maker may give fewer entries than were asked for: only an empty page, one that is too old, or
/// its own word ends a list.
#[tokio::test]
async fn a_short_page_is_no_end() {
    for (api, name) in [(Api::Ark, "items"), (Api::MiniMaxV2, "tasks"), (Api::Sora, "data")] {
        let house = House::of(Maker::of(api)).await;
        let plan = house.plan(&house.maker.plain("p"));
        let entry = |id: &str, ago: i64| json!({"id": id, "created_at": house.now - ago});
        let second = if api == Api::Sora { "b" } else { "2" };
        for (list, next) in [
            (json!([entry("a", 0), entry("b", 1)]), Some(second)),
            (json!([entry("a", 0), entry("b", 3_600)]), Some(second)),
            (json!([entry("a", 0), {"id": "b"}]), Some(second)),
            (json!([entry("a", 3_600), entry("b", 3_601)]), None),
            (json!([]), None),
        ] {
            // The total is that of the page here.
            let body = json!({name: list, "total": list.as_array().map(Vec::len)});
            assert_eq!(page(&house, &plan, None, &body).1.as_deref(), next, "{api:?} {list}");
        }
        if api == Api::Sora {
            for (more, next) in [(json!(true), Some("a")), (json!(null), Some("a")), (json!(false), None)] {
                let body = json!({"data": [entry("a", 0)], "has_more": more});
                assert_eq!(page(&house, &plan, None, &body).1.as_deref(), next, "{more}");
            }
        }
    }
}
