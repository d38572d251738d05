//! Accounts that owe what was refunded or disputed are suspended, and reopened when nothing stands
//! in the way any more. Only what was stopped here is reopened here.

use super::PaymentDesk;
use tollgate_store::{AccountChange, Attribution, OrderSettled, OrderState, PayOrder, StoreError};

impl PaymentDesk {
    fn stands_in_the_way(&self, order: &PayOrder) -> bool {
        (self.settings.stop_on_debt && !order.owed.is_zero())
            || (self.settings.stop_on_dispute && order.state == OrderState::Disputed && order.credited_at.is_some())
    }

    pub(super) async fn stop_or_reopen(&self, settled: &OrderSettled) -> Result<(), StoreError> {
        let (order, store) = (&settled.order, &self.till.store);
        let stops = self.stands_in_the_way(order);
        if stops && !order.stops_account && settled.account.suspended_at.is_none() {
            store.change_order(order.id, |order| order.stops_account = true).await?;
            self.suspend(order, true, "a payment was refunded or is disputed, and its credit was spent").await?;
        }
        if !stops && order.stops_account {
            store.change_order(order.id, |order| order.stops_account = false).await?;
            let others = store.orders_owing(order.account).await?;
            // Closed is more than suspended, and an operator's to undo.
            let closed = settled.account.closed_at.is_some();
            if !closed
                && !others.iter().any(|one| one.id != order.id && (one.stops_account || self.stands_in_the_way(one)))
            {
                self.suspend(order, false, "nothing is owed any more").await?;
            }
        }
        Ok(())
    }

    async fn suspend(&self, order: &PayOrder, suspended: bool, why: &str) -> Result<(), StoreError> {
        let change = AccountChange { suspended: Some(suspended), ..AccountChange::default() };
        let reason = format!("{}: {why}", order.id);
        tracing::warn!(order = %order.id, account = %order.account, suspended, "payments suspend or reopen an account");
        let done = Attribution::by("payments", reason);
        self.till.store.change_account(order.account, change, done).await.map(drop)
    }
}
