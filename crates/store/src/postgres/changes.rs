//! Changes of accounts and keys on PostgreSQL. What is changed and the row that says who did it are
//! one statement.

use super::PostgresEngine;
use super::records::SqlParam;
use crate::account::change::{AccountChange, KeyChange, Logged};
use crate::account::{Account, Key};
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId};

/// After the change, whose rows are called `changed`: the event, with its parameters beginning at
/// this number.
fn with_event(update: &str, from: usize) -> String {
    let places: Vec<String> = (from..from + 6).map(|number| format!("${number}")).collect();
    format!(
        "WITH changed AS ({update} RETURNING 1) \
         INSERT INTO operator_event (at, actor, action, subject, reason, detail) SELECT {} FROM changed RETURNING 1",
        places.join(", ")
    )
}

fn json(list: &Vec<String>) -> String {
    serde_json::to_string(list).unwrap_or_default()
}

impl PostgresEngine {
    pub async fn change_key(&self, id: KeyId, change: KeyChange, logged: Logged) -> Result<Option<Key>, StoreError> {
        let sql = with_event(
            "UPDATE key SET name = coalesce($2, name), models = CASE WHEN $3 THEN $4 ELSE models END, \
             cidrs = CASE WHEN $5 THEN $6 ELSE cidrs END, expires_at = CASE WHEN $7 THEN $8 ELSE expires_at END, \
             cap = CASE WHEN $9 THEN $10 ELSE cap END, day_limit = CASE WHEN $11 THEN $12 ELSE day_limit END, \
             month_limit = CASE WHEN $13 THEN $14 ELSE month_limit END, changed_at = tollgate_now() WHERE id = $1",
            15,
        );
        let (models, cidrs, expires) = (change.models.after(), change.cidrs.after(), change.expires_at.after());
        let (set_total, total) = change.limits.total.parts();
        let (set_day, day) = change.limits.day.parts();
        let (set_month, month) = change.limits.month.parts();
        let Logged { action, detail, done } = &logged;
        let params: [SqlParam<'_>; 20] = [
            &id.0.as_slice(),
            &change.name,
            &models.is_some(),
            &models.flatten().map(json),
            &cidrs.is_some(),
            &cidrs.flatten().map(json),
            &expires.is_some(),
            &expires.flatten(),
            &set_total,
            &total,
            &set_day,
            &day,
            &set_month,
            &month,
            &self.now(),
            &done.actor,
            action,
            &id.to_string(),
            &done.reason,
            detail,
        ];
        if self.change(&sql, &params).await?.is_empty() { Ok(None) } else { self.key(id).await }
    }

    pub async fn change_account(
        &self,
        id: AccountId,
        change: AccountChange,
        logged: Logged,
    ) -> Result<Option<Account>, StoreError> {
        // Suspended twice keeps the first time.
        let sql = with_event(
            "UPDATE account SET name = coalesce($2, name), groups = coalesce($3, groups), \
             closed_at = CASE $4::boolean WHEN true THEN coalesce(closed_at, $9::bigint) WHEN false THEN NULL ELSE closed_at END, \
             day_limit = CASE WHEN $5 THEN $6 ELSE day_limit END, month_limit = CASE WHEN $7 THEN $8 ELSE month_limit END, \
             changed_at = tollgate_now() WHERE id = $1",
            9,
        );
        let (set_day, day) = change.limits.day.parts();
        let (set_month, month) = change.limits.month.parts();
        let Logged { action, detail, done } = &logged;
        let params: [SqlParam<'_>; 14] = [
            &id.0.as_slice(),
            &change.name,
            &change.groups.as_ref().map(json),
            &change.suspended,
            &set_day,
            &day,
            &set_month,
            &month,
            &self.now(),
            &done.actor,
            action,
            &id.to_string(),
            &done.reason,
            detail,
        ];
        if self.change(&sql, &params).await?.is_empty() { Ok(None) } else { self.account(id).await }
    }
}
