//! Several replicas on one PostgreSQL database: a dead one is cleaned up after, an outage passes by itself.

mod common;

use std::time::Duration;

use common::{House, options};
use tollgate_store::testing::PostgresServer;
use tollgate_store::{Ending, HoldRefused, Options};

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_and_an_outage() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    dead_replicas_are_cleaned_up_after(&server.database("dead").await.expect("a database")).await;
    an_outage_passes_by_itself(&server, &server.database("outage").await.expect("a database")).await;
}

async fn dead_replicas_are_cleaned_up_after(url: &str) {
    let one = House::open(url).await;
    let two = House::open(url).await;
    let c = one.customer(0, 1_000).await;
    let long = |h: &House| {
        let mut wish = h.wish(&c, 100);
        wish.expires_at += 600_000;
        wish
    };
    let lost = one.hold(long(&one)).await.expect("a hold").call;
    let kept = two.hold(long(&two)).await.expect("a hold").call;
    // The same cap and balance hold for both.
    assert!(matches!(two.hold(two.wish(&c, 801)).await, Err(HoldRefused::Insufficient)));
    one.store.shut().await;
    let later = two.clock.now() + 59_000;
    assert_eq!(two.store.sweep(later).await.expect("sweep").orphaned, 0);
    two.clock.advance(30_000);
    two.store.beat(two.clock.now()).await.expect("beat");
    let swept = two.store.sweep(later + 2_000).await.expect("sweep");
    assert_eq!((swept.orphaned, swept.expired), (1, 0));
    let row = two.store.usage_of(c.account, lost).await.expect("reading").expect("a row");
    assert_eq!((row.ending, row.charge.nano()), (Ending::Expired, 0));
    assert!(two.store.usage_of(c.account, kept).await.expect("reading").is_none(), "ours runs on");
    two.store.close(two.ending(&c, kept, 0)).await.expect("closed");
    assert_eq!(two.pots(&c).await, (0, 1_000, 0, 0));
    two.close().await;
}

async fn an_outage_passes_by_itself(server: &PostgresServer, url: &str) {
    let h = House::open_with(url, Options { hold_deadline: Duration::from_millis(500), ..options() }).await;
    let c = h.customer(0, 1_000).await;
    let running = h.held(&c, 100).await;
    server.stop().expect("stopped");
    assert!(matches!(h.hold(h.wish(&c, 10)).await, Err(HoldRefused::Unavailable)));
    let closing = h.store.close(h.ending(&c, running, 60));
    let mut refused_at_once = false;
    for _ in 0..50 {
        let started = std::time::Instant::now();
        assert!(matches!(h.hold(h.wish(&c, 10)).await, Err(HoldRefused::Unavailable)));
        refused_at_once |= started.elapsed() < Duration::from_millis(50);
        if refused_at_once {
            break;
        }
    }
    assert!(refused_at_once && !h.store.ready());
    server.restart().expect("started again");
    let closed = closing.await.expect("applied in the end");
    assert_eq!(closed.captured.nano(), 60);
    assert!(h.store.ready());
    let call = h.held(&c, 940).await;
    h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    assert_eq!(h.pots(&c).await, (0, 940, 0, 0));
    h.close().await;
}
