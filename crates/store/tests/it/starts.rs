//! What a start of the embedded engine finds of holds and tasks that have been open for long, and
//! how much it reads for them.

use std::time::Duration;

use crate::common::{Customer, House, options};
use tollgate_store::{Close, Ending, Leased, NewTask, Options, SentTo, TaskEnd, TaskState, TaskStep, Word};

/// The clock was two hours ahead when the task was begun and when the next process starts, and
/// right in between, when its fate became unknown: the task is seconds old, so nothing about it is
/// two hours old.
#[tokio::test]
async fn nothing_about_a_task_is_older_than_the_task() {
    const HOURS: i64 = 2 * 3_600_000;
    let h = House::open("sqlite").await;
    let c = h.customer(0, 1_000).await;
    let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
    h.clock.advance(HOURS);
    let begun = h.store.begin_task(h.wish(&c, 300), new).await.expect("a task");
    let to = SentTo { provider: "sim".into(), upstream_model: "m".into(), host: "h".into(), key: "k".into() };
    assert!(h.store.task_sending(begun, to, 60_000).await.expect("sent"));
    h.clock.advance(-HOURS);
    for word in [Word::Made, Word::Absent] {
        let step = TaskStep::new(begun.id, begun.fence, TaskState::Unknown, word, 0);
        let fence = if word == Word::Made { step.fence } else { take(&h).await.fence };
        assert!(h.store.put_back_task(TaskStep { fence, ..step }).await.expect("put back"));
    }
    h.clock.advance(HOURS + 1_000);
    let h = h.reopen().await;
    let found = take(&h).await;
    let ages = [found.age_ms, found.unknown_ms, found.absent_ms, found.made_ms];
    assert!((1_000..60_000).contains(&found.age_ms), "{}", found.age_ms);
    assert_eq!(ages, [found.age_ms; 4], "age, unknown, absent, made");
    let end = TaskEnd {
        fence: found.fence,
        state: TaskState::Failed,
        result: None,
        failure: None,
        forgiven: false,
        webhook_url: None,
        close: h.ending(&c, begun.id.call(), 0),
    };
    h.store.finish_task(end).await.expect("ended").expect("by us");
    h.close().await;
}

/// A video and a call that go on while many others come and go: a start finds both, and reads of
/// the ledger only the end.
#[tokio::test]
async fn a_start_reads_no_more_of_the_ledger_for_a_hold_that_stays_open() {
    const RECENT: u64 = 20;
    let h = House::open_with("sqlite", Options { old_after: RECENT, ..options() }).await;
    let c = h.customer(0, 1_000).await;
    let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
    let video = h.store.begin_task(h.wish(&c, 300), new).await.expect("a task").id;
    let [long, ended] = [h.held(&c, 100).await, h.held(&c, 7).await];
    h.extend(h.more(&c, long, 1, 50)).await.expect("more");
    others_until(&h, &c, "the three are before the mark", |file| listed(file) == 3 && mark(file) > 10).await;
    // What follows after they were listed counts as well, and once.
    h.extend(h.more(&c, long, 2, 30)).await.expect("more");
    h.store.close(h.ending(&c, ended, 5)).await.expect("closed");
    assert_eq!(h.pots(&c).await, (0, 1_000 - 5 - 480, 0, 480));

    let copy = h.crashed_copy().await;
    let row = copy.store.usage_of(c.account, long).await.expect("reading").expect("it was resolved");
    assert_eq!((row.hold.nano(), row.charge.nano()), (180, 0));
    assert_eq!(copy.pots(&c).await, (0, 1_000 - 5 - 300, 0, 300), "the video goes on");
    let leased = take(&copy).await;
    assert_eq!(leased.task.id, video);
    let end = TaskEnd {
        fence: leased.fence,
        state: TaskState::Completed,
        result: Some("{}".into()),
        failure: None,
        forgiven: false,
        webhook_url: None,
        close: Close { ending: Ending::Answered, ..copy.ending(&c, video.call(), 200) },
    };
    copy.store.finish_task(end).await.expect("ended").expect("by us");
    others_until(&copy, &c, "nobody is listed", |file| listed(file) == 0).await;
    let copy = copy.reopen().await;
    assert_eq!(copy.pots(&c).await, (0, 1_000 - 5 - 200, 0, 0));
    copy.close().await;
}

/// A process that ends in its first second leaves no more to be read than it found: it lists what
/// is old with its first group.
#[tokio::test]
async fn the_first_group_after_a_start_lists_what_is_old() {
    const RECENT: u64 = 20;
    let h = House::open_with("sqlite", Options { old_after: RECENT, ..options() }).await;
    let c = h.customer(0, 1_000).await;
    let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
    h.store.begin_task(h.wish(&c, 300), new).await.expect("a task");
    others_until(&h, &c, "the video is listed", |file| listed(file) == 1).await;
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    file.execute_batch("DELETE FROM old_hold; UPDATE meta SET value = 0 WHERE name = 'oldest_open_seq'")
        .expect("nothing");
    let h = h.reopen().await;
    assert_eq!((listed(&file), mark(&file)), (0, 0), "it has written nothing yet");
    let call = h.held(&c, 1).await;
    h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    let h = h.reopen().await;
    assert_eq!(listed(&file), 1);
    assert!(mark(&file) > i64::try_from(RECENT).expect("a few"), "{}", mark(&file));
    assert_eq!(h.pots(&c).await, (0, 700, 0, 300), "the video goes on");
    h.close().await;
}

/// Lets other calls come and go, free of charge, until the file says so.
async fn others_until(h: &House, c: &Customer, what: &str, is: impl Fn(&rusqlite::Connection) -> bool) {
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    file.busy_timeout(Duration::from_secs(20)).expect("patience");
    for _ in 0..2_000 {
        for _ in 0..20 {
            let call = h.held(c, 1).await;
            h.store.close(h.ending(c, call, 0)).await.expect("closed");
        }
        if is(&file) {
            return;
        }
    }
    panic!("it does not happen that {what}");
}

fn number(file: &rusqlite::Connection, sql: &str) -> i64 {
    file.query_row(sql, [], |r| r.get(0)).expect("a number")
}

fn listed(file: &rusqlite::Connection) -> i64 {
    number(file, "SELECT count(*) FROM old_hold")
}

/// The entry from which a start reads on.
fn mark(file: &rusqlite::Connection) -> i64 {
    number(file, "SELECT coalesce(max(value), 0) FROM meta WHERE name = 'oldest_open_seq'")
}

async fn take(h: &House) -> Leased {
    h.store.take_tasks(1, 60_000, &[]).await.expect("taken").pop().expect("it is due")
}
