//! `provider list|show|add|test|pause|resume`: providers that are known by name, and those of the
//! configuration.

use crate::args::{PauseCommand, ProviderAddArgs, ProviderCommand, ProviderTestArgs};
use crate::models::PublishedCatalog;
use crate::pauses::pausable;
use crate::real;
use crate::serve::listed;
use crate::show::{Output, print_line};
use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::form::{Form, Mistakes, did_you_mean};
use tollgate_gateway::configuration::Loaded;
use tollgate_gateway::media_trial::{MediaOrder, try_media};
use tollgate_gateway::settings::{Ability, KeyNeed, Preset, ability_named, preset, preset_record, presets};
use tollgate_gateway::trial::{TrialOrder, TrialOutcome, try_provider};
use tollgate_store::PauseKind;

const ALL: &[&str] = &["id", "name", "kind", "endpoints", "key_env", "configured"];
const ONE: &[&str] = &[
    "id",
    "name",
    "kind",
    "base_url",
    "settings",
    "key",
    "key_env",
    "access_env",
    "endpoints",
    "bill_on_cancel",
    "takes_links",
    "quirks",
    "address",
    "docs",
    "note",
    "configured",
    "next",
];
const RESULTS: &[&str] = &["endpoint", "model", "outcome", "most_usd", "said"];

pub async fn provider(config: &Path, command: ProviderCommand, out: &Output) -> anyhow::Result<ExitCode> {
    let pauses = |command| pausable(config, PauseKind::Provider, command, out);
    match command {
        ProviderCommand::List { all: true, endpoint, .. } => list(config, endpoint.as_deref(), out),
        // Where nothing is configured there is nothing to list but what could be.
        ProviderCommand::List { paused: false, endpoint, .. } if !config.exists() => {
            eprintln!("There is no {}: these are the providers that are known by name (`--all`).", config.display());
            list(config, endpoint.as_deref(), out)
        }
        ProviderCommand::List { paused, .. } => pauses(PauseCommand::List { paused }).await,
        ProviderCommand::Pause(names) => pauses(PauseCommand::Pause(names)).await,
        ProviderCommand::Resume(names) => pauses(PauseCommand::Resume(names)).await,
        ProviderCommand::Show { id } => show(config, &id, out),
        ProviderCommand::Add(asked) => add(config, &asked, out),
        ProviderCommand::Test(asked) => test(config, &asked, out).await,
    }
}

fn list(config: &Path, endpoint: Option<&str>, out: &Output) -> anyhow::Result<ExitCode> {
    let ability = endpoint.map(ability).transpose()?;
    let written = written(config)?;
    let rows = presets().iter().filter(|row| ability.is_none_or(|one| row.endpoints().contains(&one)));
    let rows: Vec<Value> = rows.map(|row| in_json(row, &written)).collect();
    out.table(&json!(rows), &rows, ALL);
    Ok(ExitCode::SUCCESS)
}

fn show(config: &Path, id: &str, out: &Output) -> anyhow::Result<ExitCode> {
    out.record(&in_json(known(id)?, &written(config)?), ONE);
    Ok(ExitCode::SUCCESS)
}

fn known(id: &str) -> anyhow::Result<&'static Preset> {
    preset(id).ok_or_else(|| {
        let hint = did_you_mean(id, presets().iter().map(|row| row.id.as_str()));
        anyhow!("no provider is known as {id:?}{hint}: `tollgate provider list --all` shows them")
    })
}

fn ability(word: &str) -> anyhow::Result<Ability> {
    ability_named(word).map_err(|why| anyhow!(why))
}

/// A provider of the configuration: its name, and the row that it begins with.
struct Written {
    name: String,
    preset: Option<String>,
}

/// The providers of a configuration that may be wrong otherwise, or not be there yet.
fn written(config: &Path) -> anyhow::Result<Vec<Written>> {
    match std::fs::read_to_string(config) {
        Ok(text) => named(config, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| config.display().to_string()),
    }
}

fn named(config: &Path, text: &str) -> anyhow::Result<Vec<Written>> {
    let mistakes = Mistakes::default();
    let mut form = Form::parse(&config.display().to_string(), text, &mistakes);
    let tables = form.named("provider").into_iter().map(|(name, mut table)| {
        let preset = table.opt_text("preset");
        table.ignore_rest();
        Written { name, preset }
    });
    let all: Vec<Written> = tables.collect();
    form.ignore_rest();
    mistakes.result(all).map_err(|mistakes| anyhow!(listed(&mistakes)))
}

fn in_json(row: &Preset, written: &[Written]) -> Value {
    let configured = written.iter().filter(|one| one.preset.as_deref().unwrap_or(&one.name) == row.id);
    preset_record(row, &configured.map(|one| one.name.as_str()).collect::<Vec<_>>())
}

fn add(config: &Path, asked: &ProviderAddArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let row = known(&asked.id)?;
    let name = asked.name.clone().unwrap_or_else(|| row.id.clone());
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
        bail!("--name {name:?}: letters, digits, - and _ only");
    }
    let before = match std::fs::read_to_string(config) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| config.display().to_string()),
    };
    if named(config, &before)?.iter().any(|one| one.name == name) {
        bail!("{}: there is a provider {name:?} already; --name gives this one another", config.display());
    }
    let variable = variable(row, asked)?;
    let table = table(row, &name, asked, variable.as_deref())?;
    let gap = if before.is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
    let end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let after = format!("{before}{end}{gap}{table}");
    // A file that was right must not become wrong: `provider` may be written in another form.
    if !named(config, &after)?.iter().any(|one| one.name == name) {
        bail!("{}: the table could not be added; write it yourself:\n{table}", config.display());
    }
    replace(config, &after)?;
    let said = json!({ "added": name, "preset": row.id, "file": config.display().to_string(), "key_env": variable });
    out.say(&said, || {
        let set = variable
            .as_ref()
            .map(|variable| format!("\nset {variable}, then: "))
            .unwrap_or_else(|| "\nthen: ".to_owned());
        format!("{}: [provider.{name}] added{set}tollgate provider test {name}", config.display())
    });
    Ok(ExitCode::SUCCESS)
}

