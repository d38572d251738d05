//! The demo's workflows can be run at once: each that nobody has touched is locked, and its fixture
//! is run by the gateway itself, on an account of its own.

use super::funded;
use super::workflows::FILES;
use crate::real;
use anyhow::Context as _;
use std::time::Duration;
use tokio::time::Instant;
use tollgate_catalog::Money;
use tollgate_gateway::app::App;
use tollgate_gateway::endpoints::admin::workflows::fixture_run;
use tollgate_store::{AccountId, Attribution, KeyId, NewAccount, Pot, RunId, WorkflowRunLimits, WorkflowVerb};

const ACCOUNT: &str = "proofs of workflows";
/// Whoever is not verified by then is left as it is.
const PATIENCE: Duration = Duration::from_secs(60);
const MOST_USD: i64 = 5;

pub async fn verify(app: &App) -> anyhow::Result<()> {
    let (serving, now) = (app.serving.load_full(), real::now_ms());
    let states = app.store.workflow_states().await?;
    let touched = |slug: &str| states.iter().any(|moved| moved.slug == slug);
    let shipped = FILES.iter().filter_map(|(name, _)| name.strip_suffix(".json")).filter(|name| !name.contains('/'));
    let shipped: Vec<&str> = shipped.filter(|slug| !touched(slug)).collect();
    if shipped.is_empty() {
        return Ok(());
    }
    let payer = payer(app).await?;
    let mut begun = Vec::new();
    for bound in shipped.iter().filter_map(|slug| serving.workflows.get(*slug)) {
        let done = || Attribution::by("demo".to_owned(), "a start of the demo".to_owned());
        let id = app.new_run_id();
        let most = Money::from_usd(MOST_USD).context("an amount")?;
        let locked = bound.planned(WorkflowVerb::Lock, None, done(), now);
        let new = locked.and_then(|locked| {
            let new = fixture_run(bound, Some(&locked), payer, (id, most), done(), now)?;
            Ok((locked, new))
        });
        match new {
            Ok((locked, new)) => {
                app.store.move_workflow(locked).await?;
                app.store.create_run(new, WorkflowRunLimits { open: 1_000, stored: 1_000 }).await?;
                begun.push(id);
            }
            Err(why) => tracing::warn!(slug = bound.workflow.record.slug, why, "a workflow stays a draft"),
        }
    }
    app.ring_runs();
    ended(app, begun).await?;
    app.look_at_workflows().await?;
    Ok(())
}

/// Who pays for the fixtures: not the account that people look at.
async fn payer(app: &App) -> anyhow::Result<(AccountId, KeyId)> {
    let store = &app.store;
    let account = store.create_account(NewAccount { name: ACCOUNT.to_owned(), ..NewAccount::default() }).await?.id;
    let credit = format!("{ACCOUNT} {account}");
    let (key, _) = funded(store, account, ACCOUNT, &[(&credit, Pot::Paid, 30)]).await?;
    Ok((account, key))
}

async fn ended(app: &App, mut runs: Vec<RunId>) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    while let Some(id) = runs.pop() {
        let run = app.store.any_run(id).await?;
        let rests = run.as_ref().is_none_or(|run| run.ended_at.is_some() || run.status == "stopped");
        if let Some(run) = run.filter(|run| rests && run.status != "completed") {
            tracing::warn!(slug = run.slug, status = run.status, "a workflow of the demo was not verified");
        }
        if !rests && Instant::now() < until {
            runs.push(id);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}
