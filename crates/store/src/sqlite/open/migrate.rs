//! The tables of a SQLite file as this version needs them: each migration is one transaction with
//! the row that says it has run.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use crate::error::StoreError;
use crate::migration::{self, Migration, Ran};

/// Opens a file, unless another build made it: then nothing is written to it. `file` is its name,
/// for errors.
pub(in crate::sqlite) fn open(path: &Path, file: &str, known: &[Migration]) -> Result<Connection, StoreError> {
    let conn = Connection::open(path)?;
    // Not of a new one: how it gives back space can be set only before it is read.
    if std::fs::metadata(path)?.len() > 0 {
        done(&conn, file, known)?;
    }
    Ok(conn)
}

pub(in crate::sqlite) fn migrate(conn: &mut Connection, file: &str, known: &[Migration]) -> Result<(), StoreError> {
    let done = done(conn, file, known)?;
    if done > known.len() {
        return Err(StoreError::broken(format!("{file} was made by a newer version")));
    }
    for (number, migration) in (1i64..).zip(known).skip(done) {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch(&migration.sql)?;
        let row = "INSERT INTO migration (number, name, fingerprint) VALUES (?1, ?2, ?3)";
        tx.execute(row, params![number, migration.name, migration.fingerprint()])?;
        tx.commit()?;
    }
    Ok(())
}

fn done(conn: &Connection, file: &str, known: &[Migration]) -> Result<usize, StoreError> {
    let tables = "SELECT count(*), coalesce(sum(name = 'migration'), 0) FROM sqlite_master WHERE type = 'table'";
    let (tables, numbered): (i64, i64) = conn.query_row(tables, [], |r| Ok((r.get(0)?, r.get(1)?)))?;
    match (tables, numbered) {
        (0, _) => return Ok(0),
        (_, 0) => return Err(migration::unreleased(file)),
        _ => {}
    }
    let mut ran = conn.prepare("SELECT number, fingerprint FROM migration ORDER BY number")?;
    let ran = ran.query_map([], |r| Ok(Ran { number: r.get(0)?, fingerprint: r.get(1)? }))?;
    migration::done(known, &ran.collect::<Result<Vec<_>, _>>()?, file)
}
