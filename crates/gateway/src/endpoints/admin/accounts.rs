//! `/api/admin/accounts` and `/api/admin/refunds`: customers, their limits, and the money that is
//! given to them.

use super::field::{FieldKind, TIME, VerbField, may, may_be_null, must};
use super::schemas::{page, record};
use super::verb::{AnswerPage, OperatorRequest, OperatorVerb, PlannedCommand, ShownAs, Then};
use super::{ACCOUNT, LIMIT, REASON, TEXT, known, wrong};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::refusal::Refusal;
use crate::settings::webhook_address;
use serde_json::{Value, json};
use tollgate_catalog::{Money, Snapshot};
use tollgate_store::MOST_AT_ONCE;
use tollgate_store::admin::{AdminCommand, Refund};
use tollgate_store::{
    AccountChange, AccountId, CallId, Change, Credit, CreditKind, EventPage, Limits, NewAccount, NewLimits, Pot,
};

pub const FAMILY: Family = Family { tag: "operators: accounts", rows, schemas };

fn rows() -> Vec<Row> {
    let (all, one) = ("/api/admin/accounts", "/api/admin/accounts/{account}");
    let expiring = "Trial credit that will expire, the earliest first";
    vec![
        CREATE.post(all, "A new account").gives(named("Account")),
        LIST.get(all, "All accounts, the oldest first").gives(named("AccountPage")),
        SHOW.get(one, "One account: balance, limits, groups").gives(named("Account")),
        CHANGE
            .patch(one, "Changes name, groups or limits of an account; suspends or reopens it")
            .gives(named("Account")),
        CLOSE
            .post("/api/admin/accounts/{account}/close", "Closes an account in which nothing runs and nothing is left")
            .gives(named("Account")),
        REOPEN
            .post("/api/admin/accounts/{account}/reopen", "Opens a closed account again, for 30 days after its close")
            .gives(named("Account")),
        WEBHOOK
            .put("/api/admin/accounts/{account}/webhook", "Where the account hears of all its tasks; `null`: nowhere")
            .gives(named("Account")),
        EXPIRING.get("/api/admin/accounts/{account}/expiring", expiring).gives(named("List")),
        HISTORY
            .get(
                "/api/admin/accounts/{account}/history",
                "Top-ups, adjustments, refunds and expired credit, newest first",
            )
            .gives(named("EventPage")),
        TOP_UP
            .post("/api/admin/accounts/{account}/topups", "Gives an account money, once for each reference")
            .gives(named("Credited")),
        ADJUST
            .post("/api/admin/accounts/{account}/adjustments", "Corrects a balance, once for each reference")
            .gives(named("Credited")),
        REFUND
            .post("/api/admin/refunds", "Gives back what a call was charged, or part of it, once for each call")
            .gives(named("Credited")),
    ]
}

const AMOUNT: &str = "nano-USD; 1 USD is 1,000,000,000";
const DAY: VerbField = may("limit_day_nano_usd", LIMIT, "The most all keys together may spend in a UTC day");
const MONTH: VerbField = may("limit_month_nano_usd", LIMIT, "The most all keys together may spend in a UTC month");
const GROUPS: VerbField =
    may("groups", FieldKind::Names, "The price groups it is in; left out of a new account: the default one");
const MEMBERS: VerbField = may(
    "members_see_all_usage",
    FieldKind::Flag,
    "`true`: members see what all keys use; `false`, as it begins: of the keys they made",
);
const REFERENCE: VerbField =
    must("reference", TEXT, "Your own id of this change, such as a payment's: repeated, it changes nothing");
const POT: VerbField = may("pot", FieldKind::Word(&["paid", "trial"]), "Which balance; `paid` unless said otherwise");
const EXPIRES: VerbField = may("expires_at_ms", TIME, "When what is left of trial credit ends");

static CREATE: OperatorVerb = OperatorVerb {
    command: "account_create",
    fields: &[
        must("name", TEXT, "For people"),
        may(
            "account_id",
            FieldKind::Id("acct_"),
            "For requests that are repeated: the account that has this id is the answer",
        ),
        GROUPS,
        DAY,
        MONTH,
        REASON,
    ],
    plan: |asked| {
        let groups: Vec<String> = asked.or("groups", Vec::new())?;
        known(asked, "groups", &groups, Snapshot::unknown_group)?;
        let limits = Limits { total: None, day: asked.may(DAY.name)?, month: asked.may(MONTH.name)? };
        let account = NewAccount { id: asked.may("account_id")?, name: asked.get("name")?, groups, limits };
        Ok(AdminCommand::AccountCreate { account, done: asked.done()? }.into())
    },
};

