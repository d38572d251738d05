//! Client secrets on the embedded engine: written by the one writer, so that counts are exact.

use rusqlite::{OptionalExtension, params};

use super::writer::apply::Apply;
use super::writer::ops::Op;
use super::{SqliteEngine, lock};
use crate::client_secret::{ClientSecret, ClientSecretLimits, NewClientSecret};
use crate::error::StoreError;

/// What the writer is asked to write.
pub(super) enum ClientSecretOp {
    Create {
        new: NewClientSecret,
        limits: ClientSecretLimits,
        at: i64,
    },
    /// One of the uses of this hash, at this time.
    Use([u8; 32], i64),
    /// What has expired at this time.
    Forget(i64),
}

impl SqliteEngine {
    pub async fn create_client_secret(
        &self,
        new: NewClientSecret,
        limits: ClientSecretLimits,
    ) -> Result<u64, StoreError> {
        let op = ClientSecretOp::Create { new, limits, at: self.now() };
        self.ask(|reply| Op::ClientSecret(Box::new(op), reply)).await
    }

    pub async fn client_secret(&self, hash: [u8; 32]) -> Result<Option<ClientSecret>, StoreError> {
        let sql = "SELECT k.hash, s.model, s.session, s.expires_at, s.uses_left FROM client_secret s \
                   JOIN key k ON k.id = s.key_id WHERE s.hash = ?1 AND s.expires_at > ?2";
        let now = self.now();
        let one = |r: &rusqlite::Row<'_>| {
            let (key_hash, model, session) = (r.get(0)?, r.get(1)?, r.get(2)?);
            Ok(ClientSecret { key_hash, model, session, expires_at: r.get(3)?, uses_left: r.get(4)? })
        };
        self.readers.read(move |c| Ok(c.prepare_cached(sql)?.query_row(params![hash, now], one).optional()?)).await
    }

    pub async fn use_client_secret(&self, hash: [u8; 32]) -> Result<bool, StoreError> {
        let op = ClientSecretOp::Use(hash, self.now());
        self.ask(|reply| Op::ClientSecret(Box::new(op), reply)).await.map(|used| used > 0)
    }

    pub(super) fn forget_client_secrets(&self, now: i64) {
        let mut books = lock(&self.shared.books);
        books.push(Op::ClientSecret(Box::new(ClientSecretOp::Forget(now)), None));
        self.shared.ring(books);
    }
}

impl Apply<'_> {
    /// For a new one whose limit was met, as `ClientSecretsFull` numbers them; for a use 1, or 0 if
    /// there was none.
    pub(super) fn client_secret(&mut self, op: &ClientSecretOp) -> rusqlite::Result<u64> {
        match op {
            ClientSecretOp::Create { new, limits, at } => {
                let sql = "SELECT count(*), coalesce(sum(key_id = ?2), 0) FROM client_secret \
                           WHERE account_id = ?1 AND expires_at > ?3";
                let count = |r: &rusqlite::Row<'_>| Ok((r.get::<_, u32>(0)?, r.get::<_, u32>(1)?));
                let (all, own) = self.statement(sql)?.query_row(params![new.account.0, new.key.0, at], count)?;
                if all >= limits.account {
                    return Ok(1);
                }
                if own >= limits.key {
                    return Ok(2);
                }
                let sql = "INSERT INTO client_secret (hash, account_id, key_id, model, session, created_at, expires_at, uses_left) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let (account, key) = (new.account.0, new.key.0);
                let row = params![new.hash, account, key, new.model, new.session, at, new.expires_at, new.uses];
                self.statement(sql)?.execute(row)?;
            }
            ClientSecretOp::Use(hash, at) => {
                let sql = "UPDATE client_secret SET uses_left = uses_left - 1 \
                           WHERE hash = ?1 AND expires_at > ?2 AND uses_left > 0";
                return Ok(self.statement(sql)?.execute(params![hash, at])? as u64);
            }
            ClientSecretOp::Forget(now) => {
                self.statement("DELETE FROM client_secret WHERE expires_at <= ?1")?.execute(params![now])?;
            }
        }
        Ok(0)
    }
}
