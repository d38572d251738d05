//! What is charged follows what the maker reports, and a report that can only be a mistake is none.

use super::money::{MAKERS, create, ended, house};
use super::scenarios::price;
use crate::house::{House, Plan};
use tollgate_store::TaskState;

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
