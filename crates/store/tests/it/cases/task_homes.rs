//! Where tasks were sent, and which names at providers are those of our tasks.

use futures_util::future::join_all;
use tollgate_store::{BegunTask, SentTo, TaskEnd, TaskId, TaskNaming, TaskState, TaskStep, Word};

use super::tasks::{LEASE, accepted, begin, end, one, step, to};
use crate::common::{Customer, House};

/// On its way to a provider.
async fn sent(h: &House, c: &Customer, to: SentTo) -> BegunTask {
    let begun = begin(h, c, 100).await;
    assert!(h.store.task_sending(begun, to, LEASE).await.expect("written"));
    begun
}

async fn home(h: &House, c: &Customer, id: TaskId) -> (Option<String>, Option<String>) {
    let task = h.store.task(c.account, id).await.expect("reading").expect("the task");
    (task.upstream_host, task.upstream_key)
}

fn at(host: &str, key: &str) -> (Option<String>, Option<String>) {
    (Some(host.to_owned()), Some(key.to_owned()))
}

pub async fn a_task_keeps_where_it_was_sent(h: House) {
    let c = h.customer(0, 1_000).await;
    let begun = begin(&h, &c, 300).await;
    assert_eq!(home(&h, &c, begun.id).await, (None, None), "it was not sent yet");
    assert!(h.store.task_sending(begun, to("sim"), LEASE).await.expect("written"));
    assert_eq!(home(&h, &c, begun.id).await, at("sim.example:8443", "a1b2"));
    // The first route refused it.
    let second = SentTo { host: "other.example".into(), key: "ffff".into(), ..to("other") };
    assert!(h.store.task_sending(begun, second, LEASE).await.expect("written"));
    assert_eq!(home(&h, &c, begun.id).await, at("other.example", "ffff"), "the last one has it");
    assert_eq!(h.store.task_accepted(begun.id, "up-1".into(), 0).await.expect("written"), TaskNaming::Done);
    let h = h.reopen().await;
    let leased = one(&h, LEASE).await;
    assert_eq!((leased.task.upstream_host.clone(), leased.task.upstream_key.clone()), at("other.example", "ffff"));
    assert!(h.store.put_back_task(step(&leased, TaskState::Running, 0)).await.expect("written"));
    let leased = one(&h, LEASE).await;
    assert_eq!(home(&h, &c, begun.id).await, at("other.example", "ffff"), "whatever is found out later");
    h.store.finish_task(end(&h, &c, begun.id, leased.fence, 0)).await.expect("ended").expect("ours");
    assert_eq!(home(&h, &c, begun.id).await, at("other.example", "ffff"), "its file is asked for there");
    h.close().await;
}

pub async fn names_at_providers_are_known_and_the_nameless_are_listed(h: House) {
    let c = h.customer(0, 10_000).await;
    let known = accepted(&h, &c, 100, "up-1").await;
    let leased = one(&h, LEASE).await;
    h.store.finish_task(end(&h, &c, known, leased.fence, 10)).await.expect("ended").expect("ours");
    assert!(h.store.hide_task(c.account, known).await.expect("hidden"));
    assert!(h.store.any_task(known).await.expect("read").is_none());
    let hidden = h.store.webhook_task(known).await.expect("read").expect("whoever waits for it is notified");
    assert_eq!((hidden.id, hidden.state), (known, TaskState::Completed));
    let asked = ["up-0", "up-1", "up-2"].map(str::to_owned);
    assert_eq!(h.store.tasks_named(&asked).await.expect("read"), ["up-1"], "ended, hidden, and still ours");
    assert!(h.store.tasks_named(&[]).await.expect("read").is_empty());

    let held = begin(&h, &c, 100).await;
    let sent = begin(&h, &c, 100).await;
    assert!(h.store.task_sending(sent, to("sim"), LEASE).await.expect("written"));
    let lost = begin(&h, &c, 100).await;
    assert!(h.store.task_sending(lost, to("sim"), LEASE).await.expect("written"));
    let unknown = TaskStep::new(lost.id, lost.fence, TaskState::Unknown, Word::Unclear, 0);
    assert!(h.store.put_back_task(unknown).await.expect("written"));
    let given_up = one(&h, LEASE).await;
    assert_eq!(given_up.task.id, lost.id);
    let now = given_up.task.created_at;
    let nameless = async |from: i64, to: i64, limit: u32| -> Vec<TaskId> {
        h.store.nameless_tasks((from, to), limit).await.expect("read").iter().map(|task| task.id).collect()
    };
    let mut both = nameless(now - 60_000, now + 60_000, 10).await;
    both.sort();
    let mut expected = vec![sent.id, lost.id];
    expected.sort();
    assert_eq!(both, expected, "not what was never sent, nor what has its name");
    assert_eq!(nameless(now - 60_000, now + 60_000, 1).await.len(), 1);
    assert!(nameless(now + 1, now + 60_000, 10).await.is_empty(), "begun earlier");
    h.store.finish_task(end(&h, &c, lost.id, given_up.fence, 0)).await.expect("ended").expect("ours");
    assert_eq!(nameless(now - 60_000, now + 60_000, 10).await.len(), 2, "it was never found, so it may be any");
    assert_eq!(h.store.task_accepted(sent.id, "up-2".into(), 0).await.expect("written"), TaskNaming::Done);
    assert_eq!(nameless(now - 60_000, now + 60_000, 10).await, [lost.id]);
    for id in [held.id, sent.id] {
        let fence = if id == sent.id { one(&h, LEASE).await.fence } else { held.fence };
        let refused = TaskEnd { state: TaskState::Refused, ..end(&h, &c, id, fence, 0) };
        h.store.finish_task(refused).await.expect("ended").expect("ours");
    }
    assert_eq!(nameless(now - 60_000, now + 60_000, 10).await, [lost.id], "a refused one was never made");
    h.close().await;
}