static LIST: OperatorVerb = OperatorVerb {
    command: "account_list",
    fields: &[may("after", FieldKind::Id("acct_"), "`next_after` of the page before"), super::PAGE],
    plan: |asked| {
        let limit = super::limit(asked)?;
        let page = AnswerPage { limit, by: "account_id", next: "next_after", after: None };
        let command = AdminCommand::AccountList { after: asked.may("after")?, limit: limit + 1 };
        Ok(PlannedCommand::from(command).shown(ShownAs::Page(page)))
    },
};

pub(in crate::endpoints) static SHOW: OperatorVerb = OperatorVerb {
    command: "account_show",
    fields: &[ACCOUNT],
    plan: |asked| Ok(AdminCommand::AccountShow { account: asked.get("account")? }.into()),
};

static CHANGE: OperatorVerb = OperatorVerb {
    command: "account_change",
    fields: &[
        ACCOUNT,
        may("name", TEXT, "For people"),
        GROUPS,
        may_be_null(DAY.name, LIMIT, DAY.about),
        may_be_null(MONTH.name, LIMIT, MONTH.about),
        may("suspended", FieldKind::Flag, "`true`: nothing new begins in it"),
        MEMBERS,
        REASON,
    ],
    plan: |asked| {
        let groups: Option<Vec<String>> = asked.may("groups")?;
        known(asked, "groups", groups.as_deref().unwrap_or_default(), Snapshot::unknown_group)?;
        let (day, month) = (asked.change(DAY.name)?, asked.change(MONTH.name)?);
        let limits = NewLimits { total: Change::Keep, day, month };
        let (suspended, members_see_all_usage) = (asked.may("suspended")?, asked.may(MEMBERS.name)?);
        let change = AccountChange { name: asked.may("name")?, groups, limits, suspended, members_see_all_usage };
        let (account, done, seen) = (asked.get("account")?, asked.done()?, asked.seen());
        let command = AdminCommand::AccountChange { account, change, done, seen };
        Ok(PlannedCommand::from(command).then(Then::Keys))
    },
};

/// What an owner may change.
pub(in crate::endpoints) static RENAME: OperatorVerb = OperatorVerb {
    command: "account_change",
    fields: &[ACCOUNT, may("name", TEXT, "For people"), MEMBERS, REASON],
    plan: |asked| {
        let (name, members_see_all_usage) = (asked.may("name")?, asked.may(MEMBERS.name)?);
        let change = AccountChange { name, members_see_all_usage, ..AccountChange::default() };
        let (account, done, seen) = (asked.get("account")?, asked.done()?, asked.seen());
        Ok(PlannedCommand::from(AdminCommand::AccountChange { account, change, done, seen }).then(Then::Keys))
    },
};

const GIVE_UP: VerbField = may(
    "give_up_nano_usd",
    FieldKind::Number(0, i64::MAX),
    "What is left of its money and is given up, exactly; left out: nothing may be left",
);

static CLOSE: OperatorVerb =
    OperatorVerb { command: "account_close", fields: &[ACCOUNT, GIVE_UP, REASON], plan: close };

/// The same by an owner.
pub(in crate::endpoints) static CLOSE_OWN: OperatorVerb = OperatorVerb {
    command: "account_close",
    fields: &[
        ACCOUNT,
        must("confirm", FieldKind::Text(200), "The id or the name of the account, written once more"),
        GIVE_UP,
        REASON,
    ],
    plan: |asked| {
        asked.confirmed_by_person()?;
        close(asked)
    },
};

fn close(asked: &OperatorRequest<'_>) -> Result<PlannedCommand, Refusal> {
    let (account, give_up) = (asked.get("account")?, asked.may(GIVE_UP.name)?);
    asked.strong_above(give_up)?;
    let command = AdminCommand::AccountClose { account, give_up, done: asked.done()? };
    Ok(PlannedCommand::from(command).then(Then::KeysAndMail))
}

static REOPEN: OperatorVerb = OperatorVerb {
    command: "account_reopen",
    fields: &[ACCOUNT, REASON],
    plan: |asked| {
        let command = AdminCommand::AccountReopen { account: asked.get("account")?, done: asked.done()? };
        Ok(PlannedCommand::from(command).then(Then::KeysAndMail))
    },
};

