//! The verbs of money that customers pay in: orders, news of payments, and codes.

use super::{Engine, Store};
use crate::code_batch::{self, CodeBatch, CodeRefused, NewCodeBatch, Redeemed};
use crate::error::StoreError;
use crate::ids::{AccountId, BatchId, OrderId};
use crate::operator::Attribution;
use crate::payment::plan::{OrderStep, OrderTruth};
use crate::payment::{
    NewOrder, ORDERS_PAGE, OrderFilter, OrderLimits, OrderMade, OrderSettled, OrderState, PayEvent, PayOrder,
};
use tollgate_catalog::Money;

/// How often a step is planned again because somebody else was faster.
const TRIES: u32 = 32;

impl Store {
    /// Writes an order down. Both limits are exact over all replicas.
    pub async fn create_order(&self, new: NewOrder, limits: OrderLimits) -> Result<OrderMade, StoreError> {
        let (account, idem) = (new.account, new.idem);
        let (number, order) = on_engine!(self, e => e.create_order(new, limits).await)?;
        match number {
            1 => Ok(OrderMade::Made(Box::new(order))),
            3 => Ok(OrderMade::TooManyOpen),
            4 => Ok(OrderMade::TooManyInAnHour),
            _ => {
                let idem = idem.ok_or_else(|| StoreError::broken("an order without a key was known"))?;
                let found = on_engine!(self, e => e.order_by_idem(account, idem.key_hash).await)?;
                let (order, print) = found.ok_or_else(|| StoreError::broken("an order is gone"))?;
                let same = print == idem.fingerprint;
                Ok(if same { OrderMade::Before(Box::new(order)) } else { OrderMade::OtherWish })
            }
        }
    }

    pub async fn order(&self, id: OrderId) -> Result<Option<PayOrder>, StoreError> {
        on_engine!(self, e => e.order(id).await)
    }

    /// The order that a session or a payment of its provider belongs to.
    pub async fn order_of(&self, provider: &str, subject: &str) -> Result<Option<PayOrder>, StoreError> {
        on_engine!(self, e => e.order_of(provider.to_owned(), subject.to_owned()).await)
    }

    pub async fn orders(&self, filter: OrderFilter) -> Result<Vec<PayOrder>, StoreError> {
        let limit = filter.limit.clamp(1, ORDERS_PAGE + 1);
        on_engine!(self, e => e.orders(OrderFilter { limit, ..filter }).await)
    }

    /// Orders of an account that owe something, are disputed, or for which it was suspended.
    pub async fn orders_owing(&self, account: AccountId) -> Result<Vec<PayOrder>, StoreError> {
        on_engine!(self, e => e.orders_owing(account).await)
    }

    /// Changes what has nothing to do with the ledger. The order as it is then, whoever changed it.
    pub async fn change_order(&self, id: OrderId, change: impl Fn(&mut PayOrder)) -> Result<PayOrder, StoreError> {
        for _ in 0..TRIES {
            let before = self.order(id).await?.ok_or_else(|| StoreError::NotFound(id.to_string()))?;
            let mut after = before.clone();
            change(&mut after);
            if after == before {
                return Ok(before);
            }
            (after.version, after.changed_at) = (before.version + 1, on_engine!(self, e => e.now()));
            let step = OrderStep { after: after.clone(), credit: None };
            if on_engine!(self, e => e.order_step(step).await)? {
                return Ok(after);
            }
        }
        Err(StoreError::away("others keep changing this order"))
    }

    /// Where the customer pays.
    pub async fn order_opened(&self, id: OrderId, session: &str, url: &str) -> Result<PayOrder, StoreError> {
        self.change_order(id, |order| {
            if order.session.is_none() {
                (order.session, order.url) = (Some(session.to_owned()), Some(url.to_owned()));
            }
            if order.state == OrderState::New {
                order.state = OrderState::Pending;
            }
        })
        .await
    }

    /// What is still owed for an order is let go of.
    pub async fn forgive_order(&self, id: OrderId, done: Attribution) -> Result<PayOrder, StoreError> {
        let after = self
            .change_order(id, |order| {
                let sum = order.forgiven.checked_add(order.owed);
                (order.forgiven, order.owed) = (sum.unwrap_or(order.forgiven), Money::ZERO);
                order.note = format!("forgiven by {}: {}", done.actor, done.reason);
                // The account is reopened at the next look.
                order.next_look_at = Some(order.created_at);
            })
            .await?;
        Ok(after)
    }

    /// Nothing new was heard: looked at again later.
    pub async fn order_looked_at(&self, id: OrderId) -> Result<PayOrder, StoreError> {
        let now = on_engine!(self, e => e.now());
        self.change_order(id, |order| {
            order.looks = order.looks.saturating_add(1);
            order.next_look_at = order.look_after(now);
        })
        .await
    }

