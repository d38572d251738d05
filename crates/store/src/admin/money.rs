//! Commands about money that comes in, and accounts that end: statements, orders and redemption
//! codes.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate_catalog::Money;

use super::{AdminCommand, value};
use crate::error::StoreError;
use crate::ids::CallId;
use crate::statement::StatementSpan;
use crate::store::Store;

/// Gives back what a call was charged, or part of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refund {
    pub call: CallId,
    /// `None`: all of it.
    pub amount: Option<Money>,
    pub reason: String,
    pub actor: String,
}

impl Store {
    pub(super) async fn execute_about_money(&self, command: AdminCommand) -> Result<Value, StoreError> {
        let missing = |what: String| StoreError::NotFound(what);
        match command {
            AdminCommand::Statement { account, month, tz } => {
                let span = StatementSpan::read(&month, tz.as_deref());
                let span = span.map_err(|what| StoreError::Conflict(format!("`{what}` is not one")))?;
                value(self.statement(account, span).await?.ok_or_else(|| missing(account.to_string()))?)
            }
            AdminCommand::AccountClose { account, give_up, done } => {
                let closed = self.close_account(account, give_up, done).await?;
                value(closed.ok_or_else(|| missing(account.to_string()))?)
            }
            AdminCommand::AccountReopen { account, done } => {
                value(self.reopen_account(account, done).await?.ok_or_else(|| missing(account.to_string()))?)
            }
            AdminCommand::OrderList { filter } => value(self.orders(filter).await?),
            AdminCommand::OrderShow { order } => {
                value(self.order(order).await?.ok_or_else(|| missing(order.to_string()))?)
            }
            AdminCommand::OrderForgive { order, done } => {
                let after = self.forgive_order(order, done.clone()).await?;
                self.note_audit(&done, "order.forgive", &order.to_string(), Some(after.account), "").await?;
                value(after)
            }
            AdminCommand::CodesCreate { batch } => value(self.create_codes(*batch).await?),
            AdminCommand::CodesList { before, limit } => value(self.code_batches(before, limit).await?),
            AdminCommand::CodesRevoke { batch, done } => {
                value(self.revoke_codes(batch, done).await?.ok_or_else(|| missing(batch.to_string()))?)
            }
            command => self.execute_about_alerts(command).await,
        }
    }
}
