//! The keys of receipts on the embedded engine, and the names of the secrets that sign the rest.
//! The first key is made when a store is opened that has none.

use rusqlite::{Connection, OptionalExtension, params};

use super::writer::apply::Apply;
use super::writer::ops::Op;
use super::{SqliteEngine, lock};
use crate::call::row_hash::RowSeal;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::receipt::{KeyRecord, PublicKey, SecretKey};
use crate::world::Clocks;

const INSERT: &str = "INSERT INTO receipt_key (public, secret, from_at) VALUES (?1, ?2, ?3)";

pub(super) fn make_first(conn: &Connection, world: &Clocks) -> Result<(), StoreError> {
    if conn.query_row("SELECT EXISTS (SELECT 1 FROM receipt_key)", [], |r| r.get::<_, bool>(0))? {
        return Ok(());
    }
    let key = KeyRecord::draw(&world.random, (world.now_ms)())?;
    conn.execute(INSERT, params![key.public, key.secret, key.from_ms])?;
    Ok(())
}

impl Apply<'_> {
    /// The key that signs ends, its secret with it; a new one begins.
    pub(super) fn rotate_receipt_key(&mut self, key: &KeyRecord) -> rusqlite::Result<()> {
        let end = "UPDATE receipt_key SET until_at = max(?1, from_at), secret = NULL WHERE until_at IS NULL";
        self.statement(end)?.execute(params![key.from_ms])?;
        self.statement(INSERT)?.execute(params![key.public, key.secret, key.from_ms])?;
        Ok(())
    }

    pub(super) fn note_signing_secrets(&mut self, names: &[String], at: i64) -> rusqlite::Result<()> {
        for name in names {
            let sql = "INSERT INTO signing_secret (name, seen_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            self.statement(sql)?.execute(params![name, at])?;
        }
        Ok(())
    }
}

impl SqliteEngine {
    pub async fn rotate_receipt_key(&self) -> Result<(), StoreError> {
        let key = KeyRecord::draw(&self.world.random, self.now())?;
        self.ask(|reply| Op::ReceiptKey(Box::new(key), reply)).await
    }

    pub async fn signing_secrets(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT name FROM signing_secret ORDER BY seen_at, name";
        let read = |r: &rusqlite::Row<'_>| r.get(0);
        self.readers.read(move |c| Ok(c.prepare_cached(sql)?.query_map([], read)?.collect::<Result<_, _>>()?)).await
    }

    pub async fn note_signing_secrets(&self, names: Vec<String>) -> Result<(), StoreError> {
        let now = self.now();
        self.ask(|reply| Op::SigningSecrets(names, now, reply)).await
    }

    pub async fn receipt_keys(&self) -> Result<Vec<PublicKey>, StoreError> {
        let sql =
            "SELECT public, from_at, until_at FROM receipt_key ORDER BY until_at IS NOT NULL, from_at DESC, public";
        let read = |r: &rusqlite::Row<'_>| Ok(PublicKey::new(&r.get::<_, [u8; 32]>(0)?, r.get(1)?, r.get(2)?));
        self.readers.read(move |c| Ok(c.prepare_cached(sql)?.query_map([], read)?.collect::<Result<_, _>>()?)).await
    }

    pub async fn receipt_secret(&self) -> Result<SecretKey, StoreError> {
        let sql = "SELECT secret, public, from_at FROM receipt_key WHERE until_at IS NULL";
        let found = self.readers.read(move |c| {
            let read = |r: &rusqlite::Row<'_>| Ok((r.get(0)?, r.get(1)?, r.get(2)?));
            Ok(c.prepare_cached(sql)?.query_row([], read).optional()?)
        });
        let found: Option<([u8; 32], [u8; 32], i64)> = found.await?;
        let (secret, public, from_ms) = found.ok_or_else(|| StoreError::broken("no key signs receipts"))?;
        SecretKey::read(&secret, &public, from_ms)
    }

    pub async fn key_prefix(&self, id: KeyId) -> Result<Option<String>, StoreError> {
        let sql = "SELECT prefix FROM key WHERE id = ?1";
        let find =
            move |c: &Connection| Ok(c.prepare_cached(sql)?.query_row(params![id.0], |r| r.get(0)).optional()?);
        self.readers.read(find).await
    }

    pub async fn price_json(&self, id: [u8; 16]) -> Result<Option<String>, StoreError> {
        self.catch_up().await;
        let sql = "SELECT json FROM price WHERE id = ?1";
        let find = move |c: &Connection| Ok(c.prepare_cached(sql)?.query_row(params![id], |r| r.get(0)).optional()?);
        self.readers.read(find).await
    }

    pub async fn seal_of(&self, account: AccountId, call: CallId) -> Result<RowSeal, StoreError> {
        self.readers.read(move |c| super::read::audit::seal_of(c, account, call)).await
    }

    /// Whether the call has a hold that nothing has closed yet.
    pub async fn is_open(&self, account: AccountId, call: CallId) -> Result<bool, StoreError> {
        Ok(lock(&self.shared.books).open.get(&call).is_some_and(|open| open.account == account))
    }
}
