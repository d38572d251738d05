//! Accounts, keys and credits as statements of a group. A credit is the one operation decided here:
//! only the database knows whether its id was used before.

use rusqlite::{OptionalExtension, params};
use tollgate_catalog::Money;

use crate::account::lots::{self, Lot};
use crate::account::{Account, Credit, CreditKind, Key, Pot, webhook_detail};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::bounds;
use crate::ledger::chain::Content;
use crate::ledger::{self, EntryKind, Pots, op_id};
use crate::operator::{Attribution, AuditRow};
use crate::sqlite::writer::apply::Apply;
use crate::sqlite::writer::ops::{CreditDone, CreditOp};

const LOT: &str = "INSERT INTO trial_lot (account_id, credit, reference, expires_at, free) VALUES (?1, ?2, ?3, ?4, ?5)";

impl Apply<'_> {
    pub(in crate::sqlite) fn account(
        &mut self,
        a: &Account,
        done: &Attribution,
    ) -> rusqlite::Result<Result<(), StoreError>> {
        let sql = "INSERT OR IGNORE INTO account (id, name, created_at, changed_at, groups, day_limit, month_limit) \
                   VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6)";
        let groups = serde_json::to_string(&a.groups).unwrap_or_default();
        let limit = |limit: Option<Money>| limit.map(Money::nano);
        let (day, month) = (limit(a.limits.day), limit(a.limits.month));
        let made = self.statement(sql)?.execute(params![a.id.0, a.name, a.created_at, groups, day, month])?;
        if made == 1 {
            let row = AuditRow::new(a.created_at, done, "account.create", &a.id.to_string(), Some(a.id));
            self.note(row.map(|row| row.detail(&format!("name: {}; groups: {}", a.name, a.groups.join(",")))))?;
        }
        Ok(Ok(()))
    }

    pub(in crate::sqlite) fn key(&mut self, k: &Key, done: &Attribution) -> rusqlite::Result<Result<(), StoreError>> {
        let exists = "SELECT EXISTS (SELECT 1 FROM account WHERE id = ?1)";
        if !self.statement(exists)?.query_row(params![k.account.0], |r| r.get::<_, bool>(0))? {
            return Ok(Err(StoreError::NotFound(k.account.to_string())));
        }
        let list = |l: &Option<Vec<String>>| l.as_ref().and_then(|l| serde_json::to_string(l).ok());
        let sql = "INSERT OR IGNORE INTO key (id, account_id, hash, prefix, name, created_at, changed_at, expires_at, \
                   models, cidrs, cap, day_limit, month_limit, scope, person_id, origin) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
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
            k.limits.total.map(Money::nano),
            k.limits.day.map(Money::nano),
            k.limits.month.map(Money::nano),
            k.scope.word(),
            k.person.map(|person| person.0),
            k.origin.word(),
        ])?;
        Ok(match made {
            0 => Err(StoreError::Conflict("this secret is in use already".into())),
            _ => {
                let row = AuditRow::new(k.created_at, done, "key.create", &k.id.to_string(), Some(k.account));
                self.note(row.map(|row| row.detail(&k.summary())))?;
                Ok(())
            }
        })
    }

    pub(in crate::sqlite) fn revoke(&mut self, id: KeyId, at: i64, done: &Attribution) -> rusqlite::Result<()> {
        let sql = "UPDATE key SET revoked_at = ?2, changed_at = ?2 WHERE id = ?1 AND revoked_at IS NULL \
                   RETURNING account_id, name";
        let one = |r: &rusqlite::Row<'_>| Ok((AccountId(r.get(0)?), r.get::<_, String>(1)?));
        let revoked = self.statement(sql)?.query_row(params![id.0, at], one).optional()?;
        let Some((account, name)) = revoked else { return Ok(()) };
        let row = AuditRow::new(at, done, "key.revoke", &id.to_string(), Some(account));
        self.note(row.map(|row| row.detail(&format!("name: {name}"))))
    }

    pub(in crate::sqlite) fn account_webhook(
        &mut self,
        account: AccountId,
        url: Option<&str>,
        at: i64,
        done: &Attribution,
    ) -> rusqlite::Result<Result<(), StoreError>> {
        let before = self
            .statement("SELECT webhook_url FROM account WHERE id = ?1")?
            .query_row(params![account.0], |r| r.get::<_, Option<String>>(0))
            .optional()?;
        let Some(before) = before else { return Ok(Err(StoreError::NotFound(account.to_string()))) };
        let sql = "UPDATE account SET webhook_url = ?2, changed_at = ?3 WHERE id = ?1";
        self.statement(sql)?.execute(params![account.0, url, at])?;
        let row = AuditRow::new(at, done, "account.webhook", &account.to_string(), Some(account));
        self.note(row.map(|row| row.detail(&webhook_detail(before.as_deref(), url))))?;
        Ok(Ok(()))
    }

    pub(in crate::sqlite) fn credit(&mut self, op: &CreditOp) -> rusqlite::Result<Result<CreditDone, StoreError>> {
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
            CreditKind::TopUp => EntryKind::TopUp,
            CreditKind::Adjust => EntryKind::Adjust,
            CreditKind::Refund { .. } => EntryKind::Refund,
        };
        if let Some(before) = before {
            if before != (c.account.0, amount, kind as i64) {
                return Ok(Err(StoreError::Conflict("this id was used for another credit".into())));
            }
            return Ok(Ok(CreditDone { applied: false, added: Pots::default(), lot: None, unspent: None }));
        }
        let (pots, key) = match c.kind {
            CreditKind::Refund { call } => match self.refund(c.account, call, amount)? {
                Ok((pots, key)) => (pots, Some(key)),
                Err(error) => return Ok(Err(error)),
            },
            _ if c.pot == Pot::Trial => (Pots { trial: amount, paid: 0 }, None),
            _ => (Pots { trial: 0, paid: amount }, None),
        };
        if amount > 0 {
            let has = self.whole_balance(c.account)?;
            if let Err(error) = bounds::account(has + i128::from(amount)) {
                return Ok(Err(error));
            }
        }
        if let (CreditKind::Refund { call }, Some(_)) = (c.kind, key) {
            self.statement("UPDATE usage SET refunded = refunded + ?3 WHERE account_id = ?1 AND call_id = ?2")?
                .execute(params![c.account.0, call.0, amount])?;
            self.sum_refund(c.account, call, amount)?;
        }
        self.entry(
            c.account,
            &Content {
                op_id: &id,
                kind: kind as i64,
                key: key.as_ref().map(|k: &KeyId| k.0.as_slice()),
                trial: pots.trial,
                paid: pots.paid,
                at: op.at,
                expires_at: c.expires_at,
                reference: Some(&c.id),
                actor: Some(&c.actor),
                reason: Some(&c.reason),
                lots: lots::to_text(&op.taken_lots).as_deref(),
                ..Content::default()
            },
        )?;
        self.note(c.audit_row(op.at, op.request.clone()))?;
        let lot = self.new_lot(c)?;
        for &(credit, part) in &op.taken_lots {
            self.move_lot(c.account, credit, -part, 0);
        }
        if kind == EntryKind::TopUp && c.pot == Pot::Paid {
            let sql = "UPDATE account SET topped_up = 1, changed_at = ?2 WHERE id = ?1 AND topped_up = 0";
            self.statement(sql)?.execute(params![c.account.0, op.at])?;
        }
        let account = self.accounts.entry(c.account).or_default();
        account.available = account.available.plus(pots);
        if let Some(key) = key {
            self.keys.entry(key).or_default().spent -= amount;
        }
        Ok(Ok(CreditDone { applied: true, added: pots, lot, unspent: key.map(|k| (k, amount)) }))
    }

    fn new_lot(&mut self, c: &Credit) -> rusqlite::Result<Option<Lot>> {
        let Some(expires_at) = c.expires_at else { return Ok(None) };
        let (credit, free) = (ledger::credit_key(&c.id), c.amount.nano());
        self.statement(LOT)?.execute(params![c.account.0, credit, c.id, expires_at, free])?;
        Ok(Some(Lot { credit, reference: c.id.as_str().into(), expires_at, free, held: 0, lapses: 0 }))
    }

    /// From which pots and of whose spending a refund is.
    fn refund(
        &self,
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
        Ok(Ok((pots, key)))
    }

    /// What an account has, both pots, free and held: as committed, and as this group has moved it
    /// on.
    fn whole_balance(&self, account: AccountId) -> rusqlite::Result<i128> {
        let sql = "SELECT trial_available, paid_available, trial_held, paid_held FROM account WHERE id = ?1";
        let pots: [i64; 4] = self
            .statement(sql)?
            .query_row(params![account.0], |r| Ok([r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?]))
            .optional()?
            .unwrap_or_default();
        let moved = self
            .accounts
            .get(&account)
            .map_or([0; 4], |delta| [delta.available.trial, delta.available.paid, delta.held.trial, delta.held.paid]);
        Ok(pots.into_iter().chain(moved).map(i128::from).sum())
    }
}
