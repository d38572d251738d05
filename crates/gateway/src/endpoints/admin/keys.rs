//! `/api/admin/accounts/{account}/keys`, `/api/admin/keys` and `/api/admin/admin-keys`: who may
//! call, and who may operate. A secret is shown once, in the answer that made it; stored is its
//! hash.

use super::field::{FieldKind, TIME, VerbField, may, may_be_null, must};
use super::schemas::{page, record};
use super::verb::{AnswerPage, OperatorRequest, OperatorVerb, PlannedCommand, ShownAs, Then};
use super::{ACCOUNT, LIMIT, REASON, TEXT, known, wrong};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::refusal::Refusal;
use crate::who::caller::network;
use crate::who::operator;
use serde_json::{Value, json};
use tollgate_catalog::Snapshot;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{Change, KeyChange, KeyScope, Limits, NewAdminKey, NewKey, NewLimits};

pub const FAMILY: Family = Family { tag: "operators: keys", rows, schemas };

fn rows() -> Vec<Row> {
    let (of_account, admin) = ("/api/admin/accounts/{account}/keys", "/api/admin/admin-keys");
    vec![
        CREATE.post(of_account, "A new key of an account; its secret is shown once").gives(named("NewKey")),
        LIST.get(of_account, "The keys of an account").gives(named("KeyPage")),
        CHANGE.patch("/api/admin/keys/{key}", "Changes what a key may do").gives(named("Key")),
        REVOKE.post("/api/admin/keys/{key}/revoke", "Ends a key for good").gives(named("Key")),
        ROTATE
            .post(
                "/api/admin/keys/{key}/rotate",
                "A new secret of a key, shown once; the one before works a while longer",
            )
            .gives(named("NewKey")),
        ADMIN_CREATE.post(admin, "A new admin key; its secret is shown once").gives(named("NewKey")),
        ADMIN_LIST.get(admin, "The admin keys").gives(named("KeyPage")),
        ADMIN_REVOKE
            .post("/api/admin/admin-keys/{key}/revoke", "Ends an admin key for good, at once")
            .gives(named("Key")),
    ]
}

const KEY: VerbField = must("key", FieldKind::Id("key_"), "The key");
const ADMIN_KEY: VerbField = must("key", FieldKind::Id("adm_"), "The admin key");
const NAME: VerbField = must("name", TEXT, "For people");
const SCOPE: VerbField = may(
    "scope",
    FieldKind::Word(&["call", "manage"]),
    "`manage`: it opens `/api/account` and buys nothing; `call` unless said otherwise",
);
const EXPIRES: VerbField = may("expires_at_ms", TIME, "When it stops working");
const MODELS: VerbField = may("models", FieldKind::Names, "The only models it may use");
const CIDRS: VerbField = may("cidrs", FieldKind::Names, "The only networks it may be used from, such as 10.0.0.0/8");
const TOTAL: VerbField = may("limit_total_nano_usd", LIMIT, "The most it may ever spend");
const DAY: VerbField = may("limit_day_nano_usd", LIMIT, "The most it may spend in a UTC day");
const MONTH: VerbField = may("limit_month_nano_usd", LIMIT, "The most it may spend in a UTC month");

/// The same field of a change: `null` takes the restriction away.
const fn lifted(field: &VerbField) -> VerbField {
    may_be_null(field.name, field.kind, field.about)
}

pub(in crate::endpoints) static CREATE: OperatorVerb = OperatorVerb {
    command: "key_create",
    fields: &[ACCOUNT, NAME, SCOPE, EXPIRES, MODELS, CIDRS, TOTAL, DAY, MONTH, REASON],
    plan: |asked| {
        let (models, cidrs): (Option<Vec<String>>, Option<Vec<String>>) =
            (asked.may(MODELS.name)?, asked.may(CIDRS.name)?);
        restricted(asked, models.as_deref(), cidrs.as_deref())?;
        let (total, day, month) = (asked.may(TOTAL.name)?, asked.may(DAY.name)?, asked.may(MONTH.name)?);
        let key = NewKey {
            account: asked.get("account")?,
            name: asked.get(NAME.name)?,
            expires_at: asked.may(EXPIRES.name)?,
            models,
            cidrs,
            limits: Limits { total, day, month },
            scope: asked.or(SCOPE.name, KeyScope::Call)?,
        };
        let secret = operator::new_secret(operator::KEY_PREFIX, |bytes| asked.app.world.fill(bytes));
        Ok(PlannedCommand::from(AdminCommand::KeyCreate { key, secret: secret.clone(), done: asked.done()? })
            .telling(secret)
            .then(Then::Keys))
    },
};

/// Models there are, and networks that are some.
fn restricted(asked: &OperatorRequest<'_>, models: Option<&[String]>, cidrs: Option<&[String]>) -> Result<(), Refusal> {
    known(asked, MODELS.name, models.unwrap_or_default(), Snapshot::unknown_model)?;
    match cidrs.unwrap_or_default().iter().find(|one| network(one).is_none()) {
        Some(_) => Err(wrong(CIDRS.name, "a list of addresses or networks such as 10.0.0.0/8")),
        None => Ok(()),
    }
}

