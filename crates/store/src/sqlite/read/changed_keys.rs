//! Keys that changed, or whose account did: asked every second, however many keys there are. What
//! is read first is written down (`CROSS JOIN` is that to SQLite), and both halves of what changed
//! are put together before one is left out that is in both. For a `UNION` SQLite merged them in the
//! order of ids, for which it read all keys.

use std::sync::LazyLock;

use rusqlite::params;

use super::{ACCOUNT, KEY, Readers, read_former, read_key_and_account};
use crate::account::KeyAndAccount;
use crate::error::StoreError;

const CHANGED: &str = "WITH changed (id) AS MATERIALIZED (SELECT id FROM key WHERE changed_at >= ?1 \
     UNION ALL SELECT k.id FROM account a CROSS JOIN key k ON k.account_id = a.id WHERE a.changed_at >= ?1)";

static KEYS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{CHANGED} SELECT {KEY}, {ACCOUNT} FROM (SELECT DISTINCT id FROM changed) once CROSS JOIN key k ON k.id = once.id \
         CROSS JOIN account a ON a.id = k.account_id ORDER BY k.id"
    )
});

static FORMER_SECRETS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{CHANGED} SELECT {KEY}, {ACCOUNT}, f.hash, f.until FROM (SELECT DISTINCT id FROM changed) once CROSS JOIN key_former f ON f.key_id = once.id \
         CROSS JOIN key k ON k.id = f.key_id CROSS JOIN account a ON a.id = k.account_id"
    )
});

impl Readers {
    pub async fn keys_changed_since(&self, since: i64) -> Result<Vec<KeyAndAccount>, StoreError> {
        self.read(move |c| {
            let mut keys = c.prepare_cached(&KEYS)?;
            let mut found: Vec<KeyAndAccount> =
                keys.query_map(params![since], read_key_and_account)?.collect::<Result<_, _>>()?;
            let mut former = c.prepare_cached(&FORMER_SECRETS)?;
            for one in former.query_map(params![since], read_former)? {
                found.push(one?);
            }
            Ok(found)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the statistics of a million keys, each step finds its rows by an index.
    #[test]
    fn what_changed_is_found_by_an_index() {
        let database = rusqlite::Connection::open_in_memory().expect("memory");
        for migration in crate::sqlite::MIGRATIONS {
            database.execute_batch(&migration.sql).expect("migrated");
        }
        let statistics = "ANALYZE; DELETE FROM sqlite_stat1; INSERT INTO sqlite_stat1 VALUES \
             ('account', 'account_changed', '1000000 1053'), ('account', 'account', '1000000 1'), \
             ('key', 'key_changed', '1000000 1053'), ('key', 'key_account', '1000000 1'), ('key', 'key', '1000000 1'), \
             ('key', 'sqlite_autoindex_key_2', '1000000 1'); ANALYZE sqlite_schema";
        database.execute_batch(statistics).expect("statistics");
        let plan = |sql: &str| -> Vec<String> {
            let mut statement = database.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a statement");
            let steps = statement.query_map(params![0], |row| row.get::<_, String>(3)).expect("a plan");
            steps.map(|step| step.expect("a step")).collect()
        };
        let of_few = ["SCAN changed", "SCAN once"];
        for sql in [&*KEYS, &*FORMER_SECRETS] {
            let steps = plan(sql);
            let scans: Vec<&String> =
                steps.iter().filter(|step| step.starts_with("SCAN") && !of_few.contains(&step.as_str())).collect();
            assert!(!steps.is_empty() && scans.is_empty(), "{sql}: {steps:?}");
        }
        let merged = CHANGED.replace("UNION ALL", "UNION") + " SELECT id FROM changed";
        assert!(plan(&merged).contains(&"SCAN key".to_owned()), "the test can fail");
    }
}