/// Two tasks with one name would show one customer the other's video: the second never has it,
/// however it comes to it.
pub async fn a_name_at_a_provider_is_one_tasks_for_ever(h: House) {
    let c = h.customer(0, 10_000).await;
    let first = accepted(&h, &c, 100, "up-1").await;
    let named = async |id: TaskId, name: &str| h.store.task_accepted(id, name.into(), 0).await.expect("asked");
    let second = sent(&h, &c, to("sim")).await;
    assert_eq!(named(second.id, "up-1").await, TaskNaming::Taken);
    let task = h.store.task(c.account, second.id).await.expect("reading").expect("the task");
    assert_eq!((task.state, task.upstream_id.as_deref()), (TaskState::Unknown, None));
    assert!(task.unknown_since.is_some(), "what became of it is found out, or it is given up");
    assert_eq!(task.heard, Some(TaskState::Queued), "its provider did say that it has it");

    // Others look for it, and come to the same name.
    let find = async |h: &House, id: TaskId, name: &str| {
        let leased = h.store.take_task(id, LEASE).await.expect("taken").expect("nobody has it");
        let found = TaskStep { progress: None, ..step(&leased, TaskState::Queued, 0) };
        let named = h.store.task_found(found.clone(), name.into()).await.expect("asked");
        (leased, found, named)
    };
    let (leased, found, said) = find(&h, second.id, "up-1").await;
    assert_eq!(said, TaskNaming::Taken);
    assert!(
        h.store.put_back_task(step(&leased, TaskState::Unknown, 0)).await.expect("written"),
        "still in their hands"
    );
    assert_eq!(h.store.task_found(found, "up-2".into()).await.expect("asked"), TaskNaming::Stale, "and then no longer");

    // Another key may be one of the same account; another host has names of its own.
    let other_key = sent(&h, &c, SentTo { key: "ffff".into(), ..to("sim") }).await;
    assert_eq!(named(other_key.id, "up-1").await, TaskNaming::Taken);
    let other_host = sent(&h, &c, SentTo { host: "other.example".into(), ..to("other") }).await;
    assert_eq!(named(other_host.id, "up-1").await, TaskNaming::Done);

    // The first has ended and is hidden: its name is still its own.
    let leased = h.store.take_task(first, LEASE).await.expect("taken").expect("nobody has it");
    h.store.finish_task(end(&h, &c, first, leased.fence, 10)).await.expect("ended").expect("ours");
    assert!(h.store.hide_task(c.account, first).await.expect("hidden"));
    let h = h.reopen().await;
    let (leased, _, said) = find(&h, second.id, "up-1").await;
    assert_eq!(said, TaskNaming::Taken);
    h.store.finish_task(end(&h, &c, second.id, leased.fence, 0)).await.expect("ended").expect("ours");
    let (_, _, said) = find(&h, other_key.id, "up-4").await;
    assert_eq!(said, TaskNaming::Done);
    let task = h.store.task(c.account, other_key.id).await.expect("reading").expect("the task");
    assert_eq!((task.state, task.upstream_id.as_deref(), task.unknown_since), (TaskState::Queued, Some("up-4"), None));
    h.close().await;
}

pub async fn of_many_who_come_to_one_name_one_has_it(h: House) {
    let c = h.customer(0, 10_000).await;
    let mut all = Vec::new();
    for _ in 0..20 {
        all.push(sent(&h, &c, to("sim")).await);
    }
    let naming = all.iter().map(|one| h.store.task_accepted(one.id, "up-1".into(), LEASE));
    let said: Vec<TaskNaming> = join_all(naming).await.into_iter().map(|named| named.expect("asked")).collect();
    let count = |wanted: TaskNaming| said.iter().filter(|one| **one == wanted).count();
    assert_eq!((count(TaskNaming::Done), count(TaskNaming::Taken)), (1, 19), "{said:?}");
    let mut names = Vec::new();
    for one in &all {
        names.extend(h.store.task(c.account, one.id).await.expect("reading").expect("the task").upstream_id);
    }
    assert_eq!(names, ["up-1"]);
    h.close().await;
}
