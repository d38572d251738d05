//! `catalog import`: a catalog file out of price lists that others publish. Nothing is fetched: the
//! files are the operator's.

use super::desk::{Mode, SalePlace, globs, margin, said, settle, today};
use super::folder::Folder;
use super::published::PublishedCatalog;
use crate::args::ImportArgs;
use crate::serve::settings;
use crate::show::Output;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tollgate_catalog::import::{BadDraft, ImportDraft, PriceLists, SourceKind};

/// Far larger than any price list.
const MOST_BYTES: u64 = 256 << 20;

pub async fn import(config: &Path, asked: &ImportArgs, out: &Output) -> Result<ExitCode, String> {
    let lists = lists(&asked.from, &asked.second, asked.second_provider.as_deref())?;
    let dir = asked.out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = asked.out.file_name().and_then(|name| name.to_str()).ok_or("--out needs the name of a file")?.to_owned();
    let belongs = belongs(config, dir);
    let place = match belongs || asked.out.parent().is_none_or(|dir| dir.as_os_str().is_empty()) {
        true => published(config).await?,
        false => None,
    };
    let place = place.map_or_else(|| Folder::open(dir).map(SalePlace::Folder), |own| Ok(SalePlace::Published(own)))?;
    let draft = place.files().import(&ImportDraft {
        lists: &lists,
        provider: asked.provider.as_deref(),
        models: &globs(&asked.models),
        facts: &facts(&asked.facts)?,
        prefix: &asked.prefix,
        source: &asked.source,
        margin: margin(&asked.margin)?,
        route: asked.route.as_deref(),
        file: &name,
        accept: &globs(&asked.accept),
        today: &today(),
    });
    let draft = draft.map_err(|bad| said(config, bad))?;
    let mode = Mode { apply: asked.apply, how: "--apply writes it", config, belongs, done: &asked.done };
    settle(&place, draft, &mode, out).await
}

/// Whether the folder is the catalog of the configuration.
fn belongs(config: &Path, dir: &Path) -> bool {
    let same = || {
        let own = settings(config).ok()?.catalog_dir;
        // One that is not there yet, or no longer, is known by its name.
        let named = |dir: &Path| dir.canonicalize().or_else(|_| std::path::absolute(dir)).ok();
        Some(named(&own)? == named(dir)?)
    };
    same().unwrap_or(false)
}

/// What is on sale out of the database; lists can be read without a configuration too.
async fn published(config: &Path) -> Result<Option<PublishedCatalog>, String> {
    match settings(config) {
        Ok(_) => PublishedCatalog::open(config).await,
        Err(_) => Ok(None),
    }
}

/// The files of a command with their forms.
pub fn lists(from: &[String], second: &[String], second_provider: Option<&str>) -> Result<PriceLists, String> {
    let mut lists = PriceLists::default();
    let pairs = [(from, None), (second, second_provider)];
    for (pair, provider) in pairs.into_iter().filter(|(pair, _)| !pair.is_empty()) {
        let [kind, file] = pair else { return Err("a price list is given as KIND FILE".to_owned()) };
        let kind: SourceKind = kind.parse()?;
        let added = lists.add(kind, read(Path::new(file))?, file.clone(), provider.map(str::to_owned));
        added.map_err(|bad| match bad {
            BadDraft::Wrong { reason, .. } => format!("--second {reason}"),
            BadDraft::Mistakes(_) => String::new(),
        })?;
    }
    Ok(lists)
}

/// The texts of files of facts.
pub fn facts(paths: &[PathBuf]) -> Result<Vec<String>, String> {
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<String, String> {
    let trouble = |error: std::io::Error| format!("{}: {error}", path.display());
    if std::fs::metadata(path).map_err(trouble)?.len() > MOST_BYTES {
        return Err(format!("{}: is larger than any price list", path.display()));
    }
    std::fs::read_to_string(path).map_err(trouble)
}
