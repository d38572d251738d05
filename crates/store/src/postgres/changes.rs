//! Changes of accounts and keys on PostgreSQL. What is changed and the row that says who did it are
//! one statement.

use super::PostgresEngine;
use super::records::SqlParam;
use crate::account::change::{AccountChange, KeyChange, Logged};
use crate::account::{Account, Key};
use crate::error::StoreError;
use crate::ids::{AccountId, KeyId};
use crate::operator::bounded_detail;

/// After the change, whose rows are called `changed`: the event, with its parameters beginning at
/// this number.
fn with_event(update: &str, from: usize) -> String {
    let places: Vec<String> = (from..from + 8).map(|number| format!("${number}")).collect();
    format!(
        "WITH changed AS ({update} AND (${}::bigint IS NULL OR changed_at = ${0}) RETURNING 1) \
         INSERT INTO operator_event (at, actor, action, subject, reason, detail, account_id, request_id) \
         SELECT {} FROM changed RETURNING 1",
        from + 8,
        places.join(", ")
    )
}

fn json(list: &Vec<String>) -> String {
    serde_json::to_string(list).unwrap_or_default()
}

/// Nothing was changed: there is no such thing, or it is another one than was seen.
fn gone_or_stale<T>(seen: Option<i64>, id: impl ToString) -> Result<Option<T>, StoreError> {
    if seen.is_some() { Err(StoreError::Stale(id.to_string())) } else { Ok(None) }
}

impl PostgresEngine {
    pub async fn change_key(
        &self,
        id: KeyId,
        change: KeyChange,
        logged: Logged,
        seen: Option<i64>,
    ) -> Result<Option<Key>, StoreError> {
        let sql = with_event(
            "UPDATE key SET name = coalesce($2, name), models = CASE WHEN $3 THEN $4 ELSE models END, \
             cidrs = CASE WHEN $5 THEN $6 ELSE cidrs END, expires_at = CASE WHEN $7 THEN $8 ELSE expires_at END, \
             cap = CASE WHEN $9 THEN $10 ELSE cap END, day_limit = CASE WHEN $11 THEN $12 ELSE day_limit END, \
             month_limit = CASE WHEN $13 THEN $14 ELSE month_limit END, changed_at = greatest(tollgate_now(), changed_at + 1) WHERE id = $1",
            15,
        );
        let (models, cidrs, expires) = (change.models.after(), change.cidrs.after(), change.expires_at.after());
        let (set_total, total) = change.limits.total.parts();
        let (set_day, day) = change.limits.day.parts();
        let (set_month, month) = change.limits.month.parts();
        let Logged { action, detail, done, account } = &logged;
        let detail = &bounded_detail(detail);
        let params: [SqlParam<'_>; 23] = [
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
            &account.0.as_slice(),
            &done.request,
            &seen,
        ];
        if self.change(&sql, &params).await?.is_empty() { gone_or_stale(seen, id) } else { self.key(id).await }
    }

    pub async fn change_account(
        &self,
        id: AccountId,
        change: AccountChange,
        logged: Logged,
        seen: Option<i64>,
    ) -> Result<Option<Account>, StoreError> {
        // Suspended twice keeps the first time.
        let sql = with_event(
            "UPDATE account SET name = coalesce($2, name), groups = coalesce($3, groups), \
             closed_at = CASE $4::boolean WHEN true THEN coalesce(closed_at, $10::bigint) WHEN false THEN NULL ELSE closed_at END, \
             day_limit = CASE WHEN $5 THEN $6 ELSE day_limit END, month_limit = CASE WHEN $7 THEN $8 ELSE month_limit END, \
             members_see_all = coalesce($9, members_see_all), \
             changed_at = greatest(tollgate_now(), changed_at + 1) WHERE id = $1",
            10,
        );
        let (set_day, day) = change.limits.day.parts();
        let (set_month, month) = change.limits.month.parts();
        let Logged { action, detail, done, account } = &logged;
        let detail = &bounded_detail(detail);
        let params: [SqlParam<'_>; 18] = [
            &id.0.as_slice(),
            &change.name,
            &change.groups.as_ref().map(json),
            &change.suspended,
            &set_day,
            &day,
            &set_month,
            &month,
            &change.members_see_all_usage,
            &self.now(),
            &done.actor,
            action,
            &id.to_string(),
            &done.reason,
            detail,
            &account.0.as_slice(),
            &done.request,
            &seen,
        ];
        if self.change(&sql, &params).await?.is_empty() { gone_or_stale(seen, id) } else { self.account(id).await }
    }
}
