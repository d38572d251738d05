//! Limits, trial credit that expires, and changes of balance that were not calls, on PostgreSQL.

use tollgate_catalog::Money;

use super::PostgresEngine;
use super::rows::id;
use crate::account::{Account, BalanceEvent, Charged, EventPage, Expiring, webhook_detail};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId};
use crate::ledger::{self, EntryKind, op_id};
use crate::operator::{Attribution, AuditRow};

impl PostgresEngine {
    pub async fn set_webhook(
        &self,
        account: AccountId,
        url: Option<String>,
        done: Attribution,
    ) -> Result<Option<Account>, StoreError> {
        let Some(before) = self.account(account).await? else { return Ok(None) };
        let sql = "UPDATE account SET webhook_url = $2, changed_at = greatest(tollgate_now(), changed_at + 1) \
                   WHERE id = $1 RETURNING id";
        let row = AuditRow::new(self.now(), &done, "account.webhook", &account.to_string(), Some(account));
        let row = row.map(|row| row.detail(&webhook_detail(before.webhook_url.as_deref(), url.as_deref())));
        self.noted(sql, &[&account.0.as_slice(), &url], row).await?;
        self.account(account).await
    }

    /// Expires what is due in all accounts. Every replica may do this at any time: an account's row
    /// is locked first.
    pub(super) async fn lapse_due(&self) -> Result<u64, StoreError> {
        let sql = "SELECT DISTINCT account_id FROM trial_lot WHERE expires_at <= $1 AND free > 0 LIMIT 1000";
        let mut lapsed = 0;
        for row in &self.rows(sql, &[&self.clock.sure()]).await? {
            lapsed += self.lapse(AccountId(id(row, 0)?)).await?;
        }
        Ok(lapsed)
    }

    async fn lapse(&self, account: AccountId) -> Result<u64, StoreError> {
        let (now, sure) = (self.now(), self.clock.sure());
        let rows =
            self.rows("SELECT tollgate_lapse_account($1, $2, $3)", &[&account.0.as_slice(), &now, &sure]).await?;
        let count: Option<i64> = rows.first().map_or(Ok(None), |r| r.try_get(0))?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    pub async fn expiring(&self, account: AccountId) -> Result<Vec<Expiring>, StoreError> {
        let sql = "SELECT reference, expires_at, free, held FROM trial_lot WHERE account_id = $1 AND free + held > 0 \
                   ORDER BY expires_at, credit";
        let now = self.clock.sure();
        let mut found = self.rows(sql, &[&account.0.as_slice()]).await?;
        if found.first().is_some_and(|r| r.try_get::<_, i64>(1).is_ok_and(|expires_at| expires_at <= now)) {
            match self.lapse(account).await {
                Ok(_) => found = self.rows(sql, &[&account.0.as_slice()]).await?,
                // A database that cannot be written stays readable.
                Err(error) => tracing::warn!(%error, "credit past its time is still to be taken away"),
            }
        }
        let expiring = found.iter().map(|r| {
            let (expires_at, free) = (r.try_get(1)?, r.try_get(2)?);
            Ok(Expiring {
                credit: r.try_get(0)?,
                expires_at,
                // What is past its time is nobody's any more, taken away or not.
                available: Money::from_nano(if expires_at > now { free } else { 0 }),
                held: Money::from_nano(r.try_get(3)?),
            })
        });
        let left = |one: &Result<Expiring, StoreError>| {
            one.as_ref().map_or(true, |one| !one.available.is_zero() || !one.held.is_zero())
        };
        expiring.filter(left).collect()
    }

    pub async fn events(&self, account: AccountId, page: EventPage) -> Result<Vec<BalanceEvent>, StoreError> {
        let sql = "SELECT seq, at, kind, trial, paid, reference, call_id, expires_at, actor, reason FROM entry \
                   WHERE account_id = $1 AND seq < $2 AND kind BETWEEN 6 AND 9 ORDER BY seq DESC LIMIT $3";
        let before = page.before.unwrap_or(i64::MAX);
        let rows = self.rows(sql, &[&account.0.as_slice(), &before, &i64::from(page.limit)]).await?;
        let events = rows.iter().map(|r| {
            let kind = EntryKind::from_code(r.try_get::<_, i16>(2)?.into()).unwrap_or(EntryKind::Adjust);
            let call: Option<&[u8]> = r.try_get(6)?;
            let (trial, reference) = (r.try_get(3)?, r.try_get::<_, Option<String>>(5)?.unwrap_or_default());
            Ok(BalanceEvent {
                seq: r.try_get(0)?,
                at: r.try_get(1)?,
                kind: kind.event_name(trial).to_owned(),
                trial: Money::from_nano(trial),
                paid: Money::from_nano(r.try_get(4)?),
                reference,
                call: call.filter(|_| kind == EntryKind::Refund).and_then(CallId::from_slice),
                expires_at: r.try_get(7)?,
                actor: r.try_get::<_, Option<String>>(8)?.unwrap_or_default(),
                reason: r.try_get::<_, Option<String>>(9)?.unwrap_or_default(),
            })
        });
        events.collect()
    }

    pub async fn charged(&self, call: CallId) -> Result<Option<Charged>, StoreError> {
        self.catch_up().await;
        // The second is the settlement of a call that was given up and came back.
        let ids = [ledger::CLASS_TERMINAL, ledger::CLASS_TERMINAL_AGAIN].map(|class| op_id(&call.0, class).to_vec());
        let sql = "SELECT account_id, take_trial + take_paid FROM entry WHERE op_id = ANY ($1) AND kind = 1";
        let rows = self.rows(sql, &[&ids.as_slice()]).await?;
        let charged = rows
            .first()
            .map(|r| Ok(Charged { account: AccountId(id(r, 0)?), captured: Money::from_nano(r.try_get(1)?) }));
        charged.transpose()
    }
}
