//! Orders and news of payments on the embedded engine: written by the one writer, an order's step
//! together with its ledger entry.

use rusqlite::{OptionalExtension, Row, params};
use tollgate_catalog::Money;

use super::SqliteEngine;
use super::writer::apply::Apply;
use super::writer::ops::{CreditDone, CreditOp, Op};
use crate::account::{Account, Credit};
use crate::error::StoreError;
use crate::ids::{AccountId, OrderId};
use crate::ledger;
use crate::payment::plan::OrderStep;
use crate::payment::{HOUR_MS, NewOrder, OrderFilter, OrderIdem, OrderLimits, PayEvent, PayOrder};
use crate::sqlite::codes::CodeOp;

/// What the writer is asked to write.
pub(super) enum MoneyOp {
    NewOrder {
        order: Box<PayOrder>,
        idem: Option<OrderIdem>,
        limits: OrderLimits,
    },
    /// The order afterwards, and what enters the ledger with it.
    Step {
        after: Box<PayOrder>,
        credit: Option<CreditOp>,
    },
    Event(PayEvent),
    /// Taken by somebody until then, where nobody else was faster.
    TakeEvent {
        provider: String,
        id: String,
        seen: i64,
        until: i64,
    },
    EndEvent {
        provider: String,
        id: String,
        outcome: String,
        again_at: Option<i64>,
        at: i64,
    },
    TakeOrder {
        id: OrderId,
        seen: i64,
        until: i64,
    },
    ForgetEvents(i64),
    Code(CodeOp),
}

impl MoneyOp {
    /// The credit that the books in memory must hear of.
    pub fn credit(&self) -> Option<&CreditOp> {
        match self {
            Self::Step { credit, .. } => credit.as_ref(),
            Self::Code(CodeOp::Redeem { credit, .. }) => Some(credit),
            _ => None,
        }
    }
}

/// What became of it: a number that depends on what was asked, and the credit.
#[derive(Clone, Debug, Default)]
pub(in crate::sqlite) struct MoneyDone {
    pub verdict: u64,
    pub credit: Option<CreditDone>,
}

impl MoneyDone {
    pub fn of(verdict: u64) -> Self {
        Self { verdict, credit: None }
    }
}

const EVENT: &str = "provider, id, kind, order_id, subject, received_at, tries, next_at";

impl SqliteEngine {
    pub(super) async fn money(&self, op: MoneyOp) -> Result<MoneyDone, StoreError> {
        self.ask(|reply| Op::Money(Box::new(op), reply)).await
    }

    /// As the verb numbers them.
    pub async fn create_order(&self, new: NewOrder, limits: OrderLimits) -> Result<(u64, PayOrder), StoreError> {
        let order = new.made(self.ids.order(), self.now())?;
        if !self.load_account(order.account).await? {
            return Err(StoreError::NotFound(order.account.to_string()));
        }
        let (made, idem) = (order.clone(), new.idem);
        let op = MoneyOp::NewOrder { order: Box::new(order), idem, limits };
        let done = self.money(op).await?;
        Ok((done.verdict, made))
    }

    pub async fn order_by_idem(
        &self,
        account: AccountId,
        key_hash: [u8; 32],
    ) -> Result<Option<(PayOrder, [u8; 32])>, StoreError> {
        let sql = "SELECT record, fingerprint FROM pay_order WHERE account_id = ?1 AND idem = ?2";
        let read = |r: &Row<'_>| Ok((r.get::<_, String>(0)?, r.get::<_, [u8; 32]>(1)?));
        let found = self
            .readers
            .read(move |c| Ok(c.prepare_cached(sql)?.query_row(params![account.0, key_hash], read).optional()?))
            .await?;
        found.map(|(text, print)| Ok((of_text(&text)?, print))).transpose()
    }

    pub async fn order(&self, id: OrderId) -> Result<Option<PayOrder>, StoreError> {
        self.order_where("id = ?1 AND ?2 IS NOT NULL", id.0.to_vec(), String::new()).await
    }

