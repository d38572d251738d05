//! Runs of workflows: quoted first, begun when everything is confirmed, worked on in the background
//! (`workers/runs`). What a run may cost is confirmed with it; its steps are ordinary calls.

pub mod ask;
pub mod assets;
mod found;
pub mod plan;
pub mod saved;
pub mod show;

use super::openapi::shapes::{idempotency, named, nano, number, text, text_or_null};
use super::reading;
use super::row::{Access, Family, MembersSee, Row};
use crate::app::App;
use crate::refusal::Refusal;
use crate::sale::workflows::BoundWorkflow;
use crate::who::caller::Caller;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use found::find;
use http::request::Parts;
use http::{StatusCode, header};
use plan::{RunPlan, planned, quote_json, sum, wrong_input};
use saved::{RunWish, SavedRun};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tollgate_catalog::Money;
use tollgate_store::{NewWorkflowRun, RunId, WorkflowRun, WorkflowRunLimits, WorkflowRunMade, WorkflowRunPage};
use tollgate_wire::error::{Code, ErrorFormat};
use tollgate_workflows::{Confirmation, MAX_RUN_BYTES, RunStatus, checked_inputs, items_to_confirm, privacy_digest};

/// The endpoint of every record that has steps, as the description has it.
pub const RUNS: &str = "/v1/workflows/{slug}/runs";

/// Rows of one account, open and ended.
const STORED_RUNS: u32 = 1_000;
const PAGE: u32 = 20;
const LARGEST_PAGE: u32 = 100;

pub const FAMILY: Family = Family { tag: "workflow runs", rows, schemas };

fn rows() -> Vec<Row> {
    let one = "/v1/workflows/runs/{id}";
    let page = || {
        let after =
            json!({ "name": "after", "in": "query", "description": "`last_id` of the page before", "schema": text() });
        vec![number("limit", 1, LARGEST_PAGE, PAGE), after]
    };
    let quote = "What a run can cost at most, and what is to be confirmed; nothing is held or sent";
    let resume = "Lets a run that was stopped go on: the same task first";
    let mut rows = vec![
        Row::post("/v1/workflows/{slug}/quote", Access::Key, quote_run, quote)
            .takes(named("RunInputs"))
            .gives(named("RunQuote"))
            .refused_with(&[409]),
        Row::post(RUNS, Access::Key, create, "Begins a run of a workflow whose cost and privacy sheet are confirmed")
            .with(idempotency)
            .takes(named("RunRequest"))
            .replies_with(202, "application/json", named("Run"))
            .refused_with(&[402, 409]),
        Row::get("/v1/workflows/runs", Access::Key, list, "The runs of the account, newest first")
            .with(page)
            .gives(named("RunList"))
            .to_members(MembersSee::OwnKeys),
        Row::get(one, Access::Key, get, "A run with its steps, charges and outputs")
            .gives(named("Run"))
            .to_members(MembersSee::OwnKeys),
        Row::post("/v1/workflows/runs/{id}/cancel", Access::Key, cancel, "Ends a run before its next step")
            .gives(named("Run"))
            .refused_with(&[409]),
        Row::post("/v1/workflows/runs/{id}/resume", Access::Key, resume_run, resume)
            .takes(named("RunResume"))
            .gives(named("Run"))
            .refused_with(&[409]),
    ];
    rows.extend(assets::rows());
    rows
}

