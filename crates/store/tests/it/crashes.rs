//! Crashes and outages on the embedded engine: what was closed stays closed, what was not is
//! resolved, nothing is counted twice, and the ledger recovers by itself.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::common::{House, ONCE, idem, lost, options, reply};
use tollgate_store::{
    CallId, Close, Ending, Held, Hold, HoldRefused, NewTask, Options, SentTo, Store, StoreError, TaskState,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_moment_loses_no_close() {
    let h = Arc::new(House::open("sqlite").await);
    let c = Arc::new(h.customer(1_000, 1_000_000).await);
    let closed: Arc<Mutex<Vec<(CallId, i64)>>> = Arc::default();
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8i64 {
        let (h, c, closed, stop) = (h.clone(), c.clone(), closed.clone(), stop.clone());
        tasks.spawn(async move {
            let mut n = task;
            while !stop.load(Ordering::Relaxed) {
                let call = h.held(&c, 20).await;
                n = (n * 31 + 7) % 25;
                h.store.mark(h.mark(&c, call, 1));
                tokio::time::sleep(Duration::from_millis(n.unsigned_abs() % 4)).await;
                // From here on no crash may lose it.
                let closing = h.store.close(h.ending(&c, call, n));
                closed.lock().expect("no panic").push((call, n));
                if n % 3 == 0 {
                    closing.await.expect("closed");
                }
            }
        });
    }
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_millis(60)).await;
        let before = closed.lock().expect("no panic").clone();
        let copy = h.crashed_copy().await;
        for (call, charge) in before {
            let row = copy.store.usage_of(c.account, call).await.expect("reading").expect("the close survived");
            assert_eq!(row.charge.nano() + row.write_off.nano(), charge);
        }
        let (_, _, trial_held, paid_held) = copy.pots(&c).await;
        assert_eq!((trial_held, paid_held), (0, 0), "every hold is resolved");
        copy.close().await;
    }
    stop.store(true, Ordering::Relaxed);
    while tasks.join_next().await.is_some() {}
    Arc::into_inner(h).expect("all tasks are done").close().await;
}

/// A hold becomes durable while its request travels: a process killed in between still leaves a row
/// for the call.
#[tokio::test]
async fn a_call_whose_hold_was_not_committed_is_in_the_log_all_the_same() {
    let slow = Options { commit_pace: Duration::from_secs(1), ..options() };
    let h = House::open_with("sqlite", slow).await;
    let c = h.customer(0, 1_000).await;
    h.held(&c, 100).await;
    // Two that wait for the next commit: one running, one that has failed already.
    let running = h.store.hold(h.wish(&c, 200)).await.expect("a hold").call;
    let failed = h.store.hold(h.wish(&c, 300)).await.expect("a hold").call;
    h.store.close(h.ending(&c, failed, 0));
    let copy = h.crashed_copy().await;
    let recovered = copy.recovered;
    assert_eq!((recovered.voided, recovered.dropped), (3, 0), "the journal has their holds");
    for (call, ending, reason, hold) in
        [(running, Ending::Expired, "crashed", 200), (failed, Ending::UpstreamFault, "upstream_error", 300)]
    {
        let row = copy.store.usage_of(c.account, call).await.expect("reading").expect("a row");
        assert_eq!((row.ending, row.reason.as_str(), row.charge.nano(), row.hold.nano()), (ending, reason, 0, hold));
        assert_eq!((row.key, row.model.as_str()), (c.key, "test"));
    }
    assert_eq!(copy.pots(&c).await, (0, 1_000, 0, 0));
    copy.close().await;
    h.close().await;
}

/// Somebody keeps the database locked all the while: hold and end are in the journal alone.
#[tokio::test]
async fn a_call_that_only_the_journal_knows_survives_a_crash() {
    let h = House::open("sqlite").await;
    let c = h.customer(30, 1_000).await;
    let blocker = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let with_key = |h: &House| Hold { idem: Some(idem(1, 1)), ..h.wish(&c, 100) };
    let mut held = h.store.hold(with_key(&h)).await.expect("a hold");
    held.durable().await.expect("the journal has it");
    let mut ending = h.ending(&c, held.call, 70);
    ending.reply = Some(reply("answer"));
    h.store.close(ending);
    let copy = h.crashed_copy().await;
    assert_eq!((copy.recovered.settled, copy.recovered.voided, copy.recovered.dropped), (1, 0, 0));
    let row = copy.store.usage_of(c.account, held.call).await.expect("reading").expect("a row");
    assert_eq!((row.hold.nano(), row.charge.nano(), row.ending), (100, 70, Ending::Answered));
    assert_eq!(copy.pots(&c).await, (0, 960, 0, 0));
    let again = copy.hold(with_key(&copy)).await;
    assert!(matches!(again, Err(HoldRefused::IdemDone { call, reply: Some(_) }) if call == held.call));
    copy.close().await;
    blocker.execute_batch("ROLLBACK").expect("released");
    assert_eq!(h.pots(&c).await, (0, 960, 0, 0));
    h.close().await;
}

