//! GET /v1/balance.

use crate::house::{House, streamed};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_is_not_available() {
    let house = House::new().await;
    house.sim.shut("/_door");
    let mut reply = house.post(&streamed("[[sim:tokens=4 door=2]]")).send().await.expect("a reply");
    reply.chunk().await.expect("a chunk");
    let body: Value = house.get("/v1/balance").send().await.expect("a reply").json().await.expect("JSON");
    let (available, held) =
        (body["available_nano_usd"].as_i64().expect("a number"), body["held_nano_usd"].as_i64().expect("a number"));
    assert!(held > 0);
    assert_eq!(available + held, 10_000_000_000);
    house.sim.open();
    reply.bytes().await.expect("the rest");
    house.quiet().await;
    let body: Value = house.get("/v1/balance").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(body["held_nano_usd"], 0);
    assert_eq!(body["available_nano_usd"].as_i64(), Some(10_000_000_000 - 1_000 * 2 - 4 * 2_000));
    assert_eq!(body["available_usd"], "9.99999");
}
