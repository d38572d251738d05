//! What the commands have in common: a draft is shown, and carried out only when the configuration
//! still loads; in the folder, or by publishing it.

use super::folder::Folder;
use super::published::PublishedCatalog;
use crate::admin_keys::who;
use crate::args::ActorArgs;
use crate::real;
use crate::serve::{listed, settings};
use crate::show::Output;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::form::{Form, Mistakes};
use tollgate_catalog::import::{
    BadDraft, CatalogDraft, CatalogFiles, DraftOutcome, Glob, ImportStop, Margin, PlanStep, StepKind,
};
use tollgate_catalog::{PriceChange, PriceChangeKind};

/// Where the catalog is that a command changes.
pub enum SalePlace {
    Folder(Folder),
    Published(PublishedCatalog),
}

impl SalePlace {
    /// What is on sale by this configuration.
    pub async fn open(config: &Path) -> Result<SalePlace, String> {
        match PublishedCatalog::open(config).await? {
            Some(published) => Ok(SalePlace::Published(published)),
            None => {
                let found = settings(config).map_err(|error| format!("{error:#}"))?;
                Folder::open(&found.catalog_dir).map(SalePlace::Folder)
            }
        }
    }

    pub fn files(&self) -> &CatalogFiles {
        match self {
            SalePlace::Folder(folder) => &folder.files,
            SalePlace::Published(published) => &published.files,
        }
    }

    /// The version that it is on sale as, where it was published.
    pub async fn carry_out(&self, draft: &CatalogDraft, mode: &Mode<'_>) -> Result<Option<i64>, String> {
        match self {
            SalePlace::Folder(folder) => folder.carry_out(draft, mode.belongs.then_some(mode.config)).map(|()| None),
            SalePlace::Published(published) => {
                let done = who(mode.done.clone()).map_err(|error| error.to_string())?;
                published.publish(mode.config, draft, done).await
            }
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    done: bool,
    steps: &'a [PlanStep],
    stops: &'a [ImportStop],
    notes: &'a [String],
    changes: &'a [PriceChange],
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
}

/// How the command was called.
pub struct Mode<'a> {
    /// Carry it out.
    pub apply: bool,
    /// What to say when it was not.
    pub how: &'a str,
    pub config: &'a Path,
    /// Whether the folder is the catalog of the configuration, and held against it.
    pub belongs: bool,
    /// Who and why, where it is published.
    pub done: &'a ActorArgs,
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

/// Why there is no draft, in the words of the command line.
pub fn said(config: &Path, bad: BadDraft) -> String {
    match bad {
        BadDraft::Mistakes(mistakes) => listed(&mistakes),
        BadDraft::Wrong { field: "models", reason } => format!("--model {reason}"),
        BadDraft::Wrong { field: "second", reason } => format!("--second {reason}"),
        BadDraft::Wrong { field: "route", reason } => format!("{} {reason}", config.display()),
        BadDraft::Wrong { reason, .. } => reason,
    }
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

/// Shows a draft and carries it out, if that was asked for and nothing stops it.
pub async fn settle(
    place: &SalePlace,
    outcome: DraftOutcome,
    mode: &Mode<'_>,
    out: &Output,
) -> Result<ExitCode, String> {
    let draft = match outcome {
        DraftOutcome::Draft(draft) => draft,
        DraftOutcome::Stopped(found) => {
            out.say(&serde_json::json!({ "done": false, "stops": found.stops, "left_out": found.left_out }), || {
                found.stops.iter().map(stop_in_words).collect::<String>() + "nothing was changed: look at the stops"
            });
            return Ok(ExitCode::from(1));
        }
    };
    let done = mode.apply && draft.stops.is_empty();
    let version = if done { place.carry_out(&draft, mode).await? } else { None };
    let CatalogDraft { steps, stops, notes, changes, .. } = &draft;
    let report = Report { done, steps, stops, notes, changes, version };
    out.say(&report, || in_words(&report, mode));
    Ok(if stops.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn stop_in_words(stop: &ImportStop) -> String {
    format!("stop: {} {} (--accept {})\n", stop.model, stop.reason, stop.model)
}

fn in_words(report: &Report<'_>, mode: &Mode<'_>) -> String {
    let mut text = String::new();
    for step in report.steps {
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
    text.extend(report.stops.iter().map(stop_in_words));
    let end = match (report.stops.len(), report.steps.iter().any(|step| counts(step.what)), report.done) {
        (1.., _, _) => "nothing was changed: look at the stops".to_owned(),
        (_, false, _) => "nothing to change".to_owned(),
        (_, _, true) => format!("done: {}{}", counted(report.steps), published(report.version)),
        (_, _, false) => format!("nothing was changed yet: {}", mode.how),
    };
    text + &end
}

/// Where a change went, if not into the folder.
pub fn published(version: Option<i64>) -> String {
    version.map(|version| format!("; published as version {version}")).unwrap_or_default()
}

fn counts(what: StepKind) -> bool {
    matches!(what, StepKind::Add | StepKind::Change | StepKind::Remove)
}

fn counted(steps: &[PlanStep]) -> String {
    let count = |what| steps.iter().filter(|step| step.what == what).count();
    format!("{} added, {} changed, {} removed", count(StepKind::Add), count(StepKind::Change), count(StepKind::Remove))
}
