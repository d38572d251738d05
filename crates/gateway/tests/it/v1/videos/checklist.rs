//! The ends that makers differ in: expired, forgotten, late, and keys that are no good. For every maker: where the task stands, what
//! the ledger and the usage row say, and how often it was created.

use super::money::{FINDS, MAKERS, code, create, ended, house, sent};
use super::scenarios::price;
use crate::house::{House, Plan};
use tollgate_gateway::workers::reload::reload;
use tollgate_store::{Ending, Task, TaskId, TaskState, UsageRow};

const FUNDED: i64 = 1_000_000_000_000;

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

/// Where makers say that a task has ended without anybody having asked for that: in words of their own.
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
    let house = house("patience = \"2s\"\nunknown_time = \"1s\"\nabsent_time = \"500ms\"").await;
    let mut tasks = Vec::new();
    for (model, _) in MAKERS {
        for (prompt, end) in [("[[sim:expired]]", expires_as(model)), ("[[sim:unknown]]", End::Lost)] {
            let id = create(&house, model, prompt).await.unwrap_or_else(|why| panic!("{model} {prompt}: {why:?}"));
            tasks.push((format!("{model} {prompt}"), id, end));
        }
    }
    all_end(&house, tasks).await;
}

/// The answer to a creation comes late, but within patience, or later than that: then it is as good as lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_waited_for_or_its_task_is_found() {
    let tasks = "patience = \"6s\"\nunknown_time = \"1s\"\nabsent_time = \"30s\"";
    let plan = Plan { videos: true, usd: "1000", tasks, patience: "1500ms", ..Plan::default() };
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

/// A key that ended, one of another region, a signature that ended: the operator's trouble, no task, no charge.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_no_good_makes_no_task() {
    let house = house("").await;
    // Kling's tokens end half an hour after they were signed.
    house.clock.set(-3_600_000);
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
    assert!(rows.iter().all(|row| row.ending == Ending::UpstreamFault && row.charge.is_zero() && row.hold.nano() > 0));
    assert_eq!((house.sim.videos(), house.available().await), (0, FUNDED));
}
