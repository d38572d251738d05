//! Empties the queue, group by group, in order. What is plain of a group is one transaction, the
//! rest one statement. When its outcome is unknown (the connection broke) the same operations are
//! sent again with the same ids: what was applied answers as it did the first time.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio_postgres::{Row, Statement};
use tollgate_catalog::Money;

use super::connect::{PgConnection, PgConnector};
use super::merge::Merger;
use super::plain::PlainStatements;
use super::queue::{Closer, OpReply, PendingOp};
use super::{Shared, lock};
use crate::account::limits::{LimitKind, LimitReached};
use crate::call::{Closed, HoldRefused, StoredReply};
use crate::error::StoreError;
use crate::ids::CallId;
use crate::task::TaskNaming;

struct Sender {
    shared: Arc<Shared>,
    connector: PgConnector,
    /// Made when needed, made again when lost.
    way: Option<Way>,
}

struct Way {
    link: PgConnection,
    apply: Statement,
    plain: PlainStatements,
}

/// What an operation answers; see `functions.sql`.
#[derive(Default)]
pub(super) struct OpOutcome {
    name: Cow<'static, str>,
    x: i64,
    y: i64,
    call: Option<CallId>,
    reply: Option<StoredReply>,
}

impl OpOutcome {
    /// A hold of so much paid money.
    pub fn held(paid: i64) -> Self {
        Self { name: Cow::Borrowed("held"), y: paid, ..Self::default() }
    }

    /// An end that nobody had made before, all of which was paid.
    pub fn closed(captured: i64) -> Self {
        Self { name: Cow::Borrowed("closed"), x: captured, ..Self::default() }
    }
}

pub(super) async fn run(
    shared: Arc<Shared>,
    connector: PgConnector,
    mut merger: Merger,
    pace: Duration,
    deadline: Duration,
) {
    let mut sender = Sender { shared: shared.clone(), connector, way: None };
    let (mut last, mut took) = (Instant::now() - pace, Duration::ZERO);
    while shared.queue.waits().await {
        // What a group costs beside its operations is the same for few and for many: a busy
        // database is left alone for as long as the last group took, within bounds.
        let rest = (2 * took).clamp(pace, 3 * pace).saturating_sub(last.elapsed());
        if !rest.is_zero() && !shared.queue.is_stopped() {
            tokio::time::sleep(rest).await;
        }
        let group = shared.queue.take();
        last = Instant::now();
        let count = group.len();
        let outcomes = watched(&shared, sender.apply(&group), deadline).await;
        took = last.elapsed();
        shared.queue.done(count);
        shared.commits.fetch_add(1, Ordering::Relaxed);
        shared.committed_ops.fetch_add(count as u64, Ordering::Relaxed);
        shared.largest_group.fetch_max(count as u64, Ordering::Relaxed);
        merger.applied(&group);
        for (pending, outcome) in group.into_iter().zip(outcomes) {
            answer(&shared, pending.answer, outcome);
        }
    }
}

/// A database that stands still answers nothing, not even an error: past the deadline of a hold it
/// is down, new calls are refused, and what was closed meanwhile is made safe in the journal. What
/// was sent is waited for, since it may be applied all the same.
async fn watched<T>(shared: &Shared, work: impl Future<Output = T>, deadline: Duration) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        match tokio::time::timeout(deadline, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                shared.set_down(true);
                shared.journal.sync();
            }
        }
    }
}

impl Sender {
    /// One outcome per operation; `None` for an operation the database refuses for good. Plain ones
    /// are done by then, and whatever becomes of the others does not touch them.
    async fn apply(&mut self, group: &[PendingOp]) -> Vec<Option<OpOutcome>> {
        let (mut outcomes, again) = match self.try_plain(group).await {
            Ok(outcomes) => (outcomes, false),
            Err(error) => {
                self.lost(&error, group.len());
                (none(group), true)
            }
        };
        let left: Vec<&PendingOp> =
            group.iter().zip(&outcomes).filter(|(_, done)| done.is_none()).map(|(pending, _)| pending).collect();
        if left.len() < group.len() {
            self.shared.set_down(false);
        }
        if left.is_empty() {
            return outcomes;
        }
        let mut others = self.apply_by_functions(&left, again).await.into_iter();
        for waiting in outcomes.iter_mut().filter(|done| done.is_none()) {
            *waiting = others.next().flatten();
        }
        outcomes
    }

