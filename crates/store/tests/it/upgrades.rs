//! Two versions on one PostgreSQL database, as during a rolling upgrade: their functions differ, or
//! their migrations. The executable of the commit before runs beside the new one in `make upgrade`.

use crate::common::{Customer, House, ask, options, start, version};
use tollgate_store::testing::{PostgresServer, run_sql};
use tollgate_store::{CallId, CreditKind, NewTask, Options, Pot, SentTo};

#[tokio::test(flavor = "multi_thread")]
async fn two_versions_share_a_database() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    neither_version_replaces_the_functions_of_the_other(&server.database("two").await.expect("a database")).await;
    functions_that_were_dropped_come_back(&server.database("dropped").await.expect("a database")).await;
    a_migration_that_breaks_waits_for_the_others(&server.database("breaks").await.expect("a database")).await;
    a_migration_lets_others_pass(&server.database("passes").await.expect("a database")).await;
}

/// This version's functions, and one that says whose they are.
fn marked(name: &str) -> Options {
    let own = [
        include_str!("../../src/postgres/functions.sql"),
        include_str!("../../src/postgres/chain.sql"),
        include_str!("../../src/postgres/tasks.sql"),
        include_str!("../../src/postgres/responses.sql"),
        include_str!("../../src/postgres/sums.sql"),
    ]
    .concat();
    let mark =
        format!("CREATE OR REPLACE FUNCTION tollgate_mark() RETURNS text LANGUAGE sql AS $$ SELECT '{name}' $$;");
    version(Some(format!("{own}\n{mark}\n")), &[])
}

/// Which marks the schemas of functions have.
async fn marks(url: &str) -> String {
    let sql = "SELECT string_agg(btrim(p.prosrc), ',' ORDER BY p.prosrc) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
               WHERE p.proname = 'tollgate_mark' AND n.nspname ~ '^tollgate_[0-9a-f]{12}$'";
    ask(url, sql).await
}

/// Thirteen calls, from hold to end; one of them comes back.
async fn calls(h: &House, c: &Customer) -> CallId {
    let mut running = Vec::new();
    for _ in 0..12 {
        running.push(h.held(c, 100).await);
    }
    h.extend(h.more(c, running[0], 1, 50)).await.expect("extended");
    // In one group, where most of them are plain.
    let ends: Vec<_> = running.iter().map(|call| h.store.close(h.ending(c, *call, 60))).collect();
    for end in ends {
        assert!(end.await.expect("closed").applied);
    }
    let void = h.held(c, 100).await;
    h.store.close(h.ending(c, void, 0)).await.expect("closed");
    running[1]
}

/// Every kind of operation of the ledger, so that each function of a version is used.
async fn work(h: &House, c: &Customer) {
    let call = calls(h, c).await;
    let name = format!("credit {call}");
    h.credit(c, &name, CreditKind::TopUp, Pot::Trial, 10).await.expect("credit");
    let refund = CreditKind::Refund { call };
    h.credit(c, &format!("{name} back"), refund, Pot::Paid, 5).await.expect("refunded");
    let mut wish = h.wish(c, 50);
    wish.expires_at += 86_400_000;
    let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
    let begun = h.store.begin_task(wish, new).await.expect("a task");
    let to =
        SentTo { provider: "sim".into(), upstream_model: "wan".into(), host: "sim.example".into(), key: "0".into() };
    assert!(h.store.task_sending(begun, to, 60_000).await.expect("written"));
    h.store.beat().await.expect("a beat");
    h.store.sweep(h.clock.now()).await.expect("a sweep");
}

