//! Live events while the database is lost and comes back: a stream goes on, or ends and says why;
//! either way what happened meanwhile is told, or that something is missing.

use super::live::{ADMIN, HOUSE, OWN, get, manage_key, watch};
use super::watcher::{LiveReader, open};
use crate::house::{House, Plan, call_id, chat};
use crate::people::test;
use serde_json::json;
use std::time::Duration;
use tollgate_store::testing::PostgresServer;
use tollgate_store::{CallId, NewAdminKey};

/// A house on a database of the server, whose streams look so often who may watch.
async fn house(server: &PostgresServer, name: &str, check_every: &str) -> House {
    let database = server.database(name).await.expect("a database");
    let config = format!("[live]\ncheck_every = \"{check_every}\"\n");
    let house = House::with(Plan { config, database, ..Plan::default() }).await;
    let new = NewAdminKey { name: "day".to_owned(), expires_at: None, done: test() };
    house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
    house
}

/// A call that was sent before the database was lost, and is answered while it is.
async fn answered_without_database(house: &House, server: &PostgresServer) -> CallId {
    house.sim.shut("/v1/chat/completions");
    let asked = house.post(&chat("[[sim:tokens=2]]")).send();
    let lose = async {
        while house.sim.waited() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::task::block_in_place(|| server.stop()).expect("stopped");
        house.sim.open();
    };
    let (reply, ()) = tokio::join!(asked, lose);
    let reply = reply.expect("a reply");
    assert_eq!(reply.status(), 200, "what was begun is answered");
    let call = call_id(&reply);
    reply.bytes().await.expect("all of it");
    call
}

fn closed(events: &LiveReader, call: CallId) -> usize {
    events.seen.iter().filter(|event| event.kind == "usage.closed" && event.data["call_id"] == json!(call)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_over_an_outage_and_nothing_is_lost() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    let house = house(&server, "goes_on", "60s").await;
    let key = manage_key(&house).await;
    let (mut own, mut all) = (watch(&house, &key, OWN).await, watch(&house, ADMIN, HOUSE).await);
    let first = call_id(&house.ask("[[sim:tokens=2]]").await);
    own.find("usage.closed", |data| data["call_id"] == json!(first)).await;
    let meanwhile = answered_without_database(&house, &server).await;
    // A look has failed: the stream is open over it.
    while house.running().app.metrics.live.failed.get() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::task::block_in_place(|| server.restart()).expect("started");
    own.find("usage.closed", |data| data["call_id"] == json!(meanwhile)).await;
    let after = loop {
        let reply = house.ask("[[sim:tokens=2]]").await;
        if reply.status() == 200 {
            break call_id(&reply);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    own.find("usage.closed", |data| data["call_id"] == json!(after)).await;
    assert_eq!([first, meanwhile, after].map(|call| closed(&own, call)), [1, 1, 1], "each once: {:?}", own.seen);
    // Operators count all three, in whichever seconds.
    let mut ended = 0;
    while ended < 3 {
        let traffic = all.find("traffic", |data| data["ended"] != 0).await;
        ended += traffic["ended"].as_i64().expect("a number");
    }
    assert_eq!(ended, 3);
    drop((own, all));
    house.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_in_an_outage_says_so_and_who_comes_back_misses_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    let house = house(&server, "it_ends", "100ms").await;
    let key = manage_key(&house).await;
    let (mut own, mut all) = (watch(&house, &key, OWN).await, watch(&house, ADMIN, HOUSE).await);
    let first = call_id(&house.ask("[[sim:tokens=2]]").await);
    own.find("usage.closed", |data| data["call_id"] == json!(first)).await;
    let meanwhile = answered_without_database(&house, &server).await;
    // Nobody can tell whether they may watch.
    assert_eq!((own.end().await, all.end().await), ("ledger_unavailable".to_owned(), "ledger_unavailable".to_owned()));
    assert_eq!(closed(&own, meanwhile), 0);
    let mark = own.last_id.clone().expect("an id");
    tokio::task::block_in_place(|| server.restart()).expect("started");
    let again = |path, key: &str| get(&house, path, key).header("last-event-id", mark.clone());
    while again(OWN, &key).send().await.expect("a reply").status() != 200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut own = open(again(OWN, &key)).await;
    let ready = own.next().await.expect("an event");
    match ready.data["resumed"].as_bool() {
        Some(true) => {
            own.find("usage.closed", |data| data["call_id"] == json!(meanwhile)).await;
            assert_eq!([first, meanwhile].map(|call| closed(&own, call)), [0, 1], "{:?}", own.seen);
        }
        _ => assert_eq!(own.next().await.expect("an event").kind, "reset", "too long ago: said, not lost"),
    }
    let mut all = open(again(HOUSE, ADMIN)).await;
    assert_eq!(all.next().await.expect("an event").kind, "ready");
    assert_eq!(all.next().await.expect("an event").kind, "reset", "events of the house are read again");
    drop((own, all));
    house.quiet().await;
}