/// Nothing is left for the version before this one, which does not know what a hold looks like now.
#[tokio::test]
async fn a_clean_stop_leaves_nothing_in_the_journal() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let (ended, streaming) = (h.held(&c, 100).await, h.held(&c, 20).await);
    h.store.close(h.ending(&c, ended, 70));
    h.store.mark(h.mark(&c, streaming, 4));
    h.store.shut().await;
    let kinds: Vec<u8> = ["journal.0", "journal.1"].map(|name| kinds_in(&h.place.data_dir.join(name))).concat();
    assert_eq!(kinds, [2], "a mark and nothing else");
    let h = h.reopen().await;
    let row = h.store.usage_of(c.account, streaming).await.expect("reading").expect("a row");
    assert_eq!((row.charge.nano(), row.reason.as_str()), (4, "crashed"), "its mark is left");
    h.close().await;
}

/// The first bytes of the records in a segment, as far as they are of its turn.
fn kinds_in(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("the journal");
    let word = |at: usize| bytes.get(at..at + 4).map(|b| u32::from_le_bytes(b.try_into().expect("four")));
    let (mut at, mut kinds) = (16, Vec::new());
    while let (Some(len), Some(crc)) = (word(at), word(at + 4)) {
        let Some(payload) = bytes.get(at + 8..at + 8 + len as usize) else { break };
        let mut sum = crc32fast::Hasher::new();
        sum.update(&bytes[4..12]);
        sum.update(payload);
        if len == 0 || sum.finalize() != crc {
            break;
        }
        kinds.push(payload[0]);
        at += 8 + len as usize;
    }
    kinds
}

#[tokio::test]
async fn a_crashed_stream_is_settled_at_its_last_mark() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 100_000).await;
    let streaming = h.held(&c, 90).await;
    h.store.mark(h.mark(&c, streaming, 33));
    // Enough closes for the journal to turn over several times: the mark is carried along.
    for _ in 0..600 {
        let call = h.held(&c, 10).await;
        h.store.close(h.ending(&c, call, 1));
    }
    let copy = h.crashed_copy().await;
    let row = copy.store.usage_of(c.account, streaming).await.expect("reading").expect("a row");
    assert_eq!((row.charge.nano(), row.ending, row.reason.as_str()), (33, Ending::Expired, "crashed"));
    copy.close().await;
    h.store.close(h.ending(&c, streaming, 40)).await.expect("closed");
    h.close().await;
}

/// The end of a call past its time is in the journal before the database has it: whatever the
/// journal is used for meanwhile, a crash does not make the call free.
#[tokio::test]
async fn a_crash_after_a_call_was_past_its_time_charges_its_mark() {
    let slow = Options { commit_pace: Duration::from_secs(1), ..options() };
    let h = House::open_with("sqlite", slow).await;
    let c = h.customer(0, 100_000).await;
    let mut wish = h.wish(&c, 90);
    wish.expires_at = h.clock.now() + 1_000;
    let mut held = h.store.hold(wish).await.expect("a hold");
    held.durable().await.expect("durable");
    h.store.mark(h.mark(&c, held.call, 33));
    // What the sweep asks the database for is not waited for.
    let _ = h.store.sweep(h.clock.now() + 2_000).now_or_never();
    for _ in 0..600 {
        if let Ok(held) = h.store.hold(h.wish(&c, 10)).await {
            h.store.close(h.ending(&c, held.call, 1));
        }
    }
    let copy = h.crashed_copy().await;
    let row = copy.store.usage_of(c.account, held.call).await.expect("reading").expect("a row");
    assert_eq!((row.charge.nano(), row.ending, row.reason.as_str()), (33, Ending::Expired, "expired"));
    copy.close().await;
    h.close().await;
}

