//! Creations whose answer was lost, at makers that keep no id of ours and have a list: one is taken
//! from the list when it can be no other, and nobody is charged for what may be somebody else's.

use super::money::{code, create, ended, house, request, sent, task};
use super::pace::hold;
use super::scenarios::price;
use crate::house::House;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_gateway::workers::reload::reload;
use tollgate_store::{NewTask, SentTo, TaskId, TaskNaming, TaskState};

/// What is not certain is given up soon.
const TASKS: &str = "patience = \"2s\"\nunknown_time = \"1s\"\nabsent_time = \"1h\"";
/// What can be found is looked for as long as this machine takes.
const PATIENT: &str = "patience = \"1h\"\nunknown_time = \"1h\"\nabsent_time = \"1h\"";
const LOST: &str = "[[sim:lost queue=0 run=0]]";

/// The operator says that nobody else makes videos with the account.
async fn exclusive(house: &House) {
    let file = house.dir.join("tollgate.toml");
    let config = std::fs::read_to_string(&file).expect("read");
    let head = "[provider.minimax]\n";
    std::fs::write(&file, config.replace(head, &format!("{head}exclusive = true\n"))).expect("written");
    reload(&house.running().app, &house.source).await.expect("reloaded");
}

async fn is_found(house: &House, id: TaskId) {
    let (task, row) = ended(house, id).await;
    assert_eq!(task.state, TaskState::Completed, "{task:?}");
    assert_eq!((row.charge.nano(), row.write_off.nano()), (price(&task.model), 0), "{row:?}");
}

async fn stays_unknown(house: &House, id: TaskId) {
    let (task, row) = ended(house, id).await;
    assert_eq!((task.state, code(&task)), (TaskState::Failed, "task_unknown"), "{task:?}");
    assert!(row.charge.is_zero() && row.write_off.nano() > 0, "the customer pays nothing: {row:?}");
    assert_eq!(task.upstream_id, None, "nothing was taken for it");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lost_is_found_and_charged() {
    let house = house(PATIENT).await;
    exclusive(&house).await;
    for model in ["sora-2", "MiniMax-H3"] {
        // Others of the same kind and time, which have their names.
        for _ in 0..3 {
            create(&house, model, "[[sim:ok queue=5]]").await.expect("taken");
        }
        let before = house.available().await;
        let id = sent(&house, model, LOST).await;
        is_found(&house, id).await;
        assert!(house.available().await <= before);
    }
    assert_eq!(house.sim.videos(), 8, "none was sent again");
    house.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_alike_stay_unknown_and_free() {
    let house = house(TASKS).await;
    exclusive(&house).await;
    for (model, asked_at) in [("sora-2", "/v1/videos"), ("MiniMax-H3", "/video/minimax/")] {
        // No list is read before both are made: the first of them alone would be found.
        house.sim.shut(asked_at);
        let (first, second) = tokio::join!(sent(&house, model, LOST), sent(&house, model, LOST));
        house.sim.open();
        stays_unknown(&house, first).await;
        stays_unknown(&house, second).await;
    }
    assert_eq!((house.sim.videos(), house.available().await), (4, 1_000_000_000_000));
}

/// What the lists tell apart is found, however many are lost at once.
#[tokio::test(flavor = "multi_thread")]
async fn what_differs_is_found() {
    let house = house(PATIENT).await;
    exclusive(&house).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(sent(&house, "sora-2", &format!("{number} {LOST}")).await);
    }
    for id in ids {
        is_found(&house, id).await;
    }
    for seconds in [5, 6] {
        let mut body = request("MiniMax-H3", LOST);
        body["duration"] = json!(seconds);
        let reply = super::money::post(&house, &body).await;
        let shown: Value = reply.json().await.expect("JSON");
        let id: TaskId = shown["id"].as_str().expect("an id").parse().expect("a task id");
        assert_eq!(ended(&house, id).await.0.state, TaskState::Completed);
    }
}

/// Somebody else uses the account: where the list tells no prompts, what looks alike may be theirs.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_somebody_elses_is_not_taken() {
    let mut house = house(TASKS).await;
    stays_unknown(&house, sent(&house, "MiniMax-H3", LOST).await).await;
    // The same prompt at the same time, past us.
    let body = json!({ "model": "sora-2", "prompt": LOST.replace("lost", "ok"), "seconds": "4", "size": "720x1280" });
    let url = format!("{}/videos", house.sim.base_url());
    let other = house.http.post(url).bearer_auth("sim-key").json(&body).send().await.expect("a reply");
    assert_eq!(other.status(), 200);
    is_found(&house, sent(&house, "sora-2", LOST).await).await;
    let lost = LOST.replace("lost", "page");
    let body = json!({ "model": "sora-2", "prompt": lost, "seconds": "4", "size": "720x1280" });
    let url = format!("{}/videos", house.sim.base_url());
    house.http.post(url).bearer_auth("sim-key").json(&body).send().await.expect("a page");
    stays_unknown(&house, sent(&house, "sora-2", &lost).await).await;
    // Two of the five videos were made past us, which a house does not expect.
    let report = house.running().app.store.verify().await.expect("verified");
    assert_eq!((report.breaches.len(), house.sim.videos()), (0, 5));
    house.checked = true;
    house.running.take().expect("running").stop().await;
}

