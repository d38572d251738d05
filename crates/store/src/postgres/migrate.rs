//! The schema as this version needs it, and its functions. One replica at a time (an advisory
//! lock); others go on meanwhile, and so do those of the version before: a migration only adds, or
//! says that it does more and then waits until they are gone.

use std::time::Duration;

use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;

use super::connect::{MIGRATION_LOCK, PgConnector};
use crate::error::StoreError;
use crate::migration::{self, Migration, Ran};

/// In order; see migration.rs. Replicas of the version before run on while one of these does, and
/// may start again afterwards: see [`BREAKS`].
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration::new("schema", include_str!("schema.sql")),
    Migration::new("0002-client-secrets", include_str!("migrations/0002-client-secrets.sql")),
    Migration::new("0003-client-secret-uses", include_str!("migrations/0003-client-secret-uses.sql")),
    Migration::new("0004-route-health", include_str!("migrations/0004-route-health.sql")),
    Migration::new("0005-workflow-runs", include_str!("migrations/0005-workflow-runs.sql")),
    Migration::new("0006-usage-cost", include_str!("migrations/0006-usage-cost.sql")),
    Migration::new("0007-probes", include_str!("migrations/0007-probes.sql")),
    Migration::new("0008-usage-sums", include_str!("migrations/0008-usage-sums.sql")),
    Migration::new("0009-people", include_str!("migrations/0009-people.sql")),
    Migration::new("0010-account-api", include_str!("migrations/0010-account-api.sql")),
    Migration::new("0011-money-in", include_str!("migrations/0011-money-in.sql")),
    Migration::new("0012-alerts", include_str!("migrations/0012-alerts.sql")),
    Migration::new("0013-issuers", include_str!("migrations/0013-issuers.sql")),
    Migration::new("0014-catalog-jobs-trial", include_str!("migrations/0014-catalog-jobs-trial.sql")),
    Migration::new("0015-usage-days", include_str!("migrations/0015-usage-days.sql")),
    Migration::new("0016-passkeys", include_str!("migrations/0016-passkeys.sql")),
    Migration::new("0017-usage-blocks", include_str!("migrations/0017-usage-blocks.sql")),
    Migration::new("0018-session-roles", include_str!("migrations/0018-session-roles.sql")),
    Migration::new("0019-members-and-ends", include_str!("migrations/0019-members-and-ends.sql")),
    Migration::new("0020-usage-unmerged", include_str!("migrations/0020-usage-unmerged.sql")),
    Migration::new("0021-usage-apart", include_str!("migrations/0021-usage-apart.sql")),
    Migration::new("0022-usage-packed", include_str!("migrations/0022-usage-packed.sql")),
    Migration::new("0023-exports-and-letters", include_str!("migrations/0023-exports-and-letters.sql")),
    Migration::new("0024-whole-calls", include_str!("migrations/0024-whole-calls.sql")),
    Migration::new("0025-last-entry", include_str!("migrations/0025-last-entry.sql")),
    Migration::new("0026-link", include_str!("migrations/0026-link.sql")),
    Migration::new("0027-given", include_str!("migrations/0027-given.sql")),
    Migration::new("0028-holds-found", include_str!("migrations/0028-holds-found.sql")),
];
/// A migration after which earlier versions cannot go on has a line that begins so. It is refused
/// while one of them runs, and none of them starts afterwards.
const BREAKS: &str = "-- Earlier versions cannot go on";
/// The name in `meta` of the number of migrations that an executable must know to use the database.
const EARLIEST: &str = "earliest_version";
/// Replicas say every few seconds that they live.
const LIVING_MS: i64 = 60_000;
/// A migration waits this long for whoever reads or writes a table; all others wait behind it. Then
/// it lets them pass and tries again.
const WAIT: &str = "2s";
const TRIES: u32 = 150;
const USES: &str = "INSERT INTO replica (id, beat_at, functions) \
     VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $2) ON CONFLICT (id) \
     DO UPDATE SET beat_at = greatest(replica.beat_at + 1, excluded.beat_at), functions = excluded.functions";
const PAUSE: Duration = Duration::from_millis(500);

