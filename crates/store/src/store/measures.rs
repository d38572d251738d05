//! What rules of alerts measure: a few rows by their keys, or sums by quarter of an hour. None of
//! it reads a table from end to end.

use super::{Engine, Store};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::person::statement::values;
use crate::route_health::quarter_of;

const BALANCE: &str = "SELECT trial_available + paid_available + trial_held + paid_held FROM account WHERE id = $1";
const CHARGED: &str = "SELECT CAST(coalesce(sum(charge - refunded), 0) AS bigint) FROM usage_quarter \
     WHERE account_id = $1 AND quarter >= $2";
const CHARGED_IN_ALL: &str =
    "SELECT CAST(coalesce(sum(charge - refunded), 0) AS bigint) FROM usage_quarter WHERE quarter >= $1";
const TRIED: &str = "SELECT CAST(coalesce(sum(calls), 0) AS bigint), CAST(coalesce(sum(good), 0) AS bigint) \
     FROM route_health WHERE quarter >= $1 AND provider = $2 AND (model = $3 OR $3 = '')";
const UNKNOWN: &str = "SELECT count(*) FROM (SELECT 1 AS one FROM task WHERE unknown_since IS NOT NULL \
     AND unknown_since <= $1 AND state < 5 LIMIT $2) AS few";
const KEY_END: &str = "SELECT min(expires_at) FROM key WHERE account_id = $1 AND expires_at IS NOT NULL \
     AND revoked_at IS NULL AND expires_at > $2";
/// There are few of them.
const ADMIN_KEY_END: &str = "SELECT min(expires_at) FROM admin_key WHERE revoked_at IS NULL AND expires_at > $1";

impl Store {
    /// What an account has, held money included: what is held is its own until it is charged.
    pub async fn balance_of(&self, account: AccountId) -> Result<Option<i64>, StoreError> {
        self.people_rows(BALANCE, values![account.0]).await?.first().map(|row| row.int(0)).transpose()
    }

    /// What an account, or with none the house, was charged since then, by quarters of an hour.
    pub async fn charged_since(&self, account: Option<AccountId>, since: i64) -> Result<i64, StoreError> {
        let quarter = quarter_of(since);
        let sql = if account.is_some() { CHARGED } else { CHARGED_IN_ALL };
        if let Engine::Sqlite(engine) = &self.engine {
            return engine.charged_since(sql, account, quarter).await;
        }
        let rows = match account {
            Some(account) => self.people_rows(sql, values![account.0, quarter]).await?,
            None => self.people_rows(sql, values![quarter]).await?,
        };
        rows.first().map_or(Ok(0), |row| row.int(0))
    }

    /// Calls since then, and how many went well: those of a provider as they were tried, or without
    /// one those of customers. An empty model means all.
    pub async fn tried_since(&self, model: &str, provider: &str, since: i64) -> Result<(i64, i64), StoreError> {
        let rows = self.people_rows(TRIED, values![quarter_of(since), provider, model]).await?;
        rows.first().map_or(Ok((0, 0)), |row| Ok((row.int(0)?, row.int(1)?)))
    }

    /// Tasks that are open and whose state nobody knows since then; not counted beyond `most`.
    pub async fn unknown_tasks(&self, since: i64, most: i64) -> Result<i64, StoreError> {
        self.people_rows(UNKNOWN, values![since, most]).await?.first().map_or(Ok(0), |row| row.int(0))
    }

    /// When the next key of an account ends, or with none the next of the operators.
    pub async fn next_key_end(&self, account: Option<AccountId>) -> Result<Option<i64>, StoreError> {
        let now = self.people_now();
        let rows = match account {
            Some(account) => self.people_rows(KEY_END, values![account.0, now]).await?,
            None => self.people_rows(ADMIN_KEY_END, values![now]).await?,
        };
        rows.first().map_or(Ok(None), |row| row.opt_int(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::notices::CROSSED;
    use super::*;

    /// What is asked every half a minute finds its rows by an index.
    #[test]
    fn nothing_is_read_from_end_to_end() {
        let database = rusqlite::Connection::open_in_memory().expect("memory");
        for migration in crate::sqlite::MIGRATIONS {
            database.execute_batch(&migration.sql).expect("migrated");
        }
        let plan = |sql: &str| -> Vec<String> {
            let explained = format!("EXPLAIN QUERY PLAN {}", sql.replace('$', "?"));
            let mut statement = database.prepare(&explained).expect("a statement");
            let parameters = vec![rusqlite::types::Null; statement.parameter_count()];
            let rows = statement.query_map(rusqlite::params_from_iter(parameters), |row| row.get::<_, String>(3));
            rows.expect("a plan").map(|step| step.expect("a step")).collect()
        };
        for sql in [BALANCE, CHARGED, CHARGED_IN_ALL, TRIED, UNKNOWN, KEY_END] {
            let steps = plan(sql);
            let scans: Vec<&String> =
                steps.iter().filter(|step| step.starts_with("SCAN") && !step.contains("few")).collect();
            assert!(!steps.is_empty() && scans.is_empty(), "{sql}: {steps:?}");
        }
        // Of those that want notices a page, and each account by its key.
        let steps = plan(CROSSED);
        assert!(steps.iter().all(|step| !step.starts_with("SCAN")), "{steps:?}");
        assert!(plan("SELECT * FROM account").iter().any(|step| step.starts_with("SCAN")), "the test can fail");
    }
}
