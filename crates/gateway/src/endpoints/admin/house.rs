//! What concerns the house as a whole: what is paused, what operators did, and the clock.
//! `/api/admin/pauses`, `/api/admin/audit`, `/api/admin/clock`.

use super::field::{FieldKind, TIME, VerbField, may, must};
use super::schemas::{page, record};
use super::verb::{AnswerPage, OperatorRequest, OperatorVerb, PlannedCommand, ShownAs, Then};
use super::{REASON, TEXT, known, wrong};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::refusal::Refusal;
use serde_json::{Value, json};
use tollgate_catalog::Snapshot;
use tollgate_catalog::form::did_you_mean;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{AccountId, AuditPage, PauseChange, PauseKind};

pub const FAMILY: Family = Family { tag: "operators: house", rows, schemas };

fn rows() -> Vec<Row> {
    let pauses = "/api/admin/pauses";
    vec![
        PAUSE.post(pauses, "Pauses or resumes a model or a provider").gives(named("Pause")),
        STATES.get(pauses, "The newest change of everything that was ever paused").gives(named("List")),
        CHANGES.get("/api/admin/pauses/changes", "Who paused and resumed what, newest first").gives(named("List")),
        AUDIT.get("/api/admin/audit", "Who changed what, when and why, newest first").gives(named("AuditPage")),
        CLOCK.get("/api/admin/clock", "How the clock stands that the ledger goes by").gives(named("Clock")),
        ACCEPT
            .post("/api/admin/clock/accept", "Says that the wall clock is right, though the ledger does not believe it")
            .gives(named("Clock")),
    ]
}

const NEWEST: VerbField = may("limit", FieldKind::Number(1, 1_000), "So many of the newest; 50 unless said otherwise");

static PAUSE: OperatorVerb = OperatorVerb {
    command: "pause_change",
    fields: &[
        must("kind", FieldKind::Word(&["model", "provider"]), "A cell of social data is a model"),
        must("name", TEXT, "The model or provider"),
        must("paused", FieldKind::Flag, "`false`: it is sold again"),
        REASON,
    ],
    plan: |asked| {
        let (kind, name): (PauseKind, String) = (asked.get("kind")?, asked.get("name")?);
        let (paused, done) = (asked.get("paused")?, asked.done()?);
        // What has left the catalog meanwhile can be resumed all the same.
        if paused {
            exists(asked, kind, &name)?;
        }
        let at = asked.app.world.now_ms();
        let change = PauseChange { kind, name, paused, at, actor: done.actor, reason: done.reason };
        let shown = json!(change);
        let command = AdminCommand::PauseChange { change };
        Ok(PlannedCommand::from(command).shown(ShownAs::With(Box::new(|_| shown))).then(Then::Pauses))
    },
};

fn exists(asked: &OperatorRequest<'_>, kind: PauseKind, name: &String) -> Result<(), Refusal> {
    match kind {
        PauseKind::Model => known(asked, "name", std::slice::from_ref(name), Snapshot::unknown_model),
        PauseKind::Provider => {
            let serving = asked.app.serving.load();
            if serving.providers.contains_key(name) {
                return Ok(());
            }
            let hint = did_you_mean(name, serving.providers.keys().map(String::as_str));
            Err(wrong("name", &format!("the name of a provider{hint}")))
        }
    }
}

static STATES: OperatorVerb = OperatorVerb {
    command: "pause_states",
    fields: &[],
    plan: |_| Ok(PlannedCommand::from(AdminCommand::PauseStates).shown(ShownAs::List)),
};

static CHANGES: OperatorVerb = OperatorVerb {
    command: "pause_changes",
    fields: &[NEWEST],
    plan: |asked| {
        Ok(PlannedCommand::from(AdminCommand::PauseChanges { limit: asked.or("limit", 50)? }).shown(ShownAs::List))
    },
};

static AUDIT: OperatorVerb = OperatorVerb {
    command: "audit",
    fields: &[
        may("account", FieldKind::Id("acct_"), "What was done to this account and its keys only"),
        ACTOR,
        ACTION,
        SUBJECT,
        FROM,
        TO,
        BEFORE,
        super::PAGE,
    ],
    plan: |asked| audit(asked, asked.may("account")?),
};

/// The same for whoever manages an account. Of what operators did it shows what, not who and why.
pub(in crate::endpoints) static OWN_AUDIT: OperatorVerb = OperatorVerb {
    command: "audit",
    fields: &[super::ACCOUNT, ACTION, SUBJECT, FROM, TO, BEFORE, super::PAGE],
    plan: |asked| {
        let planned = audit(asked, Some(asked.get("account")?))?;
        let ShownAs::Page(page) = planned.shown else { return Ok(planned) };
        let shown = move |mut answer: Value| {
            answer.as_array_mut().into_iter().flatten().for_each(of_operators);
            page.of_answer(answer)
        };
        Ok(PlannedCommand { shown: ShownAs::With(Box::new(shown)), ..planned })
    },
};

/// Hides who of the house did it, and why. Whoever is of the house gives a reason, or looks; keys
/// and members of the account give none.
pub(in crate::endpoints) fn of_operators(row: &mut Value) {
    let text = |name: &str| row[name].as_str().unwrap_or_default();
    let known = ["(key_", "(pers_"].iter().any(|kind| text("actor").contains(kind));
    let looks = text("action").starts_with("account.view");
    if !known || looks || !text("reason").is_empty() {
        row["actor"] = json!("operator");
        row["reason"] = json!("");
        row["request_id"] = Value::Null;
    }
}

const ACTOR: VerbField = may("actor", FieldKind::Text(1_000), "What this one did only");
const ACTION: VerbField = may("action", TEXT, "Such as `key.create`");
const SUBJECT: VerbField = may("subject", TEXT, "What was done to this only, such as a key's id");
const FROM: VerbField = may("from_ms", TIME, "Done at this time or later");
const TO: VerbField = may("to_ms", TIME, "Done before this time");
const BEFORE: VerbField = may("before", FieldKind::Number(1, i64::MAX), "`next_before` of the page before");

fn audit(asked: &OperatorRequest<'_>, account: Option<AccountId>) -> Result<PlannedCommand, Refusal> {
    let limit = super::limit(asked)?;
    let page = AuditPage {
        before: asked.may("before")?,
        limit: limit + 1,
        account,
        actor: asked.may("actor")?,
        action: asked.may("action")?,
        subject: asked.may("subject")?,
        from_ms: asked.may("from_ms")?,
        to_ms: asked.may("to_ms")?,
    };
    let shown = AnswerPage { limit, by: "seq", next: "next_before", after: None };
    Ok(PlannedCommand::from(AdminCommand::Audit { page }).shown(ShownAs::Page(shown)))
}

static CLOCK: OperatorVerb =
    OperatorVerb { command: "clock_show", fields: &[], plan: |_| Ok(AdminCommand::ClockShow.into()) };

static ACCEPT: OperatorVerb = OperatorVerb {
    command: "clock_accept",
    fields: &[REASON],
    plan: |asked| Ok(AdminCommand::ClockAccept { done: asked.done()? }.into()),
};

fn schemas() -> Value {
    json!({
        "Pause": record("Something that was paused or resumed", &["kind", "name", "paused", "actor", "reason"]),
        "AuditRow": record("Something that was done; `detail` is what was changed into what", &["seq", "at_ms", "actor", "action", "subject"]),
        "AuditPage": page("AuditRow", "next_before", &json!({ "type": ["integer", "null"] })),
        "Clock": record("The time that the ledger goes by, and the wall clock", &["now_ms", "wall_ms", "state"]),
    })
}
