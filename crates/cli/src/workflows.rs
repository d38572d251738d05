//! `workflow list|show|check|lock|unlock|verify|withdraw|moves`. What a workflow is stands in the
//! catalog's folder, how far it is in the store. What customers do is in `workflow_runs`.

use crate::admin_keys::who;
use crate::args::{ActorArgs, WorkflowCommand};
use crate::keys::ask;
use crate::real;
use crate::serve::{listed, settings};
use crate::show::Output;
use crate::workflow_runs;
use anyhow::{Context as _, anyhow};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::form::{Mistakes, did_you_mean};
use tollgate_catalog::{Mistake, Money};
use tollgate_gateway::endpoints::admin::workflows::{fixture_run, standings};
use tollgate_gateway::sale::Serving;
use tollgate_gateway::sale::workflows::BoundWorkflow;
use tollgate_gateway::settings::workflow_files;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{AccountId, KeyId, WorkflowMove, WorkflowVerb, ids};
use tollgate_workflows::{MAX_FILE_BYTES, load_workflows, read_record};

const LIST: &[&str] = &["slug", "stage", "title", "blocked", "cannot_be_locked", "moved_at_ms", "actor", "reason"];
const MOVES: &[&str] = &["at_ms", "verb", "actor", "reason", "evidence"];

pub async fn workflow(config: &Path, command: WorkflowCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        WorkflowCommand::List => {
            let rows = standings(&serving(config)?, &states(config).await?, real::now_ms());
            out.table(&json!(rows), &rows, LIST);
        }
        WorkflowCommand::Show { slug } => {
            let serving = serving(config)?;
            let bound = named(&serving, &slug)?;
            let states = states(config).await?;
            let record = bound.shown(states.iter().find(|moved| moved.slug == slug), real::now_ms());
            out.say(&record, || format!("{record:#}"));
        }
        WorkflowCommand::Check { files } if files.is_empty() => return check_all(config, out),
        WorkflowCommand::Check { files } => return check(&files, out),
        WorkflowCommand::Lock { slug, done } => put(config, &slug, WorkflowVerb::Lock, done, out).await?,
        WorkflowCommand::Unlock { slug, done } => put(config, &slug, WorkflowVerb::Unlock, done, out).await?,
        WorkflowCommand::Verify { slug, account, key, max_cost, done } => {
            let payer = Payer { account, key, most: max_cost.parse().context("--max-cost")? };
            return verify(config, &slug, payer, done, out).await;
        }
        WorkflowCommand::Withdraw { slug, done } => put(config, &slug, WorkflowVerb::Withdraw, done, out).await?,
        WorkflowCommand::Moves { slug, limit } => {
            let rows = ask(config, AdminCommand::WorkflowMoves { slug, limit }).await?;
            out.table(&rows, rows.as_array().map_or(&[], Vec::as_slice), MOVES);
        }
        WorkflowCommand::Quote { inputs, gateway } => workflow_runs::quote(&inputs, &gateway, out).await?,
        WorkflowCommand::Run(asked) => return workflow_runs::run(asked, out).await,
        WorkflowCommand::Wait { run, wait, gateway } => return workflow_runs::wait(&run, &wait, &gateway, out).await,
        WorkflowCommand::Resume { run, max_cost, resubmit, gateway } => {
            workflow_runs::resume(&run, max_cost.as_deref(), resubmit, &gateway, out).await?;
        }
        WorkflowCommand::Cancel { run, gateway } => workflow_runs::cancel(&run, &gateway, out).await?,
        WorkflowCommand::Runs { limit, after, gateway } => {
            workflow_runs::list(limit, after.as_deref(), &gateway, out).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn serving(config: &Path) -> anyhow::Result<Serving> {
    let loaded = real::source(config).load().map_err(|mistakes| anyhow!(listed(&mistakes)))?;
    Ok(loaded.serving)
}

async fn states(config: &Path) -> anyhow::Result<Vec<WorkflowMove>> {
    Ok(serde_json::from_value(ask(config, AdminCommand::WorkflowStates).await?)?)
}

fn named<'s>(serving: &'s Serving, slug: &str) -> anyhow::Result<&'s Arc<BoundWorkflow>> {
    serving.workflows.get(slug).with_context(|| {
        let hint = did_you_mean(slug, serving.workflows.keys().map(String::as_str));
        format!("no workflow is called {slug:?}{hint}")
    })
}

async fn put(config: &Path, slug: &str, verb: WorkflowVerb, done: ActorArgs, out: &Output) -> anyhow::Result<()> {
    let (serving, states, done) = (serving(config)?, states(config).await?, who(done)?);
    let bound = named(&serving, slug)?;
    let newest = states.iter().find(|moved| moved.slug == slug);
    let moved = bound.planned(verb, newest, done, real::now_ms()).map_err(|why| anyhow!(why))?;
    ask(config, AdminCommand::WorkflowMove { moved: moved.clone() }).await?;
    let word = match verb {
        WorkflowVerb::Lock => "locked",
        WorkflowVerb::Unlock => "unlocked",
        WorkflowVerb::Verify => "verified",
        WorkflowVerb::Withdraw => "withdrawn",
    };
    out.say(&moved, || format!("{slug} is {word}"));
    Ok(())
}

