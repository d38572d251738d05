//! Replicas and a server that do not agree: clocks hours apart, a row that somebody keeps, settings
//! that are not ours, a journal with more in it than the database needs.

use std::time::Duration;

use tokio::task::JoinSet;
use tollgate_catalog::Money;
use tollgate_store::testing::{PostgresServer, run_sql};
use tollgate_store::{
    ClockStanding, Clocks, Credit, CreditKind, DataLocation, EntryPage, Hold, HoldRefused, NewTask, Options, Pot,
    Receipted, Store, UsagePage,
};

use crate::common::{House, idem, options, reply};

pub async fn all(server: &PostgresServer) {
    let database = async |name: &str| server.database(name).await.expect("a database");
    a_revoked_key_holds_nothing_whatever_the_clocks_say(&database("revoked").await).await;
    reading_goes_on_while_a_row_is_locked(&database("locked").await).await;
    the_chain_holds_however_bytes_are_shown(&database("shown").await).await;
    what_was_applied_before_a_crash_counts_once(&database("once").await).await;
}

/// The clocks of two replicas are hours apart. What one revokes the other refuses at once, and
/// hears of.
async fn a_revoked_key_holds_nothing_whatever_the_clocks_say(url: &str) {
    let (one, two) = (House::open(url).await, House::open(url).await);
    for (back, forth) in [(&one, &two), (&two, &one)] {
        let c = one.customer(0, 1_000).await;
        back.clock.advance(-7_200_000);
        let call = forth.held(&c, 10).await;
        let seen = forth.store.keys_changed_since(i64::MAX, 0).await.expect("reading");
        back.store.revoke_key(c.key).await.expect("revoked");
        assert!(matches!(forth.hold(forth.wish(&c, 10)).await, Err(HoldRefused::NoAccount)));
        // Many at once are decided in another way.
        let many = (0..20).map(|_| forth.hold(forth.wish(&c, 10)));
        let refused = futures_util::future::join_all(many).await;
        assert!(refused.iter().all(|one| matches!(one, Err(HoldRefused::NoAccount))), "all of them");
        let changed = forth.store.keys_changed_since(seen.read_at, 0).await.expect("reading").keys;
        assert!(changed.iter().any(|one| one.key.id == c.key && one.key.revoked_at.is_some()), "{changed:?}");
        // What was under way comes to its end.
        forth.extend(forth.more(&c, call, 1, 5)).await.expect("more");
        forth.store.close(forth.ending(&c, call, 12)).await.expect("closed");
        assert_eq!(one.pots(&c).await, (0, 988, 0, 0));
    }
    two.close().await;
    one.close().await;
}

/// Somebody has an account's row and does not give it back: groups wait, and all that can be read
/// is read.
async fn reading_goes_on_while_a_row_is_locked(url: &str) {
    let patient = House::open(url).await;
    let c = patient.customer(0, 1_000).await;
    let again = |h: &House, body: u8| Hold { idem: Some(idem(1, body)), ..h.wish(&c, 100) };
    let call = patient.hold(again(&patient, 1)).await.expect("a hold").call;
    let mut close = patient.ending(&c, call, 60);
    close.reply = Some(reply("stored"));
    patient.store.close(close).await.expect("closed");

    let h = House::open_with(url, Options { hold_deadline: Duration::from_secs(1), ..options() }).await;
    let (hand, line) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("connected");
    let _driver = JoinSet::from_iter([async move { drop(line.await) }]);
    hand.batch_execute("BEGIN; SELECT 1 FROM account FOR UPDATE").await.expect("locked");
    while h.store.ready() {
        assert!(matches!(h.hold(h.wish(&c, 10)).await, Err(HoldRefused::Unavailable)));
    }
    assert_eq!(h.store.usage(Some(c.account), UsagePage::default()).await.expect("the log").len(), 1);
    assert!(h.store.usage_of(c.account, call).await.expect("a row").is_some());
    assert_eq!(h.store.entries_of(c.account, call).await.expect("entries").len(), 2);
    assert_eq!(h.store.charged(call).await.expect("a charge").map(|charged| charged.captured.nano()), Some(60));
    assert!(matches!(h.store.receipt(c.account, call).await.expect("a receipt"), Receipted::Signed(_)));
    assert!(h.store.expiring(c.account).await.expect("credit").is_empty());
    assert_eq!(h.pots(&c).await, (0, 940, 0, 0));
    let last = h.store.last_entry().await.expect("nobody is waited for");
    let page = EntryPage { account: None, from: None, to: None, after: 0, until: Some(last), limit: 100 };
    assert_eq!(h.store.entries(page).await.expect("the ledger").len(), 3);
    // A request that was answered is answered again; another body and a new key are what they
    // always are.
    loop {
        match h.store.hold(again(&h, 1)).await {
            Err(HoldRefused::IdemDone { call: first, reply: stored }) => {
                assert_eq!((first, stored), (call, Some(reply("stored"))));
                break;
            }
            // This machine took longer than a second to read a row.
            Err(HoldRefused::Unavailable) => {}
            other => panic!("not the stored answer: {:?}", other.err()),
        }
    }
    assert!(matches!(h.store.hold(again(&h, 2)).await, Err(HoldRefused::IdemConflict | HoldRefused::Unavailable)));
    hand.batch_execute("ROLLBACK").await.expect("given back");
    while !h.store.ready() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    patient.close().await;
    h.close().await;
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

/// A journal whose calls are all in the database already: nothing is closed again, and nothing is
/// counted again.
async fn what_was_applied_before_a_crash_counts_once(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 1_000).await;
    for _ in 0..3 {
        let call = h.held(&c, 100).await;
        let mut mark = h.mark(&c, call, 10);
        mark.row.estimated = true;
        h.store.mark(mark);
        let mut close = h.ending(&c, call, 60);
        close.row.estimated = true;
        h.store.close(close).await.expect("closed");
    }
    let counted = |h: &House| h.store.gauges().estimated.get("sim").copied().unwrap_or_default();
    assert_eq!(counted(&h), 3);
    // The journal is not emptied by a stop.
    let h = h.reopen().await;
    assert_eq!((h.recovered.settled, h.recovered.voided, counted(&h)), (0, 0, 0));
    assert_eq!(h.store.gauges().late_closes, 3, "the closes, and no mark beside them");
    assert_eq!(h.pots(&c).await, (0, 820, 0, 0));
    h.close().await;
}

