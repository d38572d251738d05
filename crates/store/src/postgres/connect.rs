//! Connections: made when needed, made again when lost. Migrations run under an advisory lock, so that replicas
//! starting together do not race.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use super::address::Address;
use crate::error::StoreError;

/// Migrations in order; the schema version is how many have run. Never change one that was released.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("migrations/replicas.sql"),
    include_str!("migrations/accounts.sql"),
    include_str!("migrations/receipts.sql"),
    include_str!("migrations/social.sql"),
    include_str!("migrations/chain.sql"),
    include_str!("migrations/tasks.sql"),
    include_str!("migrations/dropped.sql"),
    include_str!("migrations/operators.sql"),
    include_str!("migrations/vain.sql"),
    include_str!("migrations/responses.sql"),
    include_str!("migrations/turns.sql"),
    include_str!("migrations/account_webhooks.sql"),
    include_str!("migrations/truncate.sql"),
    include_str!("migrations/task_homes.sql"),
    include_str!("migrations/prompt_marks.sql"),
    include_str!("migrations/task_names.sql"),
    include_str!("migrations/task_words.sql"),
    include_str!("migrations/item_names.sql"),
    include_str!("migrations/tool_uses.sql"),
];
/// The functions as this version has them. Once released, a change of them needs a migration (an empty one will do), so that
/// a replica of the version before does not start again and put its own back.
const FUNCTIONS: &str = concat!(
    include_str!("functions.sql"),
    include_str!("plain.sql"),
    include_str!("chain.sql"),
    include_str!("tasks.sql"),
    include_str!("responses.sql")
);
/// "tollgate" as a number: nobody else uses this lock.
pub(super) const MIGRATION_LOCK: i64 = 0x746f_6c6c_6761_7465;

#[derive(Clone)]
pub(super) struct Connector {
    address: Arc<Address>,
    /// For reading; statements of several callers are pipelined on it.
    shared: Slot,
    /// For changes of single rows, which may have to wait for whoever has them: nobody reads behind one.
    changing: Slot,
}

type Slot = Arc<Mutex<Option<Arc<Link>>>>;

/// A connection and the task that drives it.
pub(super) struct Link {
    pub client: Client,
    _driver: JoinSet<()>,
}

impl Connector {
    pub fn new(url: &str) -> Result<Self, StoreError> {
        Ok(Self { address: Arc::new(url.parse()?), shared: Slot::default(), changing: Slot::default() })
    }

    /// A connection of one's own.
    pub async fn connect(&self) -> Result<Link, StoreError> {
        let (client, connection) = self.address.config.connect(self.address.tls.clone()).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a database connection ended");
            }
        });
        Ok(Link { client, _driver: driver })
    }

    /// The connection for reading.
    pub async fn reader(&self) -> Result<Arc<Link>, StoreError> {
        self.kept(&self.shared).await
    }

    /// The connection for changes of single rows.
    pub async fn changer(&self) -> Result<Arc<Link>, StoreError> {
        self.kept(&self.changing).await
    }

    async fn kept(&self, slot: &Slot) -> Result<Arc<Link>, StoreError> {
        let mut slot = slot.lock().await;
        if let Some(link) = slot.as_ref().filter(|l| !l.client.is_closed()) {
            return Ok(link.clone());
        }
        let link = Arc::new(self.connect().await?);
        *slot = Some(link.clone());
        Ok(link)
    }

    pub async fn migrate(&self) -> Result<(), StoreError> {
        let mut link = self.connect().await?;
        let tx = link.client.transaction().await?;
        tx.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
        tx.batch_execute("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)").await?;
        let row = tx.query_one("SELECT coalesce(max(version), 0) FROM schema_version", &[]).await?;
        let done = usize::try_from(row.get::<_, i32>(0)).unwrap_or(usize::MAX);
        if done > MIGRATIONS.len() {
            return Err(StoreError::broken("the database was made by a newer version"));
        }
        for (version, &sql) in (1i32..).zip(MIGRATIONS).skip(done) {
            tx.batch_execute(sql).await?;
            tx.execute("INSERT INTO schema_version VALUES ($1)", &[&version]).await?;
        }
        tx.batch_execute(FUNCTIONS).await?;
        Ok(tx.commit().await?)
    }
}
