//! Redemption codes on PostgreSQL: one function takes a code and credits it.

use tokio_postgres::Row;
use tollgate_catalog::Money;

use super::PostgresEngine;
use super::records::SqlParam;
use crate::account::{Account, Pot};
use crate::code_batch::{self, CodeBatch, NewCodeBatch};
use crate::error::StoreError;
use crate::ids::{AccountId, BatchId};
use crate::ledger::{self, bounds};
use crate::operator::Attribution;

const BATCH: &str = "b.id, b.amount, b.trial, b.count, b.per_account, b.ends_at, b.note, b.created_at, b.actor, b.revoked_at, \
     (SELECT count(*) FROM code c WHERE c.batch_id = b.id AND c.used_by IS NOT NULL)";

impl PostgresEngine {
    pub async fn create_codes(&self, new: NewCodeBatch) -> Result<CodeBatch, StoreError> {
        let b = new.made(self.ids.batch(), self.now())?;
        let sql = "WITH made AS (INSERT INTO code_batch (id, amount, trial, count, per_account, ends_at, note, created_at, actor) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)), \
                   codes AS (INSERT INTO code (hash, batch_id) SELECT h, $1 FROM unnest($10::bytea[]) h) \
                   INSERT INTO operator_event (at, actor, action, subject, reason, detail) \
                   VALUES ($8, $9, 'codes.create', $11, $12, $13)";
        let hashes: Vec<&[u8]> = new.hashes.iter().map(|hash| hash.as_slice()).collect();
        let (subject, detail) = (b.id.to_string(), format!("{} codes of {} USD", b.count, b.amount));
        let (amount, trial) = (b.amount.nano(), b.pot == Pot::Trial);
        let (count, per_account) = (i64::from(b.count), i64::from(b.per_account));
        let values: [SqlParam<'_>; 13] = [
            &b.id.0.as_slice(),
            &amount,
            &trial,
            &count,
            &per_account,
            &b.ends_at,
            &b.note,
            &b.created_at,
            &b.actor,
            &hashes,
            &subject,
            &new.reason,
            &detail,
        ];
        self.change(sql, &values).await?;
        Ok(b)
    }

    pub async fn code_batches(&self, before: Option<BatchId>, limit: u32) -> Result<Vec<CodeBatch>, StoreError> {
        let sql = format!(
            "SELECT {BATCH} FROM code_batch b WHERE ($1::bytea IS NULL OR b.id < $1) ORDER BY b.id DESC LIMIT $2"
        );
        let before = before.map(|id| id.0.to_vec());
        self.rows(&sql, &[&before, &i64::from(limit)]).await?.iter().map(batch).collect()
    }

    pub async fn revoke_codes(&self, id: BatchId, done: Attribution) -> Result<Option<CodeBatch>, StoreError> {
        let sql = "WITH changed AS (UPDATE code_batch SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING 1) \
                   INSERT INTO operator_event (at, actor, action, subject, reason, detail) \
                   SELECT $2, $3, 'codes.revoke', $4, $5, '' FROM changed";
        let subject = id.to_string();
        self.change(sql, &[&id.0.as_slice(), &self.now(), &done.actor, &subject, &done.reason]).await?;
        let sql = format!("SELECT {BATCH} FROM code_batch b WHERE b.id = $1");
        self.rows(&sql, &[&id.0.as_slice()]).await?.first().map(batch).transpose()
    }

    /// As `code_batch::refused` numbers them.
    pub async fn redeem(
        &self,
        hash: [u8; 32],
        account: AccountId,
        actor: String,
    ) -> Result<(u64, Option<(CodeBatch, Account)>), StoreError> {
        let sql = format!("SELECT {BATCH} FROM code k JOIN code_batch b ON b.id = k.batch_id WHERE k.hash = $1");
        let rows = self.rows(&sql, &[&hash.as_slice()]).await?;
        let Some(batch) = rows.first().map(batch).transpose()? else { return Ok((0, None)) };
        let credit = code_batch::credit_of(&batch, &hash, account, actor);
        let now = self.now();
        credit.check(now)?;
        let op = ledger::credit_op_id(&credit.id);
        let sql = "SELECT tollgate_redeem($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let values: [SqlParam<'_>; 9] = [
            &hash.as_slice(),
            &account.0.as_slice(),
            &now,
            &op.as_slice(),
            &credit.id,
            &credit.actor,
            &credit.reason,
            &bounds::MOST_IN_ACCOUNT.nano(),
            &self.clock.sure(),
        ];
        let rows = self.change(sql, &values).await?;
        let verdict: &str = rows.first().map_or(Ok(""), |r| r.try_get(0))?;
        let number = match verdict {
            "done" => 1,
            "used" => 2,
            "enough" => 3,
            "unknown" => 0,
            "above_most" => return Err(bounds::account_full()),
            "no_account" => return Err(StoreError::NotFound(account.to_string())),
            _ => return Err(StoreError::Conflict("this id was used for another credit".into())),
        };
        let account = self.account(account).await?.ok_or_else(|| StoreError::broken("an account is gone"))?;
        Ok((number, Some((batch, account))))
    }
}

fn batch(r: &Row) -> Result<CodeBatch, StoreError> {
    let number = |at: usize| Ok::<_, StoreError>(u32::try_from(r.try_get::<_, i64>(at)?).unwrap_or_default());
    Ok(CodeBatch {
        id: r.try_get::<_, &[u8]>(0).map(BatchId::from_slice)?.ok_or_else(|| StoreError::broken("not an id"))?,
        amount: Money::from_nano(r.try_get(1)?),
        pot: if r.try_get(2)? { Pot::Trial } else { Pot::Paid },
        count: number(3)?,
        per_account: number(4)?,
        ends_at: r.try_get(5)?,
        note: r.try_get(6)?,
        created_at: r.try_get(7)?,
        actor: r.try_get(8)?,
        revoked_at: r.try_get(9)?,
        used: number(10)?,
    })
}