#[tokio::test]
async fn a_crash_between_extension_and_close_resolves_the_whole() {
    let h = House::open("sqlite").await;
    let c = h.customer(10, 500).await;
    let (silent, streaming) = (h.held(&c, 20).await, h.held(&c, 20).await);
    for call in [silent, streaming] {
        h.extend(h.more(&c, call, 1, 80)).await.expect("it fits");
    }
    h.store.mark(h.mark(&c, streaming, 90));
    let copy = h.crashed_copy().await;
    assert_eq!((copy.recovered.voided, copy.recovered.settled), (1, 1));
    let row = copy.store.usage_of(c.account, streaming).await.expect("reading").expect("a row");
    assert_eq!((row.hold.nano(), row.charge.nano()), (100, 90));
    let (trial, paid, trial_held, paid_held) = copy.pots(&c).await;
    assert_eq!((trial + paid, trial_held, paid_held), (420, 0, 0));
    copy.close().await;
    for call in [silent, streaming] {
        h.store.close(h.ending(&c, call, 1)).await.expect("closed");
    }
    h.close().await;
}

/// The journal has the close but the database not the extension: what the close needs above the
/// hold is taken again.
#[tokio::test]
async fn an_extension_lost_in_a_crash_is_made_up_by_the_close() {
    let slow = Options { commit_pace: Duration::from_secs(1), ..options() };
    let h = House::open_with("sqlite", slow).await;
    let c = h.customer(0, 100).await;
    let call = h.held(&c, 20).await;
    h.store.extend(h.more(&c, call, 1, 50)).await.expect("decided in memory");
    h.store.close(h.ending(&c, call, 65));
    let copy = h.crashed_copy().await;
    let row = copy.store.usage_of(c.account, call).await.expect("reading").expect("a row");
    assert_eq!(
        (row.hold.nano(), row.charge.nano(), row.write_off.nano()),
        (20, 65, 0),
        "the copy was made before the commit"
    );
    assert_eq!(copy.pots(&c).await, (0, 35, 0, 0));
    copy.close().await;
    h.close().await;
}

#[tokio::test]
async fn a_crashed_call_gives_its_idempotency_key_back_unless_it_was_charged() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let with = |h: &House, n| {
        let mut wish = h.wish(&c, 10);
        wish.idem = Some(idem(n, 1));
        wish
    };
    let silent = h.hold(with(&h, 1)).await.expect("new").call;
    let streaming = h.hold(with(&h, 2)).await.expect("new").call;
    h.store.mark(h.mark(&c, streaming, 4));
    let copy = h.crashed_copy().await;
    let again = copy.hold(with(&copy, 1)).await.expect("it was never answered").call;
    assert_ne!(again, silent);
    assert!(
        matches!(copy.hold(with(&copy, 2)).await, Err(HoldRefused::IdemDone { call, reply: None }) if call == streaming)
    );
    copy.store.close(copy.ending(&c, again, 0)).await.expect("closed");
    copy.close().await;
    for call in [silent, streaming] {
        h.store.close(h.ending(&c, call, 1)).await.expect("closed");
    }
    h.close().await;
}

/// Something may have been made for it, so whoever repeats it is told that, and nothing is begun.
/// The same goes for a call that is past its time.
#[tokio::test]
async fn a_call_that_is_begun_once_leaves_word_under_its_key() {
    let h = House::open_with("sqlite", Options { lost_reply: lost, ..options() }).await;
    let c = h.customer(0, 1_000).await;
    let with = |h: &House, n| Hold { endpoint: ONCE, idem: Some(idem(n, 1)), ..h.wish(&c, 10) };
    let first = h.hold(with(&h, 1)).await.expect("new").call;
    let copy = h.crashed_copy().await;
    assert_eq!(copy.recovered.voided, 1);
    let told = |refused: Result<Held, HoldRefused>, first: CallId| match refused {
        Err(HoldRefused::IdemDone { call, reply }) => assert_eq!((call, reply), (first, lost(ONCE))),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was begun again"),
    };
    told(copy.hold(with(&copy, 1)).await, first);
    assert_eq!(copy.pots(&c).await, (0, 1_000, 0, 0));
    let expires = copy.hold(with(&copy, 2)).await.expect("new").call;
    copy.clock.advance(60_001);
    assert_eq!(copy.store.sweep(copy.clock.now()).await.expect("a sweep").expired, 1);
    told(copy.hold(with(&copy, 2)).await, expires);
    assert_eq!(copy.pots(&c).await, (0, 1_000, 0, 0));
    // It says so after the next start too.
    let copy = copy.reopen().await;
    told(copy.hold(with(&copy, 2)).await, expires);
    copy.close().await;
    h.store.close(h.ending(&c, first, 1)).await.expect("closed");
    h.close().await;
}

