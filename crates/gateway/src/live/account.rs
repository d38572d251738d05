//! What changed in an account since it was last looked at. Pure: what was read goes in, events come
//! out. Every event has the whole of what it is about as it is now, so that one that comes twice
//! does no harm.

use super::event::{LiveEvent, LiveMark};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use tollgate_catalog::Money;
use tollgate_store::{
    CallId, KeyId, LiveCall, LiveCalls, LiveKey, LiveRun, LiveStanding, LiveState, LiveTask, RunId, TaskId, TaskState,
};

/// A look that comes so late may have missed changes that are shown for a while only.
const LATEST_LOOK_MS: i64 = 60_000;
/// Clocks of replicas may differ by this much.
const CLOCKS_MS: i64 = 10_000;

/// An account as it was when it was last looked at.
pub struct WatchedAccount {
    pub mark: LiveMark,
    standing: Option<LiveStanding>,
    keys: HashMap<KeyId, i64>,
    tasks: HashMap<TaskId, (TaskState, Option<i64>)>,
    runs: HashMap<RunId, String>,
    refused: HashSet<CallId>,
}

impl WatchedAccount {
    pub fn new(entry: i64, state: LiveState, now: i64) -> WatchedAccount {
        WatchedAccount {
            mark: LiveMark { entry, at_ms: now },
            keys: state.keys.iter().map(|key| (key.key, key.changed_at)).collect(),
            tasks: state.tasks.iter().map(|task| (task.task, (task.state, task.progress))).collect(),
            runs: state.runs.iter().map(|run| (run.run, run.status.clone())).collect(),
            refused: state.refused.iter().map(|call| call.call).collect(),
            standing: state.standing,
        }
    }

    /// It was not looked at for so long that something may be missing.
    pub fn is_late(&self, now: i64) -> bool {
        now - self.mark.at_ms > LATEST_LOOK_MS
    }

    /// What happened since, and from now on this is how it was.
    pub fn news(&mut self, calls: &LiveCalls, state: LiveState, now: i64) -> Vec<LiveEvent> {
        let late = self.is_late(now);
        let before = std::mem::replace(self, WatchedAccount::new(calls.entry, state.clone(), now));
        let mark = self.mark;
        let mut events = of_calls(calls, mark);
        let refused = state.refused.iter().rev().filter(|call| !before.refused.contains(&call.call));
        events.extend(refused.map(|call| ended(call, mark)));
        if self.standing != before.standing {
            events.extend(of_standing(before.standing.as_ref(), self.standing.as_ref(), mark));
        }
        let keys = state.keys.iter().rev().filter(|key| before.keys.get(&key.key) != Some(&key.changed_at));
        events.extend(keys.map(|key| of_key(key, mark)));
        let moved = |task: &&LiveTask| before.tasks.get(&task.task) != Some(&(task.state, task.progress));
        events.extend(state.tasks.iter().rev().filter(moved).map(|task| of_task(task, mark)));
        let runs = state.runs.iter().rev().filter(|run| before.runs.get(&run.run) != Some(&run.status));
        events.extend(runs.map(|run| of_run(run, mark)));
        if late {
            events.push(LiveEvent::new("reset", Some(mark), json!({ "reason": "gap" })));
        }
        events
    }

    /// What a reader that was gone since `from` has missed. `None`: more than is known.
    pub fn missed(from: LiveMark, calls: &LiveCalls, state: &LiveState, now: i64) -> Option<Vec<LiveEvent>> {
        if calls.skipped || !(0..=LATEST_LOOK_MS).contains(&(now - from.at_ms)) {
            return None;
        }
        let (mark, since) = (LiveMark { entry: calls.entry, at_ms: now }, from.at_ms - CLOCKS_MS);
        let mut events = of_calls(calls, mark);
        events.extend(state.refused.iter().rev().filter(|call| call.ended_at >= since).map(|call| ended(call, mark)));
        events.extend(of_standing(None, state.standing.as_ref(), mark));
        events.extend(state.keys.iter().rev().map(|key| of_key(key, mark)));
        let lately = |task: &&LiveTask| task.created_at.max(task.ended_at.unwrap_or(i64::MAX)) >= since;
        events.extend(state.tasks.iter().rev().filter(lately).map(|task| of_task(task, mark)));
        let lately = |run: &&LiveRun| run.ended_at.is_none() || run.changed_at >= since;
        events.extend(state.runs.iter().rev().filter(lately).map(|run| of_run(run, mark)));
        Some(events)
    }
}

