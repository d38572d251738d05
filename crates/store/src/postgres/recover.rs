//! Calls nobody will end: after a crash of this replica, past their time, or of a replica that went silent. Each is
//! closed at its last mark if this replica has one, else without a charge; the database lets only one closer win.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::rows::id;
use super::{Engine, lock};
use crate::call::{Close, Closed, Ending, Mark, UsageFacts};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::journal::record::{self, Record};
use crate::report::{Recovered, Swept};

const OPEN: &str = "SELECT call_id, account_id, key_id, at, endpoint, model FROM open_hold";

impl Engine {
    pub(super) async fn recover(&self, journal: Vec<Vec<u8>>) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
        let mut marks: HashMap<CallId, (Box<Mark>, Option<[u8; 16]>)> = HashMap::new();
        let mut replayed = Vec::new();
        for payload in journal {
            match record::read(&payload) {
                Some(Record::Mark { mark, price_id }) => {
                    marks.insert(mark.call, (mark, price_id));
                }
                Some(Record::Close { close, price_id }) => {
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
        let left = self.rows(&format!("{OPEN} WHERE replica = $1"), &[&mine]).await?;
        for row in &left {
            let (close, price_id) = match marks.remove(&CallId(id(row, 0)?)) {
                Some((mark, price_id)) => (Close::at_mark(*mark, "crashed"), price_id),
                None => (self.without_mark(row, "crashed")?, None),
            };
            let (_, closed) = self.queue_close(close, price_id, None);
            count(&mut recovered, closed.await.map_err(|_| StoreError::away("the store was shut"))?);
        }
        self.shared.journal.reset()?;
        Ok(recovered)
    }

    pub async fn sweep(self: &Arc<Self>, now: i64) -> Result<Swept, StoreError> {
        let due = self.resolve(&format!("{OPEN} WHERE expires_at <= $1"), &[&now], "expired").await?;
        let silence = i64::try_from(self.options.replica_silence.as_millis()).unwrap_or(i64::MAX);
        let heard = now.saturating_sub(silence);
        let sql = format!(
            "{OPEN} WHERE replica <> $2 AND NOT EXISTS (SELECT 1 FROM replica r WHERE r.id = replica AND r.beat_at >= $1)"
        );
        let mine = self.shared.replica.as_slice();
        // After an outage of the database everybody looks silent. Others are judged only by one who was heard all that time.
        let beating_since = self.shared.beating_since.load(Ordering::Relaxed);
        let orphaned = if beating_since > 0 && beating_since <= heard {
            self.resolve(&sql, &[&heard, &mine], "replica_lost").await?
        } else {
            0
        };
        let retention = i64::try_from(self.options.idem_retention.as_millis()).unwrap_or(i64::MAX);
        let before = now.saturating_sub(retention);
        let forgotten = self.rows("DELETE FROM idem WHERE at < $1 AND done = 1 RETURNING 1", &[&before]).await?;
        Ok(Swept { expired: due, orphaned, forgotten: forgotten.len() as u64 })
    }

    async fn resolve(&self, sql: &str, params: &[&(dyn ToSql + Sync)], reason: &str) -> Result<u64, StoreError> {
        let mut waiting = Vec::new();
        for row in &self.rows(sql, params).await? {
            let call = CallId(id(row, 0)?);
            let marked = self.shared.journal.mark_of(call).and_then(|payload| record::read(&payload));
            let (close, price_id) = match marked {
                Some(Record::Mark { mark, price_id }) => (Close::at_mark(*mark, reason), price_id),
                _ => (self.without_mark(row, reason)?, None),
            };
            self.shared.journal.forget_mark(call);
            waiting.push(self.queue_close(close, price_id, None).1);
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

    pub async fn beat(&self, now: i64) -> Result<(), StoreError> {
        let sql = "INSERT INTO replica (id, beat_at) VALUES ($1, $2) \
                   ON CONFLICT (id) DO UPDATE SET beat_at = greatest(replica.beat_at, excluded.beat_at)";
        let since = &self.shared.beating_since;
        if let Err(error) = self.rows(sql, &[&self.shared.replica.as_slice(), &now]).await {
            since.store(0, Ordering::Relaxed);
            return Err(error);
        }
        let _ = since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        // Holds another replica resolved for us are not ours to count any more.
        let open: Vec<Vec<u8>> = lock(&self.shared.open).keys().map(|c| c.0.to_vec()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let sql = "SELECT c FROM unnest($1::bytea[]) c WHERE EXISTS (SELECT 1 FROM usage u WHERE u.call_id = c)";
        for row in &self.rows(sql, &[&open]).await? {
            lock(&self.shared.open).remove(&CallId(id(row, 0)?));
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
