//! The ends that makers differ in: expired, forgotten, late, and keys that are no good. For every
//! maker: where the task stands, what the ledger and the usage row say, and how often it was
//! created; on both databases.

use super::money::{FINDS, MAKERS, code, create, ended, post, sent};
use super::scenarios::price;
use crate::engine::Engine;
use crate::house::{House, Plan, error_of};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tollgate_gateway::workers::reload::reload;
use tollgate_store::{Ending, Task, TaskId, TaskState, UsageRow};

const FUNDED: i64 = 1_000_000_000_000;

async fn on(engine: &Engine, tasks: &'static str) -> House {
    let database = engine.url.clone();
    House::with(Plan { videos: true, usd: "1000", tasks, database, ..Plan::default() }).await
}

/// How a task ends, and who pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// There is a video, for its price.
    Made,
    /// There is none, for this reason, and nobody pays.
    Free(&'static str),
    /// Nobody knows: the customer pays nothing, the operator what it may have cost.
    Lost,
}

impl End {
    fn check(self, says: &str, task: &Task, row: &UsageRow) {
        let hold = row.hold.nano();
        let seen = (task.state, code(task), row.ending, row.charge.nano(), row.write_off.nano());
        let expected = match self {
            End::Made => (TaskState::Completed, "", Ending::Answered, price(&task.model), 0),
            End::Free(why) => (TaskState::Failed, why, Ending::UpstreamFault, 0, 0),
            End::Lost => (TaskState::Failed, "task_unknown", Ending::Expired, 0, hold),
        };
        assert_eq!(seen, expected, "{says}: {task:?}");
        assert!(hold > 0 && row.charge <= row.hold, "{says}: {row:?}");
        assert_eq!(task.result.is_some(), self == End::Made, "{says}: only a video has a file");
    }
}

/// Waits for all, and holds the balance and the makers' own count to what the rows say.
async fn all_end(house: &House, tasks: Vec<(String, TaskId, End)>) {
    let (count, mut spent) = (tasks.len(), 0);
    for (says, id, end) in tasks {
        let (task, row) = ended(house, id).await;
        end.check(&says, &task, &row);
        spent += row.charge.nano();
    }
    assert_eq!(house.sim.videos(), count, "each was created once");
    assert_eq!(house.available().await, FUNDED - spent, "and the balance says the same");
}

