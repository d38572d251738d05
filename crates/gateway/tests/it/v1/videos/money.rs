//! The money of video tasks, against every way a provider can behave: each task ends once, is
//! created at most once, costs what it made, and what was not made costs nothing.

use crate::house::{House, Plan, error_of};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_store::{Task, TaskId, TaskPage, TaskState, UsageRow};

/// A model of each of the nine ways to make videos, and the provider that does.
pub const MAKERS: [(&str, &str); 9] = [
    ("wan2.7-t2v", "dashscope"),
    ("seedance-2.5", "ark"),
    ("kling-v3", "kling"),
    ("kling-3.0-turbo", "kling"),
    ("kling-v3-omni", "kling"),
    ("MiniMax-Hailuo-2.3", "minimax"),
    ("MiniMax-H3", "minimax"),
    ("sora-2", "openai"),
    ("veo-3.1", "gemini"),
];

/// Providers that keep our id, or tell the prompt in their list: what was lost there is found.
pub const FINDS: [&str; 3] = ["ark", "kling", "openai"];

pub fn request(model: &str, prompt: &str) -> Value {
    let metadata = match model {
        "kling-v3-omni" => json!({ "aspect_ratio": "1:1" }),
        "MiniMax-H3" => json!({ "ratio": "1:1" }),
        _ => json!({}),
    };
    json!({ "model": model, "prompt": prompt, "metadata": metadata })
}

pub async fn house(tasks: &'static str) -> House {
    House::with(Plan { videos: true, usd: "1000", tasks, ..Plan::default() }).await
}

pub async fn post(house: &House, body: &Value) -> reqwest::Response {
    house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(body).send().await.expect("a reply")
}

/// Creates a task, or says why there is none.
pub async fn create(house: &House, model: &str, prompt: &str) -> Result<TaskId, (u16, Value)> {
    let reply = post(house, &request(model, prompt)).await;
    if reply.status() != 200 {
        return Err(error_of(reply).await);
    }
    let task: Value = reply.json().await.expect("JSON");
    assert_eq!(task["object"], "video", "{task}");
    assert_eq!(task["id"], task["task_id"]);
    Ok(task["id"].as_str().expect("an id").parse().expect("a task id"))
}

pub async fn task(house: &House, id: TaskId) -> Task {
    house.running().app.store.task(house.account, id).await.expect("read").expect("the task")
}

