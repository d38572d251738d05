//! Keys that changed, or whose account did: asked every second by every replica, however many keys
//! there are. Each half is found by its index; a join with a condition on either side would read
//! both tables whole.

use std::sync::LazyLock;

use super::PostgresEngine;
use super::rows::{self, ACCOUNT, FORMER, KEY};
use crate::account::{ChangedKeys, KeyAndAccount};
use crate::error::StoreError;

const CHANGED: &str = "WITH changed AS MATERIALIZED (SELECT id FROM key WHERE changed_at >= $1 \
     UNION SELECT k.id FROM account a JOIN key k ON k.account_id = a.id WHERE a.changed_at >= $1)";

static KEYS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{CHANGED} SELECT {KEY}, {ACCOUNT} FROM changed JOIN key k ON k.id = changed.id \
         JOIN account a ON a.id = k.account_id ORDER BY k.id"
    )
});

static FORMER_SECRETS: LazyLock<String> =
    LazyLock::new(|| format!("{CHANGED} SELECT {KEY}, {ACCOUNT}, {FORMER} JOIN changed ON changed.id = k.id"));

impl PostgresEngine {
    /// By the clock of the database, which writes the changes down too: the replicas' own differ.
    pub async fn keys_changed_since(&self, since: i64, overlap: i64) -> Result<ChangedKeys, StoreError> {
        let rows = self.rows("SELECT tollgate_now()", &[]).await?;
        let read_at = rows.first().ok_or_else(|| StoreError::broken("no answer"))?.try_get(0)?;
        let since = since.min(read_at).saturating_sub(overlap);
        let rows = self.rows(&KEYS, &[&since]).await?;
        let mut keys: Vec<KeyAndAccount> =
            rows.iter().map(|r| rows::key_and_account(r, self.now())).collect::<Result<_, _>>()?;
        for row in self.rows(&FORMER_SECRETS, &[&since]).await? {
            keys.push(rows::former(&row, self.now())?);
        }
        Ok(ChangedKeys { keys, read_at })
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::Store;
    use crate::testing::{PostgresServer, TestClock, run_sql};
    use crate::world::{DataLocation, Options};

    /// Among many keys, those few that changed are found by an index.
    #[tokio::test]
    async fn what_changed_is_not_looked_for_among_all_keys() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
        let url = server.database("keys").await.expect("a database");
        let place = DataLocation { url: url.clone(), data_dir: dir.path().join("replica") };
        let opened = Store::open(place, Options::default(), TestClock::default().world(1)).await.expect("a store");
        let many = "INSERT INTO account (id, name, created_at, changed_at) SELECT int8send(n) || int8send(n), '', 0, n \
             FROM generate_series(1, 20000) n; \
             INSERT INTO key (id, account_id, hash, prefix, name, created_at, changed_at) \
             SELECT int8send(n) || int8send(n), int8send(n) || int8send(n), int8send(n), '', '', 0, n FROM generate_series(1, 20000) n; \
             ANALYZE";
        run_sql(&url, many).await.expect("many keys");
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("connected");
        let mut driver = tokio::task::JoinSet::new();
        driver.spawn(connection);
        let before = format!(
            "SELECT {KEY} FROM key k JOIN account a ON a.id = k.account_id WHERE k.changed_at >= $1 OR a.changed_at >= $1"
        );
        for (sql, scans) in [(&*KEYS, false), (&*FORMER_SECRETS, false), (&before, true)] {
            let explained = format!("EXPLAIN {}", sql.replace("$1", "19990"));
            let steps = client.query(&explained, &[]).await.expect(sql);
            let steps: Vec<String> = steps.iter().map(|step| step.get(0)).collect();
            let scanned =
                steps.iter().any(|step| step.contains("Seq Scan on key k") || step.contains("Seq Scan on account"));
            assert_eq!(scanned, scans, "{sql}: {steps:#?}");
        }
        opened.store.shut().await;
    }
}
