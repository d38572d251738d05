//! Video tasks: one creator, one taker at a time, one end with one movement of money.

use std::collections::HashSet;
use std::time::Duration;

use tollgate_catalog::Money;
use tollgate_store::{
    AccountId, BegunTask, Close, Ending, HoldRefused, Leased, NewTask, SentTo, TaskEnd, TaskFailure, TaskId,
    TaskNaming, TaskPage, TaskState, TaskStep, TurnWish, Turns, WebhookOutcome, WebhookWish, Word,
};

use crate::common::{Customer, House, idem};

pub(super) const LEASE: i64 = 60_000;

fn new(webhook_url: Option<&str>) -> NewTask {
    NewTask { plan: r#"{"call":"text2video"}"#.into(), webhook_url: webhook_url.map(str::to_owned), lease_ms: LEASE }
}

/// A provider, with the account it is asked with.
pub(super) fn to(provider: &str) -> SentTo {
    let text = str::to_owned;
    SentTo { provider: text(provider), upstream_model: text("wan"), host: text("sim.example:8443"), key: text("a1b2") }
}

pub(super) async fn begin(h: &House, c: &Customer, amount: i64) -> BegunTask {
    let mut wish = h.wish(c, amount);
    wish.endpoint = "/v1/videos";
    wish.expires_at += 86_400_000;
    h.store.begin_task(wish, new(Some("https://example.com/hook"))).await.expect("a task")
}

/// At the provider, and due.
pub(super) async fn accepted(h: &House, c: &Customer, amount: i64, upstream_id: &str) -> TaskId {
    let begun = begin(h, c, amount).await;
    assert!(h.store.task_sending(begun, to("sim"), LEASE).await.expect("written"));
    assert_eq!(h.store.task_accepted(begun.id, upstream_id.into(), 0).await.expect("written"), TaskNaming::Done);
    begun.id
}

pub(super) fn step(leased: &Leased, state: TaskState, after_ms: i64) -> TaskStep {
    let (id, fence) = (leased.task.id, leased.fence);
    let word = if state == TaskState::Queued { Word::Queued } else { Word::Running };
    TaskStep { progress: Some(40), ..TaskStep::new(id, fence, state, word, after_ms) }
}

pub(super) fn end(h: &House, c: &Customer, id: TaskId, fence: i64, charge: i64) -> TaskEnd {
    let failure = TaskFailure { code: "bad".into(), message: "It was bad.".into() };
    TaskEnd {
        fence,
        state: if charge > 0 { TaskState::Completed } else { TaskState::Failed },
        result: (charge > 0).then(|| r#"{"url":"https://example.com/v.mp4"}"#.into()),
        failure: (charge == 0).then_some(failure),
        forgiven: false,
        webhook_url: Some("https://example.com/hook".into()),
        close: Close { ending: Ending::Answered, ..h.ending(c, id.call(), charge) },
    }
}

/// The hand clock of one engine and the clock of the other's server.
async fn pass(h: &House, ms: i64) {
    h.clock.advance(ms);
    tokio::time::sleep(Duration::from_millis(ms.unsigned_abs())).await;
}

pub(super) async fn one(h: &House, lease_ms: i64) -> Leased {
    let mut taken = h.store.take_tasks(10, lease_ms, &[]).await.expect("taken");
    assert_eq!(taken.len(), 1);
    taken.remove(0)
}

async fn state(h: &House, c: &Customer, id: TaskId) -> TaskState {
    h.store.task(c.account, id).await.expect("reading").expect("the task").state
}

pub async fn a_task_lives_and_is_paid_once(h: House) {
    let c = h.customer(30, 1_000).await;
    let begun = begin(&h, &c, 300).await;
    assert_eq!(h.pots(&c).await, (0, 730, 30, 270), "its money is held");
    let call = h.held(&c, 10).await;
    let open = h.store.gauges();
    assert_eq!(
        (open.open_holds, open.open_by_age),
        (1, [1, 0, 0, 0, 0]),
        "the call's alone: a task may be open for days"
    );
    h.store.close(h.ending(&c, call, 0)).await.expect("closed");
    assert_eq!(state(&h, &c, begun.id).await, TaskState::Held);
    assert!(h.store.take_tasks(10, LEASE, &[]).await.expect("taken").is_empty(), "its creator has it");
    assert!(h.store.task_sending(begun, to("sim"), LEASE).await.expect("written"));
    assert_eq!(state(&h, &c, begun.id).await, TaskState::Submitting);
    assert!(h.store.take_task(begun.id, LEASE).await.expect("asked").is_none(), "its creator has it");
    assert_eq!(h.store.task_accepted(begun.id, "up-1".into(), 0).await.expect("written"), TaskNaming::Done);
    assert_eq!(
        h.store.task_accepted(begun.id, "up-2".into(), 0).await.expect("asked"),
        TaskNaming::Stale,
        "it has its id"
    );

    let leased = one(&h, LEASE).await;
    assert_eq!((leased.task.upstream_id.as_deref(), leased.task.state), (Some("up-1"), TaskState::Queued));
    assert_eq!((leased.task.provider.as_deref(), leased.task.upstream_model.as_deref()), (Some("sim"), Some("wan")));
    assert_eq!(leased.price.id(), crate::common::unit_price().id(), "the price of its hold");
    assert!(h.store.take_tasks(10, LEASE, &[]).await.expect("taken").is_empty(), "one taker at a time");
    assert!(h.store.put_back_task(step(&leased, TaskState::Running, 0)).await.expect("put back"));
    assert!(!h.store.put_back_task(step(&leased, TaskState::Queued, 0)).await.expect("asked"), "given back already");

    let again = one(&h, LEASE).await;
    assert_eq!((again.task.state, again.task.progress), (TaskState::Running, Some(40)));
    let closed = h.store.finish_task(end(&h, &c, begun.id, again.fence, 250)).await.expect("ended").expect("by us");
    assert_eq!((closed.captured.nano(), closed.applied), (250, true));
    assert_eq!(h.pots(&c).await, (0, 780, 0, 0));
    assert!(h.store.finish_task(end(&h, &c, begun.id, again.fence, 250)).await.expect("asked").is_none(), "once");
    assert!(h.store.finish_task(end(&h, &c, begun.id, again.fence, 0)).await.expect("asked").is_none(), "for ever");
    assert!(h.store.take_task(begun.id, LEASE).await.expect("asked").is_none(), "nothing is left to do");
    let task = h.store.task(c.account, begun.id).await.expect("reading").expect("the task");
    assert_eq!((task.state, task.progress), (TaskState::Completed, Some(100)));
    assert!(task.result.is_some() && task.ended_at.is_some() && task.failure.is_none());
    let row = h.store.usage_of(c.account, begun.id.call()).await.expect("reading").expect("one row");
    assert_eq!((row.hold.nano(), row.charge.nano()), (300, 250));
    h.close().await;
}

pub async fn a_failed_task_is_free_and_final(h: House) {
    let c = h.customer(0, 1_000).await;
    let id = accepted(&h, &c, 300, "up-1").await;
    let leased = one(&h, LEASE).await;
    let closed = h.store.finish_task(end(&h, &c, id, leased.fence, 0)).await.expect("ended").expect("by us");
    assert_eq!(closed.captured, Money::ZERO);
    assert_eq!(h.pots(&c).await, (0, 1_000, 0, 0));
    let task = h.store.task(c.account, id).await.expect("reading").expect("the task");
    assert_eq!(task.failure.map(|f| f.code).as_deref(), Some("bad"));
    assert!(h.store.finish_task(end(&h, &c, id, leased.fence, 250)).await.expect("asked").is_none());
    assert_eq!(h.pots(&c).await, (0, 1_000, 0, 0), "a late success takes nothing");
    h.close().await;
}

pub async fn a_stale_fence_changes_nothing(h: House) {
    let c = h.customer(0, 1_000).await;
    let id = accepted(&h, &c, 300, "up-1").await;
    let slow = one(&h, 40).await;
    pass(&h, 80).await;
    let quick = one(&h, LEASE).await;
    assert!(quick.fence > slow.fence);
    assert!(!h.store.put_back_task(step(&slow, TaskState::Unknown, 0)).await.expect("asked"));
    assert!(h.store.finish_task(end(&h, &c, id, slow.fence, 250)).await.expect("asked").is_none());
    assert_eq!(h.pots(&c).await, (0, 700, 0, 300));
    assert!(h.store.finish_task(end(&h, &c, id, quick.fence, 0)).await.expect("ended").is_some());
    assert_eq!(h.pots(&c).await, (0, 1_000, 0, 0));
    h.close().await;
}

pub async fn whoever_looks_at_a_task_takes_it_early(h: House) {
    let c = h.customer(0, 1_000).await;
    let begun = begin(&h, &c, 300).await;
    assert!(h.store.task_sending(begun, to("sim"), LEASE).await.expect("written"));
    assert_eq!(h.store.task_accepted(begun.id, "up-1".into(), LEASE).await.expect("written"), TaskNaming::Done);
    assert!(h.store.take_tasks(10, LEASE, &[]).await.expect("taken").is_empty(), "not due");
    let leased = h.store.take_task(begun.id, LEASE).await.expect("taken").expect("nobody has it");
    assert!(h.store.take_task(begun.id, LEASE).await.expect("asked").is_none(), "somebody has it");
    assert!(h.store.put_back_task(step(&leased, TaskState::Running, LEASE)).await.expect("put back"));
    assert!(h.store.take_task(begun.id, LEASE).await.expect("taken").is_some());
    h.close().await;
}

pub async fn a_creation_without_an_answer_is_found_by_others(h: House) {
    let c = h.customer(0, 1_000).await;
    let mut wish = h.wish(&c, 300);
    wish.expires_at += 86_400_000;
    let begun = h.store.begin_task(wish, NewTask { lease_ms: 40, ..new(None) }).await.expect("a task");
    assert!(h.store.task_sending(begun, to("sim"), 40).await.expect("written"));
    pass(&h, 80).await;
    let leased = one(&h, LEASE).await;
    assert_eq!((leased.task.state, leased.task.upstream_id.as_deref()), (TaskState::Submitting, None));
    assert!(!h.store.task_sending(begun, to("other"), LEASE).await.expect("asked"), "never again");
    assert!(h.store.put_back_task(step(&leased, TaskState::Unknown, 0)).await.expect("put back"));
    let task = h.store.task(c.account, begun.id).await.expect("reading").expect("the task");
    assert!(task.state == TaskState::Unknown && task.unknown_since.is_some());
    // Its creator hears from the provider after all, while somebody else is at it.
    let searching = one(&h, LEASE).await;
    assert_eq!(h.store.task_accepted(begun.id, "up-1".into(), 0).await.expect("written"), TaskNaming::Done);
    assert!(!h.store.put_back_task(step(&searching, TaskState::Unknown, 0)).await.expect("asked"));
    let task = h.store.task(c.account, begun.id).await.expect("reading").expect("the task");
    assert_eq!((task.state, task.upstream_id.as_deref(), task.unknown_since), (TaskState::Queued, Some("up-1"), None));
    h.close().await;
}

pub async fn a_task_given_up_costs_the_operator(h: House) {
    let c = h.customer(10, 1_000).await;
    let id = accepted(&h, &c, 300, "up-1").await;
    let leased = one(&h, LEASE).await;
    let mut forgiven = end(&h, &c, id, leased.fence, 300);
    (forgiven.state, forgiven.forgiven) = (TaskState::Failed, true);
    let closed = h.store.finish_task(forgiven).await.expect("ended").expect("by us");
    assert_eq!((closed.captured.nano(), closed.write_off.nano()), (0, 300));
    assert_eq!(h.pots(&c).await, (10, 1_000, 0, 0));
    h.close().await;
}

pub async fn a_task_costs_its_hold_at_most(h: House) {
    let c = h.customer(10, 1_000).await;
    let id = accepted(&h, &c, 300, "up-1").await;
    let leased = one(&h, LEASE).await;
    let closed = h.store.finish_task(end(&h, &c, id, leased.fence, 360)).await.expect("ended").expect("by us");
    assert_eq!((closed.captured.nano(), closed.write_off.nano()), (300, 60), "the rest is the operator's loss");
    assert_eq!(h.pots(&c).await, (0, 710, 0, 0), "though the account could pay it");
    let row = h.store.usage_of(c.account, id.call()).await.expect("reading").expect("one row");
    assert_eq!((row.hold.nano(), row.charge.nano(), row.write_off.nano()), (300, 300, 60));
    assert_eq!(h.store.gauges().write_off_total.nano(), 60, "counted");
    h.close().await;
}

/// Only what a customer was charged by our own count counts as such: not what was forgiven, and no
/// end that came too late.
pub async fn an_estimate_is_counted_where_it_is_paid(h: House) {
    let c = h.customer(0, 1_000).await;
    let counted = || h.store.gauges().estimated.values().sum::<u64>();
    for (forgiven, stale, rows) in [(true, false, 0), (false, true, 0), (false, false, 1)] {
        let id = accepted(&h, &c, 100, &format!("up-{forgiven}-{stale}")).await;
        let leased = one(&h, LEASE).await;
        let fence = leased.fence - i64::from(stale);
        let mut done = end(&h, &c, id, fence, 50);
        (done.forgiven, done.close.row.estimated) = (forgiven, true);
        done.close.row.provider = Some("maker".to_owned());
        if forgiven {
            (done.state, done.close.ending, done.result) = (TaskState::Failed, Ending::Expired, None);
        }
        let ended = h.store.finish_task(done).await.expect("answered");
        assert_eq!((ended.is_none(), counted()), (stale, rows), "forgiven {forgiven}, stale {stale}");
        if stale {
            let done = end(&h, &c, id, leased.fence, 50);
            assert!(h.store.finish_task(done).await.expect("answered").is_some());
        }
    }
    h.close().await;
}

pub async fn a_key_leads_to_the_same_task(h: House) {
    let c = h.customer(0, 1_000).await;
    let wish = |amount| {
        let mut wish = h.wish(&c, amount);
        wish.idem = Some(idem(1, 1));
        wish.expires_at += 86_400_000;
        wish
    };
    let refused = h.store.begin_task(wish(100), new(None)).await.expect("a task");
    let mut never = end(&h, &c, refused.id, refused.fence, 0);
    (never.state, never.webhook_url, never.close.ending) = (TaskState::Refused, None, Ending::UpstreamFault);
    assert!(h.store.finish_task(never).await.expect("ended").is_some());
    let begun = h.store.begin_task(wish(100), new(None)).await.expect("the key is free again");
    let first = begun.id.call();
    assert!(matches!(h.store.begin_task(wish(100), new(None)).await, Err(HoldRefused::IdemRunning(c)) if c == first));
    assert!(h.store.finish_task(end(&h, &c, begun.id, begun.fence, 0)).await.expect("ended").is_some());
    let repeated = h.store.begin_task(wish(100), new(None)).await;
    assert!(matches!(repeated, Err(HoldRefused::IdemDone { call, .. }) if call == first), "also when it failed");
    let page = TaskPage { after: None, limit: 10, oldest_first: false };
    let seen = h.store.tasks(c.account, page).await.expect("reading");
    assert_eq!(seen.iter().map(|task| task.id).collect::<Vec<_>>(), [begun.id], "what was refused is not shown");
    h.close().await;
}

pub async fn neither_a_restart_nor_a_sweep_ends_a_task(h: House) {
    let c = h.customer(0, 1_000).await;
    let (id, sent) = (accepted(&h, &c, 300, "up-1").await, begin(&h, &c, 200).await);
    assert!(h.store.task_sending(sent, to("sim"), LEASE).await.expect("written"));
    let held = one(&h, LEASE).await;
    assert_eq!(held.task.id, id);
    let h = h.reopen().await;
    assert_eq!((h.recovered.voided, h.recovered.settled), (0, 0));
    assert_eq!(h.pots(&c).await, (0, 500, 0, 500));
    let taken = h.store.take_tasks(10, LEASE, &[]).await.expect("taken");
    let mut states: Vec<TaskState> = taken.iter().map(|one| one.task.state).collect();
    states.sort();
    assert_eq!(states, [TaskState::Submitting, TaskState::Queued], "nobody holds them any more");
    let swept = h.store.sweep(h.clock.now() + 90_000_000).await.expect("swept");
    assert_eq!((swept.expired, swept.orphaned), (0, 0));
    for leased in &taken {
        assert!(h.store.finish_task(end(&h, &c, leased.task.id, leased.fence, 0)).await.expect("ended").is_some());
    }
    assert_eq!(h.pots(&c).await, (0, 1_000, 0, 0));
    h.close().await;
}

pub async fn tasks_are_paged_and_hidden(h: House) {
    let c = h.customer(0, 1_000).await;
    let stranger = h.customer(0, 0).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(accepted(&h, &c, 10, &format!("up-{n}")).await);
    }
    let page = |after, oldest_first| TaskPage { after, limit: 2, oldest_first };
    let list = async |page| -> Vec<TaskId> {
        h.store.tasks(c.account, page).await.expect("reading").iter().map(|task| task.id).collect()
    };
    assert_eq!(list(page(None, false)).await, [ids[4], ids[3]]);
    assert_eq!(list(page(Some(ids[3]), false)).await, [ids[2], ids[1]]);
    assert_eq!(list(page(Some(ids[3]), true)).await, [ids[4]]);
    assert!(h.store.task(stranger.account, ids[0]).await.expect("reading").is_none(), "another account's task");
    assert!(!h.store.hide_task(stranger.account, ids[0]).await.expect("asked"));
    assert!(h.store.hide_task(c.account, ids[0]).await.expect("hidden"));
    assert!(!h.store.hide_task(c.account, ids[0]).await.expect("asked"), "once");
    assert!(h.store.task(c.account, ids[0]).await.expect("reading").is_none());
    assert_eq!(list(page(None, true)).await, [ids[1], ids[2]]);
    h.store.store_result(ids[1], "copy".into()).await.expect("stored");
    let task = h.store.task(c.account, ids[1]).await.expect("reading").expect("the task");
    assert_eq!(task.result.as_deref(), Some("copy"));
    let open = h.store.open_tasks().await.expect("counted");
    assert_eq!(open.iter().map(|one| (one.state, one.count)).collect::<Vec<_>>(), [(TaskState::Queued, 5)]);
    h.close().await;
}

fn webhooks(each: u32, except: &[AccountId]) -> WebhookWish {
    WebhookWish { limit: 10, each, except: except.to_vec() }
}

/// Few of each account, and none of those of which there are enough: nobody's receivers keep others
/// waiting.
pub async fn webhooks_are_taken_of_all_accounts(h: House) {
    let (loud, quiet) = (h.customer(0, 1_000).await, h.customer(0, 1_000).await);
    let mut ended = Vec::new();
    for (number, c) in [&loud, &loud, &loud, &loud, &quiet].into_iter().enumerate() {
        let id = accepted(&h, c, 10, &format!("up-{number}")).await;
        let leased = one(&h, LEASE).await;
        assert!(h.store.finish_task(end(&h, c, id, leased.fence, 10)).await.expect("ended").is_some());
        ended.push(id);
        pass(&h, 2).await;
    }
    let take = async |each: u32, except: &[AccountId]| {
        let taken = h.store.take_webhooks(webhooks(each, except), LEASE).await.expect("taken");
        taken.iter().map(|webhook| webhook.task).collect::<HashSet<_>>()
    };
    let of = |numbers: &[usize]| numbers.iter().map(|number| ended[*number]).collect::<HashSet<_>>();
    assert_eq!(take(2, &[]).await, of(&[0, 1, 4]), "the ones due longest, two of each");
    assert_eq!(take(2, &[loud.account]).await, of(&[]), "there are enough of this one");
    assert_eq!(take(1, &[quiet.account]).await, of(&[2]));
    assert_eq!(take(10, &[]).await, of(&[3]));
    assert_eq!(take(10, &[]).await, of(&[]));
    h.close().await;
}

pub async fn a_webhook_is_written_with_the_end_and_sent_by_one(h: House) {
    let c = h.customer(0, 1_000).await;
    let id = accepted(&h, &c, 10, "up-1").await;
    let leased = one(&h, LEASE).await;
    assert!(h.store.take_webhooks(webhooks(10, &[]), LEASE).await.expect("taken").is_empty());
    assert!(h.store.finish_task(end(&h, &c, id, leased.fence, 10)).await.expect("ended").is_some());
    let first = h.store.take_webhooks(webhooks(10, &[]), 40).await.expect("taken");
    assert_eq!(first.iter().map(|w| (w.task, w.attempts)).collect::<Vec<_>>(), [(id, 0)]);
    assert!(h.store.take_webhooks(webhooks(10, &[]), LEASE).await.expect("taken").is_empty(), "one teller at a time");
    pass(&h, 80).await;
    let second = h.store.take_webhooks(webhooks(10, &[]), LEASE).await.expect("taken");
    h.store.webhook_tried(&first[0], WebhookOutcome::Over).await.expect("asked");
    h.store.webhook_tried(&second[0], WebhookOutcome::Again(0)).await.expect("noted");
    let third = h.store.take_webhooks(webhooks(10, &[]), LEASE).await.expect("taken");
    assert_eq!(third.iter().map(|w| w.attempts).collect::<Vec<_>>(), [1], "a stale teller ends nothing");
    h.store.webhook_tried(&third[0], WebhookOutcome::Over).await.expect("noted");
    pass(&h, 1).await;
    assert!(h.store.take_webhooks(webhooks(10, &[]), LEASE).await.expect("taken").is_empty());
    h.close().await;
}

pub async fn many_takers_share_what_is_due(h: House) {
    let c = h.customer(0, 10_000).await;
    for n in 0..200 {
        accepted(&h, &c, 10, &format!("up-{n}")).await;
    }
    let mut takers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = h.store.clone();
        takers.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let taken = store.take_tasks(7, LEASE, &[]).await.expect("taken");
                if taken.is_empty() {
                    return mine;
                }
                mine.extend(taken);
            }
        });
    }
    let taken: Vec<Leased> = takers.join_all().await.into_iter().flatten().collect();
    assert_eq!(taken.len(), 200, "each once");
    assert_eq!(taken.iter().map(|one| one.task.id).collect::<HashSet<_>>().len(), 200);
    let mut ends = tokio::task::JoinSet::new();
    for (n, leased) in taken.into_iter().enumerate() {
        let (store, charge) = (h.store.clone(), if n % 2 == 0 { 10 } else { 0 });
        let end = end(&h, &c, leased.task.id, leased.fence, charge);
        // Two at once, as two replicas that both believe to have it.
        for end in [end.clone(), end] {
            let store = store.clone();
            ends.spawn(async move { store.finish_task(end).await.expect("asked").is_some() });
        }
    }
    assert_eq!(ends.join_all().await.into_iter().filter(|ended| *ended).count(), 200, "each ended once");
    assert_eq!(h.pots(&c).await, (0, 9_000, 0, 0));
    h.close().await;
}

