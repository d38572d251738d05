//! What changed in the house since it was last looked at, for operators. Calls are counted, never
//! listed: however many there are, a second is one event.

use super::event::LiveEvent;
use crate::routes::figures::{PublishedHealth, shown};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use tollgate_store::{LiveAlert, LiveChange, LiveHouse, LiveJob, LivePause, LiveTraffic};

/// Routes of which one event says how they are doing.
const MOST_ROUTES: usize = 200;

/// A provider that is not asked for a model by this replica, for want of reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PausedPair {
    pub provider: String,
    pub model: String,
}

/// The house as it is now.
pub struct HouseNow {
    pub rows: LiveHouse,
    /// The hash of what is on sale, its version if it was published, and how many models it has.
    pub catalog: (String, Option<i64>, usize),
    pub health: Arc<PublishedHealth>,
    pub health_hours: u32,
    pub pairs: BTreeSet<PausedPair>,
    /// The name of this process among the replicas, and calls that it has open.
    pub replica: String,
    pub running: usize,
    /// Where the ledger ends.
    pub end: i64,
    pub at_ms: i64,
}

/// The house as it was.
pub struct HouseWatched {
    now: HouseNow,
    /// Where the ledger ended at the look before: what came after it is counted at the next one,
    /// when all of it is committed.
    before: (i64, i64),
}

impl HouseWatched {
    pub fn new(now: HouseNow) -> HouseWatched {
        HouseWatched { before: (now.end, now.at_ms), now }
    }

    /// Between which places of the ledger calls are to be counted.
    pub fn span(&self) -> (i64, i64) {
        (self.before.0, self.now.end)
    }

    /// What happened since. `None`: more than is known.
    pub fn news(&mut self, now: HouseNow, traffic: LiveTraffic) -> Option<Vec<LiveEvent>> {
        let counted = self.now.at_ms - self.before.1;
        let last = HouseWatched { before: (self.now.end, self.now.at_ms), now };
        let was = std::mem::replace(self, last).now;
        let now = &self.now;
        let mut events = Vec::new();
        let mut whole = true;
        let changes = new_rows(&was.rows.changes, &now.rows.changes, |row| row.seq, &mut whole);
        events.extend(changes.into_iter().map(of_change));
        let pauses = new_rows(&was.rows.pauses, &now.rows.pauses, |row| row.seq, &mut whole);
        events.extend(pauses.into_iter().map(of_pause));
        let alerts = new_rows(&was.rows.alerts, &now.rows.alerts, |row| row.event, &mut whole);
        events.extend(alerts.into_iter().map(of_alert));
        let jobs: HashMap<&str, &LiveJob> = was.rows.jobs.iter().map(|job| (job.job.as_str(), job)).collect();
        let moved = now.rows.jobs.iter().rev().filter(|job| jobs.get(job.job.as_str()) != Some(job));
        events.extend(moved.map(of_job));
        if was.catalog.0 != now.catalog.0 || was.catalog.1 != now.catalog.1 {
            let (hash, version, models) = &now.catalog;
            let data = json!({ "hash": hash, "version": version, "models": models, "at_ms": now.at_ms });
            events.push(LiveEvent::new("catalog.published", None, data));
        }
        for pair in was.pairs.symmetric_difference(&now.pairs) {
            let data = json!({
                "provider": pair.provider, "model": pair.model, "paused": now.pairs.contains(pair), "replica": now.replica,
            });
            events.push(LiveEvent::new("route.paused", None, data));
        }
        if !Arc::ptr_eq(&was.health, &now.health) {
            events.extend(of_health(&was.health, now));
        }
        let data = json!({
            "at_ms": now.at_ms, "span_ms": counted, "ended": traffic.ended, "charged": traffic.charged,
            "charge_nano_usd": traffic.charge.nano(), "replica": now.replica, "running_here": now.running,
        });
        // The first look has nothing to compare with.
        if counted > 0 {
            events.push(LiveEvent::new("traffic", None, data));
        }
        whole.then_some(events)
    }
}

/// Rows that were not there, the oldest first. `whole` is false where they fill the whole list:
/// there may be more.
fn new_rows<'a, T, K: Hash + Eq>(was: &[T], now: &'a [T], id: fn(&T) -> K, whole: &mut bool) -> Vec<&'a T> {
    let seen: HashSet<K> = was.iter().map(id).collect();
    let new: Vec<&T> = now.iter().rev().filter(|row| !seen.contains(&id(row))).collect();
    *whole &= was.is_empty() || new.is_empty() || new.len() < now.len();
    new
}

