//! `/api/account/playground-key`: the key with which the playground of the console makes calls.
//! Cookies open no paid path, so a page gets a key: for an hour, for so much a day, one of each
//! person and account. It ends when a session of theirs does.

use super::verb::{PersonRequest, PersonVerb};
use crate::endpoints::changes;
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Access, Family, Row, no_schemas};
use crate::refusal::Refusal;
use crate::who::operator;
use futures_util::FutureExt as _;
use serde_json::json;
use tollgate_catalog::Money;
use tollgate_store::{AccountRole, KeyScope, Limits, NewKey};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "people: playground", rows, schemas: no_schemas };

const HOUR_MS: i64 = 3_600_000;
/// What is tried out in a day, unless an owner or the operator says otherwise.
const DAY_LIMIT: Money = Money::from_nano(5_000_000_000);

fn rows() -> Vec<Row> {
    vec![
        KEY.post("/api/account/playground-key", Access::Session, "A key for the playground, for an hour")
            .with(super::members::account_header)
            .gives(named("NewKey")),
    ]
}

static KEY: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let (app, own) = (&asked.app, asked.person()?);
            let account_id = own.account(&asked.parts, AccountRole::Member)?;
            let account = app.store.account(account_id).await?;
            let account = account.ok_or_else(|| Refusal::new(Code::NotFound, "There is no such account."))?;
            if account.suspended_at.is_some() {
                let text = "The operator has suspended this account: nothing in it can be changed.";
                return Err(Refusal::new(Code::AccountSuspended, text));
            }
            let keys = app.store.keys(account_id).await?;
            let there = keys.iter().any(|key| key.person == Some(own.id) && key.revoked_at.is_none());
            if !there {
                changes::admit_key(app, account_id).await?;
            }
            let new = NewKey {
                account: account_id,
                name: format!("playground of {}", own.record.email),
                expires_at: Some(asked.now() + HOUR_MS),
                models: None,
                cidrs: None,
                limits: Limits { total: None, day: Some(DAY_LIMIT), month: None },
                scope: KeyScope::Call,
            };
            let secret = operator::new_secret(operator::KEY_PREFIX, |bytes| asked.fill(bytes));
            let key = app.store.console_key(new, &secret, own.done()).await?;
            look_at_keys(asked).await;
            let mut shown = json!(key);
            shown["secret"] = json!(secret);
            Ok(shown.into())
        }
        .boxed()
    },
};

/// What became of the key of a playground is known here at once, and elsewhere with the next
/// regular look.
pub(super) async fn look_at_keys(asked: &PersonRequest) {
    if let Err(error) = asked.app.keys.refresh(&asked.app.store, &asked.app.world).await {
        tracing::warn!(%error, "a key of a playground is known here with the next regular look");
    }
}
