//! Commands about alerts, and about notices to customers.

use serde_json::{Value, json};

use super::{AdminCommand, value};
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    pub(super) async fn execute_about_alerts(&self, command: AdminCommand) -> Result<Value, StoreError> {
        match command {
            AdminCommand::AlertPlaceCreate { new, done } => value(self.create_alert_place(new, done).await?),
            AdminCommand::AlertPlaceList => value(self.alert_places().await?),
            AdminCommand::AlertPlaceRemove { place, done } => {
                self.remove_alert_place(place, done).await?;
                Ok(json!({ "place_id": place, "removed": true }))
            }
            AdminCommand::AlertRuleCreate { new, done } => value(self.create_alert_rule(*new, done).await?),
            AdminCommand::AlertRuleList => value(self.alert_rules().await?),
            AdminCommand::AlertRuleChange { rule, change, done } => {
                value(self.change_alert_rule(rule, *change, done).await?)
            }
            AdminCommand::AlertRuleRemove { rule, done } => {
                self.remove_alert_rule(rule, done).await?;
                Ok(json!({ "rule_id": rule, "removed": true }))
            }
            AdminCommand::AlertSilence { rule, silence, done } => {
                value(self.silence_alert_rule(rule, silence, done).await?)
            }
            AdminCommand::AlertsFiring => value(self.alerts_firing().await?),
            AdminCommand::AlertEvents { before, limit } => value(self.alert_events(before, limit).await?),
            AdminCommand::NoticeShow { account } => value(self.balance_notice(account).await?),
            AdminCommand::NoticeSet { account, wish, done } => {
                value(self.set_balance_notice(account, wish, done).await?)
            }
            _ => Err(StoreError::broken("a command about something else")),
        }
    }
}