fn of_change(row: &LiveChange) -> LiveEvent {
    let kind = match row.action.as_str() {
        "account.suspend" => "account.suspended",
        "account.reopen" => "account.reopened",
        _ => "change.logged",
    };
    let data = json!({
        "seq": row.seq, "at_ms": row.at, "actor": row.actor, "action": row.action, "subject": row.subject,
        "account_id": row.account,
    });
    LiveEvent::new(kind, None, data)
}

fn of_pause(row: &LivePause) -> LiveEvent {
    let data = json!({
        "kind": row.kind, "name": row.name, "paused": row.paused, "actor": row.actor, "reason": row.reason, "at_ms": row.at,
    });
    LiveEvent::new("pause.changed", None, data)
}

fn of_alert(row: &LiveAlert) -> LiveEvent {
    let kind = if row.what == "cleared" { "alert.cleared" } else { "alert.raised" };
    let data = json!({
        "alert_id": row.event, "rule": row.rule, "subject": row.subject, "what": row.what, "message": row.message,
        "at_ms": row.at,
    });
    LiveEvent::new(kind, None, data)
}

fn of_job(job: &LiveJob) -> LiveEvent {
    let data = json!({
        "job_id": job.job, "kind": job.kind, "state": job.state, "done": job.done, "total": job.total,
    });
    LiveEvent::new("job.changed", None, data)
}

fn of_health(was: &PublishedHealth, now: &HouseNow) -> Option<LiveEvent> {
    let before: HashMap<_, _> = was.counted.iter().map(|(route, counts)| (route, counts)).collect();
    let changed = now.health.counted.iter().filter(|(route, counts)| before.get(route) != Some(&counts));
    let mut routes: Vec<Value> = changed
        .take(MOST_ROUTES + 1)
        .map(|(route, counts)| {
            let named = |name: &String| (!name.is_empty()).then(|| name.clone());
            json!({
                "model": route.model, "provider": named(&route.provider), "upstream_model": named(&route.upstream_model),
                "health": shown(counts, now.health_hours),
            })
        })
        .collect();
    let more = routes.len() > MOST_ROUTES;
    routes.truncate(MOST_ROUTES);
    let data = json!({ "routes": routes, "more": more, "at_ms": now.at_ms });
    (!routes.is_empty()).then(|| LiveEvent::new("health.changed", None, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_catalog::Money;

    fn now(changes: std::ops::RangeInclusive<i64>, end: i64, at_ms: i64) -> HouseNow {
        let row = |seq| LiveChange {
            seq,
            at: at_ms,
            actor: "op".to_owned(),
            action: if seq % 2 == 0 { "account.suspend" } else { "key.create" }.to_owned(),
            subject: "x".to_owned(),
            account: None,
        };
        HouseNow {
            rows: LiveHouse { changes: changes.rev().map(row).collect(), ..LiveHouse::default() },
            catalog: (format!("hash {}", end / 100), None, 3),
            health: Arc::default(),
            health_hours: 24,
            pairs: BTreeSet::new(),
            replica: "sqlite".to_owned(),
            running: 0,
            end,
            at_ms,
        }
    }

    fn texts(events: Option<Vec<LiveEvent>>) -> Vec<String> {
        let text = |event: LiveEvent| String::from_utf8(event.text.to_vec()).expect("text");
        events.expect("known").into_iter().map(text).collect()
    }

    #[test]
    fn a_second_of_calls_is_one_event_and_is_counted_late() {
        let mut watched = HouseWatched::new(now(1..=3, 10, 1_000));
        assert!(texts(watched.news(now(1..=3, 20, 2_000), LiveTraffic::default())).is_empty());
        assert_eq!(watched.span(), (10, 20));
        let counted = LiveTraffic { ended: 7, charged: 5, charge: Money::from_nano(9) };
        let seen = texts(watched.news(now(1..=3, 30, 3_000), counted));
        assert_eq!(seen.len(), 1);
        assert!(seen[0].contains("\"ended\":7") && seen[0].contains("\"span_ms\":1000"), "{seen:?}");
        assert_eq!(watched.span(), (20, 30));
    }

    #[test]
    fn rows_that_are_new_are_said_once_and_too_many_are_no_news() {
        let mut watched = HouseWatched::new(now(1..=3, 0, 1_000));
        let seen = texts(watched.news(now(1..=5, 0, 1_000), LiveTraffic::default()));
        assert!(seen[0].starts_with("event: account.suspended") && seen[1].starts_with("event: change.logged"));
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(watched.news(now(6..=9, 0, 1_000), LiveTraffic::default()).is_none(), "none of before is left");
        let seen = texts(watched.news(now(6..=9, 100, 1_000), LiveTraffic::default()));
        assert!(seen.len() == 1 && seen[0].starts_with("event: catalog.published"), "{seen:?}");
    }
}
