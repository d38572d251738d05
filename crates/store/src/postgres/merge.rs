//! What calls add to sums waits in a table beside theirs (`migrations/0021-usage-apart.sql`), and
//! is merged every so many calls of this replica, whoever made it. A close therefore writes one
//! plain row for sums. What waits is part of every answer, so nobody depends on when it is merged.
//!
//! A merge adds up and removes what one snapshot shows. Should somebody else merge meanwhile, the
//! database refuses one of the two, whole.

use std::sync::{Arc, LazyLock};

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_postgres::IsolationLevel;
use tokio_postgres::error::SqlState;

use super::PostgresEngine;
use super::connect::{PgConnection, PgConnector};
use super::queue::{OpReply, PendingOp};
use crate::error::StoreError;
use crate::sums::{SUM_KEY, SUMS};

/// "tollsums" as a number: who merges has this lock.
const MERGE_LOCK: i64 = 0x746f_6c6c_7375_6d73;
/// Few groups of few rows: nothing is worth compiling or sorting.
const MERGING: &str = "SET enable_sort = off; SET jit = off; SET statement_timeout = '30s'";
static ADD: LazyLock<String> = LazyLock::new(|| {
    let (key, columns) = (SUM_KEY.join(", "), SUMS.join(", "));
    let sums: Vec<String> = SUMS.iter().map(|column| format!("usage_plus({column})")).collect();
    let adds: Vec<String> = SUMS.iter().map(|column| format!("{column} = q.{column} + excluded.{column}")).collect();
    format!(
        "INSERT INTO usage_quarter AS q ({key}, {columns}) SELECT {key}, {} FROM usage_unmerged GROUP BY {key} \
         ON CONFLICT ({key}) DO UPDATE SET {}",
        sums.join(", "),
        adds.join(", ")
    )
});
/// What was merged is removed for good, so that nobody reads through it.
const TIDY: &str = "VACUUM (TRUNCATE false, SKIP_LOCKED) usage_unmerged";

/// The connection of those who merge.
type MergeLink = Arc<Mutex<Option<PgConnection>>>;

/// Counts the calls of a replica and merges beside them.
pub(super) struct Merger {
    connector: PgConnector,
    link: MergeLink,
    apart: u64,
    since: u64,
    running: JoinSet<()>,
}

impl Merger {
    /// The first group merges what an earlier process has left.
    pub fn new(connector: PgConnector, apart: u32) -> Self {
        let link = MergeLink::default();
        Self { connector, link, apart: apart.into(), since: apart.into(), running: JoinSet::new() }
    }

    /// A group was applied.
    pub fn applied(&mut self, group: &[PendingOp]) {
        let rows = group.iter().filter(|op| !matches!(op.answer, OpReply::Hold(..) | OpReply::Extend(_)));
        self.since += rows.count() as u64;
        while self.running.try_join_next().is_some() {}
        if self.since < self.apart || !self.running.is_empty() {
            return;
        }
        self.since = 0;
        let (connector, link) = (self.connector.clone(), self.link.clone());
        self.running.spawn(async move {
            if let Err(error) = merge(&connector, &link).await {
                tracing::warn!(%error, "sums of usage wait on to be merged");
            }
        });
    }
}

async fn merge(connector: &PgConnector, link: &MergeLink) -> Result<(), StoreError> {
    let mut slot = link.lock().await;
    // Taken out for as long as it is used: what was given up on the way is not used again.
    let mut link = match slot.take().filter(|link| !link.client.is_closed()) {
        Some(link) => link,
        None => {
            let link = connector.connect().await?;
            link.client.batch_execute(MERGING).await?;
            link
        }
    };
    match merged(&mut link).await {
        Err(error) if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) => {}
        other => other?,
    }
    *slot = Some(link);
    Ok(())
}

async fn merged(link: &mut PgConnection) -> Result<(), tokio_postgres::Error> {
    let tx = link.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await?;
    let alone: bool = tx.query_one("SELECT pg_try_advisory_xact_lock($1)", &[&MERGE_LOCK]).await?.try_get(0)?;
    if !alone {
        return Ok(());
    }
    tx.batch_execute(&ADD).await?;
    tx.batch_execute("DELETE FROM usage_unmerged").await?;
    tx.commit().await?;
    link.client.batch_execute(TIDY).await
}

impl PostgresEngine {
    /// Merges what waits if it is too much: refunds count for nobody, and replicas come and go.
    pub(super) async fn merge_sums(&self) -> Result<(), StoreError> {
        let apart = i64::from(self.options.sums_apart);
        let sql = "SELECT count(*) FROM (SELECT 1 FROM usage_unmerged LIMIT $1::bigint + 1) n";
        let waiting: i64 = self.summed(sql, &[&apart]).await?.first().map_or(Ok(0), |r| r.try_get(0))?;
        if waiting > apart { merge(&self.connector, &MergeLink::default()).await } else { Ok(()) }
    }
}