/// Those of a provider that has its hands full can be left for later; nothing else is held up by
/// them.
pub async fn tasks_of_a_busy_provider_are_left_for_later(h: House) {
    let c = h.customer(0, 10_000).await;
    let mut at = Vec::new();
    for provider in ["busy", "busy", "idle"] {
        let begun = begin(&h, &c, 100).await;
        assert!(h.store.task_sending(begun, to(provider), LEASE).await.expect("written"));
        assert_eq!(
            h.store.task_accepted(begun.id, format!("up-{}", begun.id), 0).await.expect("written"),
            TaskNaming::Done
        );
        at.push(begun.id);
    }
    let taken = h.store.take_tasks(10, LEASE, &["busy".to_owned(), "nobody".to_owned()]).await.expect("taken");
    assert_eq!(
        taken.iter().map(|one| one.task.id).collect::<Vec<_>>(),
        [at[2]],
        "though the others are due for longer"
    );
    let mut rest = h.store.take_tasks(10, LEASE, &[]).await.expect("taken");
    assert_eq!(rest.iter().map(|one| one.task.id).collect::<HashSet<_>>(), HashSet::from([at[0], at[1]]));
    rest.extend(taken);
    for leased in &rest {
        h.store.finish_task(end(&h, &c, leased.task.id, leased.fence, 0)).await.expect("ended").expect("ours");
    }
    h.close().await;
}