fn of_calls(calls: &LiveCalls, mark: LiveMark) -> Vec<LiveEvent> {
    let mut events: Vec<LiveEvent> = Vec::with_capacity(calls.calls.len());
    for call in &calls.calls {
        // Whoever comes back from here has not seen what comes after it.
        let own = LiveMark { entry: call.entry.unwrap_or(mark.entry), ..mark };
        events.push(ended(call, own).at(call.entry));
    }
    if calls.skipped {
        events.push(LiveEvent::new("usage.skipped", Some(mark), json!({ "at_ms": mark.at_ms })));
    }
    events
}

fn ended(call: &LiveCall, mark: LiveMark) -> LiveEvent {
    let kind = if call.refunded_now { "usage.refunded" } else { "usage.closed" };
    let data = json!({
        "call_id": call.call, "key_id": call.key, "model": call.model, "endpoint": call.endpoint,
        "ending": call.ending.name(), "reason": call.reason, "status": call.status,
        "started_at_ms": call.started_at, "ended_at_ms": call.ended_at, "estimated": call.estimated,
        "charge_nano_usd": call.charge.nano(), "charge_usd": call.charge.to_string(),
        "refunded_nano_usd": call.refunded.nano(),
    });
    LiveEvent::new(kind, Some(mark), data).of(call.key)
}

fn of_standing(before: Option<&LiveStanding>, now: Option<&LiveStanding>, mark: LiveMark) -> Vec<LiveEvent> {
    let mut events = Vec::new();
    let Some(now) = now else { return events };
    let pots = |one: &LiveStanding| [one.trial_available, one.paid_available, one.trial_held, one.paid_held];
    let sum = |one: Money, other: Money| one.checked_add(other).unwrap_or(one);
    let available = sum(now.trial_available, now.paid_available);
    if before.map(pots) != Some(pots(now)) {
        let data = json!({
            "available_nano_usd": available.nano(), "available_usd": available.to_string(),
            "held_nano_usd": sum(now.trial_held, now.paid_held).nano(),
            "trial_available_nano_usd": now.trial_available.nano(), "paid_available_nano_usd": now.paid_available.nano(),
        });
        events.push(LiveEvent::new("balance.changed", Some(mark), data));
    }
    if now.low_since.is_some() && before.is_none_or(|before| before.low_since != now.low_since) {
        let data = json!({
            "threshold_nano_usd": now.threshold.map(Money::nano), "since_ms": now.low_since,
            "available_nano_usd": available.nano(),
        });
        events.push(LiveEvent::new("balance.low", Some(mark), data));
    }
    if before.is_some_and(|before| before.suspended_at != now.suspended_at) {
        let data: Value = json!({ "suspended": now.suspended_at.is_some(), "suspended_at_ms": now.suspended_at });
        events.push(LiveEvent::new("account.changed", Some(mark), data));
    }
    events
}

fn of_key(key: &LiveKey, mark: LiveMark) -> LiveEvent {
    let data = json!({
        "key_id": key.key, "name": key.name, "key_prefix": key.prefix, "changed_at_ms": key.changed_at,
        "expires_at_ms": key.expires_at, "revoked_at_ms": key.revoked_at,
    });
    LiveEvent::new("key.changed", Some(mark), data).of(key.key)
}

fn of_task(task: &LiveTask, mark: LiveMark) -> LiveEvent {
    let data = json!({
        "task_id": task.task, "key_id": task.key, "model": task.model, "state": task.state.name(),
        "progress": task.progress, "created_at_ms": task.created_at, "ended_at_ms": task.ended_at,
        "failure_code": task.failure,
    });
    LiveEvent::new("task.changed", Some(mark), data).of(task.key)
}

