//! Plain operations on PostgreSQL are decided by the replica, under the locks of their accounts,
//! and need none of the functions of the database.

use futures_util::future::join_all;
use tollgate_catalog::Money;
use tollgate_store::testing::{PostgresServer, run_sql};
use tollgate_store::{CallId, Close, Counters, HoldRefused};

use crate::cable::Cable;
use crate::common::{Customer, House, ask, idem};

#[tokio::test]
async fn plain_operations_are_decided_here() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    they_need_no_functions(&server.database("functions").await.expect("a database")).await;
    others_go_to_the_functions(&server.database("others").await.expect("a database")).await;
    chains_go_on_over_replicas_and_functions(&server.database("chains").await.expect("a database")).await;
    one_that_is_refused_leaves_plain_ones_alone(&server.database("refused").await.expect("a database")).await;
    what_rows_do_not_have_is_nothing_or_zero(&server.database("blanks").await.expect("a database")).await;
    a_replica_that_stands_still_gives_its_locks_back(&server.database("locks").await.expect("a database")).await;
}

/// Asked for at one moment, so that they are one group.
async fn holds(h: &House, c: &Customer, amounts: &[i64]) -> Vec<Result<CallId, HoldRefused>> {
    let wishes = amounts.iter().map(|amount| h.hold(h.wish(c, *amount)));
    join_all(wishes).await.into_iter().map(|held| held.map(|held| held.call)).collect()
}

async fn ends(h: &House, closes: Vec<Close>) {
    let closing: Vec<_> = closes.into_iter().map(|close| h.store.close(close)).collect();
    for closed in closing {
        assert!(closed.await.expect("closed").applied);
    }
}

/// Takes the functions away that decide, and the triggers that link entries and add rows to sums.
async fn without_functions(url: &str) {
    let schema = ask(url, "SELECT nspname::text FROM pg_namespace WHERE nspname ~ '^tollgate_[0-9a-f]{12}$'").await;
    let drop = format!("DROP FUNCTION {schema}.tollgate_hold, {schema}.tollgate_close, {schema}.tollgate_limit");
    run_sql(url, &drop).await.expect("dropped");
    let disable = "ALTER TABLE entry DISABLE TRIGGER entry_link; ALTER TABLE usage DISABLE TRIGGER usage_quarter_in";
    run_sql(url, disable).await.expect("disabled");
}

async fn they_need_no_functions(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 10_000).await;
    h.held(&c, 1_000).await;
    without_functions(url).await;
    let calls: Vec<CallId> =
        holds(&h, &c, &[100; 12]).await.into_iter().collect::<Result<_, _>>().expect("twelve holds");
    // Some cost all that was held, some a part, some nothing.
    let charge = |n: usize| [100, 60, 0][n % 3];
    ends(&h, calls.iter().enumerate().map(|(n, call)| h.ending(&c, *call, charge(n))).collect()).await;
    assert_eq!(h.pots(&c).await, (0, 10_000 - 1_000 - 4 * 160, 0, 1_000));
    // What costs nothing is held and ended all the same.
    let free: Vec<CallId> = holds(&h, &c, &[0; 12]).await.into_iter().collect::<Result<_, _>>().expect("twelve holds");
    ends(&h, free.iter().map(|call| h.ending(&c, *call, 0)).collect()).await;
    let row = h.store.usage_of(c.account, calls[1]).await.expect("reading").expect("a row");
    assert_eq!((row.hold.nano(), row.charge.nano(), row.write_off.nano()), (100, 60, 0));
    let kinds = "SELECT string_agg(kind || ':' || n, ' ' ORDER BY kind) FROM (SELECT kind, count(*) n FROM entry GROUP BY kind) k";
    assert_eq!(ask(url, kinds).await, "0:25 1:8 2:16 6:1");
    let sums = "SELECT sum(requests) || ' ' || sum(charge) || ' ' || sum(input) FROM usage_quarter";
    assert_eq!(
        ask(url, sums).await,
        ask(url, "SELECT count(*) || ' ' || sum(charge) || ' ' || sum(input) FROM usage").await
    );
    assert!(ask(url, sums).await.starts_with("24 640 "));
    h.close().await;
}

/// In a group of plain ones there are a charge above its hold, an end that comes twice, more than
/// there is, and a hold that follows it.
async fn others_go_to_the_functions(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 2_000).await;
    let mut amounts = [100; 14];
    amounts[12] = 1_000;
    let held = holds(&h, &c, &amounts).await;
    let refused = |held: &Result<CallId, HoldRefused>| matches!(held, Err(HoldRefused::Insufficient { available }) if available.nano() == 800);
    assert!(refused(&held[12]) && held.iter().filter(|held| held.is_ok()).count() == 13, "{held:?}");
    let calls: Vec<CallId> = held.into_iter().flatten().collect();
    let mut closes: Vec<Close> = calls.iter().map(|call| h.ending(&c, *call, 50)).collect();
    closes[3] = h.ending(&c, calls[3], 150);
    let again = h.store.close(h.ending(&c, calls[5], 50));
    ends(&h, closes.into_iter().enumerate().filter(|(n, _)| *n != 5).map(|(_, close)| close).collect()).await;
    assert!(again.await.expect("closed").applied);
    assert_eq!(h.pots(&c).await, (0, 2_000 - 12 * 50 - 150, 0, 0));
    h.close().await;
}

