//! `catalog diff` and `catalog show`: prices in plain words. Like diff, `diff` exits 0 when nothing
//! differs, 1 when something does and 2 when it cannot tell.

use crate::args::CatalogCommand;
use crate::models::PublishedCatalog;
use crate::real;
use crate::serve::{listed, settings};
use crate::show::Output;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::{Group, PriceChange, Snapshot, View, diff, load};

const TROUBLE: u8 = 2;
/// What `catalog diff` calls the catalog that is on sale out of the database.
const PUBLISHED: &str = "published";

pub async fn run(config: &Path, command: CatalogCommand, out: &Output) -> ExitCode {
    let done = match command {
        CatalogCommand::Diff { old, new } => differs(config, &old, &new, out).await,
        CatalogCommand::Show { model, from } => match from {
            Some(path) => read(&path),
            None => configured(config).await,
        }
        .and_then(|catalog| show(&catalog, model.as_deref(), out)),
        CatalogCommand::List { provider, models, stale_after } => {
            crate::models::list(provider.as_deref(), &models, stale_after, out)
        }
        CatalogCommand::Enable(asked) => crate::models::enable(config, &asked, out).await,
        CatalogCommand::Disable { provider, models, dry_run, done } => {
            crate::models::disable(config, (&provider, &models), dry_run, &done, out).await
        }
        CatalogCommand::Import(asked) => crate::models::import(config, &asked, out).await,
        CatalogCommand::Tidy { dry_run, done } => crate::models::tidy(config, dry_run, &done, out).await,
        CatalogCommand::Update(asked) => crate::models::update(config, &asked, out).await,
    };
    done.unwrap_or_else(|trouble| {
        eprintln!("tollgate: {trouble}");
        ExitCode::from(TROUBLE)
    })
}

async fn differs(config: &Path, old: &Path, new: &Path, out: &Output) -> Result<ExitCode, String> {
    let old = given(config, old).await?;
    Ok(compare(&old, &given(config, new).await?, out))
}

/// A catalog by its path, or the one that was published.
async fn given(config: &Path, path: &Path) -> Result<Snapshot, String> {
    if path != Path::new(PUBLISHED) || path.exists() {
        return read(path);
    }
    let nothing = || format!("{}: nothing was published in the database", config.display());
    of_published(&PublishedCatalog::open(config).await?.ok_or_else(nothing)?)
}

fn of_published(published: &PublishedCatalog) -> Result<Snapshot, String> {
    published.files.loaded().map_err(|mistakes| listed(&mistakes))
}

/// The catalog of a configuration, which may be wrong or incomplete otherwise: what was published,
/// where that is what is sold, and the folder otherwise.
pub async fn configured(config: &Path) -> Result<Snapshot, String> {
    let found = settings(config).map_err(|error| format!("{error:#}"))?;
    match PublishedCatalog::open(config).await? {
        Some(published) => of_published(&published),
        None => read(&found.catalog_dir),
    }
}

/// Names that a command was given, where the catalog knows which there are. Without names it is not
/// read.
pub async fn in_catalog(
    config: &Path,
    names: &[String],
    unknown: impl Fn(&Snapshot, &[String]) -> Option<String>,
) -> anyhow::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let catalog = configured(config).await.map_err(|trouble| anyhow::anyhow!(trouble))?;
    unknown(&catalog, names).map_or(Ok(()), |why| Err(anyhow::anyhow!(why)))
}

/// A folder of catalog files, or one file. Where routes lead does not matter for prices.
fn read(path: &Path) -> Result<Snapshot, String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", path.display());
    let files = if path.is_dir() {
        tollgate_gateway::settings::catalog_files(path).map_err(unreadable)?
    } else {
        vec![(path.display().to_string(), std::fs::read_to_string(path).map_err(unreadable)?)]
    };
    if files.is_empty() {
        return Err(format!("{}: there is no .toml file in it", path.display()));
    }
    load(&files).map_err(|mistakes| listed(&mistakes))
}

/// A struct and not a JSON value, so that percentages stay as they were written.
#[derive(Serialize)]
struct Report<'a> {
    same: bool,
    old_pricing_version: &'a str,
    new_pricing_version: &'a str,
    changes: &'a [PriceChange],
}

fn compare(old: &Snapshot, new: &Snapshot, out: &Output) -> ExitCode {
    let now = real::now_ms();
    let changes = diff(old, new);
    let report = Report {
        same: changes.is_empty(),
        old_pricing_version: old.pricing_version(now),
        new_pricing_version: new.pricing_version(now),
        changes: &changes,
    };
    out.say(&report, || in_words(&changes, report.old_pricing_version, report.new_pricing_version));
    if changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// The changes under the name of what they are about, one line each.
fn in_words(changes: &[PriceChange], old: &str, new: &str) -> String {
    if changes.is_empty() {
        return format!("no price changes (prices {new})");
    }
    let mut text = String::new();
    let mut about = String::new();
    for change in changes {
        let name = match (&change.model, &change.group) {
            (Some(model), _) => model.clone(),
            (None, group) => format!("group {}", group.as_deref().unwrap_or_default()),
        };
        if name != about {
            text.push_str(&format!("{name}\n"));
            about = name;
        }
        text.push_str(&format!("  {change}\n"));
    }
    let count = changes.len();
    let noun = if count == 1 { "change" } else { "changes" };
    format!("{text}{count} {noun} (prices {old} -> {new})")
}

fn show(catalog: &Snapshot, model: Option<&str>, out: &Output) -> Result<ExitCode, String> {
    // An operator sees what is sold to anybody at all, where he can as everybody does.
    let mut groups: Vec<&str> = catalog.groups.keys().map(String::as_str).collect();
    groups.sort_by_key(|group| *group != Group::DEFAULT);
    let view = View { groups: &groups, topped_up: false, known: true, at_ms: real::now_ms() };
    let Some(name) = model else {
        out.say(&catalog.record(&view), || {
            catalog.models.values().map(|model| model.in_words()).collect::<String>().trim_end().to_owned()
        });
        return Ok(ExitCode::SUCCESS);
    };
    let model = catalog.model(name).ok_or_else(|| {
        let hint = tollgate_catalog::form::did_you_mean(name, catalog.models.keys().map(String::as_str));
        format!("no model is called {name:?}{hint}")
    })?;
    out.say(&model.record(catalog, &view), || model.in_words().trim_end().to_owned());
    Ok(ExitCode::SUCCESS)
}