    /// By a session or a payment of its provider.
    pub async fn order_of(&self, provider: String, subject: String) -> Result<Option<PayOrder>, StoreError> {
        let sql = "SELECT record FROM pay_order WHERE provider = ?1 AND session = ?2 \
                   UNION ALL SELECT record FROM pay_order WHERE provider = ?1 AND payment = ?2 LIMIT 1";
        let found = self
            .readers
            .read(move |c| {
                Ok(c.prepare_cached(sql)?
                    .query_row(params![provider, subject], |r| r.get::<_, String>(0))
                    .optional()?)
            })
            .await?;
        found.map(|text| of_text(&text)).transpose()
    }

    async fn order_where(&self, which: &str, id: Vec<u8>, rest: String) -> Result<Option<PayOrder>, StoreError> {
        let sql = format!("SELECT record FROM pay_order WHERE {which}");
        let found = self
            .readers
            .read(move |c| {
                Ok(c.prepare_cached(&sql)?.query_row(params![id, rest], |r| r.get::<_, String>(0)).optional()?)
            })
            .await?;
        found.map(|text| of_text(&text)).transpose()
    }

    pub async fn orders(&self, filter: OrderFilter) -> Result<Vec<PayOrder>, StoreError> {
        let sql = "SELECT record FROM pay_order WHERE (?1 IS NULL OR account_id = ?1) AND (?2 IS NULL OR state = ?2) \
                   AND (?3 IS NULL OR id < ?3) ORDER BY id DESC LIMIT ?4";
        let (account, state) = (filter.account.map(|a| a.0), filter.state.map(|s| s.name()));
        let before = filter.before.map(|b| b.0);
        let limit = filter.limit;
        let found = self
            .readers
            .read(move |c| {
                let mut statement = c.prepare_cached(sql)?;
                let rows = statement.query_map(params![account, state, before, limit], |r| r.get::<_, String>(0))?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })
            .await?;
        found.iter().map(|text| of_text(text)).collect()
    }