    /// Brings an order, and the ledger, in line with what its payment provider says. Repeating it
    /// changes nothing; one that was interrupted goes on. `seen` is the order as it was before the
    /// payment provider was asked. `None`: somebody else has changed it since, perhaps by newer
    /// words; it has to be asked again.
    pub async fn settle_order(&self, seen: &PayOrder, truth: &OrderTruth) -> Result<Option<OrderSettled>, StoreError> {
        let (mut changed, mut credited) = (false, false);
        let (id, mut version) = (seen.id, seen.version);
        for _ in 0..TRIES {
            let order = self.order(id).await?.ok_or_else(|| StoreError::NotFound(id.to_string()))?;
            if order.version != version {
                return Ok(None);
            }
            let found = on_engine!(self, e => e.order_account(order.account).await)?;
            let (account, available) = found.ok_or_else(|| StoreError::broken("an account is gone"))?;
            let now = on_engine!(self, e => e.now());
            let Some(step) = order.next_step(truth, available, now) else {
                return Ok(Some(OrderSettled { order, account, changed, credited }));
            };
            let next = step.after.version;
            let first = order.credited_at.is_none() && step.after.credited_at.is_some();
            match on_engine!(self, e => e.order_step(step).await) {
                Ok(true) => (changed, credited, version) = (true, credited || first, next),
                // Not changed by anybody: the money was spent meanwhile, and the rest is owed.
                Ok(false) => {}
                // The account is full: paid, and to be credited once there is room.
                Err(StoreError::Conflict(why)) if first => {
                    let note = why.clone();
                    self.change_order(id, move |order| {
                        (order.state, order.note) = (OrderState::Paid, note.clone());
                    })
                    .await?;
                    return Err(StoreError::Conflict(why));
                }
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::away("others keep changing this order"))
    }

    /// Writes news down. `false`: they were heard before.
    pub async fn note_pay_event(&self, event: PayEvent) -> Result<bool, StoreError> {
        on_engine!(self, e => e.note_pay_event(event).await)
    }

    /// News that are to be looked at, each taken for so long.
    pub async fn take_pay_events(&self, lease_ms: i64, limit: u32) -> Result<Vec<PayEvent>, StoreError> {
        let now = on_engine!(self, e => e.now());
        on_engine!(self, e => e.take_pay_events(now, now.saturating_add(lease_ms), limit).await)
    }

    /// What became of them; `again_at`: they are looked at once more.
    pub async fn end_pay_event(
        &self,
        event: &PayEvent,
        outcome: &str,
        again_at: Option<i64>,
    ) -> Result<(), StoreError> {
        let (provider, id) = (event.provider.clone(), event.id.clone());
        on_engine!(self, e => e.end_pay_event(provider, id, outcome.to_owned(), again_at).await)
    }

    /// Orders whose payment provider is to be asked, each taken for so long.
    pub async fn take_orders(&self, lease_ms: i64, limit: u32) -> Result<Vec<PayOrder>, StoreError> {
        let now = on_engine!(self, e => e.now());
        on_engine!(self, e => e.take_orders(now, now.saturating_add(lease_ms), limit).await)
    }

    /// Forgets news that were dealt with before this time.
    pub async fn forget_pay_events(&self, before: i64) -> Result<(), StoreError> {
        on_engine!(self, e => e.forget_pay_events(before).await)
    }

    /// Makes codes; the caller made them and shows them once.
    pub async fn create_codes(&self, new: NewCodeBatch) -> Result<CodeBatch, StoreError> {
        on_engine!(self, e => e.create_codes(new).await)
    }

    /// Batches, newest first.
    pub async fn code_batches(&self, before: Option<BatchId>, limit: u32) -> Result<Vec<CodeBatch>, StoreError> {
        on_engine!(self, e => e.code_batches(before, limit).await)
    }

    /// What was not used of a batch works no more. `None`: no such batch.
    pub async fn revoke_codes(&self, id: BatchId, done: Attribution) -> Result<Option<CodeBatch>, StoreError> {
        on_engine!(self, e => e.revoke_codes(id, done).await)
    }

    /// Uses a code: one credit, whoever else tries it at the same moment.
    pub async fn redeem(
        &self,
        hash: [u8; 32],
        account: AccountId,
        actor: String,
    ) -> Result<Result<Redeemed, CodeRefused>, StoreError> {
        let (number, found) = on_engine!(self, e => e.redeem(hash, account, actor).await)?;
        Ok(match (code_batch::refused(number), found) {
            (None, Some((batch, account))) => Ok(Redeemed { amount: batch.amount, pot: batch.pot, account }),
            (refused, _) => Err(refused.unwrap_or(CodeRefused::Unknown)),
        })
    }
}
