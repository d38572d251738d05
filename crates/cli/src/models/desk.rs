//! What the commands have in common: the plan is checked against the whole catalog, shown, and
//! carried out only when the configuration still loads.

use super::folder::{Edits, Folder};
use crate::real;
use crate::serve::listed;
use crate::show::Output;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::form::{Form, Mistakes};
use tollgate_catalog::import::{CatalogPlan, Glob, ImportLock, ImportStop, LockedFile, Margin, PlanStep, StepKind};
use tollgate_catalog::import::{ListedModel, VENDORS_FILE, vendors_for};
use tollgate_catalog::{PriceChange, PriceChangeKind, diff};

/// One file that a command would change.
pub struct FileChange {
    /// Its name in the folder.
    pub file: String,
    pub plan: CatalogPlan,
    /// What the lock says of it afterwards, but for the models.
    pub locked: LockedFile,
    pub listed: Vec<ListedModel>,
}

#[derive(Serialize)]
struct Report<'a> {
    done: bool,
    steps: Vec<&'a PlanStep>,
    stops: Vec<&'a ImportStop>,
    notes: &'a [String],
    changes: &'a [PriceChange],
}

/// How the command was called.
pub struct Mode<'a> {
    /// Carry it out.
    pub apply: bool,
    /// What to say when it was not.
    pub how: &'a str,
    /// The configuration to hold it against; `None` for a catalog that belongs to none.
    pub config: Option<&'a Path>,
}

pub fn globs(patterns: &[String]) -> Vec<Glob> {
    patterns.iter().map(Glob::new).collect()
}

pub fn margin(text: &str) -> Result<Margin, String> {
    text.parse().map_err(|bad| format!("--margin {text} {bad}"))
}

/// Today in UTC.
pub fn today() -> String {
    crate::show::utc(real::now_ms()).chars().take(10).collect()
}

/// The names of the providers in the configuration. Keys need not be there yet.
pub fn providers(config: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(config)
        .map_err(|error| format!("{}: {error} (`tollgate init` writes one)", config.display()))?;
    let mistakes = Mistakes::default();
    let mut form = Form::parse(&config.display().to_string(), &text, &mistakes);
    let names = form.named("provider").into_iter().map(|(name, table)| {
        table.ignore_rest();
        name
    });
    Ok(names.collect())
}

/// Shows the changes and carries them out, if that was asked for and nothing stops it.
pub fn settle(
    folder: &Folder,
    changes: Vec<FileChange>,
    mode: &Mode<'_>,
    notes: &[String],
    out: &Output,
) -> Result<ExitCode, String> {
    let settled = carry_out(folder, &changes, mode)?;
    let steps = changes.iter().flat_map(|change| &change.plan.steps).collect();
    let stops: Vec<&ImportStop> = changes.iter().flat_map(|change| &change.plan.stops).collect();
    let code = if stops.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
    let report = Report { done: settled.done, steps, stops, notes, changes: &settled.prices };
    out.say(&report, || in_words(&report, mode));
    Ok(code)
}

pub struct Settled {
    pub done: bool,
    /// What customers pay differently.
    pub prices: Vec<PriceChange>,
}

/// The same without a word about it.
pub fn carry_out(folder: &Folder, changes: &[FileChange], mode: &Mode<'_>) -> Result<Settled, String> {
    let mut edits: Edits = Vec::new();
    let mut lock = folder.lock.clone();
    for change in changes {
        let same = change.plan.text.as_deref().unwrap_or("") == folder.text(&change.file);
        if !same {
            edits.push((change.file.clone(), change.plan.text.clone()));
        }
        note(&mut lock, change, same);
    }
    let written: Vec<&ListedModel> = changes.iter().flat_map(|change| &change.listed).collect();
    if let Some(vendors) = vendors_for(&folder.after(&edits), folder.text(VENDORS_FILE), &written) {
        edits.push((VENDORS_FILE.to_owned(), Some(vendors)));
    }
    let stopped = changes.iter().any(|change| !change.plan.stops.is_empty());
    let (before, after) = folder.both(&edits)?;
    let prices = before.map(|before| diff(&before, &after)).unwrap_or_default();
    let done = mode.apply && !stopped;
    if done && (!edits.is_empty() || lock != folder.lock) {
        folder.write(&edits, &lock)?;
        if let Some(config) = mode.config {
            still_loads(config, folder, &edits)?;
        }
    }
    Ok(Settled { done, prices })
}

fn note(lock: &mut ImportLock, change: &FileChange, same: bool) {
    if change.plan.text.is_none() || change.plan.models.is_empty() {
        lock.files.remove(&change.file);
        return;
    }
    let models = change.plan.models.clone();
    let mut locked = LockedFile { models, ..change.locked.clone() };
    // A look that changes nothing leaves the day as it was.
    if let Some(before) = lock.files.get(&change.file).filter(|before| same && before.models == locked.models) {
        locked.day.clone_from(&before.day);
    }
    lock.files.insert(change.file.clone(), locked);
}

/// A mistake in what was written undoes it; any other is somebody else's.
fn still_loads(config: &Path, folder: &Folder, edits: &Edits) -> Result<(), String> {
    let Err(mistakes) = real::source(config).load() else { return Ok(()) };
    let names: Vec<String> = edits.iter().map(|(name, _)| folder.path(name).display().to_string()).collect();
    let ours: Vec<_> =
        mistakes.into_iter().filter(|mistake| names.iter().any(|name| mistake.to_string().starts_with(name))).collect();
    if ours.is_empty() {
        return Ok(());
    }
    folder.restore(edits)?;
    Err(format!("nothing was changed, because the configuration would not load:\n{}", listed(&ours)))
}

fn in_words(report: &Report<'_>, mode: &Mode<'_>) -> String {
    let mut text = String::new();
    for step in &report.steps {
        let vendor: Vec<String> = step.vendor.iter().map(ToString::to_string).collect();
        let vendor = if vendor.is_empty() { String::new() } else { format!(" (the vendor's {})", vendor.join(", ")) };
        let word = match step.what {
            StepKind::Add => "add",
            StepKind::Change => "change",
            StepKind::Remove => "remove",
            StepKind::Yours => "leave, changed by hand:",
            StepKind::LeftOut => "leave out, removed by hand:",
            StepKind::Taken => "leave out, another file sells it:",
        };
        text += &format!("{word} {}{vendor}\n", step.model);
    }
    for change in report
        .changes
        .iter()
        .filter(|change| !matches!(change.what, PriceChangeKind::ModelAdded | PriceChangeKind::ModelRemoved))
    {
        text += &format!("  {}: {change}\n", change.model.as_deref().unwrap_or_default());
    }
    for note in report.notes {
        text += &format!("note: {note}\n");
    }
    for stop in &report.stops {
        text += &format!("stop: {} {} (--accept {})\n", stop.model, stop.reason, stop.model);
    }
    let end = match (report.stops.len(), report.steps.iter().any(|step| counts(step.what)), report.done) {
        (1.., _, _) => "nothing was changed: look at the stops".to_owned(),
        (_, false, _) => "nothing to change".to_owned(),
        (_, _, true) => format!("done: {}", counted(&report.steps)),
        (_, _, false) => format!("nothing was changed yet: {}", mode.how),
    };
    text + &end
}

fn counts(what: StepKind) -> bool {
    matches!(what, StepKind::Add | StepKind::Change | StepKind::Remove)
}

fn counted(steps: &[&PlanStep]) -> String {
    let count = |what| steps.iter().filter(|step| step.what == what).count();
    format!("{} added, {} changed, {} removed", count(StepKind::Add), count(StepKind::Change), count(StepKind::Remove))
}
