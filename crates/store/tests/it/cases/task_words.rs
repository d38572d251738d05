//! What providers said of tasks, and since when: it decides about money, so it outlives a restart.

use std::collections::HashMap;

use tollgate_store::{TaskId, TaskNaming, TaskState, TaskStep, Word};

use super::tasks::{LEASE, accepted, end, one, step};
use crate::common::{Customer, House};

/// Queued or running, and since when it is absent and made.
type Known = (Option<TaskState>, Option<i64>, Option<i64>);

async fn known(h: &House, c: &Customer, id: TaskId) -> Known {
    let task = h.store.task(c.account, id).await.expect("reading").expect("the task");
    (task.heard, task.absent_since, task.made_since)
}

pub async fn what_a_provider_said_of_a_task_is_stored(h: House) {
    use TaskState::{Queued, Running};
    let c = h.customer(0, 1_000).await;
    let id = accepted(&h, &c, 300, "up-1").await;
    assert_eq!(known(&h, &c, id).await, (Some(Queued), None, None));
    // One word a second: what it leaves of where the task stands, and with which of them its
    // absence and its being made began. Whose clock says when that was is the engine's affair.
    let words = [
        (Word::Absent, Queued, Some(1), None),
        (Word::Absent, Queued, Some(1), None),
        (Word::Nothing, Queued, Some(1), None),
        (Word::Unclear, Queued, None, None),
        (Word::Absent, Queued, Some(5), None),
        (Word::Running, Running, None, None),
        (Word::Absent, Running, Some(7), None),
        (Word::Made, Running, None, Some(8)),
        (Word::Nothing, Running, None, Some(8)),
        (Word::Running, Running, None, Some(8)),
        (Word::Made, Running, None, Some(8)),
        (Word::Absent, Running, Some(12), Some(8)),
    ];
    let mut said: HashMap<usize, i64> = HashMap::new();
    let mut last = (None, None, None);
    for (number, (word, heard, absent, made)) in (1..).zip(words) {
        h.clock.advance(1_000);
        let leased = one(&h, LEASE).await;
        let unknown = TaskStep::new(id, leased.fence, TaskState::Unknown, word, 0);
        assert!(h.store.put_back_task(unknown).await.expect("put back"));
        last = known(&h, &c, id).await;
        let mut began = |since: Option<usize>, at: Option<i64>| match (since, at) {
            (Some(since), Some(at)) => *said.entry(since).or_insert(at) == at,
            (since, at) => since.is_none() && at.is_none(),
        };
        let right = last.0 == Some(heard) && began(absent, last.1) && began(made, last.2);
        assert!(right, "word {number}, {word:?}: {last:?}");
    }
    let h = h.reopen().await;
    assert_eq!(known(&h, &c, id).await, last, "after a restart");
    let leased = one(&h, LEASE).await;
    assert_eq!((leased.task.absent_since, leased.task.made_since), (last.1, last.2), "for whoever takes it");
    h.store.finish_task(end(&h, &c, id, leased.fence, 0)).await.expect("ended").expect("ours");
    h.close().await;
}

pub async fn a_quiet_task_is_taken_by_nobody_before_it_is_due(h: House) {
    let c = h.customer(0, 1_000).await;
    let id = accepted(&h, &c, 300, "up-1").await;
    let leased = one(&h, LEASE).await;
    let quiet = TaskStep { quiet: true, ..step(&leased, TaskState::Running, 60_000) };
    assert!(h.store.put_back_task(quiet).await.expect("put back"));
    assert!(h.store.take_task(id, LEASE).await.expect("asked").is_none(), "its provider is left alone");
    let h = h.reopen().await;
    assert!(h.store.take_task(id, LEASE).await.expect("asked").is_none(), "after a restart as well");
    assert!(
        h.store.task_accepted(id, "up-2".into(), 0).await.is_ok_and(|named| named == TaskNaming::Stale),
        "it has its name"
    );
    h.close().await;
}
