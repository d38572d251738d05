//! Five hundred creations whose answers are lost, on both databases, and on the one that replicas
//! share by two of them: five hundred videos, none sent again, none paid twice, and none given back
//! because somebody lost patience.

use super::money::{code, ended, sent_to, task};
use super::scenarios::price;
use crate::engine::Engine;
use crate::house::{House, Plan, second};
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tollgate_catalog::Money;
use tollgate_store::testing::run_sql;
use tollgate_store::{TaskId, TaskState};

const FUNDED: i64 = 1_000_000_000_000;
/// Longer than the test, and what is beyond all patience.
const TASKS: &str = "patience = \"10m\"\nunknown_time = \"1m\"\nabsent_time = \"10m\"";
const BEYOND_MS: i64 = 12 * 60_000;

/// Four of five go to makers that keep our id, one to a maker that can be asked nothing.
fn model(number: usize) -> &'static str {
    match number % 5 {
        0 | 1 => "kling-v3",
        2 | 3 => "seedance-2.5",
        _ => "wan2.7-t2v",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_lost_replies_are_five_hundred_creations() {
    for engine in &Engine::both().await {
        let database = engine.url.clone();
        let house = House::with(Plan { videos: true, usd: "1000", tasks: TASKS, database, ..Plan::default() }).await;
        let other = if engine.name == "postgres" { Some(second(&house).await) } else { None };
        let mut urls = vec![house.url("/v1/videos")];
        urls.extend(other.iter().map(|other| format!("http://{}/v1/videos", other.address)));
        let doors = Semaphore::new(32);
        let sending = (0..500).map(|number| {
            let (house, doors, url) = (&house, &doors, &urls[number / 5 % urls.len()]);
            async move {
                let _door = doors.acquire().await.expect("open");
                sent_to(house, url, model(number), &format!("{number} [[sim:lost]]")).await
            }
        });
        let ids = join_all(sending).await;
        let of = |wanted: &'static str| ids.iter().enumerate().filter(move |(at, _)| model(*at) == wanted);
        let spent = found(&house, of("kling-v3").chain(of("seedance-2.5")).map(|(_, id)| *id)).await;
        forgiven(&house, engine, of("wan2.7-t2v").map(|(_, id)| *id).collect(), spent).await;
        let creates = house.sim.received().iter().filter(|one| one.method == "POST").count();
        assert_eq!((creates, house.sim.videos()), (500, 500), "{}: none was sent again", engine.name);
        assert_eq!(house.available().await, FUNDED - spent, "{}", engine.name);
        if let Some(other) = other {
            other.stop().await;
        }
    }
}

/// Their makers have them by our id: each is made, and paid once. Says how much that is.
async fn found(house: &House, ids: impl Iterator<Item = TaskId>) -> i64 {
    let mut spent = 0;
    for id in ids {
        let (task, row) = ended(house, id).await;
        assert_eq!(task.state, TaskState::Completed, "{task:?}");
        assert_eq!((row.charge.nano(), row.write_off), (price(&task.model), Money::ZERO), "{row:?}");
        spent += row.charge.nano();
    }
    spent
}

/// Nobody can say what became of these: the money is held for as long as there is patience, then it
/// is the operator's loss.
async fn forgiven(house: &House, engine: &Engine, ids: Vec<TaskId>, spent: i64) {
    let held = price("wan2.7-t2v") * i64::try_from(ids.len()).expect("few");
    for id in &ids {
        assert_eq!(task(house, *id).await.state, TaskState::Unknown);
    }
    let account = house.balance().await;
    assert_eq!((account.paid_held.nano(), account.paid_available.nano()), (held, FUNDED - spent - held));
    grow_old(house, engine).await;
    for id in ids {
        let (task, row) = ended(house, id).await;
        assert_eq!((task.state, code(&task)), (TaskState::Failed, "task_unknown"), "{task:?}");
        assert_eq!((row.charge, row.write_off.nano()), (Money::ZERO, price("wan2.7-t2v")), "{row:?}");
    }
}

/// All open tasks are older than all patience. Their age is by the clock that does not jump, on
/// PostgreSQL by the database's.
async fn grow_old(house: &House, engine: &Engine) {
    if engine.name == "sqlite" {
        return house.clock.pass(BEYOND_MS);
    }
    let sql =
        format!("UPDATE task SET created_at = created_at - {BEYOND_MS}, due_at = due_at - {BEYOND_MS} WHERE state < 5");
    run_sql(&engine.url, &sql).await.expect("older");
}
