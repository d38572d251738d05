//! `/api/admin/alerts*`: rules, places, what fires and what fired; and notices of a low balance,
//! which an account sets for itself under `/api/account/notices`.

use super::field::{FieldKind, TIME, VerbField, may, may_be_null, must};
use super::schemas::{page, record};
use super::verb::{AnswerPage, OperatorRequest, OperatorVerb, PlannedCommand, ShownAs};
use super::{ACCOUNT, OPERATOR, REASON, TEXT, known, missing, wrong};
use crate::alerts::PlaceAddress;
use crate::app::App;
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::refusal::Refusal;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::Snapshot;
use tollgate_catalog::form::did_you_mean;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{
    AccountId, AlertChange, AlertCondition, AlertMove, AlertNews, AlertPlaceId, AlertPlaceKind, AlertRuleId,
    AlertSilence, Attribution, Change, MOST_IN_ACCOUNT, NewAlertPlace, NewAlertRule, NoticeWish,
};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "operators: alerts", rows, schemas };

fn rows() -> Vec<Row> {
    let (rules, places) = ("/api/admin/alerts/rules", "/api/admin/alerts/places");
    let notices = "/api/admin/accounts/{account}/notices";
    let because = || json!({ "type": "object", "required": ["reason"], "additionalProperties": false, "properties": { "reason": REASON.kind.schema() } });
    vec![
        FIRING.get("/api/admin/alerts", "Everything that fires now, the longest first").gives(named("AlertList")),
        EVENTS
            .get("/api/admin/alerts/events", "What fired and ceased to, newest first, and what its places said")
            .gives(named("AlertEventPage")),
        RULES.get(rules, "The rules of alerts").gives(named("List")),
        RULE_CREATE.post(rules, "A new rule of alerts").gives(named("AlertRule")),
        RULE_CHANGE.patch("/api/admin/alerts/rules/{rule}", "Changes a rule of alerts").gives(named("AlertRule")),
        RULE_REMOVE.post("/api/admin/alerts/rules/{rule}/remove", "Ends a rule of alerts").gives(named("AlertRemoved")),
        SILENCE
            .post(
                "/api/admin/alerts/rules/{rule}/silence",
                "Sends nothing about a rule until then; `null`: sends again",
            )
            .gives(named("AlertRule")),
        Row::post(
            "/api/admin/alerts/rules/{rule}/test",
            OPERATOR,
            test_rule,
            "Sends a sample to the places of a rule now",
        )
        .takes(because())
        .gives(named("List")),
        PLACES.get(places, "Where alerts go; addresses are not shown").gives(named("List")),
        PLACE_CREATE.post(places, "A new place for alerts").gives(named("AlertPlace")),
        PLACE_REMOVE
            .post("/api/admin/alerts/places/{place}/remove", "Nothing is sent to a place any more")
            .gives(named("AlertRemoved")),
        Row::post(
            "/api/admin/alerts/places/{place}/test",
            OPERATOR,
            test_place,
            "Sends a sample to a place now, and says what came back",
        )
        .takes(because())
        .gives(named("AlertTried")),
        Row::get(
            "/api/admin/alerts/places/{place}/secret",
            OPERATOR,
            secret,
            "What webhooks of a place are verified with",
        )
        .gives(named("WebhookSecret")),
        NOTICE_SHOW.get(notices, "Below which balance an account hears of it").gives(named("BalanceNotice")),
        NOTICE_SET
            .put(notices, "Below which balance an account hears of it; `null`: never")
            .gives(named("BalanceNotice")),
    ]
}

const RULE_ID: VerbField = must("rule", FieldKind::Id("rule_"), "The rule");
const PLACE_ID: VerbField = must("place", FieldKind::Id("place_"), "The place");
const KINDS: FieldKind =
    FieldKind::Word(&["balance", "spend", "faults", "unknown_tasks", "drift", "disk", "certificate", "key_end"]);
const PLACE_KINDS: FieldKind =
    FieldKind::Word(&["webhook", "mail", "slack", "discord", "feishu", "dingtalk", "wecom", "telegram"]);
const GOES_TO: VerbField = may_be_null("places", FieldKind::Names, "Ids of places, at most 20; `null`: none");
const ACCOUNTS: VerbField =
    may("accounts", FieldKind::Names, "At most 100; of `spend` and `key_end` left out: the house, the operators");
