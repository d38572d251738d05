//! Several replicas on one PostgreSQL database: a dead one is cleaned up after, one that was only
//! cut off loses nothing, an outage passes by itself.

use std::time::Duration;

use crate::cable::Cable;
use crate::common::{Customer, House, ONCE, idem, lost, options, reply};
use tollgate_store::testing::PostgresServer;
use tollgate_store::{
    AlertCondition, AlertMove, AlertPlaceKind, Attribution, Chain, Change, Credit, CreditKind, Ending, Hold,
    HoldRefused, NewAlertPlace, NewAlertRule, NewLimits, NewResponse, NewTask, Options, Pot, Quota, SentTo,
    StoredResponse, TaskNaming, UsagePage,
};

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_and_an_outage() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    dead_replicas_are_cleaned_up_after(&server.database("dead").await.expect("a database")).await;
    two_sweepers_share_what_a_dead_replica_left(&server.database("sweepers").await.expect("a database")).await;
    a_replica_cut_off_loses_no_charge(&server.database("cut").await.expect("a database")).await;
    a_replica_that_comes_back_late_charges_its_marks(&server.database("late").await.expect("a database")).await;
    a_replica_that_was_given_up_goes_on_marking(&server.database("marking").await.expect("a database")).await;
    limits_hold_for_all_replicas_together(&server.database("limits").await.expect("a database")).await;
    replicas_with_many_accounts_never_deadlock(&server.database("deadlock").await.expect("a database")).await;
    expired_credit_is_taken_once_by_whoever_comes_first(&server.database("expiry").await.expect("a database")).await;
    a_response_stored_by_one_is_found_by_the_other(&server.database("stored").await.expect("a database")).await;
    crate::apart::all(&server).await;
    crate::apart::a_replica_two_hours_off_takes_no_credit(&server.database("off").await.expect("a database")).await;
    crate::apart::a_database_clock_that_jumps_makes_no_task_old(&server.database("jumps").await.expect("a database"))
        .await;
    an_alert_of_a_dead_replica_is_sent_by_another(&server.database("alerts").await.expect("a database")).await;
    two_replicas_give_one_name_once(&server.database("names").await.expect("a database")).await;
    an_outage_passes_by_itself(&server, &server.database("outage").await.expect("a database")).await;
}

/// Both look at once: one of them writes it, and dies before it is sent; then one dies while it
/// sends.
async fn an_alert_of_a_dead_replica_is_sent_by_another(url: &str) {
    let (one, two) = (House::open(url).await, House::open(url).await);
    let done = || Attribution::by("tester", "a test");
    let (name, shown) = ("ops".to_owned(), "hooks.example".to_owned());
    let place = NewAlertPlace { name: name.clone(), kind: AlertPlaceKind::Slack, shown, sealed: b"sealed".to_vec() };
    let place = one.store.create_alert_place(place, done()).await.expect("a place").id;
    let new = NewAlertRule { name, condition: AlertCondition::Disk { bytes: 1 }, places: vec![place] };
    let rule = one.store.create_alert_rule(new, done()).await.expect("a rule");
    let (first, second) = tokio::join!(
        one.store.move_alert(&rule, AlertMove::Firing, "r1", "full", None),
        two.store.move_alert(&rule, AlertMove::Firing, "r1", "full", None)
    );
    assert!(first.expect("asked") ^ second.expect("asked"), "one of them");
    let taken = one.store.take_alerts(false, 8, 60_000, &[]).await.expect("taken").remove(0);
    assert_eq!(two.store.take_alerts(false, 8, 60_000, &[]).await.expect("taken").len(), 0);
    one.store.shut().await;
    two.clock.advance(60_001);
    let again = two.store.take_alerts(false, 8, 60_000, &[]).await.expect("taken").remove(0);
    assert_eq!((again.event, again.tries), (taken.event, 2), "the same id");
    two.store.alert_tried(&again, ("delivered", Some(200)), None, None).await.expect("written");
    assert_eq!(two.store.alerts_waiting().await.expect("read"), 0);
    two.close().await;
}

