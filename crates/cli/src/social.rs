//! `social pause|resume|list|log|day`: what operators do with the cells of social data.

use crate::args;
use crate::export;
use crate::keys::ask;
use crate::real;
use crate::serve::listed;
use crate::show::Output;
use anyhow::bail;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tollgate_catalog::social::{Cell, Social};
use tollgate_gateway::routes::switches::AUTO;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{PauseChange, PauseKind};

const LIST: &[&str] =
    &["platform", "capability", "price_usd", "cost_micro_usd", "status", "since_ms", "actor", "reason"];
const LOG: &[&str] = &["at_ms", "kind", "name", "paused", "actor", "reason"];
const DAYS: &[&str] = &["platform", "calls", "cost_micro_usd"];

pub async fn social(config: &Path, command: args::SocialCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::SocialCommand::Call(call) => return export::call(call).await,
        args::SocialCommand::Export(export) => return export::export(export, out).await,
        args::SocialCommand::Pause(change) => put(config, change, true, out).await?,
        args::SocialCommand::Resume(change) => put(config, change, false, out).await?,
        args::SocialCommand::List { platform, paused } => {
            let rows = list(config, platform.as_deref(), paused).await?;
            out.table(&json!(rows), &rows, LIST);
        }
        args::SocialCommand::Log { limit } => {
            let rows = ask(config, AdminCommand::PauseChanges { limit }).await?;
            out.table(&rows, rows.as_array().map_or(&[], Vec::as_slice), LOG);
        }
        args::SocialCommand::Day { back } => {
            let day = real::world().now_ms().div_euclid(86_400_000) - i64::from(back);
            let mut rows = ask(config, AdminCommand::SocialDays { day }).await?;
            for row in rows.as_array_mut().into_iter().flatten() {
                row["day"] = json!(tollgate_store::date(day * 86_400_000));
                if row["platform"] == "" && !out.json {
                    row["platform"] = json!("(all)");
                }
            }
            out.table(&rows, rows.as_array().map_or(&[], Vec::as_slice), DAYS);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn put(config: &Path, change: args::SocialChangeArgs, paused: bool, out: &Output) -> anyhow::Result<()> {
    if change.actor == AUTO || change.reason.trim().is_empty() {
        bail!("--actor says who and --reason why; {AUTO:?} is the name of the gateway itself");
    }
    let social = cells(config)?;
    let mut chosen: Vec<Arc<Cell>> = Vec::new();
    for name in &change.cells {
        chosen.extend(named(&social, name)?);
    }
    let mut done = Vec::new();
    for cell in chosen {
        let row = PauseChange {
            kind: PauseKind::Model,
            name: cell.model.name.clone(),
            paused,
            at: real::world().now_ms(),
            actor: change.actor.clone(),
            reason: change.reason.clone(),
        };
        ask(config, AdminCommand::PauseChange { change: row.clone() }).await?;
        done.push(row);
    }
    let word = if paused { "paused" } else { "resumed" };
    let names: Vec<&str> = done.iter().map(|row| row.name.as_str()).collect();
    out.say(&done, || format!("{word}: {}", names.join(", ")));
    Ok(())
}

fn cells(config: &Path) -> anyhow::Result<Social> {
    let loaded = real::source(config).load().map_err(|mistakes| anyhow::anyhow!(listed(&mistakes)))?;
    Ok(loaded.serving.catalog.social)
}

fn named(social: &Social, name: &str) -> anyhow::Result<Vec<Arc<Cell>>> {
    let found = social.named(name);
    if found.is_empty() {
        bail!("no cell is called {name:?}: name one as douyin/search, or a platform for all of its cells");
    }
    Ok(found)
}

async fn list(config: &Path, platform: Option<&str>, only_paused: bool) -> anyhow::Result<Vec<Value>> {
    let social = cells(config)?;
    let states = ask(config, AdminCommand::PauseStates).await?;
    let states: Vec<PauseChange> = serde_json::from_value(states)?;
    let states: HashMap<&str, &PauseChange> = states
        .iter()
        .filter(|state| state.kind == PauseKind::Model)
        .map(|state| (state.name.as_str(), state))
        .collect();
    let mut rows = Vec::new();
    for cell in social.cells().filter(|cell| platform.is_none_or(|only| cell.platform == only)) {
        let state = states.get(cell.model.name.as_str());
        let paused = state.is_some_and(|state| state.paused);
        if only_paused && !paused {
            continue;
        }
        let record = cell.record(paused);
        rows.push(json!({
            "platform": cell.platform,
            "capability": cell.capability.name(),
            "model": cell.model.name,
            "price_usd": record["price_usd"],
            "cost_micro_usd": cell.cost(),
            "status": record["status"],
            "since_ms": state.map(|state| state.at),
            "actor": state.map(|state| &state.actor),
            "reason": state.map(|state| &state.reason),
        }));
    }
    Ok(rows)
}
