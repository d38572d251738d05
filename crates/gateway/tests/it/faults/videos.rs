//! Faults around video tasks: creations without an answer, workers that die or come too late,
//! states that go back.

use super::FUNDED;
use crate::house::{House, Plan, error_of};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_gateway::call::task::look;
use tollgate_store::{Close, Counters, Ending, Leased, TaskEnd, TaskFailure, TaskId, TaskState, UsageFacts};

/// Five seconds of kling-v3 at 0.0834 USD.
pub(super) const PRICE: i64 = 417_000_000;

pub(super) async fn house(tasks: &'static str) -> House {
    House::with(Plan { videos: true, tasks, ..Plan::default() }).await
}

pub(super) async fn begin(house: &House, prompt: &str) -> TaskId {
    begin_with(house, "kling-v3", prompt).await
}

pub(super) async fn begin_with(house: &House, model: &str, prompt: &str) -> TaskId {
    let body = json!({ "model": model, "prompt": prompt });
    let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body).send().await;
    let reply = reply.expect("a reply");
    assert_eq!(reply.status(), 200);
    let task: Value = reply.json().await.expect("JSON");
    task["id"].as_str().expect("an id").parse().expect("a task id")
}

pub(super) async fn state(house: &House, id: TaskId) -> TaskState {
    house.running().app.store.task(house.account, id).await.expect("read").expect("the task").state
}

