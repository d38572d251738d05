//! `/api/admin/workflows`: all workflows with how far they are and what keeps them there, locking
//! and unlocking of their contracts, runs of their fixtures, and who did it.

use super::field::{FieldKind, VerbField, may, must};
use super::schemas::record;
use super::verb::{OperatorRequest, OperatorVerb, PlannedCommand, ShownAs, Then};
use super::{REASON, TEXT, list};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::endpoints::runs::plan::RunPlan;
use crate::endpoints::runs::saved::SavedRun;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::sale::workflows::BoundWorkflow;
use crate::world::Millis;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::Money;
use tollgate_catalog::form::did_you_mean;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{AccountId, Attribution, KeyId, NewWorkflowRun, RunId, WorkflowMove, WorkflowVerb};
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
        VERIFY
            .post("/api/admin/workflows/{slug}/verify", "Runs the fixture of a workflow; one that passes is executable")
            .gives(named("WorkflowRunBegun")),
        WITHDRAW
            .post("/api/admin/workflows/{slug}/withdraw", "Makes a workflow wait for another run of its fixture")
            .gives(named("WorkflowMove")),
        RUN.get("/api/admin/workflows/runs/{id}", "A run, whoever it belongs to").gives(named("WorkflowRunRecord")),
        UNLOCK
            .post("/api/admin/workflows/{slug}/unlock", "Lets the contract of a workflow change again, with a reason")
            .gives(named("WorkflowMove")),
    ]
}

fn schemas() -> Value {
    let fields = ["slug", "verb", "at_ms", "actor", "reason", "evidence"];
    let run = ["id", "account", "slug", "status", "plan", "state", "created_at", "ended_at"];
    json!({
        "WorkflowMove": record("What an operator did to a workflow", &fields),
        "WorkflowRunBegun": record("The run of a fixture that was begun", &["run", "slug"]),
        "WorkflowRunRecord": record("A run as it is stored", &run),
    })
}

const SLUG: VerbField = must("slug", TEXT, "The workflow");

static STATES: OperatorVerb = OperatorVerb {
    command: "workflow_states",
    fields: &[],
    plan: |asked| {
        let (serving, now) = (asked.app.serving.load_full(), asked.app.world.now_ms());
        let shown = ShownAs::With(Box::new(move |states| {
            let states: Vec<WorkflowMove> = serde_json::from_value(states).unwrap_or_default();
            list(standings(&serving, &states, now))
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

static WITHDRAW: OperatorVerb = OperatorVerb {
    command: "workflow_move",
    fields: &[SLUG, REASON],
    plan: |asked| moved(asked, WorkflowVerb::Withdraw),
};

static VERIFY: OperatorVerb = OperatorVerb {
    command: "workflow_run_create",
    fields: &[
        SLUG,
        must("account", TEXT, "The account that pays"),
        must("key", TEXT, "The key of that account, by its id"),
        may(
            "max_cost_nano_usd",
            FieldKind::Number(0, 1_000_000_000_000),
            "The most that it may cost; one dollar unless said otherwise",
        ),
        REASON,
    ],
    plan: |asked| {
        let app = asked.app;
        let bound = named_workflow(&app.serving.load(), &asked.get::<String>("slug")?)?;
        let all = app.workflows.all();
        let newest = all.get(&bound.workflow.record.slug).and_then(|shown| shown.newest.as_ref());
        let most = Money::from_nano(asked.or("max_cost_nano_usd", 1_000_000_000)?);
        let payer = (id(asked, "account")?, id(asked, "key")?);
        let new = fixture_run(&bound, newest, payer, (app.ids.run(), most), asked.done()?, app.world.now_ms());
        let new = new.map_err(|why| Refusal::new(Code::Conflict, format!("Not done: {why}.")))?;
        let shown = json!({ "run": new.id, "slug": new.slug });
        let command = AdminCommand::WorkflowRunCreate { new: Box::new(new) };
        Ok(PlannedCommand::from(command).shown(ShownAs::With(Box::new(|_| shown))))
    },
};

static RUN: OperatorVerb = OperatorVerb {
    command: "workflow_run_show",
    fields: &[must("id", TEXT, "The run")],
    plan: |asked| Ok(PlannedCommand::from(AdminCommand::WorkflowRunShow { id: id(asked, "id")? })),
};

/// An id of the kind that a field wants.
fn id<T: std::str::FromStr>(asked: &OperatorRequest<'_>, field: &'static str) -> Result<T, Refusal> {
    let wrong = |_| Refusal::about(Code::InvalidParameter, field, format!("`{field}` is not an id of its kind."));
    asked.get::<String>(field)?.parse().map_err(wrong)
}

/// The run of a fixture, whose inputs are taken from its files when it begins; or why there is
/// none.
pub fn fixture_run(
    bound: &BoundWorkflow,
    newest: Option<&WorkflowMove>,
    (account, key): (AccountId, KeyId),
    (id, most): (RunId, Money),
    done: Attribution,
    now: Millis,
) -> Result<NewWorkflowRun, String> {
    bound.fixed(newest, now)?;
    let workflow = &bound.workflow;
    let slug = &workflow.record.slug;
    let fixture = workflow.fixture.as_ref().ok_or_else(|| format!("{slug} has no fixture"))?;
    let inputs = fixture.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let plan = RunPlan { verifies: Some(done), ..RunPlan::new(workflow, &bound.digest, inputs, Vec::new(), None) };
    let saved = SavedRun::new([], most);
    let written = |value: serde_json::Result<String>| value.map_err(|error| error.to_string());
    Ok(NewWorkflowRun {
        id,
        account,
        key,
        slug: slug.clone(),
        idem: None,
        plan: written(serde_json::to_string(&plan))?,
        state: written(serde_json::to_string(&saved))?,
        status: saved.status().to_owned(),
    })
}

fn named_workflow(serving: &Serving, slug: &str) -> Result<Arc<BoundWorkflow>, Refusal> {
    serving.workflows.get(slug).cloned().ok_or_else(|| {
        let hint = did_you_mean(slug, serving.workflows.keys().map(String::as_str));
        Refusal::about(Code::NotFound, "slug", format!("There is no such workflow{hint}."))
    })
}

fn moved(asked: &OperatorRequest<'_>, verb: WorkflowVerb) -> Result<PlannedCommand, Refusal> {
    let (app, slug) = (asked.app, asked.get::<String>("slug")?);
    let serving = app.serving.load_full();
    let bound = named_workflow(&serving, &slug)?;
    let all = app.workflows.all();
    let newest = all.get(&slug).and_then(|shown| shown.newest.as_ref());
    let moved = bound.planned(verb, newest, asked.done()?, app.world.now_ms());
    let moved = moved.map_err(|why| Refusal::new(Code::Conflict, format!("Not done: {why}.")))?;
    let shown = json!(moved);
    let command = AdminCommand::WorkflowMove { moved };
    Ok(PlannedCommand::from(command).shown(ShownAs::With(Box::new(|_| shown))).then(Then::Workflows))
}

/// How far each workflow is, for operators here and on the command line.
pub fn standings(serving: &Serving, states: &[WorkflowMove], now: Millis) -> Vec<Value> {
    let row = |(slug, bound): (&String, &Arc<BoundWorkflow>)| {
        let newest = states.iter().find(|moved| moved.slug == *slug);
        let standing = bound.standing(newest, now);
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