/// The journal is emptied after a recovery, so all of it must be in the database by then.
#[tokio::test]
async fn a_recovery_is_committed_before_the_store_opens() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let (silent, streaming) = (h.held(&c, 10).await, h.held(&c, 10).await);
    h.store.mark(h.mark(&c, streaming, 4));
    let copy = h.crashed_copy_with(Options { commit_pace: Duration::from_secs(2), ..options() }).await;
    let file = rusqlite::Connection::open(copy.place.data_dir.join("tollgate.db")).expect("the file");
    let rows: i64 = file.query_row("SELECT count(*) FROM usage", [], |r| r.get(0)).expect("rows");
    assert_eq!(rows, 2);
    drop(file);
    copy.close().await;
    for call in [silent, streaming] {
        h.store.close(h.ending(&c, call, 1)).await.expect("closed");
    }
    h.close().await;
}

/// A record that is whole, of a format that nobody knows.
#[tokio::test]
async fn a_record_that_cannot_be_read_is_counted() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let call = h.held(&c, 10).await;
    h.store.close(h.ending(&c, call, 4)).await.expect("closed");
    let path = h.place.data_dir.join("journal.1");
    let mut bytes = std::fs::read(&path).expect("the journal");
    let mut at = 16;
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word")) as usize;
    while word(&bytes, at) > 0 {
        at += 8 + word(&bytes, at);
    }
    assert!(at > 16, "the hold and the close are in it");
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[4..12]);
    crc.update(&[99, 1]);
    bytes[at..at + 4].copy_from_slice(&2u32.to_le_bytes());
    bytes[at + 4..at + 8].copy_from_slice(&crc.finalize().to_le_bytes());
    bytes[at + 8..at + 10].copy_from_slice(&[99, 1]);
    std::fs::write(&path, bytes).expect("written");
    let copy = h.crashed_copy().await;
    assert_eq!(copy.recovered.dropped, 1);
    copy.close().await;
    h.close().await;
}

/// Recovery is one commit, and a large one: it is not held to the deadline of a hold.
#[tokio::test]
async fn a_recovery_takes_as_long_as_it_takes() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 100_000).await;
    let mut open = Vec::new();
    for _ in 0..2_000 {
        open.push(h.store.hold(h.wish(&c, 10)).await.expect("a hold"));
    }
    for held in &mut open {
        held.durable().await.expect("durable");
    }
    let copy = h.crashed_copy_with(Options { hold_deadline: Duration::from_millis(1), ..options() }).await;
    assert_eq!(copy.recovered.voided, 2_000);
    copy.store.shut().await;
    for held in open {
        h.store.close(h.ending(&c, held.call, 0));
    }
    h.close().await;
}

#[tokio::test]
async fn an_outage_refuses_holds_and_passes_by_itself() {
    // Neither the journal nor the database takes anything.
    let unsynced = Options { hold_deadline: Duration::from_secs(1), journal_sync_fails: true, ..options() };
    let h = House::open_with("sqlite", unsynced).await;
    let c = h.customer(0, 1_000).await;
    let running = h.held(&c, 100).await;
    let blocker = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");

    let mut held = h.store.hold(h.wish(&c, 50)).await.expect("decided in memory");
    assert!(matches!(held.durable().await, Err(StoreError::Unavailable(_))));
    assert!(h.store.gauges().down && !h.store.ready());
    let lag = h.store.gauges().settle_lag_ms;
    assert!((1_000..60_000).contains(&lag), "the group that is stuck counts: {lag} ms");
    assert!(matches!(h.store.hold(h.wish(&c, 50)).await, Err(HoldRefused::Unavailable)));
    assert!(matches!(h.store.extend(h.more(&c, running, 1, 10)).await, Err(HoldRefused::Unavailable)));
    // Rows of refused calls are counted instead of gathered.
    h.store.note_refusal(h.maker.call(), c.account, "no".into(), h.facts(&c, 0));
    assert_eq!(h.store.gauges().refusals_dropped, 1);
    h.store.close(h.ending(&c, held.call, 0));
    let closing = h.store.close(h.ending(&c, running, 70));
    assert_eq!(closing.known().expect("known at once").captured.nano(), 70);
    // A crash during the outage loses neither: both are in the journal.
    let copy = h.crashed_copy().await;
    assert_eq!((copy.recovered.settled, copy.recovered.voided, copy.recovered.dropped), (1, 1, 0));
    assert_eq!(copy.pots(&c).await, (0, 930, 0, 0));
    copy.close().await;

    blocker.execute_batch("ROLLBACK").expect("released");
    closing.await.expect("applied in the end");
    assert!(h.store.ready());
    assert_eq!(h.store.gauges().settle_lag_ms, 0);
    assert_eq!(h.pots(&c).await, (0, 930, 0, 0));
    let call = h.held(&c, 930).await;
    h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    h.close().await;
}

