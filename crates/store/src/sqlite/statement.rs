//! What a statement is made of, on the embedded engine. Charges are found by the usage log of the
//! account: the ledger itself has no index by account.

use rusqlite::params;

use super::SqliteEngine;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::statement::{StatementGroup, StatementRows, StatementSpan};

const ENTRIES: &str = "SELECT e.at AS at, 1 AS kind, u.model AS model, -(e.take_trial + e.take_paid) AS change \
       FROM usage u CROSS JOIN entry e ON e.op_id IN (CAST(u.call_id || x'01' AS BLOB), CAST(u.call_id || x'04' AS BLOB)) AND e.kind = 1 \
       WHERE u.account_id = ?1 \
     UNION ALL SELECT at, CASE WHEN kind = 6 AND trial > 0 THEN -6 ELSE kind END, '', CASE WHEN kind = 9 THEN -(trial + paid) ELSE trial + paid END \
       FROM entry INDEXED BY entry_event WHERE account_id = ?1 AND kind BETWEEN 6 AND 9";

impl SqliteEngine {
    pub async fn statement(&self, account: AccountId, span: StatementSpan) -> Result<StatementRows, StoreError> {
        self.catch_up().await;
        let groups = format!(
            "SELECT CASE WHEN at < ?2 THEN -1 ELSE (at - ?2) / 900000 END, kind, CASE WHEN at < ?2 THEN '' ELSE model END, \
             count(*), sum(change) FROM ({ENTRIES}) WHERE at < ?3 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        );
        // From what the account has: entries that were not found above make a difference here.
        let closing = format!(
            "SELECT (SELECT trial_available + paid_available + trial_held + paid_held FROM account WHERE id = ?1) \
             - coalesce((SELECT sum(change) FROM ({ENTRIES}) WHERE at >= ?2), 0)"
        );
        self.readers
            .read(move |c| {
                let snapshot = c.unchecked_transaction()?;
                let mut statement = snapshot.prepare_cached(&groups)?;
                let rows = statement.query_map(params![account.0, span.from, span.to], |r| {
                    Ok(StatementGroup {
                        bucket: r.get(0)?,
                        kind: r.get(1)?,
                        model: r.get(2)?,
                        count: r.get(3)?,
                        change: r.get(4)?,
                    })
                })?;
                let groups = rows.collect::<Result<_, _>>()?;
                let closing =
                    snapshot.prepare_cached(&closing)?.query_row(params![account.0, span.to], |r| r.get(0))?;
                Ok(StatementRows { groups, closing })
            })
            .await
    }
}
