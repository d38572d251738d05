//! What is charged follows what the maker reports, and a report that can only be a mistake is none.

use super::money::{MAKERS, create, ended, house, post};
use super::scenarios::price;
use crate::house::{House, Plan};
use serde_json::{Value, json};
use tollgate_store::{TaskId, TaskState};

/// A video that was made has a length: where its maker says zero, what was asked for is charged, and the row says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_reported_zero_is_no_free_video() {
    let house = house("").await;
    for (model, _) in MAKERS {
        let id = create(&house, model, "[[sim:ok queue=0 run=0 told=0]]").await.expect("taken");
        let (task, row) = ended(&house, id).await;
        // By tokens nobody knows what was asked for, only what it can be at most.
        let asked = if model == "seedance-2.5" { row.hold.nano() } else { price(model) };
        assert_eq!((task.state, row.charge.nano()), (TaskState::Completed, asked), "{model}: {row:?}");
        // Sold by the call, nothing needs to be reported.
        assert_eq!(row.estimated, model != "MiniMax-Hailuo-2.3", "{model}: {row:?}");
    }
}

const BY_THE_SECOND: &str = r#"
[model."seedance-by-the-second"]
supported_endpoint_types = ["openai-video"]
billing_unit = "per_second"
video = { variant = "b-2.5", one_price = ["resolution"] }
price = { video_second = 100_000 }
route = [{ provider = "ark", upstream_model = "ep-20260701120000-x7k2p" }]
"#;

/// Ark sold by the second: settled on the length it made, which it may have chosen itself.
#[tokio::test(flavor = "multi_thread")]
async fn ark_by_the_second_is_settled_on_the_length_it_tells() {
    let plan = Plan { videos: true, usd: "1000", catalog: BY_THE_SECOND, ..Plan::default() };
    let house = House::with(plan).await;
    for (asked, told, held, charged, estimated) in [
        (-1, "told=12", 30, 12, false),
        (-1, "told=30", 30, 30, false),
        (-1, "told=0", 30, 30, true),
        (10, "told=9", 10, 9, false),
        (10, "told=11", 10, 10, false),
        (10, "told=0", 10, 10, true),
        (10, "", 10, 10, false),
    ] {
        let prompt = format!("[[sim:ok queue=0 run=0 {told}]]");
        let body = json!({ "model": "seedance-by-the-second", "prompt": prompt, "duration": asked });
        let shown: Value = post(&house, &body).await.json().await.expect("JSON");
        let id: TaskId = shown["id"].as_str().unwrap_or_else(|| panic!("{shown}")).parse().expect("a task id");
        let (task, row) = ended(&house, id).await;
        let second = 100_000_000;
        assert_eq!(task.state, TaskState::Completed, "{asked} {told}");
        let seen = (row.hold.nano(), row.charge.nano(), row.estimated);
        assert_eq!(seen, (held * second, charged * second, estimated), "{asked} {told}: {row:?}");
    }
}

/// The route leads to an endpoint, whose tasks the maker lists under the name of its model: what was lost there is found, not paid back.
#[tokio::test(flavor = "multi_thread")]
async fn a_creation_lost_at_an_endpoint_is_found() {
    let tasks = "patience = \"20s\"\nunknown_time = \"1s\"\nabsent_time = \"300ms\"";
    let plan = Plan { videos: true, usd: "1000", catalog: BY_THE_SECOND, tasks, ..Plan::default() };
    let house = House::with(plan).await;
    let id = create(&house, "seedance-by-the-second", "[[sim:lost queue=0 run=0]]").await.expect("taken");
    let (task, row) = ended(&house, id).await;
    assert_eq!((task.state, row.charge.nano()), (TaskState::Completed, 500_000_000), "{task:?} {row:?}");
    assert_eq!(house.sim.videos(), 1);
}
