//! Runs of workflows: one worker at a time writes, wishes are heard once, and a key finds its call.

use tollgate_store::{
    KeyedCall, NewWorkflowRun, RunId, WorkflowRunLimits, WorkflowRunMade, WorkflowRunNext, WorkflowRunPage,
    WorkflowRunWrite,
};

use crate::common::{Customer, House, idem, reply};

const LIMITS: WorkflowRunLimits = WorkflowRunLimits { open: 2, stored: 3 };
const LEASE: i64 = 30_000;

fn new(customer: &Customer, id: RunId, idem: Option<([u8; 32], [u8; 32])>) -> NewWorkflowRun {
    NewWorkflowRun {
        id,
        account: customer.account,
        key: customer.key,
        slug: "tale".into(),
        idem,
        plan: "plan".into(),
        state: "begun".into(),
        status: "running".into(),
    }
}

fn written(id: RunId, fence: i64, state: &str, next: WorkflowRunNext) -> WorkflowRunWrite {
    let (plan, status) = (None, "running".to_owned());
    WorkflowRunWrite { id, fence, plan, state: state.into(), status, heard: None, call: None, next }
}

pub async fn a_run_is_one_workers_at_a_time(h: House) {
    let customer = h.customer(0, 100).await;
    let (id, key) = (h.maker.run(), Some(([1; 32], [2; 32])));
    assert_eq!(h.store.run_begun_with(customer.account, key).await.expect("read"), None);
    let made = h.store.create_run(new(&customer, id, key), LIMITS).await.expect("made");
    assert_eq!(made, WorkflowRunMade::Made);
    for (fingerprint, before) in [([2; 32], WorkflowRunMade::Before(id)), ([3; 32], WorkflowRunMade::Conflict)] {
        let again = Some(([1; 32], fingerprint));
        assert_eq!(h.store.run_begun_with(customer.account, again).await.expect("read"), Some(before));
        let made = h.store.create_run(new(&customer, h.maker.run(), again), LIMITS).await.expect("asked");
        assert_eq!(made, before);
    }

    let [first] = &h.store.take_runs(9, LEASE).await.expect("taken")[..] else { panic!("one is due") };
    assert_eq!((first.id, first.fence, first.state.as_str()), (id, 1, "begun"));
    assert!(h.store.take_runs(9, LEASE).await.expect("asked").is_empty(), "somebody has it");
    h.clock.advance(LEASE + 1);
    let second = h.store.take_runs(9, LEASE).await.expect("taken").remove(0);
    assert_eq!(second.fence, 2, "whose lease has ended has it no more");
    let late = written(id, 1, "late", WorkflowRunNext::Mine(LEASE));
    assert!(!h.store.write_run(late).await.expect("asked"), "and writes nothing");

    // A call of a step, and what whoever repeats its key finds.
    let mut wish = h.wish(&customer, 10);
    (wish.call, wish.idem) = (h.maker.call(), Some(idem(7, 1)));
    let call = wish.call;
    h.hold(wish).await.expect("held");
    let open = KeyedCall { call, ended: false, reply: None };
    assert_eq!(h.store.call_with_key(customer.account, [7; 32]).await.expect("read"), Some(open));
    let mut close = h.ending(&customer, call, 4);
    close.reply = Some(reply("{}"));
    h.store.close(close).await.expect("closed");
    let ended = KeyedCall { call, ended: true, reply: Some(reply("{}")) };
    assert_eq!(h.store.call_with_key(customer.account, [7; 32]).await.expect("read"), Some(ended));
    assert_eq!(h.store.call_with_key(customer.account, [8; 32]).await.expect("read"), None);

    let step = WorkflowRunWrite { call: Some(call), ..written(id, 2, "one", WorkflowRunNext::After(500)) };
    assert!(h.store.write_run(step).await.expect("written"));
    assert_eq!(h.store.runs_of_calls(vec![call]).await.expect("read"), [(call, id)]);
    assert!(h.store.take_runs(9, LEASE).await.expect("asked").is_empty(), "it is not due yet");
    let wish = |text: &str, replaces| h.store.wish_run(customer.account, id, text.into(), replaces);
    assert!(wish("resume", false).await.expect("left"), "whoever wishes makes it due");
    assert!(!wish("other", false).await.expect("asked"), "one wish at a time");
    assert!(wish("cancel", true).await.expect("left"), "unless it counts instead of the other");
    let third = h.store.take_runs(9, LEASE).await.expect("taken").remove(0);
    assert_eq!((third.fence, third.wish.as_deref()), (3, Some("cancel")));
    let heard = Some("cancel".to_owned());
    let end = WorkflowRunWrite { heard, ..written(id, 3, "end", WorkflowRunNext::Ended) };
    assert!(h.store.write_run(end.clone()).await.expect("written"));
    assert!(!h.store.write_run(end).await.expect("asked"), "what has ended stays so");
    let run = h.store.run(customer.account, id).await.expect("read").expect("a run");
    assert_eq!((run.state.as_str(), run.wish, run.ended_at.is_some()), ("end", None, true));
    let page = WorkflowRunPage { after: None, limit: 9 };
    assert_eq!(h.store.runs(customer.account, page).await.expect("read").len(), 1);
    h.close().await;
}

/// A clock that was set back does not put a run off until it has come back to where it was.
pub async fn a_run_is_not_put_off_by_a_clock_that_is_set_back(h: House) {
    let customer = h.customer(0, 100).await;
    let id = h.maker.run();
    h.store.create_run(new(&customer, id, None), LIMITS).await.expect("made");
    h.store.take_runs(9, LEASE).await.expect("taken");
    assert!(h.store.write_run(written(id, 1, "waits", WorkflowRunNext::After(500))).await.expect("written"));
    // One that jumps while it is looked at is not believed; one that has jumped before a start is.
    h.clock.advance(-7_200_000);
    let h = h.reopen().await;
    assert!(h.store.take_runs(9, LEASE).await.expect("asked").is_empty(), "its time has not come");
    h.store.sweep(h.clock.now()).await.expect("swept");
    let mut taken = h.store.take_runs(9, LEASE).await.expect("taken");
    while taken.is_empty() {
        // What the sweep has changed is written a moment later.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        taken = h.store.take_runs(9, LEASE).await.expect("taken");
    }
    assert_eq!(taken.iter().map(|run| run.id).collect::<Vec<_>>(), [id], "but it is due");
    h.close().await;
}
