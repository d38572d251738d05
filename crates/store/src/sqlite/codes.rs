//! Redemption codes on the embedded engine: one conditional update and one ledger entry, by the one
//! writer.

use rusqlite::{OptionalExtension, Row, params};
use tollgate_catalog::Money;

use super::SqliteEngine;
use super::payments::{MoneyDone, MoneyOp};
use super::writer::apply::Apply;
use super::writer::ops::CreditOp;
use crate::account::lots::Parts;
use crate::account::{Account, Pot};
use crate::code_batch::{self, CodeBatch, NewCodeBatch};
use crate::error::StoreError;
use crate::ids::{AccountId, BatchId};
use crate::ledger::Pots;
use crate::operator::{Attribution, AuditRow};
use crate::sqlite::lock;

pub(super) enum CodeOp {
    Make { batch: CodeBatch, hashes: Vec<[u8; 32]>, done: Attribution },
    Revoke { batch: BatchId, at: i64, done: Attribution },
    Redeem { hash: [u8; 32], batch: CodeBatch, credit: CreditOp },
}

const BATCH: &str = "b.id, b.amount, b.trial, b.count, b.per_account, b.ends_at, b.note, b.created_at, b.actor, b.revoked_at, \
     (SELECT count(*) FROM code c WHERE c.batch_id = b.id AND c.used_by IS NOT NULL)";

impl SqliteEngine {
    pub async fn create_codes(&self, new: NewCodeBatch) -> Result<CodeBatch, StoreError> {
        let batch = new.made(self.ids.batch(), self.now())?;
        let done = Attribution::by(new.actor, new.reason);
        let made = batch.clone();
        self.money(MoneyOp::Code(CodeOp::Make { batch, hashes: new.hashes, done })).await?;
        Ok(made)
    }

    pub async fn code_batches(&self, before: Option<BatchId>, limit: u32) -> Result<Vec<CodeBatch>, StoreError> {
        let sql =
            format!("SELECT {BATCH} FROM code_batch b WHERE (?1 IS NULL OR b.id < ?1) ORDER BY b.id DESC LIMIT ?2");
        let before = before.map(|id| id.0);
        self.readers
            .read(move |c| {
                let mut statement = c.prepare_cached(&sql)?;
                Ok(statement.query_map(params![before, limit], batch)?.collect::<Result<_, _>>()?)
            })
            .await
    }

    pub async fn revoke_codes(&self, id: BatchId, done: Attribution) -> Result<Option<CodeBatch>, StoreError> {
        let at = self.now();
        self.money(MoneyOp::Code(CodeOp::Revoke { batch: id, at, done })).await?;
        let sql = format!("SELECT {BATCH} FROM code_batch b WHERE b.id = ?1");
        self.readers.read(move |c| Ok(c.prepare_cached(&sql)?.query_row([id.0], batch).optional()?)).await
    }

    /// As `code_batch::refused` numbers them.
    pub async fn redeem(
        &self,
        hash: [u8; 32],
        account: AccountId,
        actor: String,
    ) -> Result<(u64, Option<(CodeBatch, Account)>), StoreError> {
        let sql = format!("SELECT {BATCH} FROM code k JOIN code_batch b ON b.id = k.batch_id WHERE k.hash = ?1");
        let found =
            self.readers.read(move |c| Ok(c.prepare_cached(&sql)?.query_row([hash], batch).optional()?)).await?;
        let Some(batch) = found else { return Ok((0, None)) };
        let credit = code_batch::credit_of(&batch, &hash, account, actor);
        let now = self.now();
        credit.check(now)?;
        if !self.load_account(account).await? {
            return Err(StoreError::NotFound(account.to_string()));
        }
        let at = lock(&self.shared.books).time_of(account, now);
        let credit = CreditOp { credit, at, taken: Pots::default(), taken_lots: Parts::new(), request: None };
        let done = self.money(MoneyOp::Code(CodeOp::Redeem { hash, batch: batch.clone(), credit })).await?;
        let account = self.account(account).await?.ok_or_else(|| StoreError::broken("an account is gone"))?;
        Ok((done.verdict, Some((batch, account))))
    }
}

