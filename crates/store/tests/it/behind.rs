//! The database behind the journal (SQLite): who reads sees both as one, calls go on while the
//! database takes nothing, and no hold counts as durable that rests on what only its queue knows.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Customer, House, idem, options, reply};
use crate::power::{Planted, now, open};
use tollgate_store::testing::{Crash, Simulated, TestClock};
use tollgate_store::{
    CallId, Close, EntryPage, ExportPage, Hold, HoldRefused, NewTask, Options, Receipted, StatementSpan, SumAsk,
    SumViewer, UsagePage,
};

/// What nobody asks for stays out of the database.
fn unhurried() -> Options {
    Options { commit_patience: Duration::from_secs(3_600), ..options() }
}

fn locked(h: &House) -> rusqlite::Connection {
    let blocker = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    blocker.busy_timeout(Duration::from_secs(5)).expect("patience");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    blocker
}

/// A call for one nano-USD that has ended, and that the database knows nothing of.
async fn call(h: &House, c: &Customer) -> CallId {
    let commits = h.store.gauges().commits;
    let call = h.held(c, 10).await;
    h.store.close(h.ending(c, call, 1));
    let gauges = h.store.gauges();
    assert_eq!((gauges.commits, gauges.queue_len), (commits, 2), "both are in the journal alone");
    call
}

async fn sums(h: &House, viewer: SumViewer) -> i64 {
    let from = h.clock.now().div_euclid(86_400_000) * 86_400_000;
    let (from, to) = (Some(from.to_string()), Some((from + 86_400_000).to_string()));
    let query = SumAsk { from, to, ..SumAsk::default() }.checked(viewer, h.clock.now()).expect("a question");
    let (from_ms, to_ms) = query.range_ms();
    let page = ExportPage { filter: query.filter().clone(), from_ms, to_ms, after: None, limit: 1_000 };
    let counted = h.store.usage_sums(&query).await.expect("added up")["totals"]["requests"].as_i64().expect("a number");
    let exported = h.store.usage_export(page).await.expect("rows").len();
    assert_eq!(exported, usize::try_from(counted).expect("few"));
    counted
}

#[tokio::test]
async fn whoever_reads_sees_what_only_the_journal_has() {
    let h = House::open_with("sqlite", unhurried()).await;
    let c = h.customer(0, 1_000).await;
    let all = UsagePage { before: None, limit: 1_000 };
    let page = || EntryPage { account: None, from: None, to: None, after: 0, until: None, limit: 1_000 };
    let mut calls = 0;
    let mut next = async || {
        calls += 1;
        (call(&h, &c).await, calls)
    };
    // Each of them comes first after a call.
    let (_, n) = next().await;
    assert_eq!(h.pots(&c).await, (0, 1_000 - n, 0, 0), "a balance waits for nothing");
    assert_eq!(h.store.keys(c.account).await.expect("keys")[0].spent.nano(), n);
    assert_eq!(h.store.gauges().queue_len, 2);
    assert_eq!(h.store.usage(Some(c.account), all).await.expect("rows").len() as i64, n);
    let (call, _) = next().await;
    assert_eq!(h.store.usage_of(c.account, call).await.expect("asked").expect("a row").charge.nano(), 1);
    let (call, _) = next().await;
    assert_eq!(h.store.entries_of(c.account, call).await.expect("entries").len(), 2);
    let (call, _) = next().await;
    assert!(matches!(h.store.receipt(c.account, call).await.expect("asked"), Receipted::Signed(_)));
    let (_, n) = next().await;
    let entries = h.store.entries(page()).await.expect("the ledger");
    assert_eq!(entries.len() as i64, 1 + n, "each of them is one entry");
    let (_, n) = next().await;
    assert_eq!(h.store.last_entry().await.expect("asked"), 1 + n);
    let (_, n) = next().await;
    assert_eq!(sums(&h, SumViewer::Operator).await, n);
    let (_, n) = next().await;
    assert_eq!(sums(&h, SumViewer::Customer(c.account)).await, n);
    let (_, n) = next().await;
    let margins = h.store.margins(h.clock.now() - 1, h.clock.now() + 1).await.expect("added up");
    assert_eq!(margins.iter().map(|row| row.calls).sum::<i64>(), n);
    let (_, n) = next().await;
    let span = StatementSpan::read("2026-02", None).expect("a month");
    let statement = h.store.statement(c.account, span).await.expect("asked").expect("there");
    assert_eq!((statement.charges.nano(), statement.closing.nano()), (n, 1_000 - n));
    let (_, n) = next().await;
    assert_eq!(h.store.verify().await.expect("audited").usage_rows as i64, n);
    h.close().await;
}