/// Two tasks come to one name at a provider in the same moment, each on its own replica: one of
/// them has it.
async fn two_replicas_give_one_name_once(url: &str) {
    let (one, two) = (House::open(url).await, House::open(url).await);
    let c = one.customer(0, 100_000).await;
    let text = str::to_owned;
    for number in 0..50 {
        let mut ids = Vec::new();
        for house in [&one, &two] {
            let mut wish = house.wish(&c, 10);
            wish.expires_at += 86_400_000;
            let new = NewTask { plan: text("{}"), webhook_url: None, lease_ms: 60_000 };
            let begun = house.store.begin_task(wish, new).await.expect("a task");
            let (host, key) = (text("sim.example"), format!("{number}"));
            let to = SentTo { provider: text("sim"), upstream_model: text("wan"), host, key };
            assert!(house.store.task_sending(begun, to, 60_000).await.expect("written"));
            ids.push(begun.id);
        }
        let name = format!("up-{number}");
        let (first, second) = tokio::join!(
            one.store.task_accepted(ids[0], name.clone(), 60_000),
            two.store.task_accepted(ids[1], name.clone(), 60_000)
        );
        let mut said = [first.expect("asked"), second.expect("asked")];
        said.sort_by_key(|named| *named == TaskNaming::Taken);
        assert_eq!(said, [TaskNaming::Done, TaskNaming::Taken], "{name}");
    }
    two.close().await;
    one.close().await;
}

/// A conversation goes on wherever the next request lands, at once, and ends for all when it is
/// erased.
async fn a_response_stored_by_one_is_found_by_the_other(url: &str) {
    let (one, two) = (House::open(url).await, House::open(url).await);
    let (c, other) = (one.customer(0, 0).await, one.customer(0, 0).await);
    let now = one.clock.now();
    let response = |id: &str, previous: Option<&str>| StoredResponse {
        id: id.to_owned(),
        previous: previous.map(str::to_owned),
        conversation: None,
        created_at: now,
        expires_at: now + 86_400_000,
        input: "[]".to_owned(),
        object: format!("{{\"id\":\"{id}\"}}"),
    };
    let new = |id: &str, previous: Option<&str>| NewResponse {
        account: c.account,
        response: response(id, previous),
        items: vec![format!("msg_{id}")],
        said: Vec::new(),
    };
    // Stored here, read there without any wait; continued there, read here.
    one.store.store_response(new("a", None), Quota::UNLIMITED).await.expect("asked").expect("room");
    assert_eq!(two.store.response(c.account, "a").await.expect("read"), Some(response("a", None)));
    assert_eq!(two.store.response(other.account, "a").await.expect("read"), None, "another's is not found");
    two.store.store_response(new("b", Some("a")), Quota::UNLIMITED).await.expect("asked").expect("room");
    let Chain::Whole(chain) = one.store.response_chain(c.account, "b").await.expect("read") else {
        panic!("not the whole chain")
    };
    assert_eq!(chain, [response("a", None), response("b", Some("a"))]);
    let items = one.store.responses_with_items(c.account, vec!["msg_b".to_owned()]).await.expect("read");
    assert_eq!(items, [response("b", Some("a"))]);
    assert!(two.store.delete_response(c.account, "a").await.expect("asked"));
    assert_eq!(one.store.response(c.account, "a").await.expect("read"), None, "erased for all");
    one.close().await;
    two.close().await;
}

/// What the replica's sweeps see within a bit more than the time of silence, which is a minute in
/// these tests.
async fn a_minute_passes(h: &House) -> u64 {
    let mut orphaned = 0;
    for _ in 0..4 {
        orphaned += h.store.sweep(h.clock.now()).await.expect("sweep").orphaned;
        h.clock.advance(21_000);
        h.store.beat().await.expect("beat");
    }
    orphaned
}

fn long(h: &House, c: &Customer, amount: i64) -> Hold {
    let mut wish = h.wish(c, amount);
    wish.expires_at += 600_000;
    wish
}

async fn dead_replicas_are_cleaned_up_after(url: &str) {
    let one = House::open(url).await;
    let two = House::open(url).await;
    let c = one.customer(0, 1_000).await;
    let lost = one.hold(long(&one, &c, 100)).await.expect("a hold").call;
    let second = two.hold(long(&two, &c, 100)).await.expect("a hold").call;
    one.extend(one.more(&c, lost, 1, 50)).await.expect("more");
    // The same cap and balance hold for both.
    assert!(matches!(two.hold(two.wish(&c, 751)).await, Err(HoldRefused::Insufficient { .. })));
    // As long as it beats it lives, whatever the clocks say, and keeps its holds even past their
    // time.
    one.clock.advance(-3_600_000);
    two.clock.advance(1_000_000);
    for _ in 0..10 {
        assert_eq!(two.store.sweep(two.clock.now()).await.expect("sweep").orphaned, 0);
        two.clock.advance(25_000);
        one.store.beat().await.expect("beat");
    }
    one.store.shut().await;
    assert_eq!(a_minute_passes(&two).await, 1);
    let row = two.store.usage_of(c.account, lost).await.expect("reading").expect("a row");
    assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::Expired, "replica_lost", 0));
    assert_eq!(row.hold.nano(), 150);
    two.store.close(two.ending(&c, second, 0)).await.expect("closed");
    assert_eq!(two.pots(&c).await, (0, 1_000, 0, 0));
    two.close().await;
}