/// The time is the database's: a replica whose own clock is two hours ahead says so, and neither
/// takes credit away nor dates by it.
pub async fn a_replica_two_hours_off_takes_no_credit(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 1_000).await;
    let credit = Credit {
        id: "gift".into(),
        account: c.account,
        kind: CreditKind::TopUp,
        pot: Pot::Trial,
        amount: Money::from_nano(500),
        expires_at: Some(h.clock.now() + 3_600_000),
        reason: String::new(),
        actor: String::new(),
    };
    h.store.credit(credit).await.expect("trial credit");
    let own = h.clock.beside();
    own.set_wrong(7_200_000);
    let world = Clocks { now_ms: own.world(0).now_ms, ..h.clock.world(99 << 40) };
    let dir = tempfile::tempdir().expect("a folder");
    let place = DataLocation { url: url.into(), data_dir: dir.path().into() };
    let off = Store::open(place, options(), world).await.expect("the replica starts").store;
    off.beat().await.expect("a beat");
    let state = off.clock_state();
    assert_eq!((state.own_clock_ahead_ms, state.now_ms, state.state), (7_200_000, h.clock.now(), ClockStanding::Right));
    assert_eq!(off.sweep(own.now()).await.expect("a sweep").lapsed, 0);
    assert_eq!(off.expiring(c.account).await.expect("read").len(), 1);
    let call = off.hold(h.wish(&c, 100)).await.expect("a hold").call;
    off.close(h.ending(&c, call, 100)).await.expect("closed");
    let entries = off.entries_of(c.account, call).await.expect("read");
    assert!(entries.iter().all(|entry| entry.at == h.clock.now()), "{entries:?}");
    assert_eq!(h.pots(&c).await, (400, 1_000, 0, 0));
    off.shut().await;
    h.clock.advance(3_600_000);
    assert_eq!(h.store.sweep(h.clock.now()).await.expect("a sweep").lapsed, 1, "in its time");
    h.close().await;
}

/// Ages of tasks go by the time the replicas have agreed on: the database's clock is set forward by
/// two hours, and no wait ends.
pub async fn a_database_clock_that_jumps_makes_no_task_old(url: &str) {
    let h = House::open(url).await;
    let c = h.customer(0, 1_000).await;
    // The database's clock two hours ago, as the replicas wrote it down then.
    let stored = "UPDATE meta SET value = (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 7200000 WHERE name = 'clock_base'";
    run_sql(url, stored).await.expect("written");
    run_sql(url, "UPDATE meta SET value = 7200000 WHERE name = 'clock_correction'").await.expect("written");
    let mut wish = h.wish(&c, 10);
    wish.expires_at += 86_400_000;
    let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 0 };
    h.store.begin_task(wish, new).await.expect("a task");
    // And now it is two hours later, in a moment.
    run_sql(url, "UPDATE meta SET value = 0 WHERE name = 'clock_correction'").await.expect("written");
    run_sql(url, "UPDATE task SET due_at = 0").await.expect("due");
    let taken = h.store.take_tasks(10, 60_000, &[]).await.expect("taken");
    assert_eq!(taken.len(), 1);
    assert!(taken[0].age_ms < 3_600_000, "{}", taken[0].age_ms);
    // Once a replica has looked and believes it, time goes on from there.
    h.store.beat().await.expect("a beat");
    run_sql(url, "UPDATE task SET due_at = 0").await.expect("due");
    assert!(h.store.take_tasks(10, 60_000, &[]).await.expect("taken")[0].age_ms >= 7_000_000);
}
