//! Orders and news of payments on PostgreSQL: replicas share them, so every step is decided in the
//! database, together with its ledger entry (`money.sql`).

use tokio_postgres::Row;
use tollgate_catalog::Money;

use super::PostgresEngine;
use super::records::SqlParam;
use crate::account::{Account, Credit, CreditKind};
use crate::error::StoreError;
use crate::ids::{AccountId, OrderId};
use crate::ledger::{self, EntryKind, bounds};
use crate::payment::plan::OrderStep;
use crate::payment::{NewOrder, OrderFilter, OrderLimits, PayEvent, PayOrder};

const EVENT: &str = "provider, id, kind, order_id, subject, received_at, tries, next_at";

impl PostgresEngine {
    /// As the verb numbers them.
    pub async fn create_order(&self, new: NewOrder, limits: OrderLimits) -> Result<(u64, PayOrder), StoreError> {
        let order = new.made(self.ids.order(), self.now())?;
        if self.account(order.account).await?.is_none() {
            return Err(StoreError::NotFound(order.account.to_string()));
        }
        let sql = "SELECT tollgate_new_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let (id, account, record) = (order.id.0, order.account.0, text(&order)?);
        let key = new.idem.map(|one| one.key_hash.to_vec());
        let print = new.idem.map(|one| one.fingerprint.to_vec());
        let (credit, open, hour) = (order.credit.nano(), i64::from(limits.open), i64::from(limits.hour));
        let values: [SqlParam<'_>; 13] = [
            &id.as_slice(),
            &account.as_slice(),
            &order.provider,
            &order.amount_minor,
            &order.currency,
            &credit,
            &order.created_at,
            &order.next_look_at,
            &key,
            &print,
            &record,
            &open,
            &hour,
        ];
        let rows = self.change(sql, &values).await?;
        let number: i64 = rows.first().ok_or_else(|| StoreError::broken("no answer"))?.try_get(0)?;
        Ok((number.unsigned_abs(), order))
    }

    pub async fn order_by_idem(
        &self,
        account: AccountId,
        key_hash: [u8; 32],
    ) -> Result<Option<(PayOrder, [u8; 32])>, StoreError> {
        let sql = "SELECT record, fingerprint FROM pay_order WHERE account_id = $1 AND idem = $2";
        let rows = self.rows(sql, &[&account.0.as_slice(), &key_hash.as_slice()]).await?;
        let read = |r: &Row| {
            let print = r.try_get::<_, &[u8]>(1)?.try_into().map_err(|_| StoreError::broken("not a hash"))?;
            Ok((order(r)?, print))
        };
        rows.first().map(read).transpose()
    }

    pub async fn order(&self, id: OrderId) -> Result<Option<PayOrder>, StoreError> {
        let rows = self.rows("SELECT record FROM pay_order WHERE id = $1", &[&id.0.as_slice()]).await?;
        rows.first().map(order).transpose()
    }

    /// By a session or a payment of its provider.
    pub async fn order_of(&self, provider: String, subject: String) -> Result<Option<PayOrder>, StoreError> {
        let sql = "SELECT record FROM pay_order WHERE provider = $1 AND session = $2 \
                   UNION ALL SELECT record FROM pay_order WHERE provider = $1 AND payment = $2 LIMIT 1";
        let rows = self.rows(sql, &[&provider, &subject]).await?;
        rows.first().map(order).transpose()
    }

    pub async fn orders(&self, filter: OrderFilter) -> Result<Vec<PayOrder>, StoreError> {
        let sql = "SELECT record FROM pay_order WHERE ($1::bytea IS NULL OR account_id = $1) \
                   AND ($2::text IS NULL OR state = $2) AND ($3::bytea IS NULL OR id < $3) ORDER BY id DESC LIMIT $4";
        let account = filter.account.map(|a| a.0.to_vec());
        let (state, before) = (filter.state.map(|s| s.name()), filter.before.map(|b| b.0.to_vec()));
        let rows = self.rows(sql, &[&account, &state, &before, &i64::from(filter.limit)]).await?;
        rows.iter().map(order).collect()
    }

    /// Orders of an account that owe something, or for which it was suspended.
    pub async fn orders_owing(&self, account: AccountId) -> Result<Vec<PayOrder>, StoreError> {
        let sql = "SELECT record FROM pay_order WHERE account_id = $1 AND (owed > 0 OR state = 'disputed' \
                   OR (record::jsonb ->> 'stops_account')::boolean) ORDER BY id LIMIT 1000";
        self.rows(sql, &[&account.0.as_slice()]).await?.iter().map(order).collect()
    }