/// Both others find the same replica dead in the same moment: each of its holds is resolved by one
/// of them.
async fn two_sweepers_share_what_a_dead_replica_left(url: &str) {
    let (gone, one, two) = (House::open(url).await, House::open(url).await, House::open(url).await);
    let c = gone.customer(0, 10_000).await;
    let mut lost = Vec::new();
    for _ in 0..40 {
        lost.push(gone.hold(long(&gone, &c, 100)).await.expect("a hold").call);
    }
    gone.store.shut().await;
    drop(gone);
    let mut orphaned = [0, 0];
    for _ in 0..4 {
        let (first, second) = tokio::join!(one.store.sweep(one.clock.now()), two.store.sweep(two.clock.now()));
        orphaned[0] += first.expect("a sweep").orphaned;
        orphaned[1] += second.expect("a sweep").orphaned;
        for h in [&one, &two] {
            h.clock.advance(21_000);
            h.store.beat().await.expect("a beat");
        }
    }
    assert_eq!(orphaned[0] + orphaned[1], 40, "each by one of them: {orphaned:?}");
    assert_eq!(one.pots(&c).await, (0, 10_000, 0, 0));
    let rows =
        two.store.usage(Some(c.account), UsagePage { limit: 100, ..UsagePage::default() }).await.expect("reading");
    assert_eq!(rows.len(), 40, "one row each");
    for call in lost {
        let row = rows.iter().find(|row| row.call == call).expect("its row");
        assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::Expired, "replica_lost", 0));
        let entries = one.store.entries_of(c.account, call).await.expect("reading");
        assert_eq!(entries.len(), 2, "held once and ended once: {entries:?}");
    }
    one.close().await;
    two.close().await;
}

/// A replica loses the database but not its clients: what it delivers meanwhile is charged when it
/// is back.
async fn a_replica_cut_off_loses_no_charge(url: &str) {
    let cut = Cable::lay(url).await;
    let one = House::open(&cut.url).await;
    let two = House::open_with(url, Options { lost_reply: lost, ..options() }).await;
    let c = two.customer(0, 1_000).await;
    let mut wish = long(&one, &c, 100);
    wish.idem = Some(idem(1, 1));
    let answered = one.hold(wish).await.expect("a hold").call;
    let drawing = |h: &House| Hold { endpoint: ONCE, idem: Some(idem(3, 1)), ..long(h, &c, 50) };
    let drawn = one.hold(drawing(&one)).await.expect("a hold").call;
    let failed = one.hold(long(&one, &c, 70)).await.expect("a hold").call;
    cut.cut().await;
    let mut ending = one.ending(&c, answered, 60);
    ending.reply = Some(reply("first"));
    let mut picture = one.ending(&c, drawn, 40);
    picture.reply = Some(reply("a picture"));
    let closings = [one.store.close(ending), one.store.close(one.ending(&c, failed, 0)), one.store.close(picture)];
    assert_eq!(a_minute_passes(&two).await, 3, "given up by the other");
    assert_eq!(two.pots(&c).await, (0, 1_000, 0, 0));
    // Nobody knows yet whether the picture was made.
    assert!(
        matches!(two.hold(drawing(&two)).await, Err(HoldRefused::IdemDone { call, reply }) if call == drawn && reply == lost(ONCE))
    );
    cut.mend();
    let mut captured = Vec::new();
    for closing in closings {
        let closed = closing.await.expect("closed");
        captured.push((closed.captured.nano(), closed.write_off.nano(), closed.applied));
    }
    assert_eq!(captured, [(60, 0, true), (0, 0, true), (40, 0, true)]);
    assert!(
        matches!(two.hold(drawing(&two)).await, Err(HoldRefused::IdemDone { call, reply: Some(reply) }) if call == drawn && reply.body == "a picture")
    );
    let row = two.store.usage_of(c.account, answered).await.expect("reading").expect("a row");
    assert_eq!((row.ending, row.reason.as_str(), row.status), (Ending::Answered, "", 200));
    assert_eq!((row.hold.nano(), row.charge.nano()), (100, 60), "the row tells what happened");
    let row = two.store.usage_of(c.account, failed).await.expect("reading").expect("a row");
    assert_eq!((row.ending, row.hold.nano(), row.charge.nano()), (Ending::UpstreamFault, 70, 0));
    assert_eq!(two.pots(&c).await, (0, 900, 0, 0));
    let again = one.store.close(one.ending(&c, answered, 60)).await.expect("closed");
    assert!(!again.applied, "once");
    // The client's key answers with the first reply again, and the charge can be given back like
    // any other.
    let mut repeated = long(&two, &c, 100);
    repeated.idem = Some(idem(1, 1));
    assert!(
        matches!(two.hold(repeated).await, Err(HoldRefused::IdemDone { call, reply: Some(_) }) if call == answered)
    );
    let refund = CreditKind::Refund { call: answered };
    assert_eq!(two.credit(&c, "back", refund, Pot::Paid, 60).await, Ok(true));
    assert_eq!(two.pots(&c).await, (0, 960, 0, 0));
    one.close().await;
    two.close().await;
}