    /// A group that is refused is halved until the operation at fault stands alone: the others must
    /// not wait for it. Once an outcome was unknown, all that follows is sent as sent before.
    async fn apply_by_functions(&mut self, group: &[&PendingOp], mut again: bool) -> Vec<Option<OpOutcome>> {
        let mut outcomes = Vec::with_capacity(group.len());
        let mut parts = vec![group];
        while let Some(part) = parts.pop() {
            match self.apply_part(part, &mut again).await {
                Ok(done) => outcomes.extend(done.into_iter().map(Some)),
                Err(error) if part.len() > 1 => {
                    tracing::warn!(%error, operations = part.len(), "the database refuses one of a group of operations");
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
                Err(error) => {
                    tracing::error!(%error, "left out an operation the database refuses");
                    part.iter().for_each(|pending| self.shared.keep_refused(pending));
                    outcomes.push(None);
                }
            }
        }
        outcomes
    }

    /// Sends the operations until they are applied, or refused in a way that sending them again
    /// cannot mend.
    async fn apply_part(
        &mut self,
        part: &[&PendingOp],
        again: &mut bool,
    ) -> Result<Vec<OpOutcome>, tokio_postgres::Error> {
        let mut pause = Duration::from_millis(20);
        loop {
            match self.try_apply(part, *again).await {
                Ok(outcomes) => {
                    self.shared.set_down(false);
                    return Ok(outcomes);
                }
                Err(Failed::Refused(error)) => {
                    self.shared.set_down(false);
                    return Err(error);
                }
                Err(error) => {
                    self.lost(&error, part.len());
                    *again = true;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(500));
                }
            }
        }
    }

    /// The connection is of no use any more, or there is none.
    fn lost(&mut self, error: &Failed, operations: usize) {
        tracing::warn!(%error, operations, "cannot reach the database, trying again");
        self.shared.set_down(true);
        self.shared.retries.fetch_add(1, Ordering::Relaxed);
        self.shared.journal.sync();
        self.way = None;
    }

    async fn way(&mut self) -> Result<&Way, Failed> {
        if self.way.is_none() {
            let link = self.connector.connect().await?;
            // Statements are short; to compile one takes longer than all of it.
            link.client.batch_execute("SET jit = off").await?;
            let apply = link.client.prepare("SELECT * FROM tollgate_apply($1::text::jsonb)").await?;
            let plain = PlainStatements::prepare(&link.client).await?;
            self.way = Some(Way { link, apply, plain });
        }
        self.way.as_ref().ok_or_else(|| Failed::Other(refused()))
    }

    /// The outcomes of those that are plain. When the database refuses one of them, all are left to
    /// the functions, one after the other.
    async fn try_plain(&mut self, group: &[PendingOp]) -> Result<Vec<Option<OpOutcome>>, Failed> {
        let replica = self.shared.replica;
        let way = self.way().await?;
        match way.plain.apply(&way.link.client, group, &replica).await {
            Err(Failed::Refused(error)) => {
                tracing::warn!(%error, operations = group.len(), "the database refuses a group of plain operations");
                way.link.client.batch_execute("ROLLBACK").await?;
                Ok(none(group))
            }
            other => other,
        }
    }

    async fn try_apply(&mut self, part: &[&PendingOp], again: bool) -> Result<Vec<OpOutcome>, Failed> {
        let text = statement(part, again, &self.shared.replica);
        let way = self.way().await?;
        let rows = way.link.client.query(&way.apply, &[&text]).await.map_err(Failed::from_statement)?;
        rows.iter().map(|row| outcome(row).map_err(Failed::Database)).collect()
    }
}

fn none(part: &[PendingOp]) -> Vec<Option<OpOutcome>> {
    part.iter().map(|_| None).collect()
}