fn of_run(run: &LiveRun, mark: LiveMark) -> LiveEvent {
    let data = json!({
        "run_id": run.run, "key_id": run.key, "workflow": run.workflow, "status": run.status,
        "changed_at_ms": run.changed_at, "ended_at_ms": run.ended_at,
    });
    LiveEvent::new("run.changed", Some(mark), data).of(run.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_store::{AccountId, Ending};

    const NOW: i64 = 1_800_000_000_000;

    fn call(entry: Option<i64>, id: u8) -> LiveCall {
        LiveCall {
            entry,
            refunded_now: false,
            call: CallId([id; 16]),
            key: KeyId([1; 16]),
            started_at: NOW,
            ended_at: NOW,
            endpoint: "/v1/chat/completions".to_owned(),
            model: "m".to_owned(),
            ending: if entry.is_some() { Ending::Answered } else { Ending::Refused },
            reason: String::new(),
            status: 200,
            charge: Money::from_nano(5),
            refunded: Money::ZERO,
            estimated: false,
        }
    }

    fn calls(entry: i64, calls: Vec<LiveCall>) -> LiveCalls {
        LiveCalls { account: AccountId([9; 16]), entry, skipped: false, calls }
    }

    fn task(state: TaskState, progress: Option<i64>) -> LiveTask {
        LiveTask {
            task: TaskId([3; 16]),
            key: KeyId([1; 16]),
            model: "video".to_owned(),
            state,
            progress,
            created_at: NOW,
            ended_at: None,
            failure: None,
        }
    }

    fn key(changed_at: i64) -> LiveKey {
        let (name, prefix) = ("k".to_owned(), "sk-abcd".to_owned());
        LiveKey { key: KeyId([1; 16]), changed_at, name, prefix, expires_at: None, revoked_at: None }
    }

    fn standing(paid: i64, low_since: Option<i64>) -> Option<LiveStanding> {
        Some(LiveStanding {
            trial_available: Money::ZERO,
            paid_available: Money::from_nano(paid),
            trial_held: Money::ZERO,
            paid_held: Money::ZERO,
            suspended_at: None,
            threshold: Some(Money::from_nano(10)),
            low_since,
        })
    }

    fn kinds(events: &[LiveEvent]) -> Vec<String> {
        let kind = |event: &LiveEvent| {
            let text = String::from_utf8(event.text.to_vec()).expect("text");
            text.lines().next().and_then(|line| line.strip_prefix("event: ")).expect("a kind").to_owned()
        };
        events.iter().map(kind).collect()
    }

    #[test]
    fn what_has_changed_is_said_once() {
        let first = LiveState {
            standing: standing(100, None),
            keys: vec![key(1)],
            tasks: vec![task(TaskState::Queued, None)],
            ..LiveState::default()
        };
        let mut watched = WatchedAccount::new(7, first.clone(), NOW);
        let none = watched.news(&calls(7, Vec::new()), first, NOW);
        assert!(none.is_empty(), "{none:?}");
        let second = LiveState {
            standing: standing(4, Some(NOW)),
            keys: vec![key(2)],
            tasks: vec![task(TaskState::Running, Some(10))],
            refused: vec![call(None, 8)],
            ..LiveState::default()
        };
        let ended = calls(9, vec![call(Some(8), 1), call(Some(9), 2)]);
        let news = watched.news(&ended, second.clone(), NOW + 1_000);
        let expected = [
            "usage.closed",
            "usage.closed",
            "usage.closed",
            "balance.changed",
            "balance.low",
            "key.changed",
            "task.changed",
        ];
        assert_eq!(kinds(&news), expected);
        let text = String::from_utf8(news[0].text.to_vec()).expect("text");
        assert!(text.contains(&format!("id: 8-{}", NOW + 1_000)), "the second is still to come: {text}");
        assert!(watched.news(&calls(9, Vec::new()), second.clone(), NOW + 2_000).is_empty());
        let late = watched.news(&calls(9, Vec::new()), second, NOW + 90_000);
        assert_eq!(kinds(&late), ["reset"], "nobody looked for long");
    }

    #[test]
    fn who_comes_back_gets_what_it_missed_or_is_told() {
        let state = LiveState {
            standing: standing(4, None),
            tasks: vec![task(TaskState::Running, None)],
            ..LiveState::default()
        };
        let from = LiveMark { entry: 7, at_ms: NOW };
        let ended = calls(8, vec![call(Some(8), 1)]);
        let missed = WatchedAccount::missed(from, &ended, &state, NOW + 5_000).expect("known");
        assert_eq!(kinds(&missed), ["usage.closed", "balance.changed", "task.changed"]);
        assert!(WatchedAccount::missed(from, &ended, &state, NOW + 70_000).is_none());
        assert!(WatchedAccount::missed(from, &ended, &state, NOW - 1).is_none(), "a time to come");
        let busy = LiveCalls { skipped: true, ..ended };
        assert!(WatchedAccount::missed(from, &busy, &state, NOW).is_none());
    }
}
