//! Connections: made when needed, made again when lost. Each finds the functions of this version
//! first.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::address::ServerAddress;
use super::functions::Functions;
use crate::error::StoreError;
use crate::peek::{CatalogOnSale, ON_SALE};

/// "tollgate" as a number: nobody else uses this lock.
pub(super) const MIGRATION_LOCK: i64 = 0x746f_6c6c_6761_7465;

/// Groups are few and rows are many: to add up in memory takes a third of what sorting them takes,
/// and so does to begin at once instead of compiling the question. A question does not take the
/// processors of those who write.
const SUMMING: &str = "SET enable_sort = off; SET jit = off; SET work_mem = '64MB'; \
     SET max_parallel_workers_per_gather = 0; SET statement_timeout = '30s'";

#[derive(Clone)]
pub(super) struct PgConnector {
    address: Arc<ServerAddress>,
    pub functions: Arc<Functions>,
    /// For reading; statements of several callers are pipelined on it.
    shared: Slot,
    /// For changes of single rows, which may have to wait for whoever has them: nobody reads behind
    /// one.
    changing: Slot,
    /// For sums of usage, one after the other: nobody else waits behind one.
    summing: Slot,
    /// For writes about people, one after the other.
    pub people: Arc<Mutex<Option<PgConnection>>>,
}

type Slot = Arc<Mutex<Option<Arc<PgConnection>>>>;

/// A connection and the task that drives it.
pub(super) struct PgConnection {
    pub client: Client,
    _driver: JoinSet<()>,
}

impl PgConnector {
    pub fn new(url: &str, functions: Functions) -> Result<Self, StoreError> {
        let (address, functions) = (Arc::new(url.parse()?), Arc::new(functions));
        let (shared, changing, summing) = (Slot::default(), Slot::default(), Slot::default());
        Ok(Self { address, functions, shared, changing, summing, people: Arc::default() })
    }

    /// A connection of one's own.
    pub async fn connect(&self) -> Result<PgConnection, StoreError> {
        let link = self.connect_plainly().await?;
        if !self.functions.use_on(&link.client).await? {
            // Dropped as unused, by a replica that took us for gone.
            let mut other = self.connect_plainly().await?;
            let tx = other.client.transaction().await?;
            tx.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
            self.functions.install(&tx).await?;
            tx.commit().await?;
        }
        Ok(link)
    }

    /// With the search path that its address and its role say: for whoever makes tables.
    pub async fn connect_plainly(&self) -> Result<PgConnection, StoreError> {
        connect_to(&self.address).await
    }

    /// The connection for reading.
    pub async fn reader(&self) -> Result<Arc<PgConnection>, StoreError> {
        self.connection(&self.shared).await
    }

    /// The connection for changes of single rows.
    pub async fn changer(&self) -> Result<Arc<PgConnection>, StoreError> {
        self.connection(&self.changing).await
    }

    /// The connection for sums.
    pub async fn summer(&self) -> Result<Arc<PgConnection>, StoreError> {
        let mut slot = self.summing.lock().await;
        if let Some(link) = slot.as_ref().filter(|l| !l.client.is_closed()) {
            return Ok(link.clone());
        }
        let link = Arc::new(self.connect().await?);
        link.client.batch_execute(SUMMING).await?;
        *slot = Some(link.clone());
        Ok(link)
    }

    async fn connection(&self, slot: &Slot) -> Result<Arc<PgConnection>, StoreError> {
        let mut slot = slot.lock().await;
        if let Some(link) = slot.as_ref().filter(|l| !l.client.is_closed()) {
            return Ok(link.clone());
        }
        let link = Arc::new(self.connect().await?);
        *slot = Some(link.clone());
        Ok(link)
    }
}

async fn connect_to(address: &ServerAddress) -> Result<PgConnection, StoreError> {
    let connecting = address.config.connect(address.tls.clone()).await;
    let (client, connection) = connecting.map_err(|error| match StoreError::from(error) {
        StoreError::Unavailable(why) => StoreError::away(format!("{why} ({})", address.name)),
        other => other,
    })?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a database connection ended");
        }
    });
    Ok(PgConnection { client, _driver: driver })
}

/// What is on sale, for whoever is no replica: neither tables nor functions are made.
pub(crate) async fn peek_catalog(url: &str) -> Result<Option<CatalogOnSale>, StoreError> {
    let link = connect_to(&url.parse()?).await?;
    let row = match link.client.query_opt(ON_SALE, &[]).await {
        // A database that is new, or from before catalogs were published.
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => None,
        row => row?,
    };
    let on_sale = |row: tokio_postgres::Row| {
        Ok(CatalogOnSale { version: row.try_get(0)?, hash: row.try_get(1)?, files: row.try_get(2)? })
    };
    row.map(on_sale).transpose()
}