    /// Orders of an account that owe something, or for which it was suspended.
    pub async fn orders_owing(&self, account: AccountId) -> Result<Vec<PayOrder>, StoreError> {
        let sql = "SELECT record FROM pay_order WHERE account_id = ?1 AND (owed > 0 OR state = 'disputed' \
                   OR json_extract(record, '$.stops_account')) ORDER BY id LIMIT 1000";
        let found = self
            .readers
            .read(move |c| {
                let mut statement = c.prepare_cached(sql)?;
                Ok(statement.query_map([account.0], |r| r.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?)
            })
            .await?;
        found.iter().map(|text| of_text(text)).collect()
    }

    /// `false`: somebody else has changed the order meanwhile, or the money is not there any more.
    pub async fn order_step(&self, step: OrderStep) -> Result<bool, StoreError> {
        let credit = match step.credit {
            None => None,
            Some(credit) => match self.order_credit(credit).await? {
                Some(op) => Some(op),
                None => return Ok(false),
            },
        };
        let done = self.money(MoneyOp::Step { after: Box::new(step.after), credit }).await?;
        Ok(done.verdict == 1)
    }

    async fn order_credit(&self, credit: Credit) -> Result<Option<CreditOp>, StoreError> {
        let now = self.now();
        credit.check(now)?;
        if !self.load_account(credit.account).await? {
            return Err(StoreError::NotFound(credit.account.to_string()));
        }
        match self.take_in_advance(credit, now, None)? {
            Ok(op) => Ok(Some(op)),
            // Taken before, by a step whose answer was lost.
            Err(op) if self.readers.entry_exists(ledger::credit_op_id(&op.credit.id)).await? => Ok(Some(op)),
            Err(_) => Ok(None),
        }
    }

    /// What an order's step goes by.
    pub async fn order_account(&self, id: AccountId) -> Result<Option<(Account, Money)>, StoreError> {
        self.load_account(id).await?;
        Ok(self.account(id).await?.map(|account| (account.clone(), account.paid_available)))
    }

    pub async fn note_pay_event(&self, event: PayEvent) -> Result<bool, StoreError> {
        Ok(self.money(MoneyOp::Event(event)).await?.verdict == 1)
    }

    pub async fn take_pay_events(&self, now: i64, until: i64, limit: u32) -> Result<Vec<PayEvent>, StoreError> {
        let sql = format!("SELECT {EVENT} FROM pay_event WHERE next_at <= ?1 ORDER BY next_at LIMIT ?2");
        let due: Vec<PayEvent> = self
            .readers
            .read(move |c| {
                let mut statement = c.prepare_cached(&sql)?;
                Ok(statement.query_map(params![now, limit], event)?.collect::<Result<_, _>>()?)
            })
            .await?;
        let mut taken = Vec::new();
        for one in due {
            let (provider, id, seen) = (one.provider.clone(), one.id.clone(), one.next_at);
            if self.money(MoneyOp::TakeEvent { provider, id, seen, until }).await?.verdict == 1 {
                taken.push(one);
            }
        }
        Ok(taken)
    }

    pub async fn end_pay_event(
        &self,
        provider: String,
        id: String,
        outcome: String,
        again_at: Option<i64>,
    ) -> Result<(), StoreError> {
        let at = self.now();
        self.money(MoneyOp::EndEvent { provider, id, outcome, again_at, at }).await.map(drop)
    }

    pub async fn take_orders(&self, now: i64, until: i64, limit: u32) -> Result<Vec<PayOrder>, StoreError> {
        let sql = "SELECT id, next_look_at FROM pay_order WHERE next_look_at <= ?1 ORDER BY next_look_at LIMIT ?2";
        let due: Vec<(OrderId, i64)> = self
            .readers
            .read(move |c| {
                let mut statement = c.prepare_cached(sql)?;
                let read = |r: &Row<'_>| Ok((OrderId(r.get(0)?), r.get(1)?));
                Ok(statement.query_map(params![now, limit], read)?.collect::<Result<_, _>>()?)
            })
            .await?;
        let mut taken = Vec::new();
        for (id, seen) in due {
            if self.money(MoneyOp::TakeOrder { id, seen, until }).await?.verdict == 1 {
                taken.extend(self.order(id).await?);
            }
        }
        Ok(taken)
    }

    pub async fn forget_pay_events(&self, before: i64) -> Result<(), StoreError> {
        self.money(MoneyOp::ForgetEvents(before)).await.map(drop)
    }
}

fn of_text(text: &str) -> Result<PayOrder, StoreError> {
    serde_json::from_str(text).map_err(StoreError::broken)
}

fn event(r: &Row<'_>) -> rusqlite::Result<PayEvent> {
    Ok(PayEvent {
        provider: r.get(0)?,
        id: r.get(1)?,
        kind: r.get(2)?,
        order: r.get::<_, Option<[u8; 16]>>(3)?.map(OrderId),
        subject: r.get(4)?,
        received_at: r.get(5)?,
        tries: r.get(6)?,
        next_at: r.get(7)?,
    })
}

impl Apply<'_> {
    pub(super) fn money(&mut self, op: &MoneyOp) -> rusqlite::Result<Result<MoneyDone, StoreError>> {
        let changed = match op {
            MoneyOp::NewOrder { order, idem, limits } => return self.new_order(order, *idem, *limits).map(Ok),
            MoneyOp::Step { after, credit } => return self.order_step(after, credit.as_ref()),
            MoneyOp::Code(code) => return self.code(code),
            MoneyOp::Event(e) => {
                let sql = "INSERT OR IGNORE INTO pay_event (provider, id, kind, order_id, subject, received_at, tries, next_at) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)";
                let order = e.order.map(|id| id.0);
                let row = params![e.provider, e.id, e.kind, order, e.subject, e.received_at, e.next_at];
                self.statement(sql)?.execute(row)?
            }
            MoneyOp::TakeEvent { provider, id, seen, until } => {
                let sql = "UPDATE pay_event SET next_at = ?4, tries = tries + 1 \
                           WHERE provider = ?1 AND id = ?2 AND next_at = ?3";
                self.statement(sql)?.execute(params![provider, id, seen, until])?
            }
            MoneyOp::EndEvent { provider, id, outcome, again_at, at } => {
                let sql = "UPDATE pay_event SET next_at = ?3, outcome = ?4, \
                           done_at = CASE WHEN ?3 IS NULL THEN ?5 END WHERE provider = ?1 AND id = ?2 AND done_at IS NULL";
                self.statement(sql)?.execute(params![provider, id, again_at, outcome, at])?
            }
            MoneyOp::TakeOrder { id, seen, until } => {
                let sql = "UPDATE pay_order SET next_look_at = ?3 WHERE id = ?1 AND next_look_at = ?2";
                self.statement(sql)?.execute(params![id.0, seen, until])?
            }
            MoneyOp::ForgetEvents(before) => {
                self.statement("DELETE FROM pay_event WHERE done_at < ?1")?.execute([before])?
            }
        };
        Ok(Ok(MoneyDone::of(changed as u64)))
    }

