//! `catalog list`, `enable` and `disable`: the models that come with the product.

use super::desk::{Mode, SalePlace, globs, margin, providers, said, settle, today};
use super::folder::Folder;
use crate::args::{ActorArgs, EnableArgs};
use crate::real;
use crate::serve::settings;
use crate::show::Output;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::import::{CatalogDraft, CatalogFiles, DraftOutcome, EnableDraft, shipped, shipped_overview};

pub fn list(provider: Option<&str>, models: &[String], stale_after: u32, out: &Output) -> Result<ExitCode, String> {
    let now = real::now_ms();
    let Some(provider) = provider else {
        let rows = shipped_overview(now, stale_after)?;
        out.table(&json!({ "data": rows }), &rows, &["provider", "models", "verified_at", "stale", "source"]);
        return Ok(ExitCode::SUCCESS);
    };
    let file = shipped(provider)?;
    let rows = file.rows(&globs(models), now, stale_after);
    let columns =
        ["model", "context", "input_usd", "output_usd", "cache_read_usd", "unverified", "verified_at", "stale"];
    out.table(&json!({ "provider": file.provider, "source": file.source, "data": rows }), &rows, &columns);
    Ok(ExitCode::SUCCESS)
}

pub async fn enable(config: &Path, asked: &EnableArgs, out: &Output) -> Result<ExitCode, String> {
    // What is wrong with the command itself is said before anything is opened.
    shipped(&asked.provider)?;
    providers(config)?;
    let place = SalePlace::open(config).await?;
    let draft = enabled(config, place.files(), asked)?;
    let mode =
        Mode { apply: !asked.dry_run, how: "call it without --dry-run", config, belongs: true, done: &asked.done };
    settle(&place, DraftOutcome::Draft(draft), &mode, out).await
}

/// For who reports it himself, in the folder of a first configuration: how many models are sold.
pub fn enable_quietly(config: &Path, asked: &EnableArgs) -> Result<usize, String> {
    let found = settings(config).map_err(|error| format!("{error:#}"))?;
    let folder = Folder::open(&found.catalog_dir)?;
    let draft = enabled(config, &folder.files, asked)?;
    let sold = draft.lock.files.get(&format!("{}.toml", asked.provider)).map_or(0, |file| file.models.len());
    if draft.stops.is_empty() {
        folder.carry_out(&draft, Some(config))?;
    }
    Ok(sold)
}

fn enabled(config: &Path, files: &CatalogFiles, asked: &EnableArgs) -> Result<CatalogDraft, String> {
    let draft = EnableDraft {
        provider: &asked.provider,
        models: &globs(&asked.models),
        route: asked.route.as_deref(),
        margin: margin(&asked.margin)?,
        accept: &globs(&asked.accept),
        providers: &providers(config)?,
        today: &today(),
    };
    files.enable(&draft).map_err(|bad| said(config, bad))
}

pub async fn disable(
    config: &Path,
    (provider, models): (&str, &[String]),
    dry_run: bool,
    done: &ActorArgs,
    out: &Output,
) -> Result<ExitCode, String> {
    let place = SalePlace::open(config).await?;
    let draft = place.files().disable(provider, &globs(models)).map_err(|bad| said(config, bad))?;
    let mode = Mode { apply: !dry_run, how: "call it without --dry-run", config, belongs: true, done };
    settle(&place, DraftOutcome::Draft(draft), &mode, out).await
}