/// The database takes nothing: calls go on by the journal, and what needs the database does not.
#[tokio::test]
async fn the_journal_serves_calls_while_the_database_takes_nothing() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let running = h.held(&c, 100).await;
    let blocker = locked(&h);
    let first = h.held(&c, 100).await;
    while !h.store.gauges().down {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let wish = || Hold { idem: Some(idem(1, 1)), ..h.wish(&c, 200) };
    let second = h.hold(wish()).await.expect("durable by the journal").call;
    assert!(h.store.ready());
    assert!(matches!(h.hold(wish()).await, Err(HoldRefused::IdemRunning(call)) if call == second));
    assert!(matches!(h.hold(h.wish(&c, 601)).await, Err(HoldRefused::Insufficient { .. })), "no money twice");
    assert!(matches!(h.store.extend(h.more(&c, running, 1, 10)).await, Err(HoldRefused::Unavailable)));
    let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
    assert!(h.store.begin_task(h.wish(&c, 10), new).await.is_err(), "a task is not sent before it is written");
    for (call, charge) in [(running, 10), (first, 20), (second, 30)] {
        h.store.close(h.ending(&c, call, charge));
    }
    let copy = h.crashed_copy().await;
    assert_eq!((copy.recovered.settled, copy.pots(&c).await), (3, (0, 940, 0, 0)));
    copy.close().await;
    drop(blocker);
    assert_eq!(h.pots(&c).await, (0, 940, 0, 0));
    while h.store.gauges().down {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(h.store.usage(None, UsagePage::default()).await.expect("rows").len(), 3);
    h.close().await;
}

/// For a while: what waits in the journal is bounded by its age too.
#[tokio::test]
async fn a_database_too_far_behind_takes_no_holds() {
    let h = House::open_with("sqlite", Options { behind_most: Duration::from_millis(500), ..options() }).await;
    let c = h.customer(0, 100_000).await;
    let wish = || Hold { idem: Some(idem(1, 1)), ..h.wish(&c, 10) };
    let known = h.hold(wish()).await.expect("a hold").call;
    h.store.close(Close { reply: Some(reply("answer")), ..h.ending(&c, known, 1) }).await.expect("closed");
    let blocker = locked(&h);
    let mut served = 1;
    while let Ok(held) = h.hold(h.wish(&c, 10)).await {
        h.store.close(h.ending(&c, held.call, 1));
        served += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let gauges = h.store.gauges();
    assert!(gauges.settle_lag_ms >= 500 && gauges.down && !h.store.ready(), "{gauges:?}");
    assert!(matches!(h.hold(h.wish(&c, 10)).await, Err(HoldRefused::Unavailable)));
    // Whose answer is stored gets it.
    assert!(matches!(h.hold(wish()).await, Err(HoldRefused::IdemDone { call, reply: Some(_) }) if call == known));
    drop(blocker);
    while !h.store.ready() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(h.pots(&c).await, (0, 100_000 - served, 0, 0));
    let call = h.held(&c, 10).await;
    h.store.close(h.ending(&c, call, 1)).await.expect("closed");
    h.close().await;
}

#[derive(Clone, Copy, Debug)]
enum GivenBack {
    /// By the end of a task.
    Task,
    /// By a call that was past its time, which the journal has.
    Expired,
}

/// Somebody holds all the money and gives it back, which is not committed; the next one wants it.
/// Says what that one held after a crash, if it was durable before.
async fn held_after_a_crash(what: GivenBack, planted: Planted) -> Option<i64> {
    let dir = Arc::new(tempfile::tempdir().expect("a folder"));
    let clock = TestClock::default();
    let (h, simulated) = open(&dir, "0", &clock, (1 << 20, planted)).await;
    let c = simulated.stepped(h.customer(0, 1_000)).await;
    give_back(&h, &simulated, &c, what).await;
    let mut held = h.store.hold(h.wish(&c, 1_000)).await.expect("the money is there in memory");
    let sync = simulated.begin_sync().expect("a record");
    simulated.end_sync(sync);
    let durable = now(held.durable()).await.is_some_and(|done| done.is_ok());
    std::fs::create_dir(dir.path().join("1")).expect("a folder");
    simulated.disk.crash(Crash::PowerCut, &dir.path().join("1"), &mut |_| 0);
    let (after, simulated) = open(&dir, "1", &clock, (2 << 20, planted)).await;
    let row = simulated.stepped(after.store.usage_of(c.account, held.call)).await.expect("asked");
    durable.then(|| row.map_or(0, |row| row.hold.nano()))
}

async fn give_back(h: &House, simulated: &Simulated, c: &Customer, what: GivenBack) {
    match what {
        GivenBack::Task => {
            let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
            let begun = simulated.stepped(h.store.begin_task(h.wish(c, 1_000), new)).await.expect("a task");
            let end = h.refused_task(c, begun);
            assert!(now(h.store.finish_task(end)).await.is_none(), "it waits for the commit");
        }
        GivenBack::Expired => {
            let mut held = h.store.hold(h.wish(c, 1_000)).await.expect("a hold");
            simulated.stepped(held.durable()).await.expect("durable");
            h.clock.advance(70_000);
            assert!(now(h.store.sweep(h.clock.now())).await.is_none(), "it waits for the commit");
        }
    }
    assert_eq!(h.pots(c).await, (0, 1_000, 0, 0), "it is given back in memory");
}

/// The rule `released`: such a hold waits for the database. Without the rule it would be durable,
/// and after a crash there would be no money for it.
#[tokio::test(start_paused = true)]
async fn a_hold_on_what_no_journal_knows_waits_for_the_database() {
    assert_eq!(held_after_a_crash(GivenBack::Task, Planted::Nothing).await, None);
    assert_eq!(held_after_a_crash(GivenBack::Task, Planted::Overrated).await, Some(0), "the fault is seen");
    assert_eq!(held_after_a_crash(GivenBack::Expired, Planted::Nothing).await, Some(1_000));
}
