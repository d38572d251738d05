//! What concerns the house as a whole: what is paused, what operators did, and the clock.
//! `/api/admin/pauses`, `/api/admin/audit`, `/api/admin/clock`.

use super::field::{FieldKind, VerbField, may, must};
use super::schemas::record;
use super::verb::{OperatorRequest, OperatorVerb, PlannedCommand, ShownAs, Then};
use super::{REASON, TEXT, known, wrong};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::refusal::Refusal;
use serde_json::{Value, json};
use tollgate_catalog::Snapshot;
use tollgate_catalog::form::did_you_mean;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{PauseChange, PauseKind};

pub const FAMILY: Family = Family { tag: "operators: house", rows, schemas };

fn rows() -> Vec<Row> {
    let pauses = "/api/admin/pauses";
    vec![
        PAUSE.post(pauses, "Pauses or resumes a model or a provider").gives(named("Pause")),
        STATES.get(pauses, "The newest change of everything that was ever paused").gives(named("List")),
        CHANGES.get("/api/admin/pauses/changes", "Who paused and resumed what, newest first").gives(named("List")),
        AUDIT.get("/api/admin/audit", "What operators did to accounts and keys, newest first").gives(named("List")),
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
    command: "operator_events",
    fields: &[NEWEST],
    plan: |asked| {
        Ok(PlannedCommand::from(AdminCommand::OperatorEvents { limit: asked.or("limit", 50)? }).shown(ShownAs::List))
    },
};

static CLOCK: OperatorVerb =
    OperatorVerb { command: "clock_show", fields: &[], plan: |_| Ok(AdminCommand::ClockShow.into()) };

static ACCEPT: OperatorVerb =
    OperatorVerb { command: "clock_accept", fields: &[], plan: |_| Ok(AdminCommand::ClockAccept.into()) };

fn schemas() -> Value {
    json!({
        "Pause": record("Something that was paused or resumed", &["kind", "name", "paused", "actor", "reason"]),
        "Clock": record("The time that the ledger goes by, and the wall clock", &["now_ms", "wall_ms", "state"]),
    })
}
