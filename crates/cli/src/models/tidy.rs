//! `catalog tidy`: price changes of the past become the prices of their models.

use super::folder::{Edits, Folder};
use crate::real;
use crate::serve::{listed, settings};
use crate::show::Output;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::{load, same_prices_from, tidied};

pub fn tidy(config: &Path, dry_run: bool, out: &Output) -> Result<ExitCode, String> {
    let found = settings(config).map_err(|error| format!("{error:#}"))?;
    let folder = Folder::open(&found.catalog_dir)?;
    let (edits, rows) = edits(&folder)?;
    if !dry_run && !edits.is_empty() {
        folder.write(&edits, &folder.lock)?;
    }
    if rows.is_empty() {
        out.say(&json!({ "done": !dry_run, "data": rows }), || {
            "there is nothing to fold: no price change lies in the past".to_owned()
        });
    } else {
        out.table(&json!({ "done": !dry_run, "data": rows }), &rows, &["model", "folded", "file"]);
    }
    Ok(ExitCode::SUCCESS)
}

/// What would be written, held against what is sold now and later.
fn edits(folder: &Folder) -> Result<(Edits, Vec<Value>), String> {
    let now = real::now_ms();
    let before = load(folder.files()).map_err(|mistakes| listed(&mistakes))?;
    let (mut edits, mut rows): (Edits, Vec<Value>) = (Vec::new(), Vec::new());
    for (path, text) in folder.files() {
        let tidied = tidied(text, &before, now).map_err(|why| format!("{path}: {why}"))?;
        let Some(tidied) = tidied else { continue };
        let row = |(model, count): &(String, usize)| json!({ "model": model, "folded": count, "file": path });
        rows.extend(tidied.folded.iter().map(row));
        edits.push((folder.name_of(path), Some(tidied.text)));
    }
    let after = load(&folder.after(&edits)).map_err(|mistakes| listed(&mistakes))?;
    if !same_prices_from(&before, &after, now) {
        return Err("the prices would not be the same afterwards: fold the changes by hand".to_owned());
    }
    Ok((edits, rows))
}
