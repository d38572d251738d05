//! Replicas and a server that do not agree: clocks hours apart, a row that somebody keeps, settings that are not ours, a journal with
//! more in it than the database needs.

use tollgate_store::testing::{PostgresServer, run_sql};

use crate::common::House;

pub async fn all(server: &PostgresServer) {
    let database = async |name: &str| server.database(name).await.expect("a database");
    the_chain_holds_however_bytes_are_shown(&database("shown").await).await;
}

/// `bytea_output = escape`, as some servers are set for old clients.
async fn the_chain_holds_however_bytes_are_shown(url: &str) {
    run_sql(url, "ALTER DATABASE shown SET bytea_output = escape").await.expect("set");
    let h = House::open(url).await;
    let c = h.customer(500, 1_000).await;
    // One after the other, and many in one group.
    let first = h.held(&c, 700).await;
    h.store.close(h.ending(&c, first, 600)).await.expect("closed");
    let many = (0..40).map(|_| h.held(&c, 10));
    let held = futures_util::future::join_all(many).await;
    let closing: Vec<_> = held.into_iter().map(|call| h.store.close(h.ending(&c, call, 3))).collect();
    for closed in closing {
        assert_eq!(closed.await.expect("closed").captured.nano(), 3);
    }
    assert_eq!(h.pots(&c).await, (0, 780, 0, 0));
    h.close().await;
}
