//! `model` and `provider` `pause|resume|list`, and `log`: what operators did besides money.

use crate::admin_keys::who;
use crate::args::{LogArgs, PauseCommand, PauseNames};
use crate::catalog::configured;
use crate::keys::ask;
use crate::real;
use crate::serve::listed;
use crate::show::Output;
use anyhow::{anyhow, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::form::did_you_mean;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{AuditPage, PauseChange, PauseKind};

const LIST: &[&str] = &["name", "status", "since_ms", "actor", "reason"];
const LOG: &[&str] = &["at_ms", "action", "subject", "detail", "actor", "reason"];

pub async fn pausable(config: &Path, kind: PauseKind, command: PauseCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        PauseCommand::Pause(names) => {
            known(kind, &all(config, kind).await?, &names.names)?;
            put(config, kind, names, true, out).await?;
        }
        // What has left the catalog meanwhile can be resumed all the same.
        PauseCommand::Resume(names) => put(config, kind, names, false, out).await?,
        PauseCommand::List { paused } => {
            let mut rows = list(config, kind).await?;
            rows.retain(|row| !paused || row["status"] == "paused");
            out.table(&json!(rows), &rows, LIST);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn log(config: &Path, log: LogArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let rows =
        ask(config, AdminCommand::Audit { page: AuditPage { limit: log.limit, ..AuditPage::default() } }).await?;
    out.table(&rows, rows.as_array().map_or(&[], Vec::as_slice), LOG);
    Ok(ExitCode::SUCCESS)
}

/// Every name there is.
async fn all(config: &Path, kind: PauseKind) -> anyhow::Result<Vec<String>> {
    Ok(match kind {
        PauseKind::Model => configured(config).await.map_err(|trouble| anyhow!(trouble))?.models.into_keys().collect(),
        PauseKind::Provider => {
            let loaded = real::source(config).load().map_err(|mistakes| anyhow!(listed(&mistakes)))?;
            let mut names: Vec<String> = loaded.serving.providers.into_keys().collect();
            names.sort();
            names
        }
    })
}

fn known(kind: PauseKind, all: &[String], names: &[String]) -> anyhow::Result<()> {
    if let Some(name) = names.iter().find(|name| !all.contains(name)) {
        bail!("no {} is called {name:?}{}", kind.word(), did_you_mean(name, all.iter().map(String::as_str)));
    }
    Ok(())
}

async fn put(config: &Path, kind: PauseKind, names: PauseNames, paused: bool, out: &Output) -> anyhow::Result<()> {
    let done = who(names.done)?;
    let mut changes = Vec::new();
    for name in &names.names {
        let (name, at, actor, reason) = (name.clone(), real::now_ms(), done.actor.clone(), done.reason.clone());
        let change = PauseChange { kind, name, paused, at, actor, reason };
        ask(config, AdminCommand::PauseChange { change: change.clone() }).await?;
        changes.push(change);
    }
    let word = if paused { "paused" } else { "resumed" };
    out.say(&changes, || format!("{word}: {}", names.names.join(", ")));
    Ok(())
}

async fn list(config: &Path, kind: PauseKind) -> anyhow::Result<Vec<Value>> {
    let states: Vec<PauseChange> = serde_json::from_value(ask(config, AdminCommand::PauseStates).await?)?;
    let row = |name: String| {
        let state = states.iter().find(|state| state.kind == kind && state.name == name);
        let paused = state.is_some_and(|state| state.paused);
        json!({
            "name": name,
            "status": if paused { "paused" } else { "available" },
            "since_ms": state.map(|state| state.at),
            "actor": state.map(|state| &state.actor),
            "reason": state.map(|state| &state.reason),
        })
    };
    Ok(all(config, kind).await?.into_iter().map(row).collect())
}