const AMOUNT: VerbField =
    may("amount_nano_usd", FieldKind::Number(1, MOST_IN_ACCOUNT.nano()), "The bound of `balance` and `spend`");
const WINDOW: VerbField =
    may("window_minutes", FieldKind::Number(15, 1_440), "Of `spend` and `faults`, in quarters of an hour; 60");
const MODEL: VerbField = may("model", TEXT, "Of `faults`: of this model only");
const PROVIDER: VerbField = may("provider", TEXT, "Of `faults`: attempts along routes of this provider");
const PERCENT: VerbField = may("percent", FieldKind::Number(1, 100), "Of `faults`: the share that fails; 20");
const COUNT: VerbField = may(
    "count",
    FieldKind::Number(1, 1_000),
    "Of `faults`: so many failed at least, 10; of `unknown_tasks`: so many, 1",
);
const MINUTES: VerbField = may(
    "minutes",
    FieldKind::Number(1, 100_000),
    "Of `unknown_tasks`: for so long, 30; of `drift`: no audit for so long, 180",
);
const BYTES: VerbField = may("bytes", FieldKind::Number(1, 1 << 60), "Of `disk`: less is free");
const DAYS: VerbField = may("days", FieldKind::Number(1, 1_000), "Of `certificate` and `key_end`: so soon; 14");

static FIRING: OperatorVerb = OperatorVerb {
    command: "alerts_firing",
    fields: &[],
    plan: |_| Ok(PlannedCommand::from(AdminCommand::AlertsFiring).shown(ShownAs::List)),
};

static EVENTS: OperatorVerb = OperatorVerb {
    command: "alert_events",
    fields: &[may("before", FieldKind::Id("alert_"), "`next_before` of the page before"), super::PAGE],
    plan: |asked| {
        let limit = super::limit(asked)?;
        let command = AdminCommand::AlertEvents { before: asked.may("before")?, limit: limit + 1 };
        let shown = AnswerPage { limit, by: "alert_id", next: "next_before", after: None };
        Ok(PlannedCommand::from(command).shown(ShownAs::Page(shown)))
    },
};

static RULES: OperatorVerb = OperatorVerb {
    command: "alert_rule_list",
    fields: &[],
    plan: |_| Ok(PlannedCommand::from(AdminCommand::AlertRuleList).shown(ShownAs::List)),
};

static RULE_CREATE: OperatorVerb = OperatorVerb {
    command: "alert_rule_create",
    fields: &[
        must("name", FieldKind::Text(100), "For people; it begins every message"),
        must("kind", KINDS, "What is watched"),
        GOES_TO,
        ACCOUNTS,
        AMOUNT,
        WINDOW,
        MODEL,
        PROVIDER,
        PERCENT,
        COUNT,
        MINUTES,
        BYTES,
        DAYS,
        REASON,
    ],
    plan: |asked| {
        let condition = condition(asked)?.ok_or_else(|| missing("kind", "what is watched"))?;
        let new = NewAlertRule { name: asked.get("name")?, condition, places: places(asked)?.unwrap_or_default() };
        Ok(AdminCommand::AlertRuleCreate { new: Box::new(new), done: asked.done()? }.into())
    },
};

static RULE_CHANGE: OperatorVerb = OperatorVerb {
    command: "alert_rule_change",
    fields: &[
        RULE_ID,
        may("name", FieldKind::Text(100), "For people"),
        may("kind", KINDS, "With its fields it replaces what was watched"),
        may("enabled", FieldKind::Flag, "`false`: it is not looked at"),
        GOES_TO,
        ACCOUNTS,
        AMOUNT,
        WINDOW,
        MODEL,
        PROVIDER,
        PERCENT,
        COUNT,
        MINUTES,
        BYTES,
        DAYS,
        REASON,
    ],
    plan: |asked| {
        let change = AlertChange {
            name: asked.may("name")?,
            condition: condition(asked)?,
            places: places(asked)?,
            enabled: asked.may("enabled")?,
        };
        Ok(AdminCommand::AlertRuleChange { rule: asked.get("rule")?, change: Box::new(change), done: asked.done()? }
            .into())
    },
};