    /// `false`: somebody else has changed the order meanwhile, or the money is not there any more.
    pub async fn order_step(&self, step: OrderStep) -> Result<bool, StoreError> {
        let (after, now) = (&step.after, self.now());
        let record = text(after)?;
        let credit = step.credit.as_ref();
        credit.map_or(Ok(()), |credit| credit.check(now))?;
        let kind = |credit: &Credit| match credit.kind {
            CreditKind::TopUp => EntryKind::TopUp as i16,
            _ => EntryKind::Adjust as i16,
        };
        let op = credit.map(|credit| ledger::credit_op_id(&credit.id).to_vec());
        let sql = "SELECT tollgate_order_step($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
        let values: [SqlParam<'_>; 19] = [
            &after.id.0.as_slice(),
            &after.version,
            &after.state.name(),
            &after.taken.nano(),
            &after.owed.nano(),
            &after.session,
            &after.payment,
            &after.next_look_at,
            &record,
            &op,
            &credit.map(kind),
            &after.account.0.as_slice(),
            &credit.map(|credit| credit.amount.nano()),
            &now,
            &credit.map(|credit| credit.id.as_str()),
            &credit.map(|credit| credit.actor.as_str()),
            &credit.map(|credit| credit.reason.as_str()),
            &bounds::MOST_IN_ACCOUNT.nano(),
            &self.clock.sure(),
        ];
        let rows = self.change(sql, &values).await?;
        let verdict: &str = rows.first().map_or(Ok(""), |r| r.try_get(0))?;
        match verdict {
            "done" => Ok(true),
            "stale" | "below_zero" => Ok(false),
            "above_most" => Err(bounds::account_full()),
            "no_account" => Err(StoreError::NotFound(after.account.to_string())),
            _ => Err(StoreError::Conflict("this id was used for another credit".into())),
        }
    }

    /// What an order's step goes by.
    pub async fn order_account(&self, id: AccountId) -> Result<Option<(Account, Money)>, StoreError> {
        Ok(self.account(id).await?.map(|account| (account.clone(), account.paid_available)))
    }

    pub async fn note_pay_event(&self, event: PayEvent) -> Result<bool, StoreError> {
        let sql = "INSERT INTO pay_event (provider, id, kind, order_id, subject, received_at, tries, next_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, 0, $7) ON CONFLICT DO NOTHING RETURNING 1";
        let order = event.order.map(|id| id.0.to_vec());
        let values: [SqlParam<'_>; 7] =
            [&event.provider, &event.id, &event.kind, &order, &event.subject, &event.received_at, &event.next_at];
        Ok(!self.change(sql, &values).await?.is_empty())
    }

    pub async fn take_pay_events(&self, now: i64, until: i64, limit: u32) -> Result<Vec<PayEvent>, StoreError> {
        let sql = format!(
            "UPDATE pay_event SET next_at = $2, tries = tries + 1 WHERE (provider, id) IN (SELECT provider, id FROM pay_event \
             WHERE next_at <= $1 ORDER BY next_at LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING {EVENT}"
        );
        self.change(&sql, &[&now, &until, &i64::from(limit)]).await?.iter().map(event).collect()
    }

    pub async fn end_pay_event(
        &self,
        provider: String,
        id: String,
        outcome: String,
        again_at: Option<i64>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE pay_event SET next_at = $3, outcome = $4, \
                   done_at = CASE WHEN $3::bigint IS NULL THEN $5::bigint END \
                   WHERE provider = $1 AND id = $2 AND done_at IS NULL";
        self.change(sql, &[&provider, &id, &again_at, &outcome, &self.now()]).await?;
        Ok(())
    }

    pub async fn take_orders(&self, now: i64, until: i64, limit: u32) -> Result<Vec<PayOrder>, StoreError> {
        let sql = "UPDATE pay_order SET next_look_at = $2 WHERE id IN (SELECT id FROM pay_order \
                   WHERE next_look_at <= $1 ORDER BY next_look_at LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING record";
        self.change(sql, &[&now, &until, &i64::from(limit)]).await?.iter().map(order).collect()
    }

    pub async fn forget_pay_events(&self, before: i64) -> Result<(), StoreError> {
        self.change("DELETE FROM pay_event WHERE done_at < $1", &[&before]).await?;
        Ok(())
    }
}

fn text(order: &PayOrder) -> Result<String, StoreError> {
    serde_json::to_string(order).map_err(StoreError::broken)
}

fn order(r: &Row) -> Result<PayOrder, StoreError> {
    serde_json::from_str(r.try_get(0)?).map_err(StoreError::broken)
}

fn event(r: &Row) -> Result<PayEvent, StoreError> {
    Ok(PayEvent {
        provider: r.try_get(0)?,
        id: r.try_get(1)?,
        kind: r.try_get(2)?,
        order: r.try_get::<_, Option<&[u8]>>(3)?.and_then(OrderId::from_slice),
        subject: r.try_get(4)?,
        received_at: r.try_get(5)?,
        tries: u32::try_from(r.try_get::<_, i64>(6)?).unwrap_or_default(),
        next_at: r.try_get::<_, Option<i64>>(7)?.unwrap_or_default(),
    })
}
