//! A key revoked by the command line stops working within five seconds, on every replica.

use crate::house::{House, Plan, chat};
use crate::postgres::Server;
use crate::process::HANG;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_stops_on_both_replicas() {
    let server = Server::find();
    let database = server.database("revoked").await;
    let house = House::new(Plan { database: &database, gates: 2, ..Plan::default() }).await;
    let other = house.cli(&["key", "create", &house.account, "--name", "other"]).await;
    let other = other["secret"].as_str().expect("a secret");
    let ask = |gate: usize, key: &str| {
        let request = house.post_as(key, gate, &chat("plain", "hello"));
        async move { request.send().await.expect("a reply").status().as_u16() }
    };
    for gate in [0, 1] {
        assert_eq!(ask(gate, &house.key).await, 200, "both replicas know the key");
        assert_eq!(ask(gate, other).await, 200);
    }

    let revoked = house.cli(&["key", "revoke", &house.key_id]).await;
    assert!(revoked["revoked_at_ms"].is_i64(), "{revoked}");
    let began = Instant::now();
    for gate in [0, 1] {
        while ask(gate, &house.key).await != 401 {
            assert!(began.elapsed() < HANG, "gate {gate} still takes the key");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        eprintln!("gate {gate} refuses after {:?}", began.elapsed());
    }
    for gate in [0, 1] {
        assert_eq!(ask(gate, &house.key).await, 401, "refused for good");
        assert_eq!(ask(gate, other).await, 200, "the other key of the account goes on");
    }
}