static RULE_REMOVE: OperatorVerb = OperatorVerb {
    command: "alert_rule_remove",
    fields: &[RULE_ID, REASON],
    plan: |asked| Ok(AdminCommand::AlertRuleRemove { rule: asked.get("rule")?, done: asked.done()? }.into()),
};

static SILENCE: OperatorVerb = OperatorVerb {
    command: "alert_silence",
    fields: &[RULE_ID, may_be_null("until_ms", TIME, "`null`: it is sent again"), REASON],
    plan: |asked| {
        let until_ms = match asked.change::<i64>("until_ms")? {
            Change::Keep => return Err(missing("until_ms", "a time, or `null` to send again")),
            Change::Lift => None,
            Change::Set(until) => Some(until),
        };
        let silence = AlertSilence { until_ms };
        Ok(AdminCommand::AlertSilence { rule: asked.get("rule")?, silence, done: asked.done()? }.into())
    },
};

static PLACES: OperatorVerb = OperatorVerb {
    command: "alert_place_list",
    fields: &[],
    plan: |_| Ok(PlannedCommand::from(AdminCommand::AlertPlaceList).shown(ShownAs::List)),
};

static PLACE_CREATE: OperatorVerb = OperatorVerb {
    command: "alert_place_create",
    fields: &[
        must("name", FieldKind::Text(100), "For people"),
        must("kind", PLACE_KINDS, "How it is spoken to"),
        must(
            "to",
            FieldKind::Text(2_047),
            "An address that begins with https://, or an e-mail address; not shown again",
        ),
        may("secret", TEXT, "Of `feishu` and `dingtalk`: what signatures are made with; not shown again"),
        REASON,
    ],
    plan: |asked| {
        let kind: AlertPlaceKind = asked.get("kind")?;
        let secret: Option<String> = asked.may("secret")?;
        let signs = matches!(kind, AlertPlaceKind::Feishu | AlertPlaceKind::Dingtalk);
        if secret.is_some() && !signs {
            return Err(wrong("secret", "for places of kind feishu and dingtalk only"));
        }
        let address = PlaceAddress { to: asked.get("to")?, secret };
        if kind == AlertPlaceKind::Mail && !asked.app.people.post.sends() {
            return Err(Refusal::about(
                Code::InvalidParameter,
                "kind",
                "`kind`: no mail is sent here: see [people.mail].",
            ));
        }
        let shown = asked.app.alerts.checked(kind, &address.to)?;
        let sealed = asked.app.alerts.seal(&address);
        let sealed = sealed.ok_or_else(|| Refusal::new(Code::Internal, "The address could not be sealed."))?;
        let new = NewAlertPlace { name: asked.get("name")?, kind, shown, sealed };
        Ok(AdminCommand::AlertPlaceCreate { new, done: asked.done()? }.into())
    },
};

static PLACE_REMOVE: OperatorVerb = OperatorVerb {
    command: "alert_place_remove",
    fields: &[PLACE_ID, REASON],
    plan: |asked| Ok(AdminCommand::AlertPlaceRemove { place: asked.get("place")?, done: asked.done()? }.into()),
};

pub(in crate::endpoints) static NOTICE_SHOW: OperatorVerb = OperatorVerb {
    command: "notice_show",
    fields: &[ACCOUNT],
    plan: |asked| Ok(AdminCommand::NoticeShow { account: asked.get("account")? }.into()),
};

pub(in crate::endpoints) static NOTICE_SET: OperatorVerb = OperatorVerb {
    command: "notice_set",
    fields: &[
        ACCOUNT,
        may_be_null("threshold_nano_usd", FieldKind::Number(1, MOST_IN_ACCOUNT.nano()), "`null`: never"),
        may("mail", FieldKind::Flag, "To the owners; true unless said otherwise"),
        may("webhook", FieldKind::Flag, "To the account's webhook; true unless said otherwise"),
        REASON,
    ],
    plan: |asked| {
        let threshold_nano_usd = match asked.change::<i64>("threshold_nano_usd")? {
            Change::Keep => return Err(missing("threshold_nano_usd", "an amount, or `null` for never")),
            Change::Lift => None,
            Change::Set(amount) => Some(amount),
        };
        let wish =
            NoticeWish { threshold_nano_usd, mail: asked.or("mail", true)?, webhook: asked.or("webhook", true)? };
        Ok(AdminCommand::NoticeSet { account: asked.get("account")?, wish, done: asked.done()? }.into())
    },
};

