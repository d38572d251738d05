//! `/api/session/view`: somebody of the house looks at an account as its customers see it. They
//! read and change nothing, say why, and the account's own log says that they looked.

use super::HOUR_MS;
use super::sessions::done;
use super::verb::PersonVerb;
use crate::endpoints::admin::{ACCOUNT, REASON};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Access, Family, Row};
use crate::refusal::Refusal;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tollgate_store::{AccountId, AccountView, Attribution};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "people: view", rows, schemas };

/// So long they look.
const VIEW_MS: i64 = HOUR_MS;

fn rows() -> Vec<Row> {
    let path = "/api/session/view";
    vec![
        BEGIN
            .post(path, Access::Session, "Looks at an account as its customers see it, for an hour, with a reason")
            .gives(named("AccountView")),
        END.delete(path, Access::Session, "Looks at it no longer").gives(named("Done")),
    ]
}

fn schemas() -> Value {
    json!({
        "AccountView": { "type": "object", "required": ["account_id", "until_ms"], "properties": {
            "account_id": { "type": "string", "description": "What `Tollgate-Account` names in requests that read" },
            "name": { "type": "string" },
            "until_ms": { "type": "integer" },
        } },
    })
}

static BEGIN: PersonVerb = PersonVerb {
    fields: &[ACCOUNT, REASON],
    answer: |asked| {
        async move {
            let (own, store) = (asked.strong()?, &asked.app.store);
            if own.house_role.is_none() {
                let text = "Looking at accounts of others is for operators and auditors.";
                return Err(Refusal::new(Code::RoleRequired, text));
            }
            let id: AccountId = asked.get("account")?;
            let missing = || Refusal::about(Code::NotFound, "account", "There is no such account.");
            let account = store.account(id).await?.ok_or_else(missing)?;
            let view = AccountView { account: id, until: asked.now() + VIEW_MS };
            let why = Attribution { reason: asked.text("reason")?, ..own.done() };
            if !store.view_account(own.hash, own.session.id, view, why).await? {
                return Err(Refusal::new(Code::NotSignedIn, "Sign in first: POST /api/session."));
            }
            let mut shown = json!(view);
            shown["name"] = json!(account.name);
            Ok(shown.into())
        }
        .boxed()
    },
};

static END: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let own = asked.person()?;
            if let Some(view) = own.viewing {
                asked.app.store.end_view(own.hash, view.account, own.done()).await?;
            }
            Ok(done())
        }
        .boxed()
    },
};
