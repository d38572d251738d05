//! Commands about money that comes in: statements, orders and redemption codes.

use serde_json::Value;

use super::{AdminCommand, value};
use crate::error::StoreError;
use crate::statement::StatementSpan;
use crate::store::Store;

impl Store {
    pub(super) async fn execute_about_money(&self, command: AdminCommand) -> Result<Value, StoreError> {
        let missing = |what: String| StoreError::NotFound(what);
        match command {
            AdminCommand::Statement { account, month, tz } => {
                let span = StatementSpan::read(&month, tz.as_deref());
                let span = span.map_err(|what| StoreError::Conflict(format!("`{what}` is not one")))?;
                value(self.statement(account, span).await?.ok_or_else(|| missing(account.to_string()))?)
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