/// Where makers say that a task has ended without anybody having asked for that: in words of their
/// own.
fn expires_as(model: &str) -> End {
    match model {
        // It knows the word for forgotten only.
        "wan2.7-t2v" => End::Lost,
        "seedance-2.5" | "MiniMax-H3" => End::Free("task_expired"),
        "MiniMax-Hailuo-2.3" => End::Free("1000"),
        "sora-2" => End::Free("server_error"),
        "veo-3.1" => End::Free("13"),
        _ => End::Free("task_failed"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_and_forgotten_tasks_cost_the_customer_nothing() {
    for engine in &Engine::both().await {
        let house = on(engine, "patience = \"2s\"\nunknown_time = \"1s\"\nabsent_time = \"500ms\"").await;
        let mut tasks = Vec::new();
        for (model, _) in MAKERS {
            for (prompt, end) in [("[[sim:expired]]", expires_as(model)), ("[[sim:unknown]]", End::Lost)] {
                let id = create(&house, model, prompt).await.unwrap_or_else(|why| panic!("{model} {prompt}: {why:?}"));
                tasks.push((format!("{model} {prompt}"), id, end));
            }
        }
        all_end(&house, tasks).await;
    }
}

/// The answer to a creation comes late, but within patience, or later than that: then it is as good
/// as lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_waited_for_or_its_task_is_found() {
    for engine in &Engine::both().await {
        let tasks = "patience = \"6s\"\nunknown_time = \"1s\"\nabsent_time = \"30s\"";
        let database = engine.url.clone();
        let plan = Plan { videos: true, usd: "1000", tasks, patience: "1500ms", database, ..Plan::default() };
        let house = House::with(plan).await;
        let sending = MAKERS.into_iter().flat_map(|(model, provider)| {
            let late = if FINDS.contains(&provider) { End::Made } else { End::Lost };
            [("[[sim:slow ms=200]]", End::Made), ("[[sim:slow ms=4000]]", late)].map(|(prompt, end)| {
                let house = &house;
                async move { (format!("{model} {prompt}"), sent(house, model, prompt).await, end) }
            })
        });
        all_end(&house, futures_util::future::join_all(sending).await).await;
    }
}

/// A key that ended, one of another region, a signature that ended: the operator's trouble, no
/// task, no charge.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_no_good_makes_no_task() {
    for engine in &Engine::both().await {
        let house = on(engine, "").await;
        // Kling's tokens end half an hour after they were signed.
        house.clock.set(-7_200_000);
        for (model, _) in MAKERS.into_iter().filter(|(_, provider)| *provider == "kling") {
            let (status, error) = create(&house, model, "p").await.expect_err("refused");
            assert_eq!((status, error["code"].as_str()), (502, Some("upstream_error")), "{model}: {error}");
        }
        house.clock.set(0);
        for name in ["sim.key", "access.key", "secret.key"] {
            std::fs::write(house.dir.join(name), "wrong-region-key").expect("written");
        }
        reload(&house.running().app, &house.source).await.expect("reloaded");
        for (model, _) in MAKERS {
            let (status, error) = create(&house, model, "p").await.expect_err("refused");
            assert_eq!((status, error["code"].as_str()), (502, Some("upstream_error")), "{model}: {error}");
            assert!(!error.to_string().contains("wrong-region"), "{error}");
        }
        house.quiet().await;
        let rows = house.running().app.store.usage(Some(house.account), Default::default()).await.expect("read");
        assert_eq!(rows.len(), 3 + MAKERS.len());
        assert!(
            rows.iter().all(|row| row.ending == Ending::UpstreamFault && row.charge.is_zero() && row.hold.nano() > 0)
        );
        assert_eq!((house.sim.videos(), house.available().await), (0, FUNDED));
    }
}

/// A picture that is too small passes the creation and fails the task, with the maker's own words,
/// wherever a picture can be sent: by its link, or as the bytes of a PNG whose head says 64 by 64.
#[tokio::test(flavor = "multi_thread")]
async fn too_small_a_picture_fails_the_task_and_costs_nothing() {
    for engine in &Engine::both().await {
        let house = on(engine, "").await;
        let link = "https://media.example/64x64.png".to_owned();
        let bytes = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(small_png()));
        let mut tasks = Vec::new();
        for picture in [link, bytes] {
            let frame = json!({ "image": picture });
            let reference = json!({ "input_reference": picture });
            let omni = json!({ "metadata": { "aspect_ratio": "1:1", "image_list": [{ "image_url": picture }] } });
            let v1 = json!({ "metadata": { "first_frame_image": picture } });
            for (model, fields, code, words) in [
                ("wan2.7-i2v", &reference, "InvalidParameter", "at least 240 pixels"),
                ("happyhorse-1.1-i2v", &reference, "InvalidParameter", "at least"),
                ("seedance-2.5", &reference, "InvalidParameter", "at least 300px"),
                ("kling-v3", &frame, "task_failed", "Image pixel is invalid"),
                ("kling-3.0-turbo", &frame, "task_failed", "Image pixel is invalid"),
                ("kling-v3-omni", &omni, "task_failed", "Image pixel is invalid"),
                ("MiniMax-Hailuo-2.3", &v1, "2013", "image size is not valid"),
                ("MiniMax-H3", &frame, "2013", "image size is not valid"),
            ] {
                let mut body = fields.clone();
                (body["model"], body["prompt"]) = (json!(model), json!("p"));
                let reply: Value = post(&house, &body).await.json().await.expect("JSON");
                let id: TaskId =
                    reply["id"].as_str().unwrap_or_else(|| panic!("{model}: {reply}")).parse().expect("an id");
                let (task, row) = ended(&house, id).await;
                End::Free(code).check(model, &task, &row);
                let said = task.failure.map(|failure| failure.message).unwrap_or_default();
                assert!(said.contains(words), "{model}: {said}");
                tasks.push(id);
            }
        }
        assert_eq!((house.sim.videos(), house.available().await), (tasks.len(), FUNDED), "each created once, all free");
    }
}

/// The head of a PNG of 64 by 64, which is as far as anybody reads.
fn small_png() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend([0, 0, 0, 64, 0, 0, 0, 64, 8, 2, 0, 0, 0]);
    bytes
}

/// A link that ended before anybody opened it: the video was made and is paid, the dead link is not
/// handed out, a fresh one is asked for, and when there is none the file is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_link_is_not_handed_out() {
    for engine in &Engine::both().await {
        let house = on(engine, "").await;
        let mut spent = 0;
        // Kling's keys are signed with the time, which is not moved for it: it comes first.
        let mut makers = MAKERS;
        makers.sort_by_key(|(model, _)| !model.starts_with("kling"));
        for (moved, (model, _)) in (1..).zip(makers) {
            let id = create(&house, model, "[[sim:dead_link queue=0 run=0]]").await.expect("taken");
            let (task, row) = ended(&house, id).await;
            End::Made.check(model, &task, &row);
            spent += row.charge.nano();
            let shown: Value =
                house.get(&format!("/v1/videos/{id}")).send().await.expect("a reply").json().await.expect("JSON");
            let link = shown["metadata"]["url"].as_str().expect("a link");
            assert!(link.starts_with(&house.url("/v1/videos/")) && link.contains("Expires="), "{model}: {link}");
            let asked = house.sim.received().len();
            // The file of a new one might be yet to come.
            let kling = model.starts_with("kling");
            house.later(if kling { 0 } else { moved * 61_000 }).await;
            let expected = if kling { (409, Some("call_in_progress")) } else { (404, Some("not_found")) };
            for url in
                [house.url(&format!("/v1/videos/{id}/content")), link.to_owned()].into_iter().skip(usize::from(kling))
            {
                let reply = house.http.get(url).bearer_auth(&house.key).send().await.expect("a reply");
                let (status, error) = error_of(reply).await;
                assert_eq!((status, error["code"].as_str()), expected, "{model}: {error}");
            }
            assert!(house.sim.received().len() > asked + 1, "{model}: a fresh link was asked for");
        }
        assert_eq!((house.sim.videos(), house.available().await), (MAKERS.len(), FUNDED - spent));
    }
}
