//! `catalog update`: what vendors changed since their prices were taken over, and what was changed
//! by hand. Only shown, unless it is told to write.

use super::desk::{FileChange, Mode, globs, settle, today};
use super::folder::Folder;
use super::import::{Lists, Taken, notes, stopped, texts};
use super::shipped::{FROM, folder, locked};
use crate::args::UpdateArgs;
use crate::show::Output;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::import::{
    Glob, Import, ImportRequest, ListedModel, LockedFile, PlanKind, PlanRequest, SaleTerms, facts_file, plan, shipped,
};

pub fn update(config: &Path, asked: &UpdateArgs, out: &Output) -> Result<ExitCode, String> {
    let folder = folder(config)?;
    let named = |file: &str| {
        asked.files.is_empty() || asked.files.iter().any(|name| name == file || format!("{name}.toml") == file)
    };
    let files: Vec<(&String, &LockedFile)> = folder.lock.files.iter().filter(|(file, _)| named(file)).collect();
    if files.is_empty() {
        return Err("no file of the catalog was written by `catalog enable` or `catalog import`".to_owned());
    }
    let mut changes = Vec::new();
    let mut all_notes = Vec::new();
    for (name, known) in files {
        let listed = if known.from == [FROM] {
            let file = shipped(&known.provider)?;
            let fresh = file.models.iter().filter(|model| !known.models.contains_key(&model.name)).count();
            if fresh > 0 {
                all_notes.push(format!(
                    "{fresh} more models of {} are shipped: `tollgate catalog enable {}`",
                    known.provider, known.provider
                ));
            }
            (locked(&file, &terms(known)), file.models)
        } else if asked.from.is_empty() {
            all_notes
                .push(format!("{name} was imported from {}: give the new list with --from", known.from.join(" and ")));
            continue;
        } else {
            let (found, locked) = imported(known, asked)?;
            if !found.stops.is_empty() {
                return Ok(stopped(&found, out));
            }
            all_notes.extend(notes(&found));
            (locked, found.listed)
        };
        changes.push(change(&folder, name, known, listed, asked)?);
    }
    let mode = Mode { apply: asked.apply, how: "--apply writes it", config: Some(config) };
    settle(&folder, changes, &mode, &all_notes, out)
}

fn terms(known: &LockedFile) -> SaleTerms {
    let origin = if known.from == [FROM] { known.provider.clone() } else { known.from.join("+") };
    SaleTerms { origin, route: known.route.clone(), margin: known.margin }
}

fn change(
    folder: &Folder,
    name: &str,
    known: &LockedFile,
    (locked, listed): (LockedFile, Vec<ListedModel>),
    asked: &UpdateArgs,
) -> Result<FileChange, String> {
    // What was not taken then is not sold now without being asked for.
    let only: Vec<Glob> = known.models.keys().map(Glob::new).collect();
    let plan = plan(&PlanRequest {
        kind: PlanKind::Update,
        before: folder.text(name),
        locked: Some(known),
        listed: &listed,
        only: &only,
        accepted: &globs(&asked.accept),
        terms: &terms(known),
        taken: &folder.taken(name)?,
    })
    .map_err(|why| format!("{} {why}", folder.path(name).display()))?;
    Ok(FileChange { file: name.to_owned(), plan, locked, listed })
}

fn imported(known: &LockedFile, asked: &UpdateArgs) -> Result<(Import, LockedFile), String> {
    let lists = Lists::read(&asked.from, &asked.second)?;
    if lists.names() != known.from {
        return Err(format!("the file was imported from {}: give lists of the same forms", known.from.join(" and ")));
    }
    let provider = Some(known.provider.as_str()).filter(|provider| !known.from.iter().any(|from| from == provider));
    let taken = Taken { provider, second_provider: asked.second_provider.as_deref() };
    let (first, second) = lists.sources(&taken)?;
    let only: Vec<Glob> =
        known.models.keys().map(|name| Glob::new(name.strip_prefix(asked.prefix.as_str()).unwrap_or(name))).collect();
    let facts = texts(&asked.facts)?.iter().map(|text| facts_file(text)).collect::<Result<Vec<_>, String>>()?;
    let mut found = ImportRequest {
        first: &first,
        second: second.as_ref(),
        only: &only,
        accepted: &globs(&asked.accept),
        facts: &facts,
        prefix: &asked.prefix,
        source: "",
        today: &today(),
    }
    .run();
    lists.vouch(&mut found);
    Ok((found, LockedFile { digest: lists.digest(), day: today(), ..known.clone() }))
}
