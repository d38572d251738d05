//! A look at a database from outside: which catalog is on sale out of it. Nothing is made,
//! recovered or migrated, so that `tollgate check` leaves nothing behind, also before an upgrade.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use crate::error::StoreError;
use crate::world::DataLocation;
use crate::{postgres, sqlite};

/// No database is waited for longer.
const PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const ON_SALE: &str = "SELECT c.number, c.hash, t.files FROM catalog_current c \
     LEFT JOIN catalog_text t ON t.hash = c.hash WHERE c.id = 1";

/// The catalog that is on sale, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogOnSale {
    pub version: i64,
    pub hash: String,
    /// All files with their names, as JSON.
    pub files: Option<String>,
}

/// What is on sale. Nothing: there is no database yet, or nothing was published in it.
pub async fn peek_catalog(place: &DataLocation) -> Result<Option<CatalogOnSale>, StoreError> {
    if place.url == "sqlite" {
        let file = place.data_dir.join(sqlite::FILE);
        return tokio::task::spawn_blocking(move || of_file(&file)).await.map_err(StoreError::broken)?;
    }
    let looking = postgres::peek_catalog(&place.url);
    tokio::time::timeout(PATIENCE, looking).await.map_err(|_| StoreError::away("the database does not answer"))?
}

fn of_file(file: &Path) -> Result<Option<CatalogOnSale>, StoreError> {
    if !file.exists() {
        return Ok(None);
    }
    let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.busy_timeout(PATIENCE)?;
    // A database from before catalogs were published.
    if !conn.table_exists(None, "catalog_current")? {
        return Ok(None);
    }
    let row = |r: &rusqlite::Row<'_>| Ok(CatalogOnSale { version: r.get(0)?, hash: r.get(1)?, files: r.get(2)? });
    Ok(conn.query_row(ON_SALE, [], row).optional()?)
}
