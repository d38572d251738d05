//! Accounts, keys and credits as statements of a group. A credit is the one operation decided here: only the
//! database knows whether its id was used before.

use rusqlite::{OptionalExtension, params};

use super::apply::Apply;
use super::ops::{CreditDone, CreditOp};
use crate::account::{Account, CreditKind, Key, Pot};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::{self, Kind, Pots, op_id};

const CREDIT: &str = "INSERT INTO entry (seq, op_id, kind, account_id, key_id, trial, paid, at, reference, actor, reason) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

impl Apply<'_> {
    pub(super) fn account(&mut self, a: &Account) -> rusqlite::Result<Result<(), StoreError>> {
        let sql = "INSERT OR IGNORE INTO account (id, name, created_at, changed_at, groups) \
                   VALUES (?1, ?2, ?3, ?3, ?4)";
        let groups = serde_json::to_string(&a.groups).unwrap_or_default();
        self.statement(sql)?.execute(params![a.id.0, a.name, a.created_at, groups])?;
        Ok(Ok(()))
    }

    pub(super) fn key(&mut self, k: &Key) -> rusqlite::Result<Result<(), StoreError>> {
        let exists = "SELECT EXISTS (SELECT 1 FROM account WHERE id = ?1)";
        if !self.statement(exists)?.query_row(params![k.account.0], |r| r.get::<_, bool>(0))? {
            return Ok(Err(StoreError::NotFound(k.account.to_string())));
        }
        let list = |l: &Option<Vec<String>>| l.as_ref().and_then(|l| serde_json::to_string(l).ok());
        let sql = "INSERT OR IGNORE INTO key (id, account_id, hash, prefix, name, created_at, changed_at, expires_at, \
                   models, cidrs, cap) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10)";
        let made = self.statement(sql)?.execute(params![
            k.id.0,
            k.account.0,
            k.hash,
            k.prefix,
            k.name,
            k.created_at,
            k.expires_at,
            list(&k.models),
            list(&k.cidrs),
            k.cap.map(|c| c.nano()),
        ])?;
        Ok(match made {
            0 => Err(StoreError::Conflict("this secret is in use already".into())),
            _ => Ok(()),
        })
    }

    pub(super) fn credit(&mut self, op: &CreditOp) -> rusqlite::Result<Result<CreditDone, StoreError>> {
        let c = &op.credit;
        let amount = c.amount.nano();
        let id = match c.kind {
            CreditKind::Refund { call } => op_id(&call.0, ledger::CLASS_REFUND),
            _ => ledger::credit_op_id(&c.id),
        };
        let before = self
            .statement("SELECT account_id, trial + paid, kind FROM entry WHERE op_id = ?1")?
            .query_row(params![id], |r| Ok((r.get::<_, [u8; 16]>(0)?, r.get::<_, i64>(1)?, r.get::<_, i64>(2)?)))
            .optional()?;
        let kind = match c.kind {
            CreditKind::TopUp => Kind::TopUp,
            CreditKind::Adjust => Kind::Adjust,
            CreditKind::Refund { .. } => Kind::Refund,
        };
        if let Some(before) = before {
            if before != (c.account.0, amount, kind as i64) {
                return Ok(Err(StoreError::Conflict("this id was used for another credit".into())));
            }
            return Ok(Ok(CreditDone { applied: false, added: Pots::default(), unspent: None }));
        }
        let (pots, key) = match c.kind {
            CreditKind::Refund { call } => match self.refund(c.account, call, amount)? {
                Ok((pots, key)) => (pots, Some(key)),
                Err(error) => return Ok(Err(error)),
            },
            _ if c.pot == Pot::Trial => (Pots { trial: amount, paid: 0 }, None),
            _ => (Pots { trial: 0, paid: amount }, None),
        };
        let seq = self.seq();
        self.statement(CREDIT)?.execute(params![
            seq,
            id,
            kind as i64,
            c.account.0,
            key.map(|k: KeyId| k.0),
            pots.trial,
            pots.paid,
            op.at,
            c.id,
            c.actor,
            c.reason,
        ])?;
        if kind == Kind::TopUp && c.pot == Pot::Paid {
            let sql = "UPDATE account SET topped_up = 1, changed_at = ?2 WHERE id = ?1 AND topped_up = 0";
            self.statement(sql)?.execute(params![c.account.0, op.at])?;
        }
        let account = self.accounts.entry(c.account).or_default();
        account.available = account.available.plus(pots);
        if let Some(key) = key {
            self.keys.entry(key).or_default().spent -= amount;
        }
        Ok(Ok(CreditDone { applied: true, added: pots, unspent: key.map(|k| (k, amount)) }))
    }

    fn refund(
        &mut self,
        account: AccountId,
        call: CallId,
        amount: i64,
    ) -> rusqlite::Result<Result<(Pots, KeyId), StoreError>> {
        let sql = "SELECT account_id, key_id, take_trial, take_paid FROM entry WHERE op_id = ?1 AND kind = 1";
        let settled = self
            .statement(sql)?
            .query_row(params![op_id(&call.0, ledger::CLASS_TERMINAL)], |r| {
                let taken = Pots { trial: r.get(2)?, paid: r.get(3)? };
                Ok((AccountId(r.get(0)?), KeyId(r.get(1)?), taken))
            })
            .optional()?;
        let Some((_, key, taken)) = settled.filter(|(owner, ..)| *owner == account) else {
            return Ok(Err(StoreError::NotFound(format!("no charge for {call}"))));
        };
        let Some(pots) = ledger::split_refund(taken, amount) else {
            return Ok(Err(StoreError::Conflict("a refund must be above zero and within the charge".into())));
        };
        self.statement("UPDATE usage SET refunded = refunded + ?3 WHERE account_id = ?1 AND call_id = ?2")?
            .execute(params![account.0, call.0, amount])?;
        Ok(Ok((pots, key)))
    }
}
