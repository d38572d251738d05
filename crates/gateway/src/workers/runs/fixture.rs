//! The beginning of the run of a fixture: its files are stored for whoever pays, its steps
//! planned as for a customer.

use super::{LEASE, millis, verify};
use crate::app::App;
use crate::door::spool::{IN_MEMORY, SpoolTerms};
use crate::endpoints::runs::assets::{shelve, whose};
use crate::endpoints::runs::plan::{RunPlan, planned as planned_steps};
use crate::endpoints::runs::saved::SavedRun;
use crate::who::caller::Caller;
use crate::work::run_files::RunFileWatch;
use bytes::Bytes;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tollgate_store::{AccountId, StoreError, WorkflowRun, WorkflowRunNext, WorkflowRunWrite};
use tollgate_workflows::{InputKind, RunStatus, checked_inputs};

/// The largest file of a fixture.
const FILE_BYTES: u64 = 25 << 20;

/// Plans a run of a fixture that has no plan yet; the inner error says why it cannot be.
pub(super) async fn planned(app: &Arc<App>, run: &mut WorkflowRun) -> Result<Result<(), String>, StoreError> {
    let plan = serde_json::from_str::<RunPlan>(&run.plan).ok();
    let Some(mut plan) = plan.filter(|plan| plan.verifies.is_some() && plan.steps.is_empty()) else {
        return Ok(Ok(()));
    };
    let key = app.store.keys(run.account).await?.into_iter().find(|key| key.id == run.key);
    let Some(key) = key else { return Ok(Err("the account has no such key".to_owned())) };
    let Some(found) = app.store.key_by_hash(key.hash).await? else { return Ok(Err("there is no such key".to_owned())) };
    if let Err(why) = fill(app, &Caller::new(found), run, &mut plan).await {
        return Ok(Err(why));
    }
    let Some(saved) = SavedRun::read(run) else { return Ok(Err("the run cannot be read".to_owned())) };
    let saved = SavedRun::new(plan.steps.iter().map(|step| step.name.as_str()), saved.machine.max_cost);
    run.plan = serde_json::to_string(&plan).unwrap_or_default();
    run.state = serde_json::to_string(&saved).unwrap_or_default();
    let write = WorkflowRunWrite {
        id: run.id,
        fence: run.fence,
        plan: Some(run.plan.clone()),
        state: run.state.clone(),
        status: saved.status().to_owned(),
        heard: None,
        call: None,
        next: WorkflowRunNext::Mine(millis(LEASE)),
    };
    // Whoever else has it by now plans it too; the next write shows it.
    app.store.write_run(write).await?;
    Ok(Ok(()))
}

/// The state of a run that cannot be planned.
pub(super) fn failed(run: &WorkflowRun, why: String) -> String {
    let Some(mut saved) = SavedRun::read(run) else { return run.state.clone() };
    (saved.machine.status, saved.machine.failure) = (RunStatus::Failed, Some(why));
    serde_json::to_string(&saved).unwrap_or_default()
}

async fn fill(app: &Arc<App>, caller: &Caller, run: &WorkflowRun, plan: &mut RunPlan) -> Result<(), String> {
    let serving = app.serving.load_full();
    let bound = serving.workflows.get(&run.slug).filter(|bound| bound.digest == plan.digest);
    let bound = bound.ok_or("the contract has changed since the run was asked for")?;
    let record = &bound.workflow.record;
    let folder = Path::new(&bound.workflow.file).with_extension("");
    let mut given: Map<String, Value> = plan.inputs.clone().into_iter().collect();
    for input in record.inputs.iter().filter(|input| input.kind == InputKind::Asset) {
        let Some(Value::String(name)) = given.get_mut(&input.id) else { continue };
        *name = put(app, run.account, &folder.join(&*name)).await?;
    }
    plan.inputs = checked_inputs(record, &given)
        .map_err(|wrong| wrong.first().map(|one| format!("{} {}", one.path, one.reason)).unwrap_or_default())?;
    plan.steps = planned_steps(app, caller, &bound.workflow, &plan.inputs).map_err(|refusal| refusal.message)?;
    // Nothing is bought to find out what is known.
    let unread = plan.steps.iter().find_map(|step| verify::unread(&step.name, &step.warnings));
    unread.map_or(Ok(()), Err)
}

/// Stores a file of a fixture; its name there.
async fn put(app: &Arc<App>, account: AccountId, path: &Path) -> Result<String, String> {
    let name = path.display().to_string();
    let wrong = |error: std::io::Error| format!("{name}: {error}");
    let mut file = tokio::fs::File::open(path).await.map_err(wrong)?;
    let terms = SpoolTerms { whose: Some(whose(account)), most: FILE_BYTES, in_memory: IN_MEMORY };
    let mut spooling = app.spool.begin(terms, RunFileWatch::default()).await.map_err(|refusal| refusal.message)?;
    let mut piece = vec![0; 64 << 10];
    loop {
        let length = file.read(&mut piece).await.map_err(wrong)?;
        if length == 0 {
            break;
        }
        spooling.push(&Bytes::copy_from_slice(&piece[..length])).await.map_err(|refusal| refusal.message)?;
    }
    let spooled = spooling.finish().await.map_err(|refusal| refusal.message)?;
    shelve(app, account, spooled.file, spooled.watch).await.map_err(|refusal| refusal.message)
}