pub(in crate::endpoints) static WEBHOOK: OperatorVerb = OperatorVerb {
    command: "account_webhook",
    fields: &[
        ACCOUNT,
        may_be_null("webhook_url", FieldKind::Text(2_047), "An address that begins with https://"),
        REASON,
    ],
    plan: |asked| {
        let account = asked.get("account")?;
        let url = match asked.change::<String>("webhook_url")? {
            Change::Keep => return Err(super::missing("webhook_url", "an address, or `null` for none")),
            Change::Lift => None,
            Change::Set(url) => Some(webhook_address(&url, &asked.app.settings.video.webhooks)?),
        };
        Ok(PlannedCommand::from(AdminCommand::AccountWebhook { account, url, done: asked.done()? }).then(Then::Keys))
    },
};

pub(in crate::endpoints) static EXPIRING: OperatorVerb = OperatorVerb {
    command: "account_expiring",
    fields: &[ACCOUNT],
    plan: |asked| {
        let command = AdminCommand::AccountExpiring { account: asked.get("account")? };
        Ok(PlannedCommand::from(command).shown(ShownAs::List))
    },
};

pub(in crate::endpoints) static HISTORY: OperatorVerb = OperatorVerb {
    command: "account_events",
    fields: &[ACCOUNT, may("before", FieldKind::Number(1, i64::MAX), "`next_before` of the page before"), super::PAGE],
    plan: |asked| {
        asked.must_see_all()?;
        let limit = super::limit(asked)?;
        let page = EventPage { before: asked.may("before")?, limit: limit + 1 };
        let command = AdminCommand::AccountEvents { account: asked.get("account")?, page };
        let shown = AnswerPage { limit, by: "seq", next: "next_before", after: None };
        Ok(PlannedCommand::from(command).shown(ShownAs::Page(shown)))
    },
};

static TOP_UP: OperatorVerb = OperatorVerb {
    command: "credit",
    fields: &[
        ACCOUNT,
        must("amount_nano_usd", FieldKind::Number(1, MOST_AT_ONCE.nano()), AMOUNT),
        POT,
        EXPIRES,
        REFERENCE,
        REASON,
    ],
    plan: |asked| credit(asked, CreditKind::TopUp),
};

static ADJUST: OperatorVerb = OperatorVerb {
    command: "credit",
    fields: &[
        ACCOUNT,
        must(
            "amount_nano_usd",
            FieldKind::Number(-MOST_AT_ONCE.nano(), MOST_AT_ONCE.nano()),
            "nano-USD, not zero; below zero it is taken away, never below an empty balance",
        ),
        POT,
        EXPIRES,
        REFERENCE,
        REASON,
    ],
    plan: |asked| credit(asked, CreditKind::Adjust),
};

fn credit(asked: &OperatorRequest<'_>, kind: CreditKind) -> Result<PlannedCommand, Refusal> {
    let account: AccountId = asked.get("account")?;
    let (amount, pot): (Money, Pot) = (asked.get("amount_nano_usd")?, asked.or("pot", Pot::Paid)?);
    if amount.is_zero() {
        return Err(wrong("amount_nano_usd", "not zero"));
    }
    asked.strong_above(Some(amount))?;
    let (id, expires_at) = (asked.get("reference")?, asked.may("expires_at_ms")?);
    let done = asked.done()?;
    let credit = Credit { id, account, kind, pot, amount, expires_at, reason: done.reason, actor: done.actor };
    Ok(PlannedCommand::from(AdminCommand::Credit { credit, request: asked.request() }).then(Then::Keys))
}

static REFUND: OperatorVerb = OperatorVerb {
    command: "refund",
    fields: &[
        must("call_id", FieldKind::Id("call_"), "The call"),
        may("amount_nano_usd", FieldKind::Number(1, MOST_AT_ONCE.nano()), "Left out: all that it was charged"),
        REASON,
    ],
    plan: |asked| {
        let (call, amount): (CallId, Option<Money>) = (asked.get("call_id")?, asked.may("amount_nano_usd")?);
        asked.strong_above(amount)?;
        let done = asked.done()?;
        let refund = Refund { call, amount, reason: done.reason, actor: done.actor };
        Ok(PlannedCommand::from(AdminCommand::Refund { refund, request: asked.request() }).then(Then::Keys))
    },
};

fn schemas() -> Value {
    json!({
        "Account": record("An account; amounts in nano-USD, times in milliseconds", &["account_id", "name"]),
        "AccountPage": page("Account", "next_after", &json!({ "type": ["string", "null"] })),
        "Event": record("A change of balance that was not a call", &["seq", "kind", "reference"]),
        "EventPage": page("Event", "next_before", &json!({ "type": ["integer", "null"] })),
        "Credited": { "type": "object", "required": ["applied", "account"], "properties": {
            "applied": { "type": "boolean", "description": "`false`: it had been done before, and nothing changed" },
            "account": named("Account"),
        } },
    })
}
