//! The one place where ledger entries are inserted: each gets its number and its link in the
//! account's hash chain.

use rusqlite::{OptionalExtension, params};

use crate::ids::AccountId;
use crate::ledger::chain::{ChainLink, Content};
use crate::sqlite::writer::apply::Apply;

pub(in crate::sqlite) const ENTRY: &str = "INSERT INTO entry (seq, op_id, kind, account_id, key_id, trial, paid, take_trial, take_paid, at, \
     price_id, model, endpoint, expires_at, paid_only, reference, actor, reason, lots, link, hash) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";

impl Apply<'_> {
    /// Inserts an entry of this account and says its number.
    pub(in crate::sqlite) fn entry(&mut self, account: AccountId, e: &Content<'_>) -> rusqlite::Result<i64> {
        let e = Content { account: &account.0, ..*e };
        let end = e.after(&self.end_of(account)?);
        let seq = self.seq();
        self.entry.execute(params![
            seq,
            e.op_id,
            e.kind,
            e.account,
            e.key,
            e.trial,
            e.paid,
            e.take_trial,
            e.take_paid,
            e.at,
            e.price_id,
            e.model,
            e.endpoint,
            e.expires_at,
            e.paid_only,
            e.reference,
            e.actor,
            e.reason,
            e.lots,
            end.number,
            end.hash,
        ])?;
        self.ends.insert(account, end);
        let delta = self.accounts.entry(account).or_default();
        (delta.end, delta.last_at) = (Some(end), Some(e.at));
        Ok(seq)
    }

    /// The last link of an account: of this group, of an earlier one, or as the database has it.
    fn end_of(&self, account: AccountId) -> rusqlite::Result<ChainLink> {
        if let Some(end) = self.ends.get(&account).or_else(|| self.known_ends.get(&account)) {
            return Ok(*end);
        }
        let stored =
            self.statement("SELECT links, head FROM account WHERE id = ?1")?.query_row(params![account.0], |r| {
                Ok(ChainLink { number: r.get(0)?, hash: r.get::<_, Option<[u8; 32]>>(1)?.unwrap_or_default() })
            });
        Ok(stored.optional()?.unwrap_or_default())
    }
}
