//! Idempotency keys as rows: what a call leaves under its key, how much of that an account may
//! have, and when it is forgotten.

use rusqlite::params;

use crate::call::{HOUR_MS, StoredReply};
use crate::response::quota::{Quota, StorageUsed};
use crate::sqlite::writer::apply::Apply;
use crate::sqlite::writer::ops::{CloseOp, IdemEnd};

impl Apply<'_> {
    /// The call of a key has ended: with a reply for whoever repeats it, without one, or so that
    /// the key is free again.
    pub(in crate::sqlite) fn end_key(&mut self, c: &CloseOp, end: &IdemEnd) -> rusqlite::Result<()> {
        if !end.keep {
            self.statement("DELETE FROM idem WHERE account_id = ?1 AND key_hash = ?2")?
                .execute(params![c.account.0, end.key_hash])?;
            return Ok(());
        }
        let reply = match &end.reply {
            Some(reply) => self.count_reply(c, reply)?.then_some(reply),
            None => None,
        };
        let sql = "UPDATE idem SET done = 1, status = ?3, content_type = ?4, reply = ?5 \
                   WHERE account_id = ?1 AND key_hash = ?2";
        self.statement(sql)?.execute(params![
            c.account.0,
            end.key_hash,
            reply.map(|r| r.status),
            reply.map(|r| r.content_type.as_str()),
            reply.map(|r| r.body.as_ref()),
        ])?;
        Ok(())
    }

    /// Counts a reply that is stored. `false`: the account has no room for it.
    fn count_reply(&mut self, c: &CloseOp, reply: &StoredReply) -> rusqlite::Result<bool> {
        let stored = "SELECT coalesce(sum(bytes), 0) FROM idem_kept WHERE account_id = ?1";
        let stored: i64 = self.statement(stored)?.query_row(params![c.account.0], |r| r.get(0))?;
        let quota = Quota { bytes: self.reply_bytes, ..Quota::UNLIMITED };
        let (stored, more) = (StorageUsed::bytes(stored.unsigned_abs()), StorageUsed::bytes(reply.counted_bytes()));
        if !quota.has_room(stored, more) {
            return Ok(false);
        }
        let count = "INSERT INTO idem_kept (account_id, hour, bytes) VALUES (?1, ?2, ?3) \
                     ON CONFLICT (account_id, hour) DO UPDATE SET bytes = bytes + excluded.bytes";
        let bytes = i64::try_from(more.bytes).unwrap_or(i64::MAX);
        self.statement(count)?.execute(params![c.account.0, c.at.div_euclid(HOUR_MS), bytes])?;
        Ok(true)
    }

    /// Forgets keys that began before this time.
    pub(in crate::sqlite) fn forget_keys(&mut self, before: i64) -> rusqlite::Result<u64> {
        let forgotten = self.statement("DELETE FROM idem WHERE at < ?1 AND done = 1")?.execute(params![before])?;
        self.statement("DELETE FROM idem_kept WHERE hour < ?1")?.execute(params![before.div_euclid(HOUR_MS)])?;
        Ok(forgotten as u64)
    }
}