fn places(asked: &OperatorRequest<'_>) -> Result<Option<Vec<AlertPlaceId>>, Refusal> {
    Ok(match asked.change("places")? {
        Change::Keep => None,
        Change::Lift => Some(Vec::new()),
        Change::Set(places) => Some(places),
    })
}

/// Which of the fields below belong to a kind.
fn fields_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "balance" => &["accounts", "amount_nano_usd"],
        "spend" => &["accounts", "amount_nano_usd", "window_minutes"],
        "faults" => &["model", "provider", "percent", "count", "window_minutes"],
        "unknown_tasks" => &["count", "minutes"],
        "drift" => &["minutes"],
        "disk" => &["bytes"],
        "certificate" => &["days"],
        _ => &["accounts", "days"],
    }
}

/// What is watched, if a kind is named. A field of another kind is a mistake.
fn condition(asked: &OperatorRequest<'_>) -> Result<Option<AlertCondition>, Refusal> {
    const ALL: [&str; 9] =
        ["accounts", "amount_nano_usd", "window_minutes", "model", "provider", "percent", "count", "minutes", "bytes"];
    let kind: Option<String> = asked.may("kind")?;
    let own = kind.as_deref().map_or(&[][..], fields_of);
    for field in ALL.into_iter().chain(["days"]) {
        if asked.may::<Value>(field)?.is_some() && !own.contains(&field) {
            return match &kind {
                None => Err(missing("kind", "what is watched; with its fields it replaces what was")),
                Some(kind) => Err(wrong(field, &format!("no field of the kind {kind}"))),
            };
        }
    }
    let Some(kind) = kind else { return Ok(None) };
    let accounts: Vec<AccountId> = asked.or("accounts", Vec::new())?;
    let window_minutes = asked.or("window_minutes", 60)?;
    Ok(Some(match kind.as_str() {
        "balance" if accounts.is_empty() => return Err(missing("accounts", "whose balance is watched")),
        "balance" => AlertCondition::Balance { accounts, amount_nano_usd: asked.get("amount_nano_usd")? },
        "spend" => AlertCondition::Spend { accounts, amount_nano_usd: asked.get("amount_nano_usd")?, window_minutes },
        "faults" => {
            let (percent, count) = (asked.or("percent", 20)?, asked.or("count", 10)?);
            let (model, provider) = route(asked)?;
            AlertCondition::Faults { model, provider, percent, count, window_minutes }
        }
        "unknown_tasks" => {
            AlertCondition::UnknownTasks { count: asked.or("count", 1)?, minutes: asked.or("minutes", 30)? }
        }
        "drift" => match asked.or("minutes", 180)? {
            ..90 => return Err(wrong("minutes", "at least 90: all of the ledger is audited every hour")),
            minutes => AlertCondition::Drift { minutes },
        },
        "disk" => AlertCondition::Disk { bytes: asked.get("bytes")? },
        "certificate" => AlertCondition::Certificate { days: asked.or("days", 14)? },
        _ => AlertCondition::KeyEnd { accounts, days: asked.or("days", 14)? },
    }))
}

/// A model and a provider that are known.
fn route(asked: &OperatorRequest<'_>) -> Result<(Option<String>, Option<String>), Refusal> {
    let (model, provider): (Option<String>, Option<String>) = (asked.may("model")?, asked.may("provider")?);
    if let Some(model) = &model {
        known(asked, "model", std::slice::from_ref(model), Snapshot::unknown_model)?;
    }
    let serving = asked.app.serving.load();
    match &provider {
        Some(name) if !serving.providers.contains_key(name) => {
            let hint = did_you_mean(name, serving.providers.keys().map(String::as_str));
            Err(wrong("provider", &format!("the name of a provider{hint}")))
        }
        _ => Ok((model, provider)),
    }
}

async fn secret(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    super::look(&app, request, async |query| {
        query.finish()?;
        let id = found(&app, &id).await?;
        let all = app.alerts.secrets_of(id);
        Ok(json!({ "object": "webhook.secret", "secret": all.first(), "secrets": all }))
    })
    .await
}