/// As its owner sees it, once it has ended.
pub(super) async fn shown(house: &House, id: TaskId) -> Value {
    for _ in 0..12_000 {
        if state(house, id).await.is_final() {
            let reply = house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
            return reply.json().await.expect("JSON");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} does not end");
}

/// The money of a task that has ended: one row, this much.
async fn cost(house: &House, id: TaskId, charge: i64) {
    let row = house.row(id.call()).await;
    assert_eq!((row.hold.nano(), row.charge.nano(), row.write_off.nano()), (PRICE, charge, 0), "{row:?}");
    assert_eq!(house.available().await, FUNDED - charge);
    assert_eq!(super::rows(house).await.len(), 1);
    assert_eq!(house.sim.videos(), 1, "created once");
}

/// While they are held, no task at the simulator goes on.
pub(super) async fn hold_at_the_maker(house: &House, hold: bool) {
    let url = format!("http://{}/_sim/videos?hold={hold}", house.sim.addr());
    assert_eq!(house.http.put(url).send().await.expect("a reply").status(), 200);
}

/// Takes the task for so long, as another replica would; waits while the poller has it. Its maker
/// has to be held, or the poller may end it meanwhile.
async fn take(house: &House, id: TaskId, lease_ms: i64) -> Leased {
    for _ in 0..60_000 {
        if let Some(leased) = house.running().app.store.take_task(id, lease_ms).await.expect("asked") {
            return leased;
        }
        assert!(!state(house, id).await.is_final(), "{id} has ended: nobody can take it any more");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{id} is never free");
}

pub async fn a_creation_without_an_answer() {
    found_again().await;
    never_found().await;
}

/// A provider that keeps our id is asked for it.
async fn found_again() {
    let house = house("").await;
    let id = begin(&house, "[[sim:lost]]").await;
    assert_eq!(shown(&house, id).await["status"], "completed");
    cost(&house, id, PRICE).await;
}

/// One that does not: the fate is unknown and the money held, until the operator takes the loss.
async fn never_found() {
    let house = house("patience = \"1s\"\nunknown_time = \"2s\"").await;
    let body = json!({ "model": "wan2.7-t2v", "prompt": "[[sim:lost]]" });
    let post = || house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).header("idempotency-key", "k");
    let (status, error) = error_of(post().json(&body).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (504, Some("charge_state_unknown")));
    let message = error["message"].as_str().expect("a message");
    let at = message.find("task_").expect("the task's name");
    let id: TaskId = message[at..at + 31].parse().expect("a task id");
    assert_eq!(state(&house, id).await, TaskState::Unknown);
    let held = house.balance().await.paid_held.nano();
    assert!(held > 0 && house.available().await == FUNDED - held, "the hold stays open");
    let seen: Value = house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!((&seen["status"], &seen["error"]), (&json!("in_progress"), &Value::Null));
    let again: Value = post().json(&body).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(again["id"], json!(id.to_string()), "the same key is the same task: {again}");
    let task = shown(&house, id).await;
    assert_eq!((&task["status"], &task["error"]["code"]), (&json!("failed"), &json!("task_unknown")));
    let row = house.row(id.call()).await;
    assert_eq!((row.hold.nano(), row.charge.nano(), row.write_off.nano()), (held, 0, held), "{row:?}");
    assert_eq!((house.available().await, house.sim.videos()), (FUNDED, 1), "never sent again");
    let estimated = house.running().app.store.gauges().estimated;
    assert_eq!(estimated.get("dashscope"), None, "nobody pays by our own count");
}

pub async fn a_task_fails() {
    let house = house("").await;
    let id = begin(&house, "[[sim:fail text=no_good]]").await;
    let task = shown(&house, id).await;
    assert_eq!((&task["status"], &task["error"]["message"]), (&json!("failed"), &json!("no good")));
    cost(&house, id, 0).await;
}

pub async fn a_task_is_completed() {
    let house = house("").await;
    let id = begin(&house, "p").await;
    let task = shown(&house, id).await;
    assert_eq!((&task["status"], &task["progress"]), (&json!("completed"), &json!(100)));
    assert!(task["metadata"]["url"].as_str().is_some_and(|url| url.contains("Expires=")), "{task}");
    cost(&house, id, PRICE).await;
}

pub async fn the_link_has_expired() {
    let house = house("").await;
    let id = begin_with(&house, "wan2.7-t2v", "[[sim:dead_link]]").await;
    let task = shown(&house, id).await;
    let link = task["metadata"]["url"].as_str().expect("a link");
    assert!(link.starts_with(&house.url("/v1/videos/")), "a link that has ended is not handed out: {task}");
    let polls = house.sim.received().len();
    // The file of a new one might be yet to come.
    house.clock.set(61_000);
    let (status, error) = error_of(house.get(&format!("/v1/videos/{id}/content")).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (404, Some("not_found")), "{error}");
    house.clock.set(0);
    assert!(house.sim.received().len() > polls, "a fresh one was asked for");
    cost(&house, id, PRICE).await;
}

pub async fn the_poller_dies_before_the_commit() {
    let house = house("").await;
    hold_at_the_maker(&house, true).await;
    let id = begin(&house, "[[sim:ok queue=3 run=3]]").await;
    // Taken, asked about, and never heard of again.
    let dead = take(&house, id, 300).await;
    hold_at_the_maker(&house, false).await;
    assert_eq!(dead.task.id, id);
    assert_eq!(shown(&house, id).await["status"], "completed", "whoever comes next finds it out again");
    cost(&house, id, PRICE).await;
}

pub async fn two_replicas_poll_one_task() {
    let house = house("").await;
    let app = &house.running().app;
    // The house's own poller is quick: it is tried until two others have a task at the same time.
    for begun in 1..=20 {
        let id = begin(&house, "[[sim:ok queue=0 run=0]]").await;
        let first = app.store.take_task(id, 1).await.expect("asked");
        tokio::time::sleep(Duration::from_millis(3)).await;
        let second = app.store.take_task(id, 60_000).await.expect("asked");
        let (Some(first), Some(second)) = (first, second) else {
            shown(&house, id).await;
            continue;
        };
        let (one, other) = tokio::join!(look(&app.till, &app.video, &first), look(&app.till, &app.video, &second));
        one.expect("looked");
        other.expect("looked");
        assert_eq!(shown(&house, id).await["status"], "completed", "by the one that has the fence");
        assert_eq!(metric(&house, "tollgate_tasks_stale_total"), 1, "the other changed nothing");
        let row = house.row(id.call()).await;
        assert_eq!((row.hold.nano(), row.charge.nano()), (PRICE, PRICE));
        assert_eq!(super::rows(&house).await.len(), begun);
        assert_eq!(house.available().await, FUNDED - PRICE * i64::try_from(begun).expect("few"));
        assert_eq!(house.sim.videos(), begun);
        return;
    }
    panic!("two never had a task at the same time");
}

/// A counter without labels.
fn metric(house: &House, name: &str) -> u64 {
    let page = tollgate_gateway::endpoints::metrics::page(&house.running().app);
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("{name}: {page}"));
    line.parse().expect("a number")
}

