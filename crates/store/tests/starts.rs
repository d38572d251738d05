//! What a start of the embedded engine finds of holds and tasks that have been open for long.

mod common;

use common::House;
use tollgate_store::{Leased, NewTask, SentTo, TaskEnd, TaskState, TaskStep, Word};

/// The clock was two hours ahead when the task was begun and when the next process starts, and right in between, when its fate became
/// unknown: the task is seconds old, so nothing about it is two hours old.
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

async fn take(h: &House) -> Leased {
    h.store.take_tasks(1, 60_000, &[]).await.expect("taken").pop().expect("it is due")
}
