//! Opening the file of what customers store, and bringing over what earlier versions kept in the ledger's.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, params};

use super::room::Room;
use super::{Desk, Kept, Queue};
use crate::error::StoreError;
use crate::sqlite::read::Readers;
use crate::world::Options;

pub(super) const FILE: &str = "kept.db";
/// Migrations of this file in order; `user_version` is how many have run. Never change one that was released.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// Copies what the ledger's file has of it. Run again after a crash it copies what is missing.
const TAKE_OVER: &str = "
INSERT OR IGNORE INTO stored (account_id)
  SELECT account_id FROM ledger.response UNION SELECT account_id FROM ledger.conversation
  UNION SELECT account_id FROM ledger.response_item UNION SELECT account_id FROM ledger.conversation_item;
INSERT OR IGNORE INTO response (account_id, id, previous, conversation, created_at, expires_at, bytes, input, object)
  SELECT account_id, id, previous, conversation, created_at, expires_at, bytes, input, object FROM ledger.response;
INSERT OR IGNORE INTO response_item (account_id, id, response_id)
  SELECT account_id, id, response_id FROM ledger.response_item;
INSERT OR IGNORE INTO conversation (account_id, id, created_at, expires_at, metadata)
  SELECT account_id, id, created_at, expires_at, metadata FROM ledger.conversation;
INSERT OR IGNORE INTO conversation_item (seq, account_id, conversation, id, item)
  SELECT seq, account_id, conversation, id, item FROM ledger.conversation_item;";

impl Kept {
    /// `ledger` is the file in which earlier versions kept it; it must not have been brought up to date yet.
    pub fn open(dir: &Path, ledger: &Path, options: &Options) -> Result<Kept, StoreError> {
        let path = dir.join(FILE);
        // Customers' words are for the owner's eyes only.
        OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        let mut conn = connect(&path)?;
        if options.is_simulated() {
            // A simulation loses the ledger's file only, and opens thousands of stores.
            conn.execute_batch("PRAGMA synchronous = OFF")?;
        }
        migrate(&mut conn)?;
        if ledger.exists() {
            take_over(&mut conn, ledger)?;
        }
        let here = options.is_simulated();
        let desk = Desk { conn: Mutex::new(conn), queue: Mutex::new(Queue::default()), room: Room::new(dir, options) };
        Ok(Kept { readers: Readers::new(path, here), desk: Arc::new(desk), here })
    }
}

/// A small cache, and pages that are freed go back to the disk step by step.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let conn = Connection::open(path)?;
    conn.set_prepared_statement_cache_capacity(32);
    conn.execute_batch(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 1000; \
         PRAGMA secure_delete = OFF; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; \
         PRAGMA journal_size_limit = 4194304; PRAGMA wal_autocheckpoint = 256;",
    )?;
    Ok(conn)
}

fn migrate(conn: &mut Connection) -> Result<(), StoreError> {
    let version: i64 = conn.query_row("PRAGMA user_version", [], |r| r.get(0))?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        return Err(StoreError::broken(format!("{FILE} was made by a newer version")));
    }
    for (at, sql) in MIGRATIONS.iter().enumerate().skip(done) {
        let tx = conn.transaction()?;
        tx.execute_batch(sql)?;
        tx.execute_batch(&format!("PRAGMA user_version = {}", at + 1))?;
        tx.commit()?;
    }
    Ok(())
}

fn take_over(conn: &mut Connection, ledger: &Path) -> Result<(), StoreError> {
    let ledger = ledger.to_str().ok_or_else(|| StoreError::broken("the data folder has no name in UTF-8"))?;
    conn.execute("ATTACH ?1 AS ledger", params![ledger])?;
    let there = "SELECT count(*) FROM ledger.sqlite_master WHERE type = 'table' \
                 AND name IN ('response', 'response_item', 'conversation', 'conversation_item')";
    let taken = conn.query_row(there, [], |r| r.get::<_, i64>(0)).and_then(|tables| match tables {
        4 => {
            let tx = conn.transaction()?;
            tx.execute_batch(TAKE_OVER)?;
            tx.commit()
        }
        _ => Ok(()),
    });
    conn.execute_batch("DETACH ledger")?;
    Ok(taken?)
}