/// The variable of the key, where there is one.
fn variable(row: &Preset, asked: &ProviderAddArgs) -> anyhow::Result<Option<String>> {
    let usual = || {
        let typed = || real::typed(&format!("Environment variable with the key [{}]: ", row.key_env));
        (row.key == KeyNeed::Needed)
            .then(|| typed().filter(|typed| !typed.is_empty()).unwrap_or_else(|| row.key_env.clone()))
    };
    let variable = asked.key_env.clone().or_else(usual);
    let is_name = |text: &str| {
        let mut bytes = text.bytes();
        bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match variable {
        // It may be the key itself, so it is not repeated.
        Some(text) if !is_name(&text) => {
            bail!("--key-env takes the name of an environment variable, such as {}: not the key itself", row.key_env)
        }
        other => Ok(other),
    }
}

/// The lines that are added.
fn table(row: &Preset, name: &str, asked: &ProviderAddArgs, variable: Option<&str>) -> anyhow::Result<String> {
    let mut lines = vec![format!("[provider.{name}]"), format!("preset = {:?}", row.id)];
    let blanks = row.blanks();
    for one in &asked.set {
        let (key, value) = one.split_once('=').with_context(|| format!("--set {one}: write it as region=eu-west-1"))?;
        if !blanks.contains(&key) {
            bail!(
                "--set {key}: the address of {} has {}",
                row.id,
                if blanks.is_empty() { "no such part".to_owned() } else { blanks.join(", ") }
            );
        }
        lines.push(format!("{key} = {value:?}"));
    }
    let given =
        |key: &str| asked.set.iter().find_map(|one| one.strip_prefix(key)?.strip_prefix('=').map(str::to_owned));
    match &asked.base_url {
        Some(url) => lines.push(format!("base_url = {url:?}")),
        None => {
            for key in blanks.iter().filter(|key| given(key).is_none() && !row.defaults.contains_key(**key)) {
                let value = real::typed(&format!("{key} in {}: ", row.base_url)).filter(|value| !value.is_empty());
                let value =
                    value.with_context(|| format!("--set {key}=… is needed for the address {}", row.base_url))?;
                lines.push(format!("{key} = {value:?}"));
            }
            let typed = |key: &str| {
                let start = format!("{key} = \"");
                lines.iter().find_map(|line| Some(line.strip_prefix(&start)?.strip_suffix('"')?.to_owned()))
            };
            row.address(typed).map_err(|key| anyhow!("--set {key}: letters, digits and .-_: only"))?;
        }
    }
    if let Some(access) = &row.access_env {
        lines.push(format!("access_env = {access:?}"));
    }
    if let Some(variable) = variable {
        lines.push(format!("secret_env = {variable:?}"));
    }
    Ok(lines.join("\n") + "\n")
}

/// Writes the file as a whole or not at all, with the rights that it had.
fn replace(config: &Path, text: &str) -> anyhow::Result<()> {
    let place = || config.display().to_string();
    // A link stays one.
    let file = std::fs::canonicalize(config).unwrap_or_else(|_| config.to_owned());
    let part = file.with_extension("toml.part");
    std::fs::write(&part, text).with_context(place)?;
    if let Ok(before) = std::fs::metadata(&file) {
        std::fs::set_permissions(&part, before.permissions()).with_context(place)?;
    }
    std::fs::rename(&part, &file).with_context(place)
}

async fn test(config: &Path, asked: &ProviderTestArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let only = asked.endpoint.as_deref().map(ability).transpose()?;
    let loaded = match PublishedCatalog::open(config).await.map_err(|why| anyhow!(why))? {
        Some(published) => published.load(config).map_err(|why| anyhow!(why))?,
        None => real::source(config).load().map_err(|mistakes| anyhow!(listed(&mistakes)))?,
    };
    if asked.media {
        return media(loaded, asked, only, out).await;
    }
    let (provider, model) = (asked.name.as_str(), asked.model.as_deref());
    let order = TrialOrder { provider, only, model, plan: asked.plan, now: real::now_ms(), progress: None };
    let results = try_provider(&loaded, &order).await.map_err(|why| anyhow!(why))?;
    let failed = results.iter().any(|one| one.outcome == TrialOutcome::Failed);
    let value = serde_json::to_value(&results)?;
    let rows = value.as_array().map_or(&[][..], Vec::as_slice);
    out.table(&value, rows, if asked.plan { &["endpoint", "model", "request", "most_usd", "said"] } else { RESULTS });
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What costs more than a word: what it costs is said, and only a yes makes it.
async fn media(
    loaded: Loaded,
    asked: &ProviderTestArgs,
    only: Option<Ability>,
    out: &Output,
) -> anyhow::Result<ExitCode> {
    let order = MediaOrder { provider: &asked.name, only, send: asked.yes, progress: None, stop: None };
    let results = try_media(loaded, &order, real::world()).await.map_err(|why| anyhow!(why))?;
    let failed = results.iter().any(|one| one.outcome == TrialOutcome::Failed);
    let value = serde_json::to_value(&results)?;
    out.table(&value, value.as_array().map_or(&[][..], Vec::as_slice), RESULTS);
    if !out.json && results.is_empty() {
        print_line("no model of the catalog that makes pictures, sound or videos is routed to it");
    } else if !out.json && !asked.yes {
        print_line("nothing was sent: --yes makes one of each, and costs what is written");
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
