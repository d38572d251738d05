//! What providers said of tasks, and since when: it decides about money, so it outlives a restart.

use tollgate_store::{Named, TaskId, TaskState, TaskStep, Word};

use super::tasks::{LEASE, accepted, end, one, step};
use crate::common::{Customer, House};

/// Queued or running, and since when it is absent and made.
type Known = (Option<TaskState>, Option<i64>, Option<i64>);

async fn known(h: &House, c: &Customer, id: TaskId) -> Known {
    let task = h.store.task(c.account, id).await.expect("reading").expect("the task");
    (task.heard, task.absent_since, task.made_since)
}

pub async fn what_a_provider_said_of_a_task_is_kept(h: House) {
    use TaskState::{Queued, Running};
    let c = h.customer(0, 1_000).await;
    let id = accepted(&h, &c, 300, "up-1").await;
    assert_eq!(known(&h, &c, id).await, (Some(Queued), None, None));
    let begun = h.clock.now();
    let at = |second: i64| Some(begun + second * 1_000);
    // One word a second: what it leaves of where the task stands, of its absence and of its being made.
    let words: [(Word, Known); 12] = [
        (Word::Absent, (Some(Queued), at(1), None)),
        (Word::Absent, (Some(Queued), at(1), None)),
        (Word::Nothing, (Some(Queued), at(1), None)),
        (Word::Unclear, (Some(Queued), None, None)),
        (Word::Absent, (Some(Queued), at(5), None)),
        (Word::Running, (Some(Running), None, None)),
        (Word::Absent, (Some(Running), at(7), None)),
        (Word::Made, (Some(Running), None, at(8))),
        (Word::Nothing, (Some(Running), None, at(8))),
        (Word::Running, (Some(Running), None, at(8))),
        (Word::Made, (Some(Running), None, at(8))),
        (Word::Absent, (Some(Running), at(12), at(8))),
    ];
    for (word, expected) in words {
        h.clock.advance(1_000);
        let leased = one(&h, LEASE).await;
        let unknown = TaskStep::new(id, leased.fence, TaskState::Unknown, word, 0);
        assert!(h.store.put_back_task(unknown).await.expect("put back"));
        assert_eq!(known(&h, &c, id).await, expected, "{word:?}");
    }
    let h = h.reopen().await;
    assert_eq!(known(&h, &c, id).await, (Some(Running), at(12), at(8)), "after a restart");
    let leased = one(&h, LEASE).await;
    assert_eq!((leased.task.absent_since, leased.task.made_since), (at(12), at(8)), "for whoever takes it");
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
        h.store.task_accepted(id, "up-2".into(), 0).await.is_ok_and(|named| named == Named::Stale),
        "it has its name"
    );
    h.close().await;
}
