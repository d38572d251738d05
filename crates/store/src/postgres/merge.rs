//! What calls add to sums waits in a table beside theirs (`migrations/0021-usage-apart.sql`), and
//! is merged every so many calls of this replica, whoever made it. A close therefore writes one
//! plain row for sums. What waits is part of every answer, so nobody depends on when it is merged.

use tokio::task::JoinSet;

use super::PostgresEngine;
use super::connect::PgConnector;
use super::queue::{OpReply, PendingOp};
use crate::error::StoreError;

/// What was merged is removed for good, so that nobody reads through it.
const TIDY: &str = "VACUUM (TRUNCATE false, SKIP_LOCKED) usage_unmerged";

/// Counts the calls of a replica and merges beside them.
pub(super) struct Merger {
    connector: PgConnector,
    apart: u64,
    since: u64,
    running: JoinSet<()>,
}

impl Merger {
    /// The first group merges what an earlier process has left.
    pub fn new(connector: PgConnector, apart: u32) -> Self {
        Self { connector, apart: apart.into(), since: apart.into(), running: JoinSet::new() }
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
        let connector = self.connector.clone();
        self.running.spawn(async move {
            if let Err(error) = merge(&connector).await {
                tracing::warn!(%error, "sums of usage wait on to be merged");
            }
        });
    }
}

async fn merge(connector: &PgConnector) -> Result<(), StoreError> {
    let link = connector.summer().await?;
    link.client.batch_execute("SELECT usage_merge()").await?;
    Ok(link.client.batch_execute(TIDY).await?)
}

impl PostgresEngine {
    /// Merges what waits if it is too much: refunds count for nobody, and replicas come and go.
    pub(super) async fn merge_sums(&self) -> Result<(), StoreError> {
        let apart = i64::from(self.options.sums_apart);
        let sql = "SELECT count(*) FROM (SELECT 1 FROM usage_unmerged LIMIT $1::bigint + 1) n";
        let waiting: i64 = self.summed(sql, &[&apart]).await?.first().map_or(Ok(0), |r| r.try_get(0))?;
        if waiting > apart { merge(&self.connector).await } else { Ok(()) }
    }
}
