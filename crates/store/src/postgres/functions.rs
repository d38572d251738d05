//! The functions of this version in the database: in a schema of their own, named by a hash of
//! their text, and first on the search path of every connection of ours. Replicas of two versions
//! therefore never replace each other's, and nobody can forget to count a version up. A schema that
//! no living replica uses is dropped; should its user come back, it puts its functions in place
//! again.

use sha2::{Digest, Sha256};
use tokio_postgres::{Client, SimpleQueryMessage, Transaction};

use super::connect::MIGRATION_LOCK;
use crate::error::StoreError;
use crate::world::Options;

/// The functions as this version has them.
const TEXT: &str = concat!(
    include_str!("functions.sql"),
    include_str!("chain.sql"),
    include_str!("tasks.sql"),
    include_str!("responses.sql"),
    include_str!("sums.sql"),
    include_str!("money.sql")
);
/// A replica that has not said for so long that it lives uses no functions.
const UNUSED_AFTER_MS: i64 = 3_600_000;

/// Those of this version; a test brings those of another.
#[cfg_attr(not(feature = "testing"), expect(unused_variables, reason = "only a test brings others"))]
pub(super) fn of(options: &Options) -> Functions {
    #[cfg(feature = "testing")]
    if let Some(text) = options.version.as_ref().and_then(|version| version.functions.clone()) {
        return Functions::new(text);
    }
    Functions::default()
}

#[derive(Clone, Debug)]
pub(super) struct Functions {
    text: String,
    schema: String,
}

impl Default for Functions {
    fn default() -> Self {
        Self::new(TEXT.to_owned())
    }
}

impl Functions {
    pub fn new(text: String) -> Self {
        let hash = Sha256::digest(&text);
        let schema = hash[..6].iter().fold("tollgate_".to_owned(), |name, byte| format!("{name}{byte:02x}"));
        Self { text, schema }
    }

    /// The schema they are in.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Puts them first on the search path of a connection, before whatever its address or its role
    /// say. `false`: they are not there.
    pub async fn use_on(&self, client: &Client) -> Result<bool, StoreError> {
        let schema = &self.schema;
        let sql = format!(
            "SELECT to_regnamespace('{schema}') IS NOT NULL, \
             set_config('search_path', concat_ws(', ', '{schema}', nullif(current_setting('search_path'), '')), false), \
             set_config('tollgate.merges', 'on', false)"
        );
        let answer = client.simple_query(&sql).await?;
        Ok(answer.iter().any(|message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"))))
    }

    /// Puts them in place, in a transaction that has the migration lock and an unchanged search
    /// path.
    pub async fn install(&self, tx: &Transaction<'_>) -> Result<(), StoreError> {
        let schema = &self.schema;
        if tx.query_one("SELECT to_regnamespace($1) IS NOT NULL", &[schema]).await?.try_get(0)? {
            return Ok(());
        }
        if let Err(error) = tx.batch_execute(&format!("CREATE SCHEMA {schema}")).await {
            let denied = error.code() == Some(&tokio_postgres::error::SqlState::INSUFFICIENT_PRIVILEGE);
            return Err(if denied {
                StoreError::broken(
                    "the role may not create a schema, which the functions of each version need: GRANT CREATE ON DATABASE",
                )
            } else {
                error.into()
            });
        }
        let first = format!(
            "SELECT set_config('search_path', concat_ws(', ', '{schema}', nullif(current_setting('search_path'), '')), true)"
        );
        tx.batch_execute(&first).await?;
        tx.batch_execute(&self.text).await?;
        tracing::info!(schema, "put the functions of this version in place");
        Ok(())
    }

    /// Drops the functions of other versions that no living replica uses. Whoever starts or cleans
    /// up at this moment goes first.
    pub async fn drop_unused(&self, client: &Client) -> Result<(), StoreError> {
        let schema = &self.schema;
        let sql = format!(
            "DO $$
DECLARE
  v_what text;
  v_since bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint - {UNUSED_AFTER_MS};
BEGIN
  IF NOT pg_try_advisory_xact_lock({MIGRATION_LOCK}) THEN RETURN; END IF;
  FOR v_what IN SELECT n.nspname FROM pg_namespace n
    WHERE n.nspname ~ '^tollgate_[0-9a-f]{{12}}$' AND n.nspname <> '{schema}' AND pg_has_role(n.nspowner, 'USAGE')
      AND NOT EXISTS (SELECT 1 FROM replica r WHERE r.functions = n.nspname AND r.beat_at > v_since) LOOP
    EXECUTE format('DROP SCHEMA %I CASCADE', v_what);
  END LOOP;
END $$"
        );
        Ok(client.batch_execute(&sql).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_text_is_another_schema() {
        let (one, other) = (Functions::default(), Functions::new(format!("{TEXT} ")));
        assert_ne!(one.schema, other.schema);
        assert_eq!(one.schema, Functions::default().schema);
        for name in [&one.schema, &other.schema] {
            let digits = name.strip_prefix("tollgate_").expect("the prefix");
            assert!(digits.len() == 12 && digits.bytes().all(|b| b"0123456789abcdef".contains(&b)), "{name}");
        }
    }

    /// What is bound to a table is shared by all versions and changes with a migration only.
    #[test]
    fn the_text_makes_functions_and_nothing_else() {
        let made = TEXT.lines().filter(|line| line.starts_with("CREATE") || line.starts_with("DROP"));
        for line in made {
            let made = ["CREATE OR REPLACE FUNCTION tollgate_", "CREATE OR REPLACE AGGREGATE tollgate_"];
            assert!(made.iter().any(|start| line.starts_with(start)), "{line}");
        }
        assert!(!TEXT.contains("RETURNS trigger"), "a trigger belongs to its table: put it into a migration");
        let names = TEXT.lines().filter_map(|line| line.strip_prefix("CREATE OR REPLACE FUNCTION "));
        let names: Vec<&str> = names.filter_map(|rest| rest.split('(').next()).collect();
        assert!(names.len() > 20 && names.contains(&"tollgate_apply"), "{names:?}");
    }
}