fn schemas() -> Value {
    let inputs = json!({ "type": "object", "description": "By the ids of the record's inputs; an asset is the id of an upload or an https link" });
    let confirm = json!({ "type": "object", "additionalProperties": false, "properties": {
        "contract": { "type": "string", "description": "The digest of the contract that was quoted" },
        "privacy": { "type": "string", "description": "The digest of the privacy sheet" },
        "max_cost_nano_usd": { "type": "integer", "minimum": 0, "description": "The run never costs more" },
        "items": { "type": "array", "items": text() },
    } });
    let step = json!({ "type": "object", "required": ["name", "status"], "properties": {
        "name": text(), "status": { "enum": ["pending", "sent", "done", "failed", "unknown"] }, "endpoint": text_or_null(),
        "model": text_or_null(), "charged_nano_usd": nano(), "call_id": text_or_null(),
        "calls": { "type": "array", "items": text() }, "outputs": { "type": ["object", "null"] },
        "warnings": { "type": "array", "items": { "type": "object", "required": ["field", "message"], "properties": {
            "field": text(), "message": text(),
        } }, "description": "Fields of the step's request that did not count" },
    } });
    json!({
        "RunInputs": { "type": "object", "required": ["inputs"], "additionalProperties": false, "properties": { "inputs": inputs } },
        "RunRequest": { "type": "object", "required": ["inputs"], "additionalProperties": false, "properties": {
            "inputs": inputs, "confirm": confirm,
        } },
        "RunResume": { "type": "object", "additionalProperties": false, "properties": {
            "max_cost_nano_usd": { "type": "integer", "minimum": 0 },
            "resubmit": { "type": "boolean", "description": "The step whose charge is unknown may be sent once more" },
        } },
        "RunQuote": { "type": "object", "required": ["object", "slug", "steps", "most_nano_usd", "privacy", "confirm"], "properties": {
            "object": { "const": "workflow.quote" }, "slug": text(), "steps": { "type": "array", "items": { "type": "object" } },
            "most_nano_usd": nano(), "most_usd": text(), "privacy": { "type": "object" }, "confirm": { "type": "object" },
            "executable": { "type": "boolean" }, "blocking_code": text_or_null(), "blocking_reason": text_or_null(),
        } },
        "Run": { "type": "object", "required": ["id", "object", "slug", "status"], "properties": {
            "id": text(), "object": { "const": "workflow.run" }, "slug": text(),
            "status": { "enum": ["running", "waiting", "completed", "failed", "stopped", "cancelled"] },
            "stopped": text_or_null(), "failure": text_or_null(), "max_cost_nano_usd": nano(), "charged_nano_usd": nano(),
            "charged_usd": text(), "created_at_ms": { "type": "integer" }, "changed_at_ms": { "type": "integer" },
            "ended_at_ms": { "type": ["integer", "null"] }, "steps": { "type": "array", "items": step },
        } },
        "RunList": { "type": "object", "required": ["object", "data", "has_more"], "properties": {
            "object": { "const": "list" }, "data": { "type": "array", "items": named("Run") },
            "has_more": { "type": "boolean" }, "last_id": text_or_null(),
        } },
        "Asset": { "type": "object", "required": ["id", "object", "bytes"], "properties": {
            "id": text(), "object": { "const": "workflow.asset" }, "bytes": { "type": "integer" }, "content_type": text(),
            "seconds": { "type": ["number", "null"] }, "url": text(), "expires_at": { "type": ["integer", "null"] },
        } },
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunRequest {
    inputs: Map<String, Value>,
    #[serde(default)]
    confirm: Confirm,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Confirm {
    contract: Option<String>,
    privacy: Option<String>,
    max_cost_nano_usd: Option<u64>,
    #[serde(default)]
    items: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResumeRequest {
    max_cost_nano_usd: Option<u64>,
    #[serde(default)]
    resubmit: bool,
}

/// A whole amount of nano-dollars.
fn money(nano: u64) -> Result<Money, Refusal> {
    let wrong = || Refusal::about(Code::InvalidParameter, "max_cost_nano_usd", "`max_cost_nano_usd` is too large.");
    i64::try_from(nano).map(Money::from_nano).map_err(|_| wrong())
}

fn read<T: for<'d> Deserialize<'d>>(body: &[u8]) -> Result<T, Refusal> {
    let value: Value =
        serde_json::from_slice(body).map_err(|_| Refusal::new(Code::InvalidJson, "The body is not a JSON object."))?;
    T::deserialize(value).map_err(|error| {
        // Says which field; never all of what was in it.
        let what: String = error.to_string().chars().take(200).collect();
        Refusal::new(Code::InvalidRequest, format!("The body is not as this endpoint takes it: {what}."))
    })
}

/// Inputs that are all right, in number, kind and size.
async fn inputs(
    app: &App,
    caller: &Caller,
    bound: &BoundWorkflow,
    given: &Map<String, Value>,
) -> Result<BTreeMap<String, Value>, Refusal> {
    let record = &bound.workflow.record;
    let inputs = checked_inputs(record, given).map_err(|mut wrong| wrong_input(wrong.remove(0)))?;
    if inputs.values().map(|value| value.to_string().len()).sum::<usize>() > MAX_RUN_BYTES {
        let text = format!("The inputs have more than {MAX_RUN_BYTES} bytes together.");
        return Err(Refusal::about(Code::InvalidParameter, "inputs", text));
    }
    ask::has_files(app, caller.account.id, record, &inputs).await?;
    Ok(inputs)
}

async fn replied(app: &App, work: impl Future<Output = Result<Response, Refusal>>) -> Response {
    match reading::guarded(work).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(app, ErrorFormat::OpenAi, refusal, ""),
    }
}

async fn quote_run(State(app): State<Arc<App>>, Path(slug): Path<String>, request: Request) -> Response {
    let work = async {
        let (parts, body) = request.into_parts();
        let caller = reading::caller(&app, &parts).await?;
        let asked: RunRequest = read(&reading::json_body(&app, &caller, &parts, body).await?)?;
        let found = find(&app, &slug)?;
        let bound = &found.bound;
        let inputs = inputs(&app, &caller, bound, &asked.inputs).await?;
        let steps = planned(&app, &caller, &bound.workflow, &inputs)?;
        let items = items_to_confirm(&bound.workflow.record, &inputs).into_iter().collect();
        let mut quote = quote_json(bound, &steps, items);
        found.written(&mut quote);
        Ok(reading::json(&quote))
    };
    replied(&app, work).await
}

async fn create(State(app): State<Arc<App>>, Path(slug): Path<String>, request: Request) -> Response {
    replied(&app, begin(&app, &slug, request)).await
}

async fn begin(app: &Arc<App>, slug: &str, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let body = reading::json_body(app, &caller, &parts, body).await?;
    let idem = reading::idempotency(&parts.headers, &format!("{RUNS} {slug}"), &body)?;
    let idem = idem.map(|idem| (idem.key_hash, idem.fingerprint));
    // Who repeats a request gets its run, whatever prices and records are by now.
    if let Some(before) = app.store.run_begun_with(caller.account.id, idem).await? {
        return begun(app, &parts, &caller, before).await;
    }
    let asked: RunRequest = read(&body)?;
    let found = find(app, slug)?;
    found.executable(asked.confirm.contract.as_deref())?;
    let bound = &found.bound;
    // Nobody who has nothing begins anything: it would be stopped at its first step.
    reading::reads_large(app, &caller).await??;
    let inputs = inputs(app, &caller, bound, &asked.inputs).await?;
    let steps = planned(app, &caller, &bound.workflow, &inputs)?;
    let confirmed = Confirmation {
        privacy: asked.confirm.privacy,
        max_cost: asked.confirm.max_cost_nano_usd.map(money).transpose()?,
        items: asked.confirm.items,
    };
    let max_cost = confirm(bound, &confirmed, &inputs, &steps)?;
    let plan = RunPlan::new(&bound.workflow, &bound.digest, inputs, steps, host(&parts));
    let new = NewRun { app, caller: &caller, slug, max_cost, idem };
    let id = app.ids.run();
    match new.begin(id, plan).await? {
        WorkflowRunMade::Made => begun(app, &parts, &caller, WorkflowRunMade::Before(id)).await,
        other => begun(app, &parts, &caller, other).await,
    }
}

/// The answer to whoever begins a run.
async fn begun(app: &App, parts: &Parts, caller: &Caller, made: WorkflowRunMade) -> Result<Response, Refusal> {
    let id = match made {
        WorkflowRunMade::Before(id) => id,
        WorkflowRunMade::Made => return Err(unknown()),
        WorkflowRunMade::Conflict => {
            let text = "This Idempotency-Key was used with another body.";
            return Err(Refusal::about(Code::IdempotencyConflict, "Idempotency-Key", text));
        }
        WorkflowRunMade::Full => {
            let open = app.settings.runs.open;
            let text = format!("The account has {open} runs that have not ended; end one of them first.");
            return Err(Refusal::new(Code::RateLimitExceeded, text).because("open_runs"));
        }
    };
    let run = app.store.run(caller.account.id, id).await?.ok_or_else(unknown)?;
    let mut reply = reading::json(&show::shown(app, &reading::base(app, parts), &run, true));
    *reply.status_mut() = StatusCode::ACCEPTED;
    Ok(reply)
}

fn host(parts: &Parts) -> Option<String> {
    let host = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
    host.filter(|host| host.len() <= 255).map(str::to_owned)
}

/// The most that the run may cost; or everything that is still to be confirmed.
fn confirm(
    bound: &BoundWorkflow,
    confirmed: &Confirmation,
    inputs: &BTreeMap<String, Value>,
    steps: &[plan::PlannedStep],
) -> Result<Money, Refusal> {
    let workflow = &bound.workflow;
    let mut lacks = confirmed.lacks(&workflow.record, &privacy_digest(&workflow.value), inputs);
    let enough = confirmed.max_cost.filter(|most| *most >= sum(steps));
    if enough.is_none() && !lacks.iter().any(|one| one == "cost") {
        lacks.push("cost".to_owned());
    }
    match enough {
        Some(most) if lacks.is_empty() => Ok(most),
        _ => {
            let items = items_to_confirm(&workflow.record, inputs).into_iter().collect();
            let details = json!({ "lacks": lacks, "quote": quote_json(bound, steps, items) });
            let text = format!("To be confirmed first: {}. Nothing was begun.", lacks.join(", "));
            let mut refusal = Refusal::about(Code::ConfirmationRequired, "confirm", text);
            refusal.details = Some(details.to_string().into());
            Err(refusal)
        }
    }
}

/// A run that is to begin.
pub struct NewRun<'a> {
    pub app: &'a App,
    pub caller: &'a Caller,
    pub slug: &'a str,
    pub max_cost: Money,
    pub idem: Option<([u8; 32], [u8; 32])>,
}

impl NewRun<'_> {
    pub async fn begin(self, id: RunId, plan: RunPlan) -> Result<WorkflowRunMade, Refusal> {
        let (app, account) = (self.app, self.caller.account.id);
        let saved = SavedRun::new(plan.steps.iter().map(|step| step.name.as_str()), self.max_cost);
        let written = |value: serde_json::Result<String>| {
            value.map_err(|_| Refusal::new(Code::Internal, "The run could not be written down."))
        };
        let new = NewWorkflowRun {
            id,
            account,
            key: self.caller.key.id,
            slug: self.slug.to_owned(),
            idem: self.idem,
            plan: written(serde_json::to_string(&plan))?,
            state: written(serde_json::to_string(&saved))?,
            status: saved.status().to_owned(),
        };
        let limits = WorkflowRunLimits { open: app.settings.runs.open, stored: STORED_RUNS };
        let made = app.store.create_run(new, limits).await?;
        app.ring_runs();
        Ok(made)
    }
}

fn unknown() -> Refusal {
    Refusal::about(Code::NotFound, "id", "There is no such run of this account.")
}

/// A run of the caller's own account.
async fn own(app: &App, caller: &Caller, id: &str) -> Result<WorkflowRun, Refusal> {
    let id: RunId = id.parse().map_err(|_| unknown())?;
    let run = app.store.run(caller.account.id, id).await?.ok_or_else(unknown)?;
    if caller.sees(&app.store, run.key).await? { Ok(run) } else { Err(unknown()) }
}

async fn get(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let work = async {
        let (parts, _) = request.into_parts();
        let run = own(&app, reading::caller(&app, &parts).await?.as_ref(), &id).await?;
        Ok(reading::json(&show::shown(&app, &reading::base(&app, &parts), &run, true)))
    };
    replied(&app, work).await
}

async fn list(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    let work = async {
        let (parts, _) = request.into_parts();
        let caller = reading::caller(&app, &parts).await?;
        let page = page(query.as_deref().unwrap_or_default())?;
        let more = WorkflowRunPage { limit: page.limit + 1, ..page };
        let mut runs = app.store.runs(caller.reach(&app.store).await?, more).await?;
        let has_more = runs.len() > page.limit as usize;
        runs.truncate(page.limit as usize);
        let base = reading::base(&app, &parts);
        let data: Vec<Value> = runs.iter().map(|run| show::shown(&app, &base, run, false)).collect();
        let last = runs.last().map(|run| run.id);
        Ok(reading::json(&json!({ "object": "list", "data": data, "has_more": has_more, "last_id": last })))
    };
    replied(&app, work).await
}

fn page(query: &str) -> Result<WorkflowRunPage, Refusal> {
    let mut page = WorkflowRunPage { after: None, limit: PAGE };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = |text: String| Refusal::about(Code::InvalidParameter, name, text);
        match name {
            "after" => page.after = Some(value.parse().map_err(|_| wrong("`after` is the id of a run.".to_owned()))?),
            "limit" => {
                let fits = value.parse().ok().filter(|limit| (1..=LARGEST_PAGE).contains(limit));
                page.limit = fits.ok_or_else(|| wrong(format!("`limit` is a number from 1 to {LARGEST_PAGE}.")))?;
            }
            _ => {
                let name: String = name.chars().take(64).collect();
                let text = format!("`{name}` is not a parameter of this endpoint.");
                return Err(Refusal::about(Code::UnknownParameter, &name, text));
            }
        }
    }
    Ok(page)
}

async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let work = async {
        let (parts, _) = request.into_parts();
        let run = own(&app, reading::caller(&app, &parts).await?.as_ref(), &id).await?;
        wish(&app, &parts, run, &RunWish::Cancel).await
    };
    replied(&app, work).await
}