/// It died with a stream running and starts again after it was given up: the last mark is charged,
/// up to what is left.
async fn a_replica_that_comes_back_late_charges_its_marks(url: &str) {
    let one = House::open(url).await;
    let two = House::open(url).await;
    let c = two.customer(0, 100).await;
    let (streaming, repeated) = (one.hold(long(&one, &c, 60)).await.expect("a hold").call, {
        let mut wish = long(&one, &c, 10);
        wish.idem = Some(idem(2, 1));
        one.hold(wish).await.expect("a hold").call
    });
    one.store.mark(one.mark(&c, streaming, 50));
    one.store.mark(one.mark(&c, repeated, 9));
    one.store.shut().await;
    assert_eq!(a_minute_passes(&two).await, 2);
    // Meanwhile the client repeated one of them and was charged for it, and spent nearly all.
    let mut wish = long(&two, &c, 70);
    wish.idem = Some(idem(2, 1));
    let second = two.hold(wish).await.expect("the key is free").call;
    two.store.close(two.ending(&c, second, 70)).await.expect("closed");
    let one = one.reopen().await;
    assert_eq!((one.recovered.settled, one.recovered.voided), (1, 1));
    let of = async |call| two.store.usage_of(c.account, call).await.expect("reading").expect("a row");
    let row = of(streaming).await;
    assert_eq!((row.charge.nano(), row.write_off.nano()), (30, 20), "the account had no more");
    let row = of(repeated).await;
    assert_eq!((row.charge.nano(), row.write_off.nano()), (0, 9), "its key has paid already");
    assert_eq!(two.pots(&c).await, (0, 0, 0, 0));
    one.close().await;
    two.close().await;
}

/// It was only silent, is back, and its stream goes on: when it dies then, what it delivered after
/// its return is charged as well.
async fn a_replica_that_was_given_up_goes_on_marking(url: &str) {
    let (one, two) = (House::open(url).await, House::open(url).await);
    let c = two.customer(0, 100).await;
    let call = one.hold(long(&one, &c, 60)).await.expect("a hold").call;
    one.store.mark(one.mark(&c, call, 20));
    assert_eq!(a_minute_passes(&two).await, 1);
    assert_eq!(one.store.gauges().open_holds, 1);
    one.store.beat().await.expect("a beat");
    assert_eq!(one.store.gauges().open_holds, 0, "not its own to count any more");
    one.store.mark(one.mark(&c, call, 45));
    one.store.shut().await;
    let one = one.reopen().await;
    let row = two.store.usage_of(c.account, call).await.expect("reading").expect("a row");
    assert_eq!((row.hold.nano(), row.charge.nano()), (60, 45));
    assert_eq!(two.pots(&c).await, (0, 55, 0, 0));
    one.close().await;
    two.close().await;
}

