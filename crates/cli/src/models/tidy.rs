//! `catalog tidy`: price changes of the past become the prices of their models.

use super::desk::{Mode, SalePlace, published, said};
use crate::args::ActorArgs;
use crate::real;
use crate::show::Output;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

pub async fn tidy(config: &Path, dry_run: bool, done: &ActorArgs, out: &Output) -> Result<ExitCode, String> {
    let place = SalePlace::open(config).await?;
    let draft = place.files().tidy(real::now_ms()).map_err(|bad| said(config, bad))?;
    // The prices were compared already; the folder is written without a look at the configuration.
    let mode = Mode { apply: !dry_run, how: "", config, belongs: false, done };
    let version = match dry_run || draft.edits.is_empty() {
        true => None,
        false => place.carry_out(&draft, &mode).await?,
    };
    let row = |(model, count, file): &(String, usize, String)| json!({ "model": model, "folded": count, "file": file });
    let rows: Vec<Value> = draft.folded.iter().map(row).collect();
    let mut shown = json!({ "done": !dry_run, "data": rows });
    if let Some(version) = version {
        shown["version"] = json!(version);
    }
    if rows.is_empty() {
        out.say(&shown, || "there is nothing to fold: no price change lies in the past".to_owned());
    } else {
        out.table(&shown, &rows, &["model", "folded", "file"]);
        if !out.json && version.is_some() {
            crate::show::print_line(published(version).trim_start_matches("; "));
        }
    }
    Ok(ExitCode::SUCCESS)
}
