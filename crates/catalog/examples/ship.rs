//! Writes a file of `catalog/models` from two price lists; `scripts/models` calls it.
//!
//! `ship KIND FILE PROVIDER KIND FILE PROVIDER PREFIX SOURCE DAY OUT FACTS FACTS MODEL…` prints the
//! stops, one `name<TAB>reason` per line, and writes the file when there are none.

use tollgate_catalog::import::{Glob, ImportRequest, PriceSource, ShippedFile, SourceKind, facts_file};

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, file, whose, kind2, file2, whose2, prefix, source, today, out, facts, more_facts, models @ ..] =
        &words[..]
    else {
        return Err("see the top of this file".to_owned());
    };
    let text = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let read = |kind: &str, file: &str, whose: &str| -> Result<PriceSource, String> {
        let kind: SourceKind = kind.parse()?;
        PriceSource::read(kind, &text(file)?, Some(whose), today).map_err(|bad| format!("{file} {bad}"))
    };
    let found = ImportRequest {
        first: &read(kind, file, whose)?,
        second: Some(&read(kind2, file2, whose2)?),
        only: &models.iter().map(Glob::new).collect::<Vec<_>>(),
        accepted: &[],
        facts: &[facts_file(&text(facts)?)?, facts_file(&text(more_facts)?)?],
        prefix,
        source,
        today,
    }
    .run();
    for stop in &found.stops {
        println!("{}\t{}", stop.model, stop.reason);
    }
    if !found.stops.is_empty() {
        return Ok(());
    }
    let provider = out.rsplit('/').next().unwrap_or_default().trim_end_matches(".toml").to_owned();
    let file = ShippedFile {
        provider,
        source: source.clone(),
        verified_at: today.clone(),
        compared: vec![kind.clone(), kind2.clone()],
        digest: String::new(),
        models: found.listed,
    };
    std::fs::write(out, file.write()).map_err(|error| format!("{out}: {error}"))
}