pub(in crate::endpoints) static LIST: OperatorVerb = OperatorVerb {
    command: "key_list",
    fields: &[ACCOUNT, may("after", FieldKind::Id("key_"), "`next_after` of the page before"), super::PAGE],
    plan: |asked| {
        let page =
            AnswerPage { limit: super::limit(asked)?, by: "key_id", next: "next_after", after: asked.may("after")? };
        let command = AdminCommand::KeyList { account: asked.get("account")? };
        let shown = match asked.sees_of() {
            None => ShownAs::Page(page),
            Some(person) => ShownAs::With(Box::new(move |mut keys| {
                if let Value::Array(keys) = &mut keys {
                    keys.retain(|key| key["made_by"] == json!(person));
                }
                page.of_answer(keys)
            })),
        };
        Ok(PlannedCommand::from(command).shown(shown))
    },
};

pub(in crate::endpoints) static CHANGE: OperatorVerb = OperatorVerb {
    command: "key_change",
    fields: &[
        KEY,
        may("name", TEXT, "For people"),
        lifted(&EXPIRES),
        lifted(&MODELS),
        lifted(&CIDRS),
        lifted(&TOTAL),
        lifted(&DAY),
        lifted(&MONTH),
        REASON,
    ],
    plan: |asked| {
        let (models, cidrs): (Change<Vec<String>>, Change<Vec<String>>) =
            (asked.change(MODELS.name)?, asked.change(CIDRS.name)?);
        restricted(asked, listed(&models), listed(&cidrs))?;
        let (total, day, month) = (asked.change(TOTAL.name)?, asked.change(DAY.name)?, asked.change(MONTH.name)?);
        let change = KeyChange {
            name: asked.may("name")?,
            models,
            cidrs,
            expires_at: asked.change(EXPIRES.name)?,
            limits: NewLimits { total, day, month },
        };
        let (key, done, seen) = (asked.get("key")?, asked.done()?, asked.seen());
        Ok(PlannedCommand::from(AdminCommand::KeyChange { key, change, done, seen }).then(Then::Keys))
    },
};

fn listed(change: &Change<Vec<String>>) -> Option<&[String]> {
    if let Change::Set(list) = change { Some(list) } else { None }
}

pub(in crate::endpoints) static REVOKE: OperatorVerb = OperatorVerb {
    command: "key_revoke",
    fields: &[KEY, REASON],
    plan: |asked| {
        let command = AdminCommand::KeyRevoke { key: asked.get("key")?, done: asked.done()? };
        Ok(PlannedCommand::from(command).then(Then::Keys))
    },
};

/// How long the secret of before works, unless said otherwise.
const GRACE: i64 = 86_400;

pub(in crate::endpoints) static ROTATE: OperatorVerb = OperatorVerb {
    command: "key_rotate",
    fields: &[
        KEY,
        may(
            "grace_seconds",
            FieldKind::Number(0, 30 * 86_400),
            "How long the secret of before works; a day unless said otherwise, 0: it ends at once",
        ),
        REASON,
    ],
    plan: |asked| {
        let grace: i64 = asked.or("grace_seconds", GRACE)?;
        let (key, done) = (asked.get("key")?, asked.done()?);
        let secret = operator::new_secret(operator::KEY_PREFIX, |bytes| asked.app.world.fill(bytes));
        let command = AdminCommand::KeyRotate { key, secret: secret.clone(), grace_ms: grace * 1_000, done };
        Ok(PlannedCommand::from(command).telling(secret).then(Then::Keys))
    },
};

static ADMIN_CREATE: OperatorVerb = OperatorVerb {
    command: "admin_key_create",
    fields: &[
        must("name", FieldKind::Text(100), "What stands in the log beside everything that is done with it"),
        EXPIRES,
        REASON,
    ],
    plan: |asked| {
        asked.strong()?;
        let key = NewAdminKey { name: asked.get("name")?, expires_at: asked.may(EXPIRES.name)?, done: asked.done()? };
        let secret = operator::new_secret(operator::PREFIX, |bytes| asked.app.world.fill(bytes));
        Ok(PlannedCommand::from(AdminCommand::AdminKeyCreate { key, secret: secret.clone() }).telling(secret))
    },
};

static ADMIN_LIST: OperatorVerb = OperatorVerb {
    command: "admin_key_list",
    fields: &[may("after", FieldKind::Id("adm_"), "`next_after` of the page before"), super::PAGE],
    plan: |asked| {
        let page = AnswerPage {
            limit: super::limit(asked)?,
            by: "admin_key_id",
            next: "next_after",
            after: asked.may("after")?,
        };
        Ok(PlannedCommand::from(AdminCommand::AdminKeyList).shown(ShownAs::Page(page)))
    },
};

static ADMIN_REVOKE: OperatorVerb = OperatorVerb {
    command: "admin_key_revoke",
    fields: &[ADMIN_KEY, REASON],
    plan: |asked| Ok(AdminCommand::AdminKeyRevoke { key: asked.get("key")?, done: asked.done()? }.into()),
};

fn schemas() -> Value {
    let secret = json!({ "type": "string", "description": "Shown in this answer only" });
    let mut new = record("A key and its secret", &["name", "key_prefix", "secret"]);
    new["properties"]["secret"] = secret;
    json!({
        "Key": record("A key, without its secret", &["name", "key_prefix"]),
        "NewKey": new,
        "KeyPage": page("Key", "next_after", &json!({ "type": ["string", "null"] })),
    })
}
