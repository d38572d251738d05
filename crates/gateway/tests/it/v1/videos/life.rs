//! Tasks whose surroundings fail: a store, a provider, a reader or a gateway that is not there at
//! the wrong moment.

use super::money::{MAKERS, code, create, ended, request, task};
use crate::engine::Engine;
use crate::house::{House, Plan};
use reqwest::Response;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinSet;
use tollgate_gateway::workers::reload::reload;
use tollgate_store::testing::run_sql;
use tollgate_store::{TaskId, TaskState};

/// Sends a creation, does something while the provider has it, and takes the answer.
async fn while_sent(house: &House, prompt: &str, meanwhile: impl AsyncFnOnce()) -> Response {
    let before = house.sim.videos();
    let body = request("kling-v3", prompt);
    let asked = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body);
    let mut sending = JoinSet::new();
    sending.spawn(asked.send());
    while house.sim.videos() == before {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    meanwhile().await;
    sending.join_next().await.expect("one").expect("joined").expect("a reply")
}

/// 504 with the task's name, and a word that keeps SDKs from sending it again.
async fn must_not_be_repeated(reply: Response) -> TaskId {
    let status = reply.status().as_u16();
    let retry = reply.headers().get("x-should-retry").cloned();
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!((status, body["error"]["code"].as_str()), (504, Some("charge_state_unknown")), "{body}");
    assert_eq!(retry.expect("a hint for SDKs"), "false");
    let message = body["error"]["message"].as_str().expect("a message");
    let at = message.find("task_").expect("the task's name");
    message[at..at + 31].parse().expect("a task id")
}

/// The database fails between the provider's word and ours: SDKs repeat a 503 by themselves, which
/// would be a second video.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_after_a_creation_left_does_not_invite_a_second_one() {
    let [_, postgres] = Engine::both().await;
    let url = postgres.url.clone();
    let plan = Plan { videos: true, usd: "1000", database: url.clone(), patience: "5s", ..Plan::default() };
    let mut house = House::with(plan).await;
    for (count, prompt, breaks, mends) in [
        // The provider has it and its name is stored; then it cannot be read.
        (1, "[[sim:slow ms=700]]", "RENAME COLUMN plan TO away", "RENAME COLUMN away TO plan"),
        // No answer in time, and that its fate is unknown cannot be written.
        (2, "[[sim:slow ms=15000]]", "ADD CONSTRAINT away CHECK (state <> 4)", "DROP CONSTRAINT away"),
    ] {
        let change = async |sql: &str| run_sql(&url, &format!("ALTER TABLE task {sql}")).await.expect("changed");
        let reply = while_sent(&house, prompt, async || change(breaks).await).await;
        let id = must_not_be_repeated(reply).await;
        change(mends).await;
        // What a gateway had in its hands is due when it starts again.
        house.restart().await;
        let (task, row) = ended(&house, id).await;
        assert_eq!((task.state, row.charge.nano()), (TaskState::Completed, 417_000_000), "{task:?}");
        assert_eq!(house.sim.videos(), count, "never sent again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_after_a_creation_left_does_not_invite_a_second_one() {
    let mut house = super::money::house("").await;
    let trap = async || house.clock.trap_in("call/task/submit.rs");
    let reply = while_sent(&house, "[[sim:slow ms=400]]", trap).await;
    let id = must_not_be_repeated(reply).await;
    house.restart().await;
    assert_eq!(ended(&house, id).await.0.state, TaskState::Completed);
    assert_eq!(house.sim.videos(), 1);
}

/// Late, and its first success has no link yet: it has the time for one that any other task has.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_task_is_given_time_for_its_link() {
    let house = super::money::house("patience = \"400ms\"").await;
    for (model, _) in MAKERS.into_iter().filter(|(_, provider)| *provider != "openai") {
        let id = create(&house, model, "[[sim:no_url n=1 queue=14 run=0]]").await.expect("taken");
        while task(&house, id).await.state != TaskState::Unknown {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (task, row) = ended(&house, id).await;
        assert_eq!((task.state, code(&task)), (TaskState::Completed, ""), "{model}: {task:?}");
        assert!(row.charge.nano() > 0 && task.made_since.is_some(), "{model}: {row:?}");
    }
}

/// Late, and its copy does not work the first time: it is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_task_is_given_time_for_its_copy() {
    let config = "[video]\ncopy_to = \"copies\"\n".to_owned();
    let plan = Plan { videos: true, usd: "1000", config, tasks: "patience = \"3s\"", ..Plan::default() };
    let house = House::with(plan).await;
    let folder = house.dir.join("copies");
    std::fs::remove_dir(&folder).expect("removed");
    std::fs::write(&folder, "in the way").expect("written");
    // The file is made once the clock has gone on beyond all patience.
    house.sim.hold_videos(true);
    let id = create(&house, "wan2.7-t2v", "[[sim:ok queue=0 run=0]]").await.expect("taken");
    house.clock.pass(3_600_000);
    while task(&house, id).await.state != TaskState::Unknown {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    house.sim.hold_videos(false);
    while task(&house, id).await.made_since.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    std::fs::remove_file(&folder).expect("removed");
    std::fs::create_dir(&folder).expect("made");
    assert_eq!(ended(&house, id).await.0.state, TaskState::Completed);
    assert!(folder.join(format!("{id}.mp4")).exists(), "there is a copy after all");
    house.clock.pass(0);
}

/// The provider is away for longer than its "no such task" must be heard, and does not know its
/// newest tasks when it is back. It has said so once by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_was_away_is_not_believed_at_its_first_word() {
    let house = super::money::house("absent_time = \"500ms\"").await;
    let id = create(&house, "kling-v3", "[[sim:lost away=12 blind=1 queue=0 run=0]]").await.expect("taken");
    let mut unknown_for = 0;
    while task(&house, id).await.absent_since.is_none() {
        let known = task(&house, id).await;
        assert!(!known.state.is_final(), "it was decided at the first word: {known:?}");
        unknown_for = known.unknown_since.map_or(0, |since| house.running().app.world.now_ms() - since);
        tokio::time::sleep(Duration::from_millis(1)).await;
        if known.upstream_id.is_some() {
            break;
        }
    }
    let (task, row) = ended(&house, id).await;
    assert_eq!((task.state, row.charge.nano()), (TaskState::Completed, 417_000_000), "{task:?}");
    assert!(unknown_for >= 500, "it was unknown for long enough for the test: {unknown_for} ms");
    assert_eq!((task.absent_since, house.sim.videos()), (None, 1), "what it said later counts");
}

