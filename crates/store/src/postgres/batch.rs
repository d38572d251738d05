//! The queue of one process and the task that empties it, group by group, in order. A group is one statement. When
//! its outcome is unknown (the connection broke) the same group is sent again with the same ids: what was applied
//! answers as it did the first time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio_postgres::Statement;
use tokio_postgres::error::SqlState;
use tollgate_catalog::Money;

use super::connect::{Connector, Link};
use super::{Shared, lock};
use crate::call::{Closed, HoldRefused, StoredReply};
use crate::ids::CallId;

/// The most operations in one statement.
const GROUP: usize = 500;

pub(super) struct Pending {
    pub body: Value,
    pub answer: Answer,
}

/// Who wants to know. A hold and an extension answer with the pots of the whole hold.
pub(super) enum Answer {
    /// The call and its price.
    Hold(CallId, [u8; 16], oneshot::Sender<Result<(i64, i64), HoldRefused>>),
    Extend(oneshot::Sender<Result<(i64, i64), HoldRefused>>),
    /// The second is told whether there ever was such a hold.
    Close(CallId, oneshot::Sender<Closed>, Option<oneshot::Sender<bool>>),
    Nobody,
}

#[derive(Default)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    bell: Notify,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Pending>,
    pushed: u64,
    durable: u64,
    since: Option<Instant>,
    stopped: bool,
}

impl Queue {
    /// Queues an operation and says its number.
    pub fn push(&self, pending: Pending) -> u64 {
        let mut inner = lock(&self.inner);
        inner.since.get_or_insert_with(Instant::now);
        inner.waiting.push_back(pending);
        inner.pushed += 1;
        let number = inner.pushed;
        drop(inner);
        self.bell.notify_one();
        number
    }

    /// The number of the last operation that was queued.
    pub fn pushed(&self) -> u64 {
        lock(&self.inner).pushed
    }

    pub fn durable(&self) -> u64 {
        lock(&self.inner).durable
    }

    pub fn len(&self) -> usize {
        lock(&self.inner).waiting.len()
    }

    pub fn is_stopped(&self) -> bool {
        lock(&self.inner).stopped
    }

    /// Operations not yet applied, and the age of the oldest in milliseconds.
    pub fn waiting(&self) -> (u64, u64) {
        let inner = lock(&self.inner);
        let age = inner.since.map_or(0, |s| u64::try_from(s.elapsed().as_millis()).unwrap_or(u64::MAX));
        (inner.pushed - inner.durable, age)
    }

    pub fn stop(&self) {
        lock(&self.inner).stopped = true;
        self.bell.notify_one();
    }

    /// The next group; `None` when the store is shut and the queue is empty.
    async fn take(&self) -> Option<Vec<Pending>> {
        loop {
            {
                let mut inner = lock(&self.inner);
                let count = inner.waiting.len().min(GROUP);
                if count > 0 {
                    return Some(inner.waiting.drain(..count).collect());
                }
                inner.since = None;
                if inner.stopped {
                    return None;
                }
            }
            self.bell.notified().await;
        }
    }

    fn done(&self, count: usize) {
        let mut inner = lock(&self.inner);
        inner.durable += count as u64;
        inner.since = (!inner.waiting.is_empty()).then(Instant::now);
    }
}

struct Sender {
    link: Link,
    apply: Statement,
}

struct Outcome {
    name: String,
    x: i64,
    y: i64,
    call: Option<CallId>,
    reply: Option<StoredReply>,
}

pub(super) async fn run(shared: Arc<Shared>, connector: Connector, pace: Duration) {
    let mut sender = None;
    let mut last = Instant::now() - pace;
    while let Some(group) = shared.queue.take().await {
        // Round trips make groups by themselves; the pace keeps a fast local server from being asked too often.
        if let Some(rest) = pace.checked_sub(last.elapsed())
            && group.len() < 8
        {
            tokio::time::sleep(rest).await;
        }
        last = Instant::now();
        let count = group.len();
        let outcomes = apply_until_done(&shared, &connector, &mut sender, &group).await;
        shared.queue.done(count);
        shared.commits.fetch_add(1, Ordering::Relaxed);
        shared.committed_ops.fetch_add(count as u64, Ordering::Relaxed);
        shared.largest_group.fetch_max(count as u64, Ordering::Relaxed);
        for (pending, outcome) in group.into_iter().zip(outcomes) {
            answer(&shared, pending.answer, outcome);
        }
    }
}

/// One outcome per operation; `None` for an operation the database refuses for good.
async fn apply_until_done(
    shared: &Shared,
    connector: &Connector,
    sender: &mut Option<Sender>,
    group: &[Pending],
) -> Vec<Option<Outcome>> {
    let mut bodies: Vec<Value> = group.iter().map(|p| p.body.clone()).collect();
    let mut pause = Duration::from_millis(20);
    loop {
        match try_apply(connector, sender, &bodies).await {
            Ok(outcomes) => {
                shared.set_down(false);
                return outcomes.into_iter().map(Some).collect();
            }
            Err(error) if is_refusal(&error) => {
                tracing::error!(%error, "the database refuses an operation");
                return one_by_one(connector, sender, &bodies).await;
            }
            Err(error) => {
                tracing::warn!(%error, operations = bodies.len(), "cannot reach the database, trying again");
                shared.set_down(true);
                shared.journal.sync();
                *sender = None;
                for body in &mut bodies {
                    body["again"] = Value::Bool(true);
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(500));
            }
        }
    }
}