/// A remix is found by its source and its prompt.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_remix_is_found() {
    let house = house(PATIENT).await;
    let source = create(&house, "sora-2", "[[sim:ok queue=0 run=0]]").await.expect("taken");
    is_found(&house, source).await;
    let reply = house.http.post(house.url(&format!("/v1/videos/{source}/remix"))).bearer_auth(&house.key);
    let reply = reply.json(&json!({ "prompt": LOST })).send().await.expect("a reply");
    let shown: Value = reply.json().await.expect("JSON");
    let id: TaskId = shown["id"].as_str().unwrap_or_else(|| panic!("{shown}")).parse().expect("a task id");
    is_found(&house, id).await;
    house.quiet().await;
    assert_eq!((house.sim.videos(), task(&house, id).await.state), (2, TaskState::Completed));
}

/// The outcomes of questions about tasks, as the operator sees them.
async fn outcomes(house: &House) -> String {
    let text = house.get("/metrics").send().await.expect("a reply").text().await.expect("text");
    text.lines().filter(|line| line.starts_with("tollgate_task_polls_total")).collect::<Vec<_>>().join("\n")
}

/// Somebody begins a task of the same words while the provider's list is on its way, and the lost
/// one was never made. Our own tasks are read after the list, so that the other's video is known;
/// read before it, it would be nobody's and taken for the lost one.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_begun_while_the_list_is_read_is_not_mistaken_for_the_lost_one() {
    let house = house("patience = \"5m\"\nabsent_time = \"50ms\"").await;
    let prompt = "[[sim:vanished_once queue=0 run=0]]";
    house.sim.shut("/v1/videos");
    let lost = sent(&house, "sora-2", prompt).await;
    while house.sim.waited() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (_, stranger) = house.stranger("10").await;
    let body = request("sora-2", prompt);
    let reply =
        house.http.post(house.url("/v1/videos")).bearer_auth(&stranger).json(&body).send().await.expect("a reply");
    assert_eq!((reply.status().as_u16(), house.sim.videos()), (200, 1), "only this one is made");
    house.sim.open();
    let (task, row) = ended(&house, lost).await;
    assert_eq!((code(&task), task.upstream_id.as_deref()), ("task_not_created", None), "{task:?}");
    assert!(row.charge.is_zero() && row.write_off.is_zero(), "{row:?}");
    let counted = outcomes(&house).await;
    assert!(!counted.contains("\"found\"") && !counted.contains("\"name_taken\""), "it was not even tried: {counted}");
    house.quiet().await;
}