fn batch(r: &Row<'_>) -> rusqlite::Result<CodeBatch> {
    Ok(CodeBatch {
        id: BatchId(r.get(0)?),
        amount: Money::from_nano(r.get(1)?),
        pot: if r.get(2)? { Pot::Trial } else { Pot::Paid },
        count: r.get(3)?,
        per_account: r.get(4)?,
        ends_at: r.get(5)?,
        note: r.get(6)?,
        created_at: r.get(7)?,
        actor: r.get(8)?,
        revoked_at: r.get(9)?,
        used: r.get(10)?,
    })
}

impl Apply<'_> {
    pub(super) fn code(&mut self, op: &CodeOp) -> rusqlite::Result<Result<MoneyDone, StoreError>> {
        match op {
            CodeOp::Make { batch: b, hashes, done } => {
                let sql = "INSERT INTO code_batch (id, amount, trial, count, per_account, ends_at, note, created_at, actor) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
                let (trial, amount) = (b.pot == Pot::Trial, b.amount.nano());
                let row =
                    params![b.id.0, amount, trial, b.count, b.per_account, b.ends_at, b.note, b.created_at, b.actor];
                self.statement(sql)?.execute(row)?;
                let mut statement = self.statement("INSERT INTO code (hash, batch_id) VALUES (?1, ?2)")?;
                for hash in hashes {
                    statement.execute(params![hash, b.id.0])?;
                }
                let detail = format!("{} codes of {} USD", b.count, b.amount);
                let row = AuditRow::new(b.created_at, done, "codes.create", &b.id.to_string(), None);
                self.note(row.map(|row| row.detail(&detail)))?;
                Ok(Ok(MoneyDone::of(1)))
            }
            CodeOp::Revoke { batch, at, done } => {
                let sql = "UPDATE code_batch SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
                let changed = self.statement(sql)?.execute(params![batch.0, at])?;
                if changed == 1 {
                    self.note(AuditRow::new(*at, done, "codes.revoke", &batch.to_string(), None))?;
                }
                Ok(Ok(MoneyDone::of(changed as u64)))
            }
            CodeOp::Redeem { hash, batch, credit } => self.redeem(hash, batch, credit),
        }
    }

    fn redeem(
        &mut self,
        hash: &[u8; 32],
        batch: &CodeBatch,
        credit: &CreditOp,
    ) -> rusqlite::Result<Result<MoneyDone, StoreError>> {
        let (account, at) = (credit.credit.account, credit.at);
        let sql = "SELECT k.used_by, b.revoked_at IS NOT NULL OR coalesce(b.ends_at <= ?2, 0), \
                   (SELECT count(*) FROM code o WHERE o.batch_id = b.id AND o.used_by = ?3) \
                   FROM code k JOIN code_batch b ON b.id = k.batch_id WHERE k.hash = ?1";
        let read = |r: &Row<'_>| Ok((r.get::<_, Option<[u8; 16]>>(0)?, r.get::<_, bool>(1)?, r.get::<_, u32>(2)?));
        let Some((used_by, over, used)) =
            self.statement(sql)?.query_row(params![hash, at, account.0], read).optional()?
        else {
            return Ok(Ok(MoneyDone::of(0)));
        };
        let refused = match used_by {
            Some(by) if by == account.0 => Some(2),
            Some(_) => Some(0),
            None if over => Some(0),
            None if used >= batch.per_account => Some(3),
            None => None,
        };
        if let Some(verdict) = refused {
            return Ok(Ok(MoneyDone::of(verdict)));
        }
        let done = match self.credit(credit)? {
            Ok(done) => done,
            Err(error) => return Ok(Err(error)),
        };
        let sql = "UPDATE code SET used_by = ?2, used_at = ?3 WHERE hash = ?1 AND used_by IS NULL";
        self.statement(sql)?.execute(params![hash, account.0, at])?;
        Ok(Ok(MoneyDone { verdict: 1, credit: Some(done) }))
    }
}
