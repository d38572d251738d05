//! The keys of receipts on PostgreSQL: one table for all replicas. The key that signs is read for
//! each receipt, so that a new one is used by every replica at once.

use super::PostgresEngine;
use super::connect::{MIGRATION_LOCK, PgConnector};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::receipt::{KeyRecord, PublicKey, SecretKey};
use crate::world::Clocks;

/// When a new key is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    IfThereIsNone,
    InAnyCase,
}

/// One at a time: of replicas that start together one makes the first key.
async fn make(connector: &PgConnector, key: KeyRecord, wanted: Wanted) -> Result<(), StoreError> {
    let mut link = connector.connect().await?;
    let tx = link.client.transaction().await?;
    tx.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
    let there = tx.query_one("SELECT EXISTS (SELECT 1 FROM receipt_key)", &[]).await?.get(0);
    if there && wanted == Wanted::IfThereIsNone {
        return Ok(());
    }
    let end = "UPDATE receipt_key SET until_at = greatest($1, from_at), secret = NULL WHERE until_at IS NULL";
    tx.execute(end, &[&key.from_ms]).await?;
    let begin = "INSERT INTO receipt_key (public, secret, from_at) VALUES ($1, $2, $3)";
    tx.execute(begin, &[&key.public.as_slice(), &key.secret.as_slice(), &key.from_ms]).await?;
    Ok(tx.commit().await?)
}

pub(super) async fn make_first(connector: &PgConnector, world: &Clocks) -> Result<(), StoreError> {
    make(connector, KeyRecord::draw(&world.random, (world.now_ms)())?, Wanted::IfThereIsNone).await
}

impl PostgresEngine {
    pub async fn rotate_receipt_key(&self) -> Result<(), StoreError> {
        make(&self.connector, KeyRecord::draw(&self.world.random, self.now())?, Wanted::InAnyCase).await
    }

    pub async fn signing_secrets(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.rows("SELECT name FROM signing_secret ORDER BY seen_at, name", &[]).await?;
        rows.iter().map(|r| Ok(r.try_get(0)?)).collect()
    }

    pub async fn note_signing_secrets(&self, names: Vec<String>) -> Result<(), StoreError> {
        let sql = "INSERT INTO signing_secret (name, seen_at) SELECT unnest($1::text[]), $2 ON CONFLICT DO NOTHING RETURNING name";
        self.change(sql, &[&names, &self.now()]).await.map(drop)
    }

    pub async fn receipt_keys(&self) -> Result<Vec<PublicKey>, StoreError> {
        let sql =
            "SELECT public, from_at, until_at FROM receipt_key ORDER BY until_at IS NOT NULL, from_at DESC, public";
        let rows = self.rows(sql, &[]).await?;
        rows.iter().map(|r| Ok(PublicKey::new(r.try_get(0)?, r.try_get(1)?, r.try_get(2)?))).collect()
    }

    pub async fn receipt_secret(&self) -> Result<SecretKey, StoreError> {
        let rows = self.rows("SELECT secret, public, from_at FROM receipt_key WHERE until_at IS NULL", &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::broken("no key signs receipts"))?;
        SecretKey::read(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)
    }

    pub async fn key_prefix(&self, id: KeyId) -> Result<Option<String>, StoreError> {
        let rows = self.rows("SELECT prefix FROM key WHERE id = $1", &[&id.0.as_slice()]).await?;
        Ok(rows.first().map(|r| r.try_get(0)).transpose()?)
    }

    pub async fn price_json(&self, id: [u8; 16]) -> Result<Option<String>, StoreError> {
        let rows = self.rows("SELECT json FROM price WHERE id = $1", &[&id.as_slice()]).await?;
        Ok(rows.first().map(|r| r.try_get(0)).transpose()?)
    }

    /// Whether the call has a hold that nothing has closed yet.
    pub async fn is_open(&self, account: AccountId, call: CallId) -> Result<bool, StoreError> {
        self.catch_up().await;
        let sql = "SELECT EXISTS (SELECT 1 FROM open_hold WHERE call_id = $1 AND account_id = $2)";
        let rows = self.rows(sql, &[&call.0.as_slice(), &account.0.as_slice()]).await?;
        Ok(rows.first().map_or(Ok(false), |r| r.try_get(0))?)
    }
}