/// What was not written in time is not sent, and ends when it can be written.
#[tokio::test]
async fn a_task_waits_no_longer_for_the_database_than_a_hold() {
    let h = House::open_with("sqlite", Options { hold_deadline: Duration::from_millis(300), ..options() }).await;
    let c = h.customer(0, 1_000).await;
    let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
    let begun = h.store.begin_task(h.wish(&c, 300), new).await.expect("a task");
    let blocker = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let text = str::to_owned;
    let to = SentTo { provider: text("sim"), upstream_model: text("wan"), host: text("sim.example"), key: text("a1") };
    let sending = h.store.task_sending(begun, to, 60_000).await;
    assert!(matches!(sending, Err(StoreError::Unavailable(_))), "{sending:?}");
    let end = h.refused_task(&c, begun);
    let ended = h.store.finish_task(end.clone()).await;
    assert!(matches!(ended, Err(StoreError::Unavailable(_))), "{ended:?}");
    let seen = h.store.task(c.account, begun.id).await.expect("readable").expect("the task");
    assert_eq!(seen.state, TaskState::Held, "what was last written");
    blocker.execute_batch("ROLLBACK").expect("released");
    while h.store.task(c.account, begun.id).await.expect("read").expect("the task").state != TaskState::Refused {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(h.store.finish_task(end).await.expect("asked").is_none(), "once");
    assert_eq!(h.pots(&c).await, (0, 1_000, 0, 0));
    h.close().await;
}

#[tokio::test]
async fn a_full_journal_refuses_holds() {
    const JOURNAL_LIMIT: u64 = 6_000;
    let tight = Options { journal_limit: JOURNAL_LIMIT, journal_sync_fails: true, ..options() };
    let h = House::open_with("sqlite", tight).await;
    let c = h.customer(0, 100_000).await;
    let mut open = Vec::new();
    for _ in 0..60 {
        open.push(h.held(&c, 10).await);
    }
    let still_open = h.held(&c, 10).await;
    let blocker = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let closings: Vec<_> = open.iter().map(|call| h.store.close(h.ending(&c, *call, 1))).collect();
    assert!(h.store.gauges().journal_bytes > JOURNAL_LIMIT);
    assert!(matches!(h.store.hold(h.wish(&c, 1)).await, Err(HoldRefused::Unavailable)));
    assert!(matches!(h.store.extend(h.more(&c, still_open, 1, 10)).await, Err(HoldRefused::Unavailable)));
    blocker.execute_batch("ROLLBACK").expect("released");
    for closing in closings {
        closing.await.expect("applied");
    }
    h.store.close(h.ending(&c, still_open, 1)).await.expect("closed");
    let call = h.held(&c, 1).await;
    h.store.close(h.ending(&c, call, 1)).await.expect("closed");
    h.close().await;
}

#[tokio::test]
async fn a_repeated_request_finds_the_reply_before_it_is_committed() {
    let h = House::open_with("sqlite", Options { commit_pace: Duration::from_millis(300), ..options() }).await;
    let c = h.customer(0, 1_000).await;
    for n in 1..=3 {
        let wish = || {
            let mut wish = h.wish(&c, 10);
            wish.idem = Some(idem(n, 1));
            wish
        };
        let first = h.hold(wish()).await.expect("new").call;
        // Not waited for: the client has its answer when the close is in the journal.
        h.store.close(Close { reply: Some(reply("answer")), ..h.ending(&c, first, 5) });
        match h.hold(wish()).await {
            Err(HoldRefused::IdemDone { call, reply: stored }) => {
                assert_eq!((call, stored), (first, Some(reply("answer"))));
            }
            other => panic!("{:?}", other.map(|held| held.call)),
        }
    }
    h.close().await;
}

#[tokio::test]
async fn one_process_owns_the_directory() {
    let h = House::open("sqlite").await;
    let second = Store::open(h.place.clone(), options(), h.clock.world(99)).await;
    assert!(matches!(second.map(|_| ()), Err(StoreError::InUse(_))));
    h.close().await;
}

/// A log that nobody empties grows as long as somebody reads; a moment of rest is enough.
#[tokio::test]
async fn a_store_at_rest_empties_its_log() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let log = h.place.data_dir.join("tollgate.db-wal");
    let written = || std::fs::metadata(&log).expect("a log").len();
    assert!(written() > 0);
    while written() > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let call = h.held(&c, 10).await;
    // Whoever reads waits for the commit.
    h.store.last_entry().await.expect("reading");
    assert!(written() > 0, "it is used again");
    h.store.close(h.ending(&c, call, 4)).await.expect("closed");
    h.close().await;
}