impl PgConnector {
    pub async fn migrate(&self, replica: &[u8; 16], migrations: &[Migration]) -> Result<(), StoreError> {
        for _ in 1..TRIES {
            match self.try_migrate(replica, migrations).await {
                Err(Waited::TooLong) => {
                    tracing::warn!("a migration waits for somebody who uses its table; trying again")
                }
                Err(Waited::Failed(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(StoreError::away("a migration cannot get at its tables: somebody has been using them for minutes"))
    }

    async fn try_migrate(&self, replica: &[u8; 16], migrations: &[Migration]) -> Result<(), Waited> {
        let mut link = self.connect_plainly().await?;
        let tx = link.client.transaction().await?;
        tx.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
        let done = done(&tx, migrations).await?;
        if done > migrations.len() {
            may_use_newer(&tx, migrations.len()).await?;
        }
        let new = migrations.get(done..).unwrap_or_default();
        if done > 0 && new.iter().any(|one| breaks(&one.sql)) {
            nobody_else(&tx, replica).await?;
        }
        // After the lock above, for which others that migrate are waited for as long as it takes.
        tx.batch_execute(&format!("SET LOCAL lock_timeout = '{WAIT}'")).await?;
        for (number, migration) in (1i32..).zip(migrations).skip(done) {
            tx.batch_execute(&migration.sql).await?;
            let row = "INSERT INTO migration (number, name, fingerprint) VALUES ($1, $2, $3)";
            tx.execute(row, &[&number, &migration.name.as_ref(), &migration.fingerprint()]).await?;
            if breaks(&migration.sql) {
                let earliest =
                    "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2";
                tx.execute(earliest, &[&EARLIEST, &i64::from(number)]).await?;
            }
        }
        self.functions.install(&tx).await?;
        // In the same transaction: whoever drops what nobody uses sees that we do.
        tx.execute(USES, &[&replica.as_slice(), &self.functions.schema()]).await?;
        Ok(tx.commit().await?)
    }
}

enum Waited {
    TooLong,
    Failed(StoreError),
}

impl From<StoreError> for Waited {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<tokio_postgres::Error> for Waited {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE) => Self::TooLong,
            _ => Self::Failed(error.into()),
        }
    }
}

/// How many have run. A database with tables of ours that are not numbered was made by an
/// unreleased build.
async fn done(tx: &Transaction<'_>, known: &[Migration]) -> Result<usize, StoreError> {
    let there = tx.query_one("SELECT to_regclass('migration') IS NOT NULL, to_regclass('open_hold') IS NOT NULL", &[]);
    let row = there.await?;
    match (row.try_get(0)?, row.try_get(1)?) {
        (false, false) => return Ok(0),
        (false, true) => return Err(migration::unreleased("the database")),
        (true, _) => {}
    }
    let rows = tx.query("SELECT number::bigint, fingerprint FROM migration ORDER BY number", &[]).await?;
    let ran = rows.iter().map(|r| Ok(Ran { number: r.try_get(0)?, fingerprint: r.try_get(1)? }));
    migration::done(known, &ran.collect::<Result<Vec<_>, tokio_postgres::Error>>()?, "the database")
}

fn breaks(sql: &str) -> bool {
    sql.lines().any(|line| line.starts_with(BREAKS))
}

/// A newer version has migrated the database: this one may go back to it where nothing was taken
/// away.
async fn may_use_newer(tx: &Transaction<'_>, known: usize) -> Result<(), StoreError> {
    let row = tx.query_opt("SELECT value FROM meta WHERE name = $1", &[&EARLIEST]).await?;
    let earliest = row.map_or(Ok(0), |r| r.try_get::<_, i64>(0))?;
    if usize::try_from(earliest).unwrap_or(usize::MAX) > known {
        return Err(StoreError::broken("the database was made by a newer version, whose tables this one cannot use"));
    }
    tracing::warn!("the database was made by a newer version; this one only uses it");
    Ok(())
}

/// No other replica lives: it would be of an earlier version.
async fn nobody_else(tx: &Transaction<'_>, replica: &[u8; 16]) -> Result<(), StoreError> {
    let living = "SELECT count(*) FROM replica WHERE id <> $1 \
                  AND beat_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $2";
    let living: i64 = tx.query_one(living, &[&replica.as_slice(), &LIVING_MS]).await?.try_get(0)?;
    if living > 0 {
        return Err(StoreError::broken(format!(
            "{living} replicas of an earlier version run on this database, and they cannot go on after this version's migration: \
             stop them, wait a minute, and start this one again"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What takes something away, or asks for what earlier versions do not give.
    const TAKES_AWAY: [&str; 10] = [
        "DROP TABLE",
        "DROP COLUMN",
        "DROP VIEW",
        "DROP FUNCTION",
        "RENAME",
        "ALTER COLUMN",
        "SET NOT NULL",
        "ADD CHECK",
        "ADD CONSTRAINT",
        "TRUNCATE",
    ];

    /// Earlier versions insert whole rows of these tables: they write NULL into a column they do
    /// not know.
    const WHOLE_ROWS: [&str; 1] = ["ALTER TABLE usage ADD COLUMN"];

    #[test]
    fn a_migration_only_adds_or_says_that_it_breaks() {
        for sql in MIGRATIONS.iter().skip(1).map(|one| &one.sql).filter(|sql| !breaks(sql)) {
            for line in sql.lines().filter(|line| !line.trim_start().starts_with("--")) {
                for word in TAKES_AWAY {
                    assert!(!line.contains(word), "{line}: say `{BREAKS}` and why");
                }
                if WHOLE_ROWS.iter().any(|table| line.contains(table)) {
                    assert!(!line.contains("NOT NULL"), "{line}: earlier versions write NULL there");
                }
            }
        }
        assert!(breaks("CREATE TABLE a ();\n-- Earlier versions cannot go on: they read b.\n"));
        assert!(!breaks("-- The -- Earlier versions cannot go on"));
    }
}