async fn neither_version_replaces_the_functions_of_the_other(url: &str) {
    let (one, two) = (House::open_with(url, marked("one")).await, House::open_with(url, marked("two")).await);
    let c = one.customer(0, 1_000_000).await;
    for h in [&one, &two] {
        work(h, &c).await;
    }
    // A replica of either that starts again changes nothing for the other.
    let one = one.reopen().await;
    assert_eq!(marks(url).await, "SELECT 'one',SELECT 'two'");
    for h in [&two, &one] {
        work(h, &c).await;
    }
    assert_eq!(ask(url, "SELECT to_regproc('public.tollgate_apply')::text").await, "", "none beside the tables");
    let report = one.store.verify_strictly().await.expect("the audit runs");
    assert_eq!((report.breaches.as_slice(), report.unhashed_rows), (&[][..], 0));
    two.close().await;
    // Its last replica has been gone for hours.
    run_sql(url, "UPDATE replica SET beat_at = beat_at - 7200000").await.expect("hours");
    one.store.beat().await.expect("a beat");
    one.store.sweep(one.clock.now()).await.expect("a sweep");
    assert_eq!(marks(url).await, "SELECT 'one'");
    work(&one, &c).await;
    one.close().await;
}

/// Somebody took a running replica for gone: it goes on as soon as it asks again.
async fn functions_that_were_dropped_come_back(url: &str) {
    let h = House::open_with(url, marked("one")).await;
    let c = h.customer(0, 1_000_000).await;
    work(&h, &c).await;
    let drop = "DO $$ DECLARE v_name text; BEGIN FOR v_name IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^tollgate_' LOOP \
                EXECUTE 'DROP SCHEMA ' || v_name || ' CASCADE'; END LOOP; END $$";
    run_sql(url, drop).await.expect("dropped");
    assert_eq!(marks(url).await, "");
    let call = h.held(&c, 100).await;
    h.store.close(h.ending(&c, call, 60)).await.expect("closed");
    assert_eq!(marks(url).await, "SELECT 'one'");
    work(&h, &c).await;
    h.close().await;
}

const ADDS: &str = "ALTER TABLE usage ADD COLUMN later text;";
const BREAKS: &str =
    "-- Earlier versions cannot go on: they write another column.\nALTER TABLE idem RENAME COLUMN reply TO answer;";

async fn a_migration_that_breaks_waits_for_the_others(url: &str) {
    let old = House::open(url).await;
    let c = old.customer(0, 1_000_000).await;
    let call = old.held(&c, 100).await;
    // One that only adds does not wait, and the version before goes on and starts again.
    start(url, version(None, &[ADDS])).await.expect("a later version").shut().await;
    old.store.close(old.ending(&c, call, 60)).await.expect("closed");
    work(&old, &c).await;
    let old = old.reopen().await;
    work(&old, &c).await;
    let breaking = || version(None, &[ADDS, BREAKS]);
    let why = start(url, breaking()).await.err().expect("the other one lives").to_string();
    assert!(why.contains("replicas of an earlier version run on this database"), "{why}");
    work(&old, &c).await;
    old.close().await;
    run_sql(url, "UPDATE replica SET beat_at = beat_at - 61000").await.expect("a minute");
    start(url, breaking()).await.expect("the other one is gone").shut().await;
    let why = start(url, options()).await.err().expect("it cannot").to_string();
    assert!(why.contains("was made by a newer version"), "{why}");
}

/// Somebody reads a table for a long time, as an audit does. A migration that wants to change it
/// does not keep all others from it meanwhile.
async fn a_migration_lets_others_pass(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 1_000_000).await;
    let (mut reader, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("connected");
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { connection.await.expect("the connection") });
    let reading = reader.transaction().await.expect("begun");
    reading.query("SELECT count(*) FROM usage", &[]).await.expect("read");
    let address = url.to_owned();
    let mut started = tokio::task::JoinSet::new();
    started.spawn(async move { start(&address, version(None, &[ADDS])).await.expect("a later version") });
    let waits = "SELECT count(*)::text FROM pg_locks WHERE relation = 'usage'::regclass AND NOT granted AND mode = 'AccessExclusiveLock'";
    while ask(url, waits).await == "0" {
        tokio::task::yield_now().await;
    }
    let call = h.held(&c, 100).await;
    h.store.close(h.ending(&c, call, 60)).await.expect("closed while both wait");
    assert!(started.try_join_next().is_none());
    reading.commit().await.expect("the reader ends");
    started.join_next().await.expect("one").expect("started").shut().await;
    work(&h, &c).await;
    h.close().await;
}