/// A house in which nobody looks at tasks but who reads them.
async fn read_only(tasks: &'static str) -> House {
    let house = House::with(Plan { videos: true, usd: "1000", tasks, ..Plan::default() }).await;
    let file = house.dir.join("tollgate.toml");
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, text.replace("poll_every = \"40ms\"", "poll_every = \"1h\"")).expect("written");
    reload(&house.running().app, &house.source).await.expect("reloaded");
    house
}

/// Who leaves while the provider is being asked takes nothing along: the look goes on, and ends the
/// task.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_leaves_does_not_keep_the_task_from_others() {
    let house = read_only("refresh_after = \"10ms\"").await;
    let id = create(&house, "kling-v3", "[[sim:poll_slow ms=300 queue=0 run=0]]").await.expect("taken");
    tokio::time::sleep(Duration::from_millis(20)).await;
    house.leave(house.get(&format!("/v1/videos/{id}"))).await;
    assert!(!task(&house, id).await.state.is_final(), "the answer is still on its way");
    // Far less than a lease.
    let ended = tokio::time::timeout(Duration::from_secs(20), ended(&house, id)).await.expect("in time");
    assert_eq!(ended.0.state, TaskState::Completed);
    assert_eq!(house.sim.asked()["kling"].all, 1, "asked once");
}

/// A provider that says when to come back is not asked before, however often the task is read; nor
/// is one that failed, before its next look is due.
#[tokio::test(flavor = "multi_thread")]
async fn reading_a_task_does_not_press_a_provider_in_trouble() {
    for prompt in ["[[sim:poll_limited n=1]]", "[[sim:poll_broken n=1]]"] {
        // 429 comes with `Retry-After: 7`; the next look is due in an hour anyway.
        let mut house = read_only("refresh_after = \"10ms\"").await;
        let id = create(&house, "sora-2", prompt).await.expect("taken");
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let reply = house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply");
            let task: Value = reply.json().await.expect("JSON");
            assert_eq!(task["status"], "queued", "what is known is shown: {task}");
        }
        assert_eq!(house.sim.asked()["openai"].all, 1, "{prompt}");
        // Its next look is too far away to be waited for.
        house.checked = true;
        house.running.take().expect("running").stop().await;
    }
}

/// A task that takes longer than anybody waits for stays for its reader where it was, instead of
/// falling back to the beginning.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_task_is_shown_as_it_last_stood() {
    let house = super::money::house("patience = \"400ms\"\nunknown_time = \"8s\"\nrefresh_after = \"1h\"").await;
    for (model, prompt, status, progress, old, end) in [
        ("sora-2", "[[sim:ok queue=0 run=0]]", "in_progress", 50, "IN_PROGRESS 50%", TaskState::Completed),
        ("kling-v3", "[[sim:ok queue=1000000]]", "queued", 0, "QUEUED 20%", TaskState::Failed),
    ] {
        // Held, all of them run.
        house.sim.hold_videos(status == "in_progress");
        let id = create(&house, model, prompt).await.expect("taken");
        while task(&house, id).await.state != TaskState::Unknown {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let read = async |path: String| -> Value {
            house.get(&path).send().await.expect("a reply").json().await.expect("JSON")
        };
        let shown = read(format!("/v1/videos/{id}")).await;
        assert_eq!((&shown["status"], &shown["progress"]), (&json!(status), &json!(progress)), "{shown}");
        let legacy = &read(format!("/v1/video/generations/{id}")).await["data"];
        let word = |name: &str| legacy[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(format!("{} {}", word("status"), word("progress")), old);
        assert_eq!(task(&house, id).await.state, TaskState::Unknown, "still");
        house.sim.hold_videos(false);
        assert_eq!(ended(&house, id).await.0.state, end);
    }
}
