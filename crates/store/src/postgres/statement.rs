//! What a statement is made of, on PostgreSQL: the entries of the account in one statement.

use super::PostgresEngine;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::statement::{StatementGroup, StatementRows, StatementSpan};

impl PostgresEngine {
    pub async fn statement(&self, account: AccountId, span: StatementSpan) -> Result<StatementRows, StoreError> {
        self.catch_up().await;
        let sql = "WITH e AS MATERIALIZED (SELECT x.at, CASE WHEN x.kind = 6 AND x.trial > 0 THEN -6 ELSE x.kind::bigint END AS kind, coalesce(u.model, '') AS model, \
                     CASE x.kind WHEN 1 THEN -(x.take_trial + x.take_paid) WHEN 9 THEN -(x.trial + x.paid) \
                       ELSE x.trial + x.paid END AS change \
                     FROM entry x LEFT JOIN usage u ON x.kind = 1 AND u.account_id = x.account_id \
                       AND u.call_id = substring(x.op_id FROM 1 FOR 16) \
                     WHERE x.account_id = $1 AND x.kind IN (1, 6, 7, 8, 9)) \
                   SELECT CASE WHEN at < $2 THEN -1 ELSE (at - $2) / 900000 END, kind, CASE WHEN at < $2 THEN '' ELSE model END, \
                     count(*), sum(change)::bigint FROM e WHERE at < $3 GROUP BY 1, 2, 3 \
                   UNION ALL SELECT -2, 0, '', 0, (SELECT trial_available + paid_available + trial_held + paid_held \
                     FROM account WHERE id = $1) - coalesce((SELECT sum(change) FROM e WHERE at >= $3), 0)::bigint ORDER BY 1, 2, 3";
        let rows = self.rows(sql, &[&account.0.as_slice(), &span.from, &span.to]).await?;
        let mut read = StatementRows { groups: Vec::with_capacity(rows.len()), closing: 0 };
        for r in &rows {
            let group = StatementGroup {
                bucket: r.try_get(0)?,
                kind: r.try_get(1)?,
                model: r.try_get(2)?,
                count: r.try_get(3)?,
                change: r.try_get(4)?,
            };
            match group.bucket {
                -2 => read.closing = group.change,
                _ => read.groups.push(group),
            }
        }
        Ok(read)
    }
}