async fn limits_hold_for_all_replicas_together(url: &str) {
    let one = std::sync::Arc::new(House::open(url).await);
    let two = std::sync::Arc::new(House::open(url).await);
    let c = std::sync::Arc::new(one.customer(0, 100_000).await);
    let day = Change::Set(tollgate_catalog::Money::from_nano(1_000));
    one.store
        .change_key(c.key, NewLimits { day, ..NewLimits::default() }.into(), Default::default())
        .await
        .expect("limited");
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..500 {
        let (h, c) = (if n % 2 == 0 { one.clone() } else { two.clone() }, c.clone());
        tasks.spawn(async move {
            let held = h.hold(h.wish(&c, 30)).await.ok()?;
            let grown = h.extend(h.more(&c, held.call, 1, 20)).await.map_or(30, |(trial, paid)| trial + paid);
            h.store.close(h.ending(&c, held.call, grown)).await.ok()
        });
    }
    let mut captured = 0;
    while let Some(done) = tasks.join_next().await {
        captured += done.expect("no panic").map_or(0, |closed| closed.captured.nano());
    }
    assert!((951..=1_000).contains(&captured), "captured {captured}");
    assert_eq!(two.store.keys(c.account).await.expect("keys")[0].used.day.nano(), captured);
    for h in [one, two] {
        std::sync::Arc::into_inner(h).expect("all tasks are done").close().await;
    }
}

/// Groups of both replicas name the same accounts in opposite orders: nobody waits in a circle,
/// nothing is thrown away. A circle would not be broken by the database in time, and every one it
/// breaks is counted as a second try.
async fn replicas_with_many_accounts_never_deadlock(url: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    client.batch_execute("ALTER DATABASE deadlock SET deadlock_timeout = '30s'").await.expect("set");
    let patient = || Options { hold_deadline: Duration::from_secs(20), ..options() };
    let one = std::sync::Arc::new(House::open_with(url, patient()).await);
    let two = std::sync::Arc::new(House::open_with(url, patient()).await);
    let mut customers = Vec::new();
    for _ in 0..16 {
        customers.push(std::sync::Arc::new(one.customer(0, 10_000).await));
    }
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..64usize {
        let h = if n % 2 == 0 { one.clone() } else { two.clone() };
        let customers = customers.clone();
        tasks.spawn(async move {
            for round in 0..10 {
                let place = (n * 7 + round * 5) % customers.len();
                let c = &customers[if n % 2 == 0 { place } else { customers.len() - 1 - place }];
                let held = h.hold(h.wish(c, 10)).await.expect("a hold");
                h.store.close(h.ending(c, held.call, 5)).await.expect("closed");
            }
        });
    }
    tasks.join_all().await;
    let mut left = 0;
    for c in &customers {
        left += two.pots(c).await.1;
    }
    assert_eq!(left, 16 * 10_000 - 64 * 10 * 5, "every charge is there");
    assert_eq!((one.store.gauges().retries, two.store.gauges().retries), (0, 0), "a circle");
    for h in [one, two] {
        std::sync::Arc::into_inner(h).expect("all tasks are done").close().await;
    }
}

async fn expired_credit_is_taken_once_by_whoever_comes_first(url: &str) {
    let one = House::open(url).await;
    let two = House::open(url).await;
    let c = one.customer(10, 0).await;
    let credit = Credit {
        id: "gift".into(),
        account: c.account,
        kind: CreditKind::TopUp,
        pot: Pot::Trial,
        amount: tollgate_catalog::Money::from_nano(100),
        expires_at: Some(one.clock.now() + 1_000),
        reason: "test".into(),
        actor: "tester".into(),
    };
    one.store.credit(credit).await.expect("credited");
    for h in [&one, &two] {
        h.clock.advance(1_000);
    }
    let (first, second) = tokio::join!(one.store.sweep(one.clock.now()), two.store.sweep(two.clock.now()));
    assert_eq!(first.expect("a sweep").lapsed + second.expect("a sweep").lapsed, 1);
    assert_eq!(two.pots(&c).await, (10, 0, 0, 0));
    one.close().await;
    two.close().await;
}

async fn an_outage_passes_by_itself(server: &PostgresServer, url: &str) {
    let h = House::open_with(url, Options { hold_deadline: Duration::from_secs(2), ..options() }).await;
    let c = h.customer(0, 1_000).await;
    for _ in 0..20 {
        let call = h.held(&c, 1).await;
        h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    }
    let running = h.held(&c, 100).await;
    let all = h.store.verify().await.expect("audited").entries;
    server.stop().expect("stopped");
    assert!(h.store.verify_changed().await.is_err());
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
    let report = h.store.verify_changed().await.expect("audited");
    assert!(report.breaches.is_empty() && report.entries < all, "only what has changed: {report:?}, {all} before");
    let call = h.held(&c, 940).await;
    h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    assert_eq!(h.pots(&c).await, (0, 940, 0, 0));
    h.close().await;
}
