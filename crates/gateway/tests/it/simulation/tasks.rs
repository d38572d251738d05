//! Video tasks in a simulation: creators that may die at every step, and pollers that race for leases and sometimes come too late. What
//! the maker of the videos was asked and what became of it is noted outside.

use super::actors::{end_of, pause, wish};
use super::oracle::Rows;
use super::outside::{Outside, lock};
use std::sync::Arc;
use tollgate_gateway::app::App;
use tollgate_store::{CallId, Leased, NewTask, TaskEnd, TaskFailure, TaskId, TaskState, TaskStep};

/// A task's hold lives until nobody expects a verdict any more.
const LONGEST: i64 = 30 * 86_400_000;

/// What is known outside of one task.
#[derive(Clone, Debug)]
pub struct Ordered {
    pub customer: usize,
    pub call: CallId,
    pub held: i64,
    /// What the maker bills in the end; nothing when it fails.
    pub costs: i64,
    /// It was told that the task exists.
    pub begun: bool,
    /// How often the maker was asked to make it.
    pub created: u32,
    /// The end somebody was told it has.
    pub ended: Option<TaskState>,
}

/// Orders one video.
pub async fn creator(outside: Arc<Outside>, app: Arc<App>) {
    let (wait, customer, held, costs, think, answers) = {
        let mut draw = outside.draw();
        let held = draw.between(1_000, 60_000);
        let costs = if draw.percent(60) { draw.between(1, held) } else { 0 };
        (draw.below(3_000), usize::from(draw.percent(30)), held, costs, draw.below(600), draw.percent(75))
    };
    pause(wait).await;
    let (held, costs) = (i64::try_from(held).expect("small"), i64::try_from(costs).expect("small"));
    let call = app.new_call_id();
    let slot = {
        let mut orders = lock(&outside.orders);
        orders.push(Ordered { customer, call, held, costs, begun: false, created: 0, ended: None });
        orders.len() - 1
    };
    let owner = &outside.customers[customer];
    let new = NewTask { plan: slot.to_string(), webhook_url: None, lease_ms: 1_500 };
    let Ok(begun) = app.store.begin_task(wish(&app, owner, call, held, LONGEST), new).await else { return };
    lock(&outside.orders)[slot].begun = true;
    let sending = app.store.task_sending(begun, "sim".to_owned(), "u".to_owned(), 1_500).await;
    if !sending.is_ok_and(|still_ours| still_ours) {
        return;
    }
    lock(&outside.orders)[slot].created += 1;
    pause(think).await;
    if answers {
        let _ = app.store.task_accepted(begun.id, format!("up-{slot}"), 300).await;
    }
}

/// Looks after all tasks that are due, for as long as the gateway lives. Two of them run at once.
pub async fn poller(outside: Arc<Outside>, app: Arc<App>) {
    loop {
        let (lease, rest) = {
            let mut draw = outside.draw();
            (i64::try_from(draw.between(100, 2_000)).expect("small"), draw.between(50, 900))
        };
        let taken = app.store.take_tasks(3, lease, &[]).await.unwrap_or_default();
        for leased in taken {
            look_after(&outside, &app, leased).await;
        }
        pause(rest).await;
    }
}

async fn look_after(outside: &Outside, app: &App, leased: Leased) {
    let slot: usize = leased.task.plan.parse().expect("our own plan");
    // The maker is asked; by the time it answers, the lease may be somebody else's.
    let think = outside.draw().below(900);
    pause(think).await;
    let order = lock(&outside.orders)[slot].clone();
    let ready = outside.draw().percent(40);
    let (id, fence) = (leased.task.id, leased.fence);
    if order.created > 0 && !ready {
        let state = if leased.task.upstream_id.is_some() { TaskState::Running } else { TaskState::Unknown };
        let step = TaskStep { id, fence, state, progress: None, upstream_id: None, checked: true, after_ms: 300 };
        let _ = app.store.put_back_task(step).await;
        return;
    }
    // One that never reached the maker fails; the others end as the maker says.
    let costs = if order.created > 0 { order.costs } else { 0 };
    let state = if costs > 0 { TaskState::Completed } else { TaskState::Failed };
    let failure =
        (costs == 0).then(|| TaskFailure { code: "failed".to_owned(), message: "it cannot be made".to_owned() });
    let owner = &outside.customers[order.customer];
    let close = end_of(app, owner, order.call, costs);
    let end = TaskEnd { fence, state, result: None, failure, forgiven: false, webhook_url: None, close };
    if let Ok(Some(closed)) = app.store.finish_task(end).await {
        let order = &mut lock(&outside.orders)[slot];
        assert_eq!(order.ended, None, "a task ended twice: {order:?}");
        assert_eq!(closed.captured.nano(), costs, "{order:?}");
        order.ended = Some(state);
    }
}

/// What holds of every task, and how much is still held for those that go on, by customer.
pub async fn check(outside: &Outside, app: &App, rows: &Rows, when: &str) -> Vec<i64> {
    let mut held = vec![0; outside.customers.len()];
    let orders = lock(&outside.orders).clone();
    for order in orders {
        assert!(order.created <= 1, "{when}: the maker was asked twice: {order:?}");
        let task = app.store.any_task(TaskId::of(order.call)).await.expect("tasks can be read");
        let row = rows.get(&order.call.to_string());
        let Some(task) = task else {
            assert!(!order.begun && row.is_none(), "{when}: a task is gone: {order:?}");
            continue;
        };
        if let Some(ended) = order.ended {
            assert_eq!(task.state, ended, "{when}: an end was undone: {order:?}");
        }
        if task.state.is_final() {
            let charge = row.map(|row| row.charge.nano());
            let costs = if order.created > 0 { order.costs } else { 0 };
            assert_eq!(charge, Some(costs), "{when}: {order:?} is {:?}", task.state);
        } else {
            assert!(row.is_none(), "{when}: it goes on and has its row: {order:?}");
            held[order.customer] += order.held;
        }
    }
    held
}
