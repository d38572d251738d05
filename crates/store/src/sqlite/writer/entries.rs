//! The one place where ledger entries are inserted: each gets its number and its link in the
//! account's hash chain.

use rusqlite::{OptionalExtension, params};

use crate::ids::AccountId;
use crate::ledger::chain::{ChainLink, Content};
use crate::sqlite::writer::apply::Apply;

pub(in crate::sqlite) const ENTRY_COLUMNS: usize = 21;
pub(in crate::sqlite) const ENTRY: &str = "INSERT INTO entry (seq, op_id, kind, account_id, key_id, trial, paid, take_trial, take_paid, at, \
     price_id, model, endpoint, expires_at, paid_only, reference, actor, reason, lots, link, hash) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";

impl Apply<'_> {
    /// Inserts an entry of this account and says its number.
    pub(in crate::sqlite) fn entry(&mut self, account: AccountId, e: &Content<'_>) -> rusqlite::Result<i64> {
        let e = Content { account: &account.0, ..*e };
        let end = e.after(&self.end_of(account)?);
        let seq = self.seq();
        self.entry.write(&[
            seq.into(),
            e.op_id.into(),
            e.kind.into(),
            e.account.into(),
            e.key.into(),
            e.trial.into(),
            e.paid.into(),
            e.take_trial.into(),
            e.take_paid.into(),
            e.at.into(),
            e.price_id.into(),
            e.model.into(),
            e.endpoint.into(),
            e.expires_at.into(),
            e.paid_only.into(),
            e.reference.into(),
            e.actor.into(),
            e.reason.into(),
            e.lots.into(),
            end.number.into(),
            (&end.hash).into(),
        ])?;
        let delta = self.accounts.entry(account).or_default();
        (delta.end, delta.last_at) = (Some(end), Some(e.at));
        Ok(seq)
    }

    /// The last link of an account: of this group, of an earlier one, or as the database has it.
    fn end_of(&self, account: AccountId) -> rusqlite::Result<ChainLink> {
        if let Some(end) = self.accounts.get(&account).and_then(|delta| delta.end) {
            return Ok(end);
        }
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