/// Of a group, those that are plain are done when the database refuses one of the others.
async fn one_that_is_refused_leaves_plain_ones_alone(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 10_000).await;
    let poison = "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$; \
        CREATE TRIGGER poison BEFORE INSERT ON idem FOR EACH ROW EXECUTE FUNCTION poison()";
    run_sql(url, poison).await.expect("poisoned");
    let mut wishes: Vec<_> = (0..13).map(|_| h.wish(&c, 100)).collect();
    wishes[6].idem = Some(idem(1, 1));
    let held: Vec<_> = join_all(wishes.into_iter().map(|wish| h.hold(wish))).await;
    for (n, held) in held.iter().enumerate() {
        assert_eq!(matches!(held, Err(HoldRefused::Unavailable)), n == 6, "{n}: {:?}", held.as_ref().err());
    }
    assert_eq!(h.pots(&c).await, (0, 10_000 - 1_200, 0, 1_200), "each of the others once");
    ends(&h, held.into_iter().flatten().map(|held| h.ending(&c, held.call, 60)).collect()).await;
    assert_eq!(h.pots(&c).await, (0, 10_000 - 12 * 60, 0, 0));
    h.close().await;
}

/// In one group no row has any of what calls may have, in the next every third one has all of it:
/// each is read as it was written, and hashed so.
async fn what_rows_do_not_have_is_nothing_or_zero(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 10_000).await;
    without_functions(url).await;
    for every in [usize::MAX, 3] {
        let calls: Vec<CallId> =
            holds(&h, &c, &[100; 12]).await.into_iter().collect::<Result<_, _>>().expect("twelve holds");
        let close = |(n, call): (usize, &CallId)| {
            let mut close = h.ending(&c, *call, 0);
            let has = (n + 1) % every == 0;
            let text = |text: &str| has.then(|| text.to_owned());
            let row = &mut close.row;
            (row.provider, row.upstream_model, row.raw_usage) = (text("sim"), text("test-1"), text("{}"));
            (row.tier, row.dropped) = (text("batch"), text("seed"));
            // What is known to be zero is not unknown.
            (row.first_byte_ms, row.cost) = (has.then_some(0), has.then_some(Money::ZERO));
            row.counters = Counters::default();
            row.counters.output = if has { 7 } else { 0 };
            close
        };
        let closes: Vec<Close> = calls.iter().enumerate().map(close).collect();
        let wanted: Vec<_> = closes.iter().map(|close| close.row.clone()).collect();
        ends(&h, closes).await;
        for (call, wanted) in calls.iter().zip(wanted) {
            let row = h.store.usage_of(c.account, *call).await.expect("reading").expect("a row");
            assert_eq!(
                (row.provider, row.upstream_model, row.raw_usage, row.tier, row.dropped, row.first_byte_ms, row.cost),
                (
                    wanted.provider,
                    wanted.upstream_model,
                    wanted.raw_usage,
                    wanted.tier,
                    wanted.dropped,
                    wanted.first_byte_ms,
                    wanted.cost
                )
            );
            assert_eq!(row.counters.output, wanted.counters.output);
        }
    }
    let zeros = "SELECT count(*)::text FROM usage WHERE input = 0 AND output IN (0, 7) AND seconds = 0 AND charge = 0";
    assert_eq!(ask(url, zeros).await, "24");
    let report = h.store.verify_strictly().await.expect("the audit runs");
    assert_eq!((report.breaches.as_slice(), report.unhashed_rows), (&[][..], 0));
    h.close().await;
}

/// Entries of one account by two replicas, in groups and one by one, are one chain.
async fn chains_go_on_over_replicas_and_functions(url: &str) {
    let (one, two) = (House::open(url).await, House::open(url).await);
    let c = one.customer(0, 100_000).await;
    let mut calls = 0;
    for _ in 0..3 {
        let (few, many) = tokio::join!(holds(&one, &c, &[100; 3]), holds(&two, &c, &[100; 20]));
        for (h, held) in [(&one, few), (&two, many)] {
            calls += held.len();
            ends(h, held.into_iter().flatten().map(|call| h.ending(&c, call, 60)).collect()).await;
        }
    }
    assert_eq!(one.pots(&c).await, (0, 100_000 - 69 * 60, 0, 0));
    assert_eq!(calls, 69);
    let report = one.store.verify_strictly().await.expect("the audit runs");
    assert_eq!((report.breaches.as_slice(), report.unhashed_rows), (&[][..], 0));
    let links = ask(
        url,
        "SELECT links || ' ' || (SELECT max(link) FROM entry) || ' ' || (SELECT count(*) FROM entry) FROM account",
    )
    .await;
    assert_eq!(links, "139 139 139");
    two.close().await;
    one.close().await;
}

/// It has locked an account and hears nothing any more, as if its machine stood still. Others go
/// on; what it wanted is done when it is back.
async fn a_replica_that_stands_still_gives_its_locks_back(url: &str) {
    let cable = Cable::lay(url).await;
    let (one, two) = (House::open(&cable.url).await, House::open(url).await);
    let c = two.customer(0, 10_000).await;
    let before = one.held(&c, 100).await;
    cable.silence();
    let waits = holds(&one, &c, &[100; 12]);
    let others = async {
        let stuck = "SELECT count(*)::text FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()";
        while ask(url, stuck).await == "0" {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let call = two.held(&c, 100).await;
        two.store.close(two.ending(&c, call, 60)).await.expect("closed");
        cable.mend();
    };
    let (held, ()) = tokio::join!(waits, others);
    let calls = held.into_iter().collect::<Result<Vec<_>, _>>().expect("twelve holds");
    assert_eq!(two.pots(&c).await, (0, 10_000 - 60 - 1_300, 0, 1_300));
    ends(&one, calls.into_iter().chain([before]).map(|call| one.ending(&c, call, 60)).collect()).await;
    assert_eq!(two.pots(&c).await, (0, 10_000 - 60 - 13 * 60, 0, 0));
    one.close().await;
    two.close().await;
}
