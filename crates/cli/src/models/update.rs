//! `catalog update`: what vendors changed since their prices were taken over, and what was changed
//! by hand. Only shown, unless it is told to write.

use super::desk::{Mode, SalePlace, globs, said, settle, today};
use super::import::{facts, lists};
use crate::args::UpdateArgs;
use crate::show::Output;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::import::UpdateDraft;

pub async fn update(config: &Path, asked: &UpdateArgs, out: &Output) -> Result<ExitCode, String> {
    let place = SalePlace::open(config).await?;
    let draft = place.files().update(&UpdateDraft {
        files: &asked.files,
        lists: &lists(&asked.from, &asked.second, asked.second_provider.as_deref())?,
        facts: &facts(&asked.facts)?,
        prefix: &asked.prefix,
        accept: &globs(&asked.accept),
        today: &today(),
    });
    let draft = draft.map_err(|bad| said(config, bad))?;
    let mode = Mode { apply: asked.apply, how: "--apply writes it", config, belongs: true, done: &asked.done };
    settle(&place, draft, &mode, out).await
}
