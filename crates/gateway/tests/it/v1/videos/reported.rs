//! What a maker says of a task is read for what it is worth.

use super::money::{create, ended};
use crate::house::{House, Plan};
use tollgate_store::TaskState;

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
