//! Calls nobody will end: after a crash of this replica, past their time, or of a replica that went
//! silent. Each is closed at its last mark if this replica has one, else without a charge; the
//! database lets only one closer win.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::rows::id;
use super::watch::Watch;
use super::{PostgresEngine, Running, lock};
use crate::call::{Close, Closed, Ending, HOUR_MS, Mark, UsageFacts};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::journal::record::{self, JournalRecord};
use crate::report::{Recovered, Swept};
use crate::workflow_run::RUNS_RETAINED_MS;

/// How long a hold that was given up for another replica waits for that one to come back.
const LOST_RETAINED_MS: i64 = 30 * 24 * 3_600_000;

const OPEN: &str = "SELECT call_id, account_id, key_id, at, endpoint, model FROM open_hold";

impl PostgresEngine {
    pub(super) async fn recover(&self, journal: Vec<Vec<u8>>) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
        let mut marks: HashMap<CallId, (Box<Mark>, Option<[u8; 16]>)> = HashMap::new();
        let mut replayed = Vec::new();
        for payload in journal {
            match record::read(&payload) {
                Some(JournalRecord::Mark { mark, price_id, .. }) => {
                    marks.insert(mark.call, (mark, price_id));
                }
                Some(JournalRecord::Close { close, price_id }) => {
                    // What it had produced by then says nothing any more.
                    marks.remove(&close.call);
                    let (tell, known) = oneshot::channel();
                    let (_, closed) = self.queue_close(*close, price_id, Some(tell));
                    replayed.push((closed, known));
                }
                None => recovered.dropped += 1,
            }
        }
        for (closed, known) in replayed {
            let closed = closed.await.map_err(|_| StoreError::away("the store was shut"))?;
            count(&mut recovered, closed);
            recovered.dropped += u64::from(!known.await.unwrap_or(true));
        }
        let mine = self.shared.replica.as_slice();
        let left = self.rows(&format!("{OPEN} WHERE replica = $1 AND NOT task"), &[&mine]).await?;
        let mut resolved = Vec::with_capacity(left.len() + marks.len());
        for row in &left {
            let call = CallId(id(row, 0)?);
            if self.shared.journal.keeps_close(call) {
                continue;
            }
            let (close, price_id) = match marks.remove(&call) {
                Some((mark, price_id)) => (Close::at_mark(*mark, "crashed"), price_id),
                None => (self.without_mark(row, "crashed")?, None),
            };
            resolved.push(self.queue_close(close.lost(&self.options), price_id, None).1);
        }
        // Whatever is marked and not open was closed before, or given up by another replica: that
        // is made good.
        for (mark, price_id) in marks.into_values() {
            resolved.push(self.queue_close(Close::at_mark(*mark, "crashed"), price_id, None).1);
        }
        for closed in resolved {
            count(&mut recovered, closed.await.map_err(|_| StoreError::away("the store was shut"))?);
        }
        self.shared.journal.reset()?;
        Ok(recovered)
    }

    /// Each replica resolves its own holds past their time, by its own clock, and those of replicas
    /// it has seen die.
    pub async fn sweep(self: &Arc<Self>, now: i64) -> Result<Swept, StoreError> {
        let mine = self.shared.replica.as_slice();
        let due = format!("{OPEN} WHERE replica = $1 AND expires_at <= $2 AND NOT task");
        let expired = self.resolve(&due, &[&mine, &now], "expired").await?;
        let dead = self.dead(now).await?;
        let orphaned = match dead.is_empty() {
            true => 0,
            false => {
                self.resolve(&format!("{OPEN} WHERE replica = ANY($1) AND NOT task"), &[&dead], "replica_lost").await?
            }
        };
        self.rows("DELETE FROM lost_hold WHERE lost_at < tollgate_now() - $1", &[&LOST_RETAINED_MS]).await?;
        let retention = i64::try_from(self.options.idem_retention.as_millis()).unwrap_or(i64::MAX);
        let sure = now.min(self.clock.sure());
        let before = sure.saturating_sub(retention);
        let forgotten = self.rows("DELETE FROM idem WHERE at < $1 AND done = 1 RETURNING 1", &[&before]).await?;
        let hour = before.div_euclid(HOUR_MS);
        self.rows("DELETE FROM idem_kept WHERE hour < $1", &[&hour]).await?;
        self.forget_vain(sure).await?;
        self.forget_client_secrets(sure).await?;
        self.forget_managed(sure).await?;
        self.tend_runs(sure.saturating_sub(RUNS_RETAINED_MS)).await?;
        self.drop_functions().await;
        let lapsed = self.lapse_due().await?;
        Ok(Swept { expired, orphaned, forgotten: forgotten.len() as u64, lapsed })
    }

    /// Replicas with open holds whose beats we have seen stand still for too long.
    async fn dead(&self, now: i64) -> Result<Vec<Vec<u8>>, StoreError> {
        let sql = "SELECT o.replica, coalesce(r.beat_at, 0) FROM (SELECT DISTINCT replica FROM open_hold WHERE replica <> $1 AND NOT task) o \
                   LEFT JOIN replica r ON r.id = o.replica";
        let rows = self.rows(sql, &[&self.shared.replica.as_slice()]).await;
        let mut watch = lock(&self.shared.watch);
        let Ok(rows) = &rows else {
            *watch = Watch::default();
            return rows.map(|_| Vec::new());
        };
        let seen = rows.iter().map(|r| Ok((r.try_get(0)?, r.try_get(1)?)));
        let seen = seen.collect::<Result<Vec<(Vec<u8>, i64)>, tokio_postgres::Error>>()?;
        let silence = i64::try_from(self.options.replica_silence.as_millis()).unwrap_or(i64::MAX);
        Ok(watch.look(seen, now, silence))
    }

    /// Those of versions that nobody runs any more. What cannot be dropped is only in the way of
    /// people.
    async fn drop_functions(&self) {
        let dropped = match self.connector.changer().await {
            Ok(link) => self.connector.functions.drop_unused(&link.client).await,
            Err(error) => Err(error),
        };
        if let Err(error) = dropped {
            tracing::debug!(%error, "functions of earlier versions stay");
        }
    }

    async fn resolve(&self, sql: &str, params: &[&(dyn ToSql + Sync)], reason: &str) -> Result<u64, StoreError> {
        let mut waiting = Vec::new();
        for row in &self.rows(sql, params).await? {
            let call = CallId(id(row, 0)?);
            // Its end is known, and the database has refused it.
            if self.shared.journal.keeps_close(call) {
                continue;
            }
            let marked = self.shared.journal.mark_of(call).and_then(|payload| record::read(&payload));
            let (close, price_id) = match marked {
                Some(JournalRecord::Mark { mark, price_id, .. }) => (Close::at_mark(*mark, reason), price_id),
                _ => (self.without_mark(row, reason)?, None),
            };
            self.shared.journal.forget_mark(call);
            waiting.push(self.queue_close(close.lost(&self.options), price_id, None).1);
        }
        let mut resolved = 0;
        for closed in waiting {
            let closed = closed.await.map_err(|_| StoreError::away("the store was shut"))?;
            resolved += u64::from(closed.applied);
        }
        Ok(resolved)
    }

    fn without_mark(&self, row: &Row, reason: &str) -> Result<Close, StoreError> {
        let endpoint: String = row.try_get(4)?;
        let facts =
            UsageFacts::unanswered(KeyId(id(row, 2)?), row.try_get(3)?, self.now(), endpoint.into(), row.try_get(5)?);
        let (call, account) = (CallId(id(row, 0)?), AccountId(id(row, 1)?));
        Ok(Close::unanswered(call, account, Ending::Expired, reason, facts))
    }

    /// Changes our row; that it changes is all that counts. Its value is the time on the database's
    /// clock, for people.
    pub async fn beat(&self) -> Result<(), StoreError> {
        self.keep_time().await?;
        let sql = "INSERT INTO replica (id, beat_at, functions) VALUES ($1, tollgate_now(), $2) ON CONFLICT (id) \
                   DO UPDATE SET beat_at = greatest(replica.beat_at + 1, excluded.beat_at), functions = excluded.functions";
        if let Err(error) = self.rows(sql, &[&self.shared.replica.as_slice(), &self.connector.functions.schema()]).await
        {
            // After an outage everybody looks silent: what was seen before it says nothing.
            *lock(&self.shared.watch) = Watch::default();
            return Err(error);
        }
        // Holds another replica resolved for us are not ours to count any more; their calls may go
        // on.
        let ours = |(call, running): (&CallId, &Running)| (!running.given_up).then(|| call.0.to_vec());
        let open: Vec<Vec<u8>> = lock(&self.shared.open).iter().filter_map(ours).collect();
        if open.is_empty() {
            return Ok(());
        }
        let sql = "SELECT c FROM unnest($1::bytea[]) c WHERE EXISTS (SELECT 1 FROM usage u WHERE u.call_id = c)";
        for row in &self.rows(sql, &[&open]).await? {
            if let Some(running) = lock(&self.shared.open).get_mut(&CallId(id(row, 0)?)) {
                running.given_up = true;
            }
        }
        Ok(())
    }
}

fn count(recovered: &mut Recovered, closed: Closed) {
    if closed.applied && closed.captured.is_zero() {
        recovered.voided += 1;
    } else if closed.applied {
        recovered.settled += 1;
    }
}
