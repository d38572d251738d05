//! Opening the file of what customers store.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;

use super::room::DiskRoom;
use super::{Desk, Queue, ResponseStore};
use crate::error::StoreError;
use crate::migration::Migration;
use crate::sqlite::open::migrate;
use crate::sqlite::read::Readers;
use crate::world::Options;

pub(super) const FILE: &str = "kept.db";
/// In order; see migration.rs.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration::new("schema", include_str!("schema.sql"))];

impl ResponseStore {
    pub fn open(dir: &Path, options: &Options) -> Result<ResponseStore, StoreError> {
        let path = dir.join(FILE);
        // Customers' words are for the owner's eyes only.
        OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        let mut conn = connect(&path)?;
        if options.is_simulated() {
            // A simulation loses the ledger's file only, and opens thousands of stores.
            conn.execute_batch("PRAGMA synchronous = OFF")?;
        }
        migrate::migrate(&mut conn, FILE, MIGRATIONS)?;
        let here = options.is_simulated();
        let desk =
            Desk { conn: Mutex::new(conn), queue: Mutex::new(Queue::default()), room: DiskRoom::new(dir, options) };
        Ok(ResponseStore { readers: Readers::new(path, here), desk: Arc::new(desk), here })
    }
}

/// A small cache, and pages that are freed go back to the disk step by step.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let conn = migrate::open(path, FILE, MIGRATIONS)?;
    conn.set_prepared_statement_cache_capacity(32);
    conn.execute_batch(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 1000; \
         PRAGMA secure_delete = OFF; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; \
         PRAGMA journal_size_limit = 4194304; PRAGMA wal_autocheckpoint = 256;",
    )?;
    Ok(conn)
}