pub async fn a_replica_writes_after_its_lease() {
    let house = house("").await;
    hold_at_the_maker(&house, true).await;
    let id = begin(&house, "[[sim:ok queue=1 run=0]]").await;
    let late = take(&house, id, 1).await;
    hold_at_the_maker(&house, false).await;
    assert_eq!(shown(&house, id).await["status"], "completed");
    cost(&house, id, PRICE).await;
    look(&house.running().app.till, &house.running().app.video, &late).await.expect("it may ask, and changes nothing");
    cost(&house, id, PRICE).await;
}

pub async fn success_after_we_said_failed() {
    let house = house("").await;
    hold_at_the_maker(&house, true).await;
    let id = begin(&house, "p").await;
    let store = &house.running().app.store;
    let late = take(&house, id, 1).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let first = take(&house, id, 60_000).await;
    assert!(!first.task.state.is_final(), "nobody else has ended it");
    assert!(store.finish_task(failed(&first)).await.expect("ended").is_some());
    hold_at_the_maker(&house, false).await;
    // Queued, running, and then completed.
    for _ in 0..3 {
        look(&house.running().app.till, &house.running().app.video, &late).await.expect("looked");
    }
    assert!(metric(&house, "tollgate_late_success_total") > 0, "the operator is warned");
    let task = shown(&house, id).await;
    assert_eq!((&task["status"], &task["error"]["code"]), (&json!("failed"), &json!("given_up")));
    cost(&house, id, 0).await;
}

pub async fn the_state_goes_back() {
    let house = house("").await;
    hold_at_the_maker(&house, true).await;
    let id = begin(&house, "[[sim:flap]]").await;
    let late = take(&house, id, 1).await;
    hold_at_the_maker(&house, false).await;
    assert_eq!(shown(&house, id).await["status"], "completed");
    let asked = house.sim.received().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
    assert_eq!(house.sim.received().len(), asked, "nobody asks again");
    // One who still believes to have it does, and hears that it is running.
    look(&house.running().app.till, &house.running().app.video, &late).await.expect("looked");
    assert!(house.sim.received().len() > asked && metric(&house, "tollgate_tasks_stale_total") > 0);
    assert_eq!(metric(&house, "tollgate_late_success_total"), 0, "it did not succeed again");
    assert_eq!(shown(&house, id).await["status"], "completed", "the end it had");
    cost(&house, id, PRICE).await;
}

fn failed(leased: &Leased) -> TaskEnd {
    let task = &leased.task;
    let row = UsageFacts {
        key: task.key,
        at: task.created_at,
        ended_at: task.created_at,
        endpoint: "/v1/videos".into(),
        model: task.model.clone(),
        provider: task.provider.clone(),
        upstream_model: task.upstream_model.clone(),
        status: 200,
        counters: Counters::default(),
        estimated: false,
        raw_usage: None,
        attempts: 1,
        first_byte_ms: None,
        tier: None,
        dropped: None,
        cost: None,
        price: None,
    };
    let close = Close {
        call: task.id.call(),
        account: task.account,
        ending: Ending::UpstreamFault,
        reason: "given_up".into(),
        charge: tollgate_catalog::Money::ZERO,
        most: None,
        row,
        reply: None,
    };
    let failure = TaskFailure { code: "given_up".into(), message: "It was given up.".into() };
    TaskEnd {
        fence: leased.fence,
        state: TaskState::Failed,
        result: None,
        failure: Some(failure),
        forgiven: false,
        webhook_url: None,
        close,
    }
}
