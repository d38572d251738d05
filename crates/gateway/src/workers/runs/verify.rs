//! The end of the run of a fixture: where every acceptance check holds and nothing has changed
//! meanwhile, the workflow is executable, and the run is the evidence.

use super::attempt::output_of;
use super::drive::RunInHand;
use super::millis;
use crate::endpoints::runs::plan::sum;
use crate::endpoints::runs::saved::StepWarning;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tollgate_store::StoreError;
use tollgate_workflows::{RunStatus, Workflow};

/// Writes the move; or says why the run proves nothing.
pub(super) async fn ended(hand: &RunInHand<'_>) -> Result<Option<String>, StoreError> {
    let Some(done) = hand.plan.verifies.clone() else { return Ok(None) };
    let (app, slug, run) = (hand.app, &hand.run.slug, hand.run.id);
    let serving = app.serving.load_full();
    let now = app.world.now_ms();
    let states = app.store.workflow_states().await?;
    let newest = states.iter().find(|moved| moved.slug == *slug);
    let bound = serving.workflows.get(slug).filter(|bound| bound.digest == hand.plan.digest);
    let unproven = bound.and_then(|bound| unproven(hand, &bound.workflow));
    let moved = match bound {
        Some(_) if unproven.is_some() => Err(unproven.unwrap_or_default()),
        Some(bound) => bound.verified(newest, done, now, proof(hand, now)),
        None => Err("the contract has changed since the run began".to_owned()),
    };
    match moved {
        Ok(moved) => {
            app.store.move_workflow(moved).await?;
            app.workflows.look(&app.store, &serving, now).await?;
            Ok(None)
        }
        Err(why) => {
            tracing::warn!(slug, %run, why, "a workflow was not verified");
            Ok(Some(why))
        }
    }
}

/// Why a run proves nothing of this workflow.
fn unproven(hand: &RunInHand<'_>, workflow: &Workflow) -> Option<String> {
    let machine = &hand.saved.machine;
    if machine.status != RunStatus::Completed {
        return Some(machine.failure.clone().unwrap_or_else(|| hand.saved.status().to_owned()));
    }
    if hand.saved.charged() > sum(&hand.plan.steps) {
        return Some("it cost more than it was quoted".to_owned());
    }
    for (step, warnings) in &hand.saved.warnings {
        if let Some(why) = unread(step, warnings) {
            return Some(why);
        }
    }
    let outputs = &hand.saved.outputs;
    let seen =
        |given: &BTreeMap<String, Value>| given.iter().map(|(name, value)| (name.clone(), output_of(value))).collect();
    let outputs = outputs.iter().map(|(step, given)| (step.clone(), seen(given))).collect();
    workflow.unaccepted(&hand.steps, &outputs)
}

/// A step that asked with something that did not count has not done what its workflow says.
pub(super) fn unread(step: &str, warnings: &[StepWarning]) -> Option<String> {
    let of_request = warnings.iter().find(|warning| !warning.is_of_answer());
    of_request.map(|StepWarning { field, message }| format!("the step {step} asks with `{field}`: {message}"))
}

/// What the run has proven.
fn proof(hand: &RunInHand<'_>, now: i64) -> Map<String, Value> {
    let steps = &hand.plan.steps;
    let versions: BTreeSet<&str> = steps.iter().map(|step| step.pricing_version.as_str()).collect();
    // Which models may be asked is fixed only where the record's query chose them.
    let serving = hand.app.serving.load();
    let models: Vec<&String> = steps.iter().filter_map(|step| step.model.as_ref()).collect();
    let simulated = models.iter().filter_map(|name| serving.catalog.model(name)).all(|model| {
        let mut routes = model.routes.iter().filter_map(|route| serving.providers.get(&route.provider));
        // On this machine there is nobody who makes anything.
        let here = |host: &str| host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        routes.all(|provider| here(provider.base_url.host()))
    });
    let time = tollgate_store::date(now);
    let json = json!({
        "last_verified_at": time,
        "capability_evidence": hand.run.id,
        "package_status": "verified",
        "price_source": versions.into_iter().collect::<Vec<_>>().join(" "),
        "availability_source": if simulated { "simulator" } else { "provider" },
        "valid_until_ms": now.saturating_add(millis(hand.app.settings.runs.evidence)),
    });
    match json {
        Value::Object(proof) => proof,
        _ => Map::new(),
    }
}