async fn resume_run(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let work = async {
        let (parts, body) = request.into_parts();
        let caller = reading::caller(&app, &parts).await?;
        let asked: ResumeRequest = read(&reading::json_body(&app, &caller, &parts, body).await?)?;
        let run = own(&app, &caller, &id).await?;
        let saved = SavedRun::read(&run);
        if saved.is_none_or(|saved| saved.machine.status != RunStatus::Stopped) {
            let text = format!("The run is {}; only one that is stopped can be resumed.", run.status);
            return Err(Refusal::about(Code::Conflict, "id", text));
        }
        let max_cost = asked.max_cost_nano_usd.map(money).transpose()?;
        wish(&app, &parts, run, &RunWish::Resume { max_cost, resubmit: asked.resubmit }).await
    };
    replied(&app, work).await
}

/// Leaves a wish with a run that has not ended; shows the run.
async fn wish(app: &App, parts: &Parts, run: WorkflowRun, wish: &RunWish) -> Result<Response, Refusal> {
    let base = reading::base(app, parts);
    if run.ended_at.is_none() {
        let text = serde_json::to_string(wish).unwrap_or_default();
        // Who has asked to go on may still think better of it.
        let replaces = *wish == RunWish::Cancel;
        let left = app.store.wish_run(run.account, run.id, text, replaces).await?;
        app.ring_runs();
        let now = app.store.run(run.account, run.id).await?.ok_or_else(unknown)?;
        if !left && now.ended_at.is_none() {
            let text = "Something else was asked of this run a moment ago; ask again.";
            return Err(Refusal::about(Code::Conflict, "id", text));
        }
        return Ok(reading::json(&show::shown(app, &base, &now, true)));
    }
    Ok(reading::json(&show::shown(app, &base, &run, true)))
}