/// The task when it has ended, with its one usage row.
pub async fn ended(house: &House, id: TaskId) -> (Task, UsageRow) {
    for _ in 0..6_000 {
        let task = task(house, id).await;
        if task.state.is_final() {
            let row = house.row(id.call()).await;
            return (task, row);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} does not end: {:?}", task(house, id).await);
}

pub fn code(task: &Task) -> &str {
    task.failure.as_ref().map_or("", |failure| failure.code.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_end_is_paid_or_free_once() {
    let house = house("").await;
    let scenarios = [
        ("", TaskState::Completed),
        ("[[sim:ok queue=4 run=4]]", TaskState::Completed),
        ("[[sim:fail code=InvalidParameter text=bad_picture]]", TaskState::Failed),
        ("[[sim:moderation]]", TaskState::Failed),
        ("[[sim:cancelled]]", TaskState::Failed),
        ("[[sim:word n=3]]", TaskState::Completed),
        ("[[sim:poll_limited n=2]]", TaskState::Completed),
        ("[[sim:poll_broken n=2]]", TaskState::Completed),
        ("[[sim:poll_packed n=2]]", TaskState::Completed),
        ("[[sim:no_url n=2]]", TaskState::Completed),
        ("[[sim:file_error n=2]]", TaskState::Completed),
        ("[[sim:usage kind=string]]", TaskState::Completed),
        ("[[sim:usage kind=float]]", TaskState::Completed),
        ("[[sim:usage kind=none]]", TaskState::Completed),
        ("[[sim:dead_link]]", TaskState::Completed),
    ];
    let mut tasks = Vec::new();
    for (model, _) in MAKERS {
        for (n, (prompt, state)) in scenarios.into_iter().enumerate() {
            let id = create(&house, model, &format!("{n} {prompt}")).await;
            tasks.push((model, prompt, state, id.unwrap_or_else(|why| panic!("{model} {prompt}: {why:?}"))));
        }
    }
    let count = tasks.len();
    let mut spent = 0;
    for (model, prompt, state, id) in tasks {
        let (task, row) = ended(&house, id).await;
        assert_eq!(task.state, state, "{model} {prompt}: {task:?}");
        assert!(row.hold > Money::ZERO && row.charge <= row.hold, "{model} {prompt}: {row:?}");
        assert_eq!(row.charge.is_zero(), state == TaskState::Failed, "{model} {prompt}: {row:?}");
        assert_eq!(task.result.is_some(), state == TaskState::Completed, "success has a file");
        assert_eq!(task.failure.is_some(), state == TaskState::Failed, "{model} {prompt}");
        spent += row.charge.nano();
    }
    assert_eq!(house.sim.videos(), count, "one task at a provider for each of ours");
    assert_eq!(house.available().await, 1_000_000_000_000 - spent);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_refuses_leaves_nothing_behind() {
    let house = house("").await;
    for (model, _) in MAKERS {
        // What may have been begun must not be sent again by an SDK that retries on its own.
        for (prompt, expected) in [
            ("[[sim:refuse]]", (400, "invalid_request", Some("false"))),
            ("[[sim:limited]]", (429, "rate_limit_exceeded", None)),
            ("[[sim:broken_once]]", (502, "upstream_error", Some("false"))),
        ] {
            let reply = post(&house, &request(model, prompt)).await;
            let advice = reply.headers().get("x-should-retry").map(|value| value.to_str().expect("text").to_owned());
            let (status, error) = error_of(reply).await;
            let refusal = (status, error["code"].as_str().unwrap_or_default(), advice.as_deref());
            assert_eq!(refusal, expected, "{model} {prompt}: {error}");
            assert!(error["upstream_code"].as_str().is_some_and(|code| !code.is_empty()), "{model} {prompt}: {error}");
        }
    }
    house.quiet().await;
    assert_eq!(house.available().await, 1_000_000_000_000);
    assert_eq!(house.sim.videos(), 0);
    let page = TaskPage { after: None, limit: 100, oldest_first: true };
    assert!(house.running().app.store.tasks(house.account, page).await.expect("read").is_empty(), "no task was made");
    let rows = house.running().app.store.usage(Some(house.account), Default::default()).await.expect("read");
    assert_eq!(rows.len(), 3 * MAKERS.len());
    assert!(rows.iter().all(|row| row.charge.is_zero() && row.hold > Money::ZERO && row.provider.is_some()));
}

/// Sends a task whose creation may be answered with doubt; its name is returned in any case.
pub async fn sent(house: &House, model: &str, prompt: &str) -> TaskId {
    sent_to(house, &house.url("/v1/videos"), model, prompt).await
}

/// The same to any gateway of the house.
pub async fn sent_to(house: &House, url: &str, model: &str, prompt: &str) -> TaskId {
    let asked = house.http.post(url).bearer_auth(&house.key).json(&request(model, prompt));
    let reply = asked.send().await.expect("a reply");
    let status = reply.status().as_u16();
    let retry = reply.headers().get("x-should-retry").cloned();
    let body: Value = reply.json().await.expect("JSON");
    let text = match status {
        200 => {
            // Its poller may have found it by now.
            assert!(body["status"] != "in_progress" || body["progress"] != 0, "what is accepted is queued: {body}");
            body["id"].as_str().expect("an id").to_owned()
        }
        504 => {
            assert_eq!(body["error"]["code"], "charge_state_unknown");
            assert_eq!(retry.expect("a hint for SDKs"), "false", "a second one would be paid twice");
            let message = body["error"]["message"].as_str().expect("a message");
            let at = message.find("task_").expect("the task's name");
            message[at..at + 31].to_owned()
        }
        _ => panic!("{model} {prompt}: {status} {body}"),
    };
    text.parse().expect("a task id")
}

/// The reply is lost, late, a proxy's page, garbage or compressed, and the task was made.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_creation_is_found_or_forgiven_and_never_sent_again() {
    let house = house("patience = \"10m\"\nunknown_time = \"10m\"\nabsent_time = \"500ms\"").await;
    let mut tasks = Vec::new();
    for (model, provider) in MAKERS {
        for prompt in ["[[sim:lost]]", "[[sim:page]]", "[[sim:garbage]]", "[[sim:packed]]"] {
            tasks.push((model, provider, prompt, sent(&house, model, prompt).await));
        }
    }
    let count = tasks.len();
    let (found, others): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|(_, provider, ..)| FINDS.contains(provider));
    for (model, _, prompt, id) in found {
        let (task, row) = ended(&house, id).await;
        assert_eq!(task.state, TaskState::Completed, "{model} {prompt}: {task:?}");
        assert!(row.charge > Money::ZERO && row.write_off.is_zero());
    }
    // Nobody has patience any more.
    house.clock.pass(3_600_000);
    for (model, _, prompt, id) in others {
        let (task, row) = ended(&house, id).await;
        assert_eq!((task.state, code(&task)), (TaskState::Failed, "task_unknown"), "{model} {prompt}");
        assert_eq!(row.charge, Money::ZERO, "the customer pays nothing");
        assert!(row.write_off > Money::ZERO, "the operator may have to");
    }
    house.clock.pass(0);
    assert_eq!(house.sim.videos(), count, "each was made once");
}

#[tokio::test(flavor = "multi_thread")]
async fn success_without_a_link_is_no_success() {
    let house = house("patience = \"1s\"\nunknown_time = \"10m\"").await;
    // OpenAI has no links: the file is asked for by the name of the task.
    for (model, _) in MAKERS.into_iter().filter(|(_, provider)| *provider != "openai") {
        let id = create(&house, model, "[[sim:never_url]]").await.expect("taken");
        let (task, row) = ended(&house, id).await;
        assert_eq!((task.state, code(&task)), (TaskState::Failed, "result_missing"), "{model}");
        assert!(row.charge.is_zero() && row.write_off.is_zero());
    }
    assert_eq!(house.available().await, 1_000_000_000_000);
}

/// The maker made another length than was asked for: what it tells is paid, within what was held;
/// what is beyond is the operator's loss, in the ledger and counted, though the account could pay
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn another_length_than_was_asked_for() {
    let house = house("").await;
    for (model, second) in [("kling-v3", 83_400_000), ("kling-3.0-turbo", 112_000_000)] {
        for (reported, paid) in [(7, 7), (10, 10), (3, 3), (12, 10)] {
            let lost = house.running().app.store.gauges().write_off_total.nano();
            let mut body = request(model, &format!("[[sim:ok queue=0 run=0 reported={reported}]]"));
            body["duration"] = json!(10);
            let reply: Value = post(&house, &body).await.json().await.expect("JSON");
            let id: TaskId = reply["id"].as_str().unwrap_or_else(|| panic!("{reply}")).parse().expect("a task id");
            let (task, row) = ended(&house, id).await;
            assert_eq!((task.state, row.hold.nano()), (TaskState::Completed, 10 * second), "{model} {reported}");
            assert_eq!((row.charge.nano(), row.estimated), (paid * second, false), "{model} {reported}: {row:?}");
            let beyond = (reported - paid).max(0) * second;
            assert_eq!(row.write_off.nano(), beyond, "{model} {reported}: {row:?}");
            assert_eq!(house.running().app.store.gauges().write_off_total.nano(), lost + beyond, "{model} {reported}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_finds_its_task_again() {
    let house = house("").await;
    let send = async |key: &str, body: &Value, path: &str| {
        let reply = house.http.post(house.url(path)).bearer_auth(&house.key).header("idempotency-key", key);
        let reply = reply.json(body).send().await.expect("a reply");
        let replayed = reply.headers().contains_key("idempotency-replayed");
        (reply.status().as_u16(), replayed, reply.json::<Value>().await.expect("JSON"))
    };
    let body = request("kling-v3", "[[sim:fail]]");
    let (_, first_time, first) = send("a", &body, "/v1/videos").await;
    let (status, replayed, again) = send("a", &body, "/v1/video/generations").await;
    assert_eq!((status, first_time, replayed), (200, false, true));
    assert_eq!(first["id"], again["id"]);
    let id: TaskId = first["id"].as_str().expect("an id").parse().expect("a task id");
    assert_eq!(ended(&house, id).await.0.state, TaskState::Failed);
    let (status, replayed, again) = send("a", &body, "/v1/videos").await;
    assert_eq!((status, replayed, &again["id"]), (200, true, &first["id"]), "a failed task is final");
    let (status, _, error) = send("a", &request("kling-v3", "other"), "/v1/videos").await;
    assert_eq!((status, error["error"]["code"].as_str()), (409, Some("idempotency_conflict")));
    assert_eq!(house.sim.videos(), 1);
    // What was refused frees its key: it is tried again, not answered from memory.
    for _ in 0..2 {
        let (status, replayed, _) = send("b", &request("kling-v3", "[[sim:limited]]"), "/v1/videos").await;
        assert_eq!((status, replayed), (429, false));
    }
    assert_eq!(house.sim.videos(), 1);
}

/// Somebody keeps the database locked: the task is not written down, and its key is not used up.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_task_is_not_durable_yet_has_to_wait() {
    let tasks = "look_time = \"2s\"\nturn_time = \"1s\"";
    let house = House::with(Plan { videos: true, usd: "1000", tasks, ..Plan::impatient() }).await;
    let send = async || {
        let body = request("kling-v3", "[[sim:ok]]");
        let reply = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).header("idempotency-key", "a");
        let reply = reply.json(&body).send().await.expect("a reply");
        (reply.status().as_u16(), reply.json::<Value>().await.expect("JSON"))
    };
    let database = rusqlite::Connection::open(house.dir.join("data/tollgate.db")).expect("the database");
    database.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let (status, error) = send().await;
    assert_eq!((status, error["error"]["code"].as_str()), (503, Some("ledger_unavailable")));
    let (status, error) = send().await;
    assert_eq!((status, error["error"]["code"].as_str()), (409, Some("idempotency_in_progress")), "{error}");
    assert_eq!(house.sim.videos(), 0);
    database.execute_batch("ROLLBACK").expect("unlocked");
    // Nobody looks after it: when its lease has run out it ends for nothing, and the key is free.
    let made = loop {
        let (status, made) = send().await;
        if status == 200 {
            break made;
        }
        assert_eq!(made["error"]["code"], "idempotency_in_progress", "{made}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let id: TaskId = made["id"].as_str().expect("an id").parse().expect("a task id");
    let (task, row) = ended(&house, id).await;
    assert_eq!((task.state, house.sim.videos()), (TaskState::Completed, 1));
    assert_eq!(house.available().await, 1_000_000_000_000 - row.charge.nano());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_outlives_the_gateway_that_began_it() {
    let mut house = house("").await;
    let id = create(&house, "wan2.7-t2v", "[[sim:ok queue=15 run=15]]").await.expect("taken");
    house.restart().await;
    assert!(!task(&house, id).await.state.is_final());
    let (task, row) = ended(&house, id).await;
    assert_eq!(task.state, TaskState::Completed);
    assert_eq!(row.charge.to_string(), "0.417", "5 seconds at 0.0834");
    assert_eq!(house.sim.videos(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_leaves_leaves_no_question_behind() {
    let house = house("").await;
    let body = request("wan2.7-t2v", "[[sim:slow ms=400]]");
    let sent = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&body);
    house.leave(sent).await;
    let store = house.running().app.store.clone();
    let page = TaskPage { after: None, limit: 10, oldest_first: true };
    let tasks = store.tasks(house.account, page).await.expect("read");
    assert_eq!(tasks.len(), 1);
    let (task, _) = ended(&house, tasks[0].id).await;
    assert_eq!((task.state, house.sim.videos()), (TaskState::Completed, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_money_no_task() {
    let house = House::with(Plan { videos: true, usd: "0.01", ..Plan::default() }).await;
    let (status, error) = create(&house, "wan2.7-t2v", "p").await.expect_err("refused");
    assert_eq!((status, error["code"].as_str()), (402, Some("insufficient_balance")));
    assert!(house.sim.received().is_empty(), "nothing was sent");
}

const TWO_ROUTES: &str = r#"
[model."wan-twice"]
supported_endpoint_types = ["openai-video"]
billing_unit = "per_second"
resolutions = ["720P"]
video = { variant = "a-text-to-video", sold = { resolution = ["720P"] } }
price = { video_second = 83_400 }
route = [{ provider = "away", upstream_model = "wan2.7-t2v", priority = 1 }, { provider = "dashscope", upstream_model = "wan2.7-t2v", priority = 2 }]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn another_route_is_tried_where_the_first_is_not_reached() {
    let config = "[provider.away]\nkind = \"dashscope\"\nbase_url = \"http://127.0.0.1:1\"\n".to_owned();
    let plan = Plan { videos: true, usd: "1000", catalog: TWO_ROUTES, config, ..Plan::default() };
    let house = House::with(plan).await;
    let id = create(&house, "wan-twice", "p").await.expect("taken by the second");
    let (task, row) = ended(&house, id).await;
    assert_eq!((task.state, task.provider.as_deref()), (TaskState::Completed, Some("dashscope")));
    assert_eq!((row.charge.to_string().as_str(), house.sim.videos()), ("0.417", 1));
}

/// Slower than anybody waits for: nobody gives it up, the money stays held, and what comes in the
/// end is paid.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_beyond_patience_is_unknown_and_paid_when_it_is_made() {
    let house = house("patience = \"300ms\"").await;
    let id = create(&house, "kling-v3", "[[sim:ok queue=14 run=0]]").await.expect("taken");
    let mut waited = 0;
    while task(&house, id).await.state != TaskState::Unknown {
        waited += 1;
        assert!(waited < 2_000 && !task(&house, id).await.state.is_final(), "it was never unknown");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let account = house.balance().await;
    assert!(account.paid_held > Money::ZERO, "the hold stays open");
    let seen: Value = house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply").json().await.expect("JSON");
    assert!(["queued", "completed"].contains(&seen["status"].as_str().expect("a status")), "{seen}");
    assert!(seen["error"].is_null(), "{seen}");
    let (task, row) = ended(&house, id).await;
    assert_eq!(task.state, TaskState::Completed);
    assert_eq!((row.hold, row.charge, row.write_off), (account.paid_held, account.paid_held, Money::ZERO), "{row:?}");
    assert_eq!(house.sim.videos(), 1);
}