/// Whoever asks, the turns of a line follow each other, and nobody gets one that is too far ahead.
pub async fn turns_at_a_provider_are_even_and_shared(h: House) {
    let wish = TurnWish { line: "kling", every_us: 100_000, count: 4, patience_us: 3_000_000 };
    let began = tokio::time::Instant::now();
    let asked = futures_util::future::join_all((0..5).map(|_| h.store.turns(wish))).await;
    let spent = i64::try_from(began.elapsed().as_micros()).expect("small");
    let mut given: Vec<Turns> = asked.into_iter().map(|turns| turns.expect("asked")).collect();
    given.sort_by_key(|turns| turns.after_us);
    for (place, turns) in (0i64..).zip(&given) {
        assert_eq!(turns.count, 4, "{given:?}");
        // Counted from when the question arrived, somewhere within the time it took.
        let at = place * 400_000;
        assert!((at - spent..=at).contains(&turns.after_us), "{place}: {given:?} in {spent} us");
    }
    let other = h.store.turns(TurnWish { line: "ark", ..wish }).await.expect("asked");
    assert_eq!(other, Turns { after_us: 0, count: 4 }, "each line has its own");
    let short = TurnWish { count: 100, patience_us: 2_500_000, ..wish };
    let rest = h.store.turns(short).await.expect("asked");
    assert!((1..=26).contains(&rest.count) && rest.after_us <= 2_000_000, "as far as patience reaches: {rest:?}");
    let none = h.store.turns(TurnWish { patience_us: 1_000, ..wish }).await.expect("asked");
    assert!(none.count == 0 && none.after_us > 1_000, "{none:?}");
    let again = h.store.turns(TurnWish { patience_us: 20_000_000, ..wish }).await.expect("asked");
    assert!(again.count == 4 && again.after_us <= none.after_us, "asking in vain takes no turn: {again:?} {none:?}");
    h.close().await;
}

pub async fn an_account_names_where_it_is_notified(h: House) {
    let c = h.customer(0, 1_000).await;
    let url = |text: &str| Some(text.to_owned());
    for want in [url("https://example.com/a"), url("https://example.com/b"), None] {
        let changed = h
            .store
            .set_webhook(c.account, want.clone(), Default::default())
            .await
            .expect("written")
            .expect("the account");
        assert_eq!(changed.webhook_url, want);
        let read = h.store.account(c.account).await.expect("read").expect("the account");
        assert_eq!((read.webhook_url, read.paid_available.nano()), (want.clone(), 1_000));
        // Those who keep keys in memory hear of it.
        let seen = h.store.keys_changed_since(changed.changed_at, 0).await.expect("read").keys;
        assert!(seen.iter().any(|one| one.account.id == c.account && one.account.webhook_url == want), "{seen:?}");
    }
    let nobody = AccountId([7; 16]);
    assert!(h.store.set_webhook(nobody, None, Default::default()).await.expect("asked").is_none());
    h.close().await;
}
