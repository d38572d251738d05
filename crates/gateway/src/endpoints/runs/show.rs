//! A run as its customer sees it: what it does, what each step cost, what came out.

use super::plan::RunPlan;
use super::saved::{SavedRun, linked};
use crate::app::App;
use crate::work::run_files::{RunFileName, RunFiles};
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::WorkflowRun;

/// The run, whole or as a line of a list.
pub fn shown(app: &App, base: &str, run: &WorkflowRun, whole: bool) -> Value {
    let (plan, saved) = (serde_json::from_str::<RunPlan>(&run.plan).ok(), SavedRun::read(run));
    let Some(saved) = saved else { return json!({ "id": run.id, "object": "workflow.run", "status": run.status }) };
    let machine = &saved.machine;
    let mut value = json!({
        "id": run.id,
        "object": "workflow.run",
        "slug": run.slug,
        "status": run.status,
        "stopped": machine.stopped,
        "failure": machine.failure,
        "max_cost_nano_usd": machine.max_cost.nano(),
        "charged_nano_usd": saved.charged().nano(),
        "charged_usd": saved.charged().to_string(),
        "created_at_ms": run.created_at,
        "changed_at_ms": run.changed_at,
        "ended_at_ms": run.ended_at,
    });
    if !whole {
        return value;
    }
    let now = app.world.now_ms();
    let link = |text: &str| {
        let own = RunFileName::read(text).is_some_and(|name| name.belongs_to(run.account));
        own.then(|| RunFiles::link(&app.secrets, base, text, now))
    };
    let step = |(at, step): (usize, &tollgate_workflows::RunStep)| {
        let tries: Vec<_> = saved.tries.iter().filter(|one| one.step == at).collect();
        let calls: Vec<_> = tries.iter().filter_map(|one| one.call).collect();
        let charged = Money::checked_sum(tries.iter().map(|one| one.charged)).unwrap_or(Money::MAX);
        let planned = plan.as_ref().and_then(|plan| plan.steps.get(at));
        let outputs = saved.outputs.get(&step.name).map(|outputs| linked(&json!(outputs), &link));
        // Until it has ended, what is known beforehand.
        let warnings = saved.warnings.get(&step.name).or(planned.map(|step| &step.warnings));
        json!({
            "name": step.name,
            "status": step.status,
            "endpoint": planned.map(|step| &step.endpoint),
            "model": planned.and_then(|step| step.model.as_ref()),
            "most_nano_usd": planned.map(|step| step.most.nano()),
            "charged_nano_usd": charged.nano(),
            "call_id": calls.last(),
            "calls": calls,
            "outputs": outputs,
            "warnings": warnings.map(Vec::as_slice).unwrap_or_default(),
        })
    };
    value["steps"] = machine.steps.iter().enumerate().map(step).collect();
    value
}