    /// 1: made; 2: the key is known; 3: too many open; 4: too many in an hour.
    fn new_order(
        &mut self,
        order: &PayOrder,
        idem: Option<OrderIdem>,
        limits: OrderLimits,
    ) -> rusqlite::Result<MoneyDone> {
        if let Some(idem) = idem {
            let sql = "SELECT EXISTS (SELECT 1 FROM pay_order WHERE account_id = ?1 AND idem = ?2)";
            let known =
                self.statement(sql)?.query_row(params![order.account.0, idem.key_hash], |r| r.get::<_, bool>(0))?;
            if known {
                return Ok(MoneyDone::of(2));
            }
        }
        let sql = "SELECT coalesce(sum(state IN ('new', 'pending') AND json_extract(record, '$.expires_at_ms') > ?2), 0), \
                   coalesce(sum(created_at > ?2 - ?3), 0) FROM pay_order WHERE account_id = ?1";
        let count = |r: &Row<'_>| Ok((r.get::<_, u32>(0)?, r.get::<_, u32>(1)?));
        let (open, hour) =
            self.statement(sql)?.query_row(params![order.account.0, order.created_at, HOUR_MS], count)?;
        if open >= limits.open {
            return Ok(MoneyDone::of(3));
        }
        if hour >= limits.hour {
            return Ok(MoneyDone::of(4));
        }
        let sql = "INSERT INTO pay_order (id, account_id, provider, state, amount_minor, currency, credit, taken, owed, \
                   created_at, next_look_at, idem, fingerprint, version, record) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, ?8, ?9, ?10, ?11, ?12, ?13)";
        self.statement(sql)?.execute(params![
            order.id.0,
            order.account.0,
            order.provider,
            order.state.name(),
            order.amount_minor,
            order.currency,
            order.credit.nano(),
            order.created_at,
            order.next_look_at,
            idem.map(|one| one.key_hash),
            idem.map(|one| one.fingerprint),
            order.version,
            text(order)?,
        ])?;
        Ok(MoneyDone::of(1))
    }

    /// 1: done; 0: somebody else has changed it meanwhile, and nothing was done.
    fn order_step(
        &mut self,
        after: &PayOrder,
        credit: Option<&CreditOp>,
    ) -> rusqlite::Result<Result<MoneyDone, StoreError>> {
        let sql = "SELECT EXISTS (SELECT 1 FROM pay_order WHERE id = ?1 AND version = ?2)";
        let current =
            self.statement(sql)?.query_row(params![after.id.0, after.version - 1], |r| r.get::<_, bool>(0))?;
        if !current {
            return Ok(Ok(MoneyDone::of(0)));
        }
        let credited = match credit.map(|op| self.credit(op)).transpose()? {
            Some(Err(error)) => return Ok(Err(error)),
            Some(Ok(done)) => Some(done),
            None => None,
        };
        let sql = "UPDATE pay_order SET state = ?2, taken = ?3, owed = ?4, session = ?5, payment = ?6, \
                   next_look_at = ?7, version = ?8, record = ?9 WHERE id = ?1";
        self.statement(sql)?.execute(params![
            after.id.0,
            after.state.name(),
            after.taken.nano(),
            after.owed.nano(),
            after.session,
            after.payment,
            after.next_look_at,
            after.version,
            text(after)?,
        ])?;
        Ok(Ok(MoneyDone { verdict: 1, credit: credited }))
    }
}

fn text(order: &PayOrder) -> rusqlite::Result<String> {
    serde_json::to_string(order).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}
