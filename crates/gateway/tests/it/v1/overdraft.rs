//! 500 parallel calls with money for exactly ten.

use crate::house::{House, Plan, chat};
use serde_json::json;

const ASK: &str = "[[sim:tokens=10]]";

#[tokio::test(flavor = "multi_thread")]
async fn ten_are_served_and_490_refused() {
    // The size of a hold is an estimate of the prompt plus max_tokens: it is taken from a first
    // call.
    let house = House::new().await;
    let mut body = chat(ASK);
    body["max_tokens"] = json!(10);
    let reply = house.post(&body).send().await.expect("a reply");
    let row = house.row(crate::house::call_id(&reply)).await;
    let hold = row.hold.nano();
    drop(house);

    for streams in [false, true] {
        let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
        house.credit("ten", tollgate_store::Pot::Paid, tollgate_catalog::Money::from_nano(hold * 10)).await;
        // The provider waits until all have asked, so that all ten holds are open at once.
        house.sim.shut("/v1/chat/completions");
        let mut body = chat(ASK);
        body["max_tokens"] = json!(10);
        body["stream"] = json!(streams);
        let calls = (0..500).map(|_| {
            let request = house.post(&body);
            async move {
                let reply = request.send().await.expect("a reply");
                let status = reply.status().as_u16();
                reply.bytes().await.expect("a body");
                status
            }
        });
        let statuses = futures(calls, || house.sim.open()).await;
        let served = statuses.iter().filter(|status| **status == 200).count();
        let refused = statuses.iter().filter(|status| **status == 402).count();
        assert_eq!((served, refused), (10, 490), "streams={streams}");
        assert_eq!(house.sim.received().len(), 10, "nothing is sent without a hold");
        house.quiet().await;
        assert!(house.available().await >= 0);
    }
}

/// All statuses; `refused` is called when only ten are left to wait for.
async fn futures<F: Future<Output = u16> + Send + 'static>(
    calls: impl Iterator<Item = F>,
    refused: impl Fn(),
) -> Vec<u16> {
    let mut set = tokio::task::JoinSet::new();
    for call in calls {
        set.spawn(call);
    }
    let mut statuses = Vec::new();
    while let Some(status) = set.join_next().await {
        statuses.push(status.expect("a status"));
        if set.len() == 10 {
            refused();
        }
    }
    statuses
}