/// A video that is nobody's and tells other words may be ours, written in the provider's own way:
/// nobody says then that ours was never made.
#[tokio::test(flavor = "multi_thread")]
async fn a_doubtful_entry_keeps_a_task_from_being_called_never_made() {
    let house = house("patience = \"2s\"\nunknown_time = \"1s\"\nabsent_time = \"50ms\"").await;
    let never = sent(&house, "sora-2", "1 [[sim:vanished_once]]").await;
    let (task, row) = ended(&house, never).await;
    assert_eq!((code(&task), row.write_off.nano()), ("task_not_created", 0), "an empty list is a clear one: {task:?}");
    let body = json!({ "model": "sora-2", "prompt": "other words", "seconds": "4", "size": "720x1280" });
    let url = format!("{}/videos", house.sim.base_url());
    let past = house.http.post(url).bearer_auth("sim-key").json(&body).send().await.expect("a reply");
    assert_eq!(past.status(), 200);
    stays_unknown(&house, sent(&house, "sora-2", "2 [[sim:vanished_once]]").await).await;
    let counted = outcomes(&house).await;
    assert!(counted.contains("{provider=\"openai\",outcome=\"unsure\"}"), "{counted}");
}

/// Where the ids of a maker count up: the one it gives next, and the name of another of our tasks
/// from now on.
async fn name_the_next(house: &House, provider: &str) -> (TaskId, String) {
    let url = format!("{}/v1/videos/text2video", house.sim.video_url("kling"));
    let body = json!({ "model_name": "kling-v3", "prompt": "past us" });
    let reply = house.http.post(url).bearer_auth("somebody").json(&body).send().await.expect("a reply");
    let reply: Value = reply.json().await.expect("JSON");
    let past = reply["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{reply}"));
    let number: u64 = past.strip_prefix("8479").expect("its beginning").parse::<u64>().expect("a number") + 1;
    let next = match provider {
        "kling" => format!("8479{number:014}"),
        "minimax" => format!("1768437{number:011}"),
        _ => format!("video_68d7512d07848190b3e4{number:012x}"),
    };
    let app = &house.running().app;
    let new = NewTask { plan: "{}".to_owned(), webhook_url: None, lease_ms: 600_000 };
    let first = app.store.begin_task(hold(app, house).await, new).await.expect("begun");
    let provider = app.serving.load().providers[provider].clone();
    let to = SentTo {
        provider: provider.name.clone(),
        upstream_model: "a model".to_owned(),
        host: provider.base_url.place(),
        key: "another".to_owned(),
    };
    assert!(app.store.task_sending(first, to, 600_000).await.expect("written"));
    assert_eq!(app.store.task_accepted(first.id, next.clone(), 600_000).await.expect("written"), TaskNaming::Done);
    (first.id, next)
}

/// The provider names a task as another one of ours is named: nobody can say whose video that is,
/// so the second has none. It did take the task, so nobody says that it was never made either,
/// however often its list or its search shows nothing: that would be an end without the operator's
/// loss, and an invitation to send it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_task_has_is_not_taken() {
    for (model, provider) in [("kling-v3", "kling"), ("sora-2", "openai"), ("MiniMax-H3", "minimax")] {
        let mut house = house("patience = \"2s\"\nunknown_time = \"1s\"\nabsent_time = \"50ms\"").await;
        let app = house.running().app.clone();
        let (first, next) = name_the_next(&house, provider).await;
        let reply = super::money::post(&house, &request(model, "[[sim:ok queue=0 run=0]]")).await;
        let shown: Value = reply.json().await.expect("JSON");
        assert_eq!((&shown["status"], &shown["progress"]), (&json!("queued"), &json!(0)), "{model}: {shown}");
        let second: TaskId = shown["id"].as_str().expect("an id").parse().expect("a task id");
        stays_unknown(&house, second).await;
        let counted = outcomes(&house).await;
        let name_taken = format!("{{provider=\"{provider}\",outcome=\"name_taken\"}}");
        assert!(counted.contains(&name_taken), "{model}: the operator is warned: {counted}");
        let content = house.get(&format!("/v1/videos/{second}/content")).send().await.expect("a reply");
        assert_eq!(content.status(), 404, "{model}: the other's video is not shown");
        let task = app.store.webhook_task(first).await.expect("read").expect("the task");
        assert_eq!(task.upstream_id, Some(next), "{model}: the first keeps its name");
        let report = app.store.verify().await.expect("verified");
        assert_eq!(report.breaches, []);
        // The first stays open.
        house.checked = true;
        house.running.take().expect("running").stop().await;
    }
}