/// Who pays for the run of a fixture, and how much at most.
struct Payer {
    account: AccountId,
    key: KeyId,
    most: Money,
}

/// Has the fixture run by the server, and waits for its end.
async fn verify(config: &Path, slug: &str, payer: Payer, done: ActorArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let (serving, states, done) = (serving(config)?, states(config).await?, who(done)?);
    let newest = states.iter().find(|moved| moved.slug == slug);
    let id = ids::Maker::new(real::world().for_store()).run();
    let (payer, terms) = ((payer.account, payer.key), (id, payer.most));
    let new = fixture_run(named(&serving, slug)?, newest, payer, terms, done, real::now_ms());
    let new = Box::new(new.map_err(|why| anyhow!(why))?);
    ask(config, AdminCommand::WorkflowRunCreate { new }).await?;
    let mut seen = String::new();
    let run = loop {
        let run = ask(config, AdminCommand::WorkflowRunShow { id }).await?;
        let state: Value = serde_json::from_str(run["state"].as_str().unwrap_or_default())?;
        let steps = state["machine"]["steps"].as_array().cloned().unwrap_or_default();
        let line =
            steps.iter().map(|step| format!("{} {}", step["name"], step["status"])).collect::<Vec<_>>().join(", ");
        if line != seen {
            eprintln!("{}", line.replace('"', ""));
            seen = line;
        }
        if !run["ended_at"].is_null() || run["status"] == "stopped" {
            break state;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    // The move is written after the end of the run.
    let moves = ask(config, AdminCommand::WorkflowMoves { slug: slug.to_owned(), limit: 1 }).await?;
    let verified = moves[0]["evidence"].as_str().is_some_and(|evidence| evidence.contains(&id.to_string()));
    let machine = &run["machine"];
    let shown = json!({ "run": id, "slug": slug, "verified": verified, "stopped": machine["stopped"], "failure": machine["failure"] });
    out.say(&shown, || match verified {
        true => format!("{slug} is verified by {id}"),
        false => format!(
            "{slug} is not verified: {id} is {}, {}{}",
            machine["status"], machine["failure"], machine["stopped"]
        ),
    });
    Ok(if verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Records by themselves, whatever their files are called.
fn check(files: &[PathBuf], out: &Output) -> anyhow::Result<ExitCode> {
    let mut records = Vec::new();
    let mut mistakes: Vec<Mistake> = Vec::new();
    for path in files {
        let file = path.display().to_string();
        let size = std::fs::metadata(path).with_context(|| file.clone())?.len();
        anyhow::ensure!(size <= MAX_FILE_BYTES as u64, "{file}: is larger than {MAX_FILE_BYTES} bytes");
        let text = std::fs::read_to_string(path).with_context(|| file.clone())?;
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let found = read_record(&file, &text, name);
        let wrong = found.read.err().unwrap_or_default();
        records.push(json!({ "file": file, "by_schema": found.by_schema, "mistakes": wrong }));
        mistakes.extend(wrong);
    }
    Ok(said(&records, &mistakes, &[], out))
}

/// The workflows of the catalog, whatever else is wrong with the configuration.
fn check_all(config: &Path, out: &Output) -> anyhow::Result<ExitCode> {
    let mistakes = Mistakes::default();
    let (files, unread) = workflow_files(&settings(config)?.catalog_dir);
    unread.into_iter().for_each(|mistake| mistakes.push(mistake));
    let workflows = load_workflows(&files, &mistakes);
    let mistakes = mistakes.into_list();
    let bound = workflows.into_values().map(tollgate_gateway::endpoints::workflows::bound);
    let warnings: Vec<String> = bound.flat_map(|bound| bound.warnings()).collect();
    let record = |one: &tollgate_workflows::WorkflowFiles| {
        let found = read_record(&one.record.0, &one.record.1, &one.name);
        json!({ "file": one.record.0, "by_schema": found.by_schema, "mistakes": found.read.err().unwrap_or_default() })
    };
    let records: Vec<Value> = files.iter().map(record).collect();
    Ok(said(&records, &mistakes, &warnings, out))
}

fn said(records: &[Value], mistakes: &[Mistake], warnings: &[String], out: &Output) -> ExitCode {
    let ok = mistakes.is_empty();
    let all = json!({ "ok": ok, "records": records, "mistakes": mistakes, "warnings": warnings });
    out.say(&all, || {
        let count = records.len();
        let found = if ok { format!("no mistakes in {count} workflow records") } else { listed(mistakes) };
        found + &warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect::<String>()
    });
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