/// The operations as one JSON array. Those sent before say so.
fn statement(part: &[&PendingOp], again: bool, replica: &[u8; 16]) -> String {
    let mut text = String::with_capacity(part.iter().map(|p| p.op.bytes() + 16).sum());
    for pending in part {
        text.push(if text.is_empty() { '[' } else { ',' });
        let written = pending.op.written(replica);
        match written.strip_prefix('{') {
            Some(rest) if again => {
                text.push_str("{\"again\":true,");
                text.push_str(rest);
            }
            _ => text.push_str(&written),
        }
    }
    text.push(']');
    text
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The connection, or the way to it: the outcome is unknown or nothing happened.
    #[error("{0}")]
    Database(#[from] tokio_postgres::Error),
    #[error("{0}")]
    Other(#[from] crate::StoreError),
    /// The operations themselves: sending them again cannot help.
    #[error("{0}")]
    Refused(tokio_postgres::Error),
}

impl Failed {
    pub fn from_statement(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(code) if !passes(code.code()) => Self::Refused(error),
            _ => Self::Database(error),
        }
    }
}

/// Whether an error of a statement passes by itself, or at least is none of its operations: lost
/// connections, deadlocks, full disks, a standby that cannot write, a server that stops, a function
/// that is missing. All others are about the data.
fn passes(code: &str) -> bool {
    const CLASSES: [&str; 10] = ["08", "25", "28", "3D", "40", "42", "53", "55", "57", "58"];
    CLASSES.iter().any(|class| code.starts_with(class))
}

fn outcome(row: &Row) -> Result<OpOutcome, tokio_postgres::Error> {
    let call: Option<Vec<u8>> = row.try_get(3)?;
    Ok(OpOutcome {
        name: Cow::Owned(row.try_get(0)?),
        x: row.try_get(1)?,
        y: row.try_get(2)?,
        call: call.and_then(|c| CallId::from_slice(&c)),
        reply: stored_reply(row, 4)?,
    })
}

/// Status, content type and body of a stored answer, in this place and the next two.
pub(super) fn stored_reply(row: &Row, at: usize) -> Result<Option<StoredReply>, tokio_postgres::Error> {
    let Some(body) = row.try_get::<_, Option<Vec<u8>>>(at + 2)? else { return Ok(None) };
    Ok(Some(StoredReply {
        status: row.try_get::<_, Option<i32>>(at)?.and_then(|s| s.try_into().ok()).unwrap_or(200),
        content_type: row.try_get::<_, Option<String>>(at + 1)?.unwrap_or_default(),
        body: body.into(),
    }))
}

/// Tells who asked. They may have gone; the operation is done all the same.
fn answer(shared: &Shared, answer: OpReply, outcome: Option<OpOutcome>) {
    match answer {
        OpReply::Hold(call, price, send) => {
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
        OpReply::Extend(send) => {
            let _ = send.send(outcome.map_or(Err(HoldRefused::Unavailable), hold_verdict));
        }
        OpReply::Close(closer) => {
            let Closer { call, send, known, estimated } = *closer;
            lock(&shared.open).remove(&call);
            let applied = outcome.as_ref().is_some_and(|o| o.name == "closed");
            if let Some(known) = known {
                let _ = known.send(outcome.as_ref().is_some_and(|o| o.name != "unknown"));
            }
            let done = match outcome {
                Some(o) if applied => closed(shared, &o, estimated),
                _ => {
                    shared.late_closes.fetch_add(1, Ordering::Relaxed);
                    Closed::default()
                }
            };
            let _ = send.send(done);
        }
        OpReply::Task(send) => {
            let changed = |o: OpOutcome| match o.name.as_ref() {
                "done" => TaskNaming::Done,
                "taken" => TaskNaming::Taken,
                _ => TaskNaming::Stale,
            };
            let _ = send.send(outcome.map(changed).ok_or_else(refused));
        }
        OpReply::TaskEnd(send, estimated) => {
            let closed =
                outcome.ok_or_else(refused).map(|o| (o.name == "closed").then(|| closed(shared, &o, estimated)));
            let _ = send.send(closed);
        }
        OpReply::Nobody => {}
    }
}

fn refused() -> StoreError {
    StoreError::broken("the database refused the operation")
}

fn closed(shared: &Shared, o: &OpOutcome, estimated: Option<String>) -> Closed {
    shared.count_estimated(estimated);
    crate::ledger::bounds::add_to(&shared.write_offs, o.y);
    Closed { captured: Money::from_nano(o.x), write_off: Money::from_nano(o.y), applied: true }
}

fn hold_verdict(o: OpOutcome) -> Result<(i64, i64), HoldRefused> {
    Err(match (o.name.as_ref(), o.call) {
        ("held", _) => return Ok((o.x, o.y)),
        ("insufficient", _) => HoldRefused::Insufficient { available: Money::from_nano(o.x) },
        ("topped_up", _) => HoldRefused::ToppedUp,
        ("no_account", _) => HoldRefused::NoAccount,
        ("suspended", _) => HoldRefused::Suspended,
        ("not_open", _) => HoldRefused::NotOpen,
        ("idem_conflict", _) => HoldRefused::IdemConflict,
        ("idem_running", Some(call)) => HoldRefused::IdemRunning(call),
        ("idem_done", Some(call)) => HoldRefused::IdemDone { call, reply: o.reply },
        (name, _) => match LimitKind::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => {
                let frees_at = (o.x > 0).then_some(o.x);
                HoldRefused::Limit(LimitReached { kind, limit: Money::from_nano(o.y), frees_at })
            }
            None => HoldRefused::Unavailable,
        },
    })
}
