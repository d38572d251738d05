//! `/api/admin/workflows`: all workflows with how far they are and what keeps them there, locking
//! and unlocking of their contracts, and who did it.

use super::field::{FieldKind, VerbField, may, must};
use super::schemas::record;
use super::verb::{OperatorRequest, OperatorVerb, PlannedCommand, ShownAs, Then};
use super::{REASON, TEXT, list};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::sale::workflows::BoundWorkflow;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::form::did_you_mean;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{WorkflowMove, WorkflowVerb};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "operators: workflows", rows, schemas };

fn rows() -> Vec<Row> {
    let moves = "Who locked and unlocked a workflow, when and why, newest first";
    vec![
        STATES
            .get("/api/admin/workflows", "All workflows with how far they are, and what keeps them there")
            .gives(named("List")),
        MOVES.get("/api/admin/workflows/{slug}/moves", moves).gives(named("List")),
        LOCK.post("/api/admin/workflows/{slug}/lock", "Fixes the contract of a workflow, with a reason")
            .gives(named("WorkflowMove")),
        UNLOCK
            .post("/api/admin/workflows/{slug}/unlock", "Lets the contract of a workflow change again, with a reason")
            .gives(named("WorkflowMove")),
    ]
}

fn schemas() -> Value {
    let fields = ["slug", "verb", "at_ms", "actor", "reason", "evidence"];
    json!({ "WorkflowMove": record("What an operator did to a workflow", &fields) })
}

const SLUG: VerbField = must("slug", TEXT, "The workflow");

static STATES: OperatorVerb = OperatorVerb {
    command: "workflow_states",
    fields: &[],
    plan: |asked| {
        let serving = asked.app.serving.load_full();
        let shown = ShownAs::With(Box::new(move |states| {
            let states: Vec<WorkflowMove> = serde_json::from_value(states).unwrap_or_default();
            list(standings(&serving, &states))
        }));
        Ok(PlannedCommand::from(AdminCommand::WorkflowStates).shown(shown))
    },
};

static MOVES: OperatorVerb = OperatorVerb {
    command: "workflow_moves",
    fields: &[SLUG, may("limit", FieldKind::Number(1, 1_000), "So many of the newest; 50 unless said otherwise")],
    plan: |asked| {
        let (slug, limit) = (asked.get("slug")?, asked.or("limit", 50)?);
        Ok(PlannedCommand::from(AdminCommand::WorkflowMoves { slug, limit }).shown(ShownAs::List))
    },
};

static LOCK: OperatorVerb =
    OperatorVerb { command: "workflow_move", fields: &[SLUG, REASON], plan: |asked| moved(asked, WorkflowVerb::Lock) };

static UNLOCK: OperatorVerb = OperatorVerb {
    command: "workflow_move",
    fields: &[SLUG, REASON],
    plan: |asked| moved(asked, WorkflowVerb::Unlock),
};

fn moved(asked: &OperatorRequest<'_>, verb: WorkflowVerb) -> Result<PlannedCommand, Refusal> {
    let (app, slug) = (asked.app, asked.get::<String>("slug")?);
    let serving = app.serving.load_full();
    let bound = serving.workflows.get(&slug).ok_or_else(|| {
        let hint = did_you_mean(&slug, serving.workflows.keys().map(String::as_str));
        Refusal::about(Code::NotFound, "slug", format!("There is no such workflow{hint}."))
    })?;
    let all = app.workflows.all();
    let newest = all.get(&slug).and_then(|shown| shown.newest.as_ref());
    let moved = bound.planned(verb, newest, asked.done()?, app.world.now_ms());
    let moved = moved.map_err(|why| Refusal::new(Code::Conflict, format!("Not done: {why}.")))?;
    let shown = json!(moved);
    let command = AdminCommand::WorkflowMove { moved };
    Ok(PlannedCommand::from(command).shown(ShownAs::With(Box::new(|_| shown))).then(Then::Workflows))
}

/// How far each workflow is, for operators here and on the command line.
pub fn standings(serving: &Serving, states: &[WorkflowMove]) -> Vec<Value> {
    let row = |(slug, bound): (&String, &Arc<BoundWorkflow>)| {
        let newest = states.iter().find(|moved| moved.slug == *slug);
        let standing = bound.standing(newest);
        json!({
            "slug": slug,
            "title": bound.workflow.record.title,
            "stage": standing.stage.word(),
            "claimed": bound.workflow.claimed.word(),
            "contract_status": standing.stage.contract_status(),
            "semantic_digest_sha256": bound.digest,
            "blocked": standing.blocked,
            "cannot_be_locked": bound.unbound,
            "moved_at_ms": newest.map(|moved| moved.at),
            "actor": newest.map(|moved| &moved.actor),
            "reason": newest.map(|moved| &moved.reason),
        })
    };
    serving.workflows.iter().map(row).collect()
}