async fn found(app: &App, id: &str) -> Result<AlertPlaceId, Refusal> {
    let missing = || Refusal::about(Code::NotFound, "place", "There is no such place.");
    let id: AlertPlaceId = id.parse().map_err(|_| missing())?;
    app.store.alert_place(id).await?.map(|found| found.place.id).ok_or_else(missing)
}

async fn test_place(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    super::change(&app, request, async |operator, mut form| {
        let reason = form.reason()?;
        form.finish()?;
        let id = found(&app, &id).await?;
        let done = Attribution::by(operator.actor(), reason);
        app.store.note_audit(&done, "alert_place.test", &id.to_string(), None, "").await?;
        Ok(tried(&app, id, sample(&app, "test")).await)
    })
    .await
}

async fn test_rule(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    super::change(&app, request, async |operator, mut form| {
        let reason = form.reason()?;
        form.finish()?;
        let missing = || Refusal::about(Code::NotFound, "rule", "There is no such rule.");
        let id: AlertRuleId = id.parse().map_err(|_| missing())?;
        let rule = app.store.alert_rule(id).await?.ok_or_else(missing)?;
        let done = Attribution::by(operator.actor(), reason);
        app.store.note_audit(&done, "alert_rule.test", &id.to_string(), None, "").await?;
        let each = rule.places.iter().map(|place| tried(&app, *place, sample(&app, &rule.name)));
        Ok(super::list(join_all(each).await))
    })
    .await
}

fn sample(app: &App, rule: &str) -> AlertNews {
    AlertNews {
        what: AlertMove::Test,
        rule: rule.to_owned(),
        kind: "test".to_owned(),
        subject: "house".to_owned(),
        message: "this is a test; nothing is wrong".to_owned(),
        at_ms: app.world.now_ms(),
    }
}

/// Sends a sample now; what came back. A letter is queued.
async fn tried(app: &App, id: AlertPlaceId, news: AlertNews) -> Value {
    let said = |outcome: &str, status: Option<u16>| json!({ "place_id": id, "outcome": outcome, "status": status });
    let Ok(Some(found)) = app.store.alert_place(id).await else { return said("no_such_place", None) };
    let Some(address) = app.alerts.open(&found.sealed) else { return said("sealed_with_other_secrets", None) };
    if found.place.kind == AlertPlaceKind::Mail {
        let letter = crate::people::letter::Letter::of_alert(crate::alerts::form::text(&news), address.to);
        let Some(sealed) = app.people.sealed(&letter, |bytes| app.world.fill(bytes)) else {
            return said("no_mail_here", None);
        };
        let queued = app.store.queue_mail(sealed).await.is_ok();
        app.people.ring();
        return said(if queued { "queued" } else { "not_reached" }, None);
    }
    let answer = app.alerts.tell((found.place.kind, id), &address, app.ids.alert_event(), &news).await;
    app.metrics.alerts.delivery(answer.outcome());
    said(answer.outcome(), answer.status())
}

fn schemas() -> Value {
    let next = json!({ "type": ["string", "null"] });
    json!({
        "AlertFiring": record("A rule that fires for a subject", &["rule_id", "subject", "since_ms", "message"]),
        "AlertList": { "type": "object", "required": ["object", "data"], "properties": {
            "object": { "const": "list" }, "data": { "type": "array", "items": named("AlertFiring") },
        } },
        "AlertEvent": record("Something that fired or ceased to", &["alert_id", "rule_id", "what", "at_ms", "deliveries"]),
        "AlertEventPage": page("AlertEvent", "next_before", &next),
        "AlertRule": record("What is watched, and where it is sent", &["rule_id", "name", "condition", "places", "enabled"]),
        "AlertPlace": record("Where alerts go; `shown` is its host, or whom mail goes to", &["place_id", "name", "kind", "shown"]),
        "AlertRemoved": record("It is gone", &["removed"]),
        "AlertTried": record("What came back of a sample", &["place_id", "outcome"]),
        "BalanceNotice": record("Below which balance an account hears of it", &["account_id", "threshold_nano_usd"]),
    })
}