async fn one_by_one(connector: &Connector, sender: &mut Option<Sender>, bodies: &[Value]) -> Vec<Option<Outcome>> {
    let mut outcomes = Vec::with_capacity(bodies.len());
    for body in bodies {
        let mut body = body.clone();
        outcomes.push(loop {
            match try_apply(connector, sender, std::slice::from_ref(&body)).await {
                Ok(mut one) => break one.pop(),
                Err(error) if is_refusal(&error) => {
                    tracing::error!(%error, "left out an operation the database refuses");
                    break None;
                }
                Err(_) => {
                    *sender = None;
                    body["again"] = Value::Bool(true);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        });
    }
    outcomes
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("{0}")]
    Database(#[from] tokio_postgres::Error),
    #[error("{0}")]
    Other(#[from] crate::StoreError),
}

/// A rule was broken: sending the same again cannot help.
fn is_refusal(error: &Failed) -> bool {
    let Failed::Database(error) = error else { return false };
    error.code().is_some_and(|code: &SqlState| code.code().starts_with("22") || code.code().starts_with("23"))
}

async fn try_apply(
    connector: &Connector,
    sender: &mut Option<Sender>,
    bodies: &[Value],
) -> Result<Vec<Outcome>, Failed> {
    let sender = match sender {
        Some(sender) => sender,
        None => {
            let link = connector.connect().await?;
            let apply = link.client.prepare("SELECT * FROM tollgate_apply($1::text::jsonb)").await?;
            sender.insert(Sender { link, apply })
        }
    };
    let body = serde_json::to_string(bodies).map_err(crate::StoreError::broken)?;
    let rows = sender.link.client.query(&sender.apply, &[&body]).await?;
    rows.iter()
        .map(|row| {
            let call: Option<Vec<u8>> = row.try_get(3)?;
            let reply = match row.try_get::<_, Option<Vec<u8>>>(6)? {
                Some(body) => Some(StoredReply {
                    status: row.try_get::<_, Option<i32>>(4)?.and_then(|s| s.try_into().ok()).unwrap_or(200),
                    content_type: row.try_get::<_, Option<String>>(5)?.unwrap_or_default(),
                    body: body.into(),
                }),
                None => None,
            };
            Ok(Outcome {
                name: row.try_get(0)?,
                x: row.try_get(1)?,
                y: row.try_get(2)?,
                call: call.and_then(|c| CallId::from_slice(&c)),
                reply,
            })
        })
        .collect()
}

/// Tells who asked. They may have gone; the operation is done all the same.
fn answer(shared: &Shared, answer: Answer, outcome: Option<Outcome>) {
    match answer {
        Answer::Hold(call, price, send) => {
            let verdict = outcome.map_or(Err(HoldRefused::Unavailable), hold_verdict);
            match verdict {
                Err(_) => {
                    lock(&shared.open).remove(&call);
                }
                Ok(_) if !shared.known_prices.has(&price) => shared.known_prices.add([price]),
                Ok(_) => {}
            }
            let _ = send.send(verdict);
        }
        Answer::Extend(send) => {
            let _ = send.send(outcome.map_or(Err(HoldRefused::Unavailable), hold_verdict));
        }
        Answer::Close(call, send, known) => {
            lock(&shared.open).remove(&call);
            let applied = outcome.as_ref().is_some_and(|o| o.name == "closed");
            if let Some(known) = known {
                let _ = known.send(outcome.as_ref().is_some_and(|o| o.name != "unknown"));
            }
            let closed = match outcome {
                Some(o) if applied => {
                    shared.write_offs.fetch_add(o.y, Ordering::Relaxed);
                    Closed { captured: Money::from_nano(o.x), write_off: Money::from_nano(o.y), applied }
                }
                _ => {
                    shared.late_closes.fetch_add(1, Ordering::Relaxed);
                    Closed::default()
                }
            };
            let _ = send.send(closed);
        }
        Answer::Nobody => {}
    }
}

fn hold_verdict(o: Outcome) -> Result<(i64, i64), HoldRefused> {
    Err(match (o.name.as_str(), o.call) {
        ("held", _) => return Ok((o.x, o.y)),
        ("insufficient", _) => HoldRefused::Insufficient,
        ("key_cap", _) => HoldRefused::KeyCap,
        ("no_account", _) => HoldRefused::NoAccount,
        ("not_open", _) => HoldRefused::NotOpen,
        ("idem_conflict", _) => HoldRefused::IdemConflict,
        ("idem_running", Some(call)) => HoldRefused::IdemRunning(call),
        ("idem_done", Some(call)) => HoldRefused::IdemDone { call, reply: o.reply },
        _ => HoldRefused::Unavailable,
    })
}
